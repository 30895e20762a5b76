# Every target sets up what it needs, or says what to install. `make help` lists them.
GO       ?= go
# One Go builds and tests everything, which the go command fetches where it is another one. GOTOOLCHAIN=local takes yours.
export GOTOOLCHAIN ?= $(shell sed -n 's/^toolchain //p' go.mod)
PYTHON   ?= python3
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
FUZZTIME ?= 30s
HISTORIES ?= 10000
SOAK     ?= 10m
SEED     ?= $(shell date +%s)
IMAGE    ?= vllm-vcr

BIN         := bin/vllm-vcr
VENV        := .cache/venv
TAGS        := interop,conformance,conformance_python
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
VULNDB      ?= latest
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0
PEERS       := conformance/sdk/requirements-peers.txt

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 30

.PHONY: build
build: go ## bin/vllm-vcr, one static binary
	CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -ldflags '-s -w -X main.version=$(VERSION)' -o $(BIN) ./cmd/vllm-vcr

.PHONY: serve
serve: build ## three engines behind our own OpenAI front end, and an API to steer them; Ctrl-C ends it
	$(BIN) serve --engine-count 3 --control-address 127.0.0.1:8001 --inter-token-latency 20

.PHONY: demo
demo: build ## vLLM's own server over three engines, and curl lines to try; Ctrl-C ends it
	@conformance/demo.sh

.PHONY: test
test: go $(VENV)/ready ## every test but those that need vLLM: with the race detector, and against libzmq and msgspec
	@echo 'int main(void) { return 0; }' | $$($(GO) env CC) -x c -o /dev/null - || \
	    { echo 'go test -race needs a C compiler (Debian: apt-get install gcc libc6-dev)' >&2; exit 1; }
	$(GO) vet ./...
	$(GO) test -race -shuffle=on ./...
	PYTHON=$(CURDIR)/$(VENV)/bin/python $(GO) test -tags interop ./protocol/... ./frontend/fill

.PHONY: lint
lint: go ## gofmt, go vet and staticcheck, with the code behind build tags
	@unformatted=$$(gofmt -l $$($(GO) list -f '{{.Dir}}' ./...)); [ -z "$$unformatted" ] || { echo "not gofmt'ed: $$unformatted" >&2; exit 1; }
	$(GO) vet ./...
	$(GO) vet -tags $(TAGS) ./protocol/... ./frontend/fill
	$(GO) vet -tags conformance,conformance_load ./conformance
	$(GO) vet -tags conformance_python ./conformance
	$(GO) vet -tags chaos ./chaos
	$(GO) run $(STATICCHECK) ./...
	$(GO) run $(STATICCHECK) -tags interop ./protocol/... ./frontend/fill
	$(GO) run $(STATICCHECK) -tags conformance,conformance_load ./conformance
	$(GO) run $(STATICCHECK) -tags chaos ./chaos

.PHONY: audit
audit: go ## modules as go.sum has them, and known vulnerabilities of what is called; VULNDB=https://vuln.go.dev for the newest
	$(GO) mod verify
	GO=$(GO) deploy/audit.sh $(GOVULNCHECK) $(VULNDB)

.PHONY: sbom
sbom: build ## bin/vllm-vcr.cdx.json, the software bill of materials of the binary, in CycloneDX
	$(GO) run ./deploy/sbom $(BIN) $(VERSION) >$(BIN).cdx.json

.PHONY: reproducible
reproducible: go ## builds the last commit in two folders: the binaries are the same, byte by byte
	GO=$(GO) deploy/reproducible.sh $(VERSION)

.PHONY: model
model: go ## HISTORIES (10000) random histories of whole fleets against a model of their counters, from SEED on
	$(GO) test ./model -count=1 -v -timeout 60m -histories $(HISTORIES) -seed $(SEED)

.PHONY: soak
soak: build ## three fleets under load and a fault every ten seconds for SOAK (10m), then all books, memory and descriptors are looked at
	conformance/fetch-frontends.sh 0.33.0
	$(GO) run ./soak -duration $(SOAK) -seed $(SEED) -vllm .cache/frontends/0.33.0/vllm-rs

.PHONY: fuzz
fuzz: go ## every fuzz target for FUZZTIME (30s) each
	GO=$(GO) fuzzlimit/run.sh $(FUZZTIME)

.PHONY: chaos
chaos: build sbom ## every fault of docs/reliability.md happens to the binary; RUN=F12 for one row; as root
	GO=$(GO) chaos/run.sh '$(RUN)'

.PHONY: chaos-short
chaos-short: build ## the tests of chaos/ alone, the longest shortened; as root
	GO=$(GO) chaos/run.sh -short

.PHONY: fuzz-corpus
fuzz-corpus: go ## takes what fuzzing has found here into the tree, the smallest inputs of each target
	GO=$(GO) fuzzlimit/collect.sh

.PHONY: conformance
conformance: build ## the engines under vLLM's Rust server, versions 0.27.1 and 0.33.0; fetches them once (700 MB)
	conformance/fetch-frontends.sh 0.27.1 0.33.0
	conformance/fetch-sdk.sh
	$(GO) test -tags conformance -count=1 -timeout 15m ./conformance

.PHONY: conformance-load
conformance-load: build ## NVIDIA's load generator over serve; fetches it once (1.2 GB)
	conformance/fetch-sdk.sh aiperf
	$(GO) test -tags conformance,conformance_load -run TestAIPerf -count=1 -timeout 15m ./conformance

.PHONY: conformance-python
conformance-python: build ## the engines under vLLM's Python server; fetches torch once (8 GB of disk, 10 minutes)
	conformance/fetch-python.sh
	$(GO) test -tags conformance_python -count=1 -timeout 60m ./conformance

.PHONY: bench
bench: build ## throughput, pacing, idle cost, start-up and control latency, each beside its bar; flags in BENCH
	$(GO) run ./bench $(BENCH)

.PHONY: bench-plots
bench-plots: build ## the drawings of docs/performance.md: lateness, and growth to 10,000 requests and to 64 engines
	$(GO) run ./bench -run '^(pacing|growth|waiting)$$' -rounds 1 -duration 20s -plot -plot-dir docs/plots

.PHONY: image
image: sbom ## the container image, built and tried with buildah (as root)
	deploy/image.sh $(IMAGE):$(VERSION)

.PHONY: clean
clean: ## remove what was built; what was fetched stays in .cache
	rm -rf bin bench/out $(VENV)

# A virtual environment with the peers of the interop tests. It is made anew when their list changes.
$(VENV)/ready: $(PEERS)
	@$(PYTHON) -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' || \
	    { echo '$(PYTHON) 3.10 or later with venv is needed (Debian: apt-get install python3-venv), or set PYTHON' >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(PEERS)
	touch $@

.PHONY: go
go:
	@command -v $(GO) >/dev/null || { echo 'go 1.26 or later is needed: https://go.dev/dl' >&2; exit 1; }
