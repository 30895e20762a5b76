#!/usr/bin/env bash
# Builds the container image with buildah and tries it: as the image's own user, with a read-only root, no /tmp, no HOME, no
# capabilities and a process namespace of its own.
#
#   deploy/image.sh TAG
#
# The bill of materials beside the binary must be that of the binary in the image.
#
# Needs bin/vllm-vcr and its bill (make sbom), root, buildah (installed here where apt-get is), unshare and setpriv of util-linux, pgrep,
# curl and python3. No other image is pulled.
set -euo pipefail
shopt -s inherit_errexit

tag=${1:?usage: deploy/image.sh TAG}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
container=
root=
pid=
log=$(mktemp)

say() { echo "image: $*" >&2; }

die() {
    say "$*"
    cat "$log" >&2
    exit 1
}

cleanup() {
    [ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null || true
    [ -z "$container" ] || buildah rm "$container" >/dev/null
    rm -f "$log"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

need() {
    local tool
    for tool in "$@"; do
        command -v "$tool" >/dev/null || die "$tool is not installed"
    done
}

# container_run COMMAND… runs a command of the image where nothing but the image is, without any privilege. In a namespace of its
# own it is process 1, as in a real container, and its end is the end of all processes in it.
container_run() {
    # shellcheck disable=SC2016 # for the inner shell
    env -i "${environment[@]}" unshare --mount --pid --fork --kill-child /bin/sh -c '
        set -e
        root=$1 user=$2 group=$3
        shift 3
        /bin/mount --bind "$root" "$root"
        /bin/mount -t proc proc "$root/proc"
        /bin/mount --bind /dev/null "$root/dev/null"
        /bin/mount -o remount,bind,ro "$root"
        exec /usr/bin/setpriv --no-new-privs -- \
            /usr/sbin/chroot --userspec="$user:$group" --groups="" "$root" "$@"' sh "$root" "${user%:*}" "${user#*:}" "$@"
}

# inspect FORMAT prints a part of the image's configuration.
inspect() { buildah inspect --type image --format "$1" "$tag"; }

# program PID prints the process of the image's binary that PID has led to.
program() {
    local pid=$1
    while [ "$(cat "/proc/$pid/comm")" != vllm-vcr ]; do
        pid=$(pgrep --parent "$pid" | head -n 1)
    done
    echo "$pid"
}

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

[ "$(id -u)" = 0 ] || die "root is needed, to change the root folder"
if ! command -v buildah >/dev/null; then
    need apt-get
    say "installing buildah"
    apt-get update -qq >>"$log" 2>&1
    apt-get install -y -qq --no-install-recommends -o Acquire::Retries=3 buildah >>"$log" 2>&1 || die "apt-get install buildah did not work"
fi
need buildah unshare setpriv pgrep curl python3

buildah bud --isolation chroot --tag "$tag" --file "$here/Dockerfile" "$here" >>"$log" 2>&1 || die "the image was not built"
container=$(buildah from "$tag")
root=$(buildah mount "$container")
files=$(cd "$root" && find . -type f | sort | tr '\n' ' ')
[ "$files" = "./LICENSE ./vllm-vcr " ] || die "files in the image: $files, want ./LICENSE ./vllm-vcr"
sum=$(sha256sum <"$root/vllm-vcr" | cut -d ' ' -f 1)
grep -q "\"content\": \"$sum\"" "$here/bin/vllm-vcr.cdx.json" || die "bin/vllm-vcr.cdx.json is not the bill of the image's binary, $sum"
mkdir "$root/proc" "$root/dev" # a container runtime mounts these two
touch "$root/dev/null"

user=$(inspect '{{.OCIv1.Config.User}}')
[[ $user =~ ^[1-9][0-9]*:[1-9][0-9]*$ ]] || die "user $user, want a number above 0 for user and group"
mapfile -t environment < <(inspect '{{range .OCIv1.Config.Env}}{{println .}}{{end}}' | grep .)
[[ " ${environment[*]} " == *" MOCK_CONTROL_PORT=8001 "* ]] || die "environment ${environment[*]}, want MOCK_CONTROL_PORT=8001"
mapfile -t entry < <(inspect '{{range .OCIv1.Config.Entrypoint}}{{println .}}{{end}}' | grep .)

container_run "${entry[0]}" version

port=$(free_port)
environment+=("MOCK_CONTROL_PORT=$port" POD_NAME=pod-7)
container_run "${entry[@]}" --engine-count 2 >"$log" 2>&1 &
pid=$!
for _ in $(seq 100); do
    kill -0 "$pid" 2>/dev/null || die "the container has ended"
    curl -sf -o /dev/null "http://127.0.0.1:$port/health/live" && break
    sleep 0.1
done
config=$(curl -sf "http://127.0.0.1:$port/config") || die "GET /config was refused"
[[ $config == *'"max_num_seqs":128'* ]] || die "GET /config: $config"
engines=$(curl -sf "http://127.0.0.1:$port/engines")
[[ $engines == *'"index":1'*'"state":"starting"'* ]] || die "GET /engines: $engines"
grep -q '"engine_id":"pod-7"' "$log" || die "POD_NAME is not the engine's id"
grep -q "\"address\":\"\[::\]:$port\"\|\"address\":\"0.0.0.0:$port\"" "$log" || die "the control API is not on every interface"

started=$(date +%s%N)
kill -TERM "$(program "$pid")"
code=0
wait "$pid" || code=$?
pid=
took=$((($(date +%s%N) - started) / 1000000))
if [ "$code" != 0 ] || [ "$took" -ge 2000 ]; then
    die "exit code $code after $took ms at SIGTERM, want 0 within 2 s"
fi
say "$tag: $(du -h "$here/bin/vllm-vcr" | cut -f1) binary, user $user; version, control API and SIGTERM ($took ms) tried"
