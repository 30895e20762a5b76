# The image of vllm-vcr: one static binary, nothing else. It takes the binary that `make build` made, so that building the image
# needs no other image: `make build && docker build -t vllm-vcr .`, or `make image` for buildah.
FROM scratch
COPY bin/vllm-vcr /vllm-vcr
COPY LICENSE /LICENSE

# No name for the user, as there is no /etc/passwd. Nothing is written: the root may be read-only.
USER 65532:65532

# MOCK_CONTAINER lets POD_NAME speak. The control API is on every interface of the container: publish its port with care.
ENV MOCK_CONTAINER=1 MOCK_CONTROL_PORT=8001
EXPOSE 8001
STOPSIGNAL SIGTERM
ENTRYPOINT ["/vllm-vcr", "play"]
