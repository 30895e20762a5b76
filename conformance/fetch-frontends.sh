#!/usr/bin/env bash
# Fetches vLLM's Rust server, vllm-rs, out of the vllm wheels on PyPI and prints where each one lies.
#
#   conformance/fetch-frontends.sh [VERSION…]      default: 0.27.1 0.33.0
#
# Needs python3 with pip, and nothing of vLLM's: the wheel is downloaded, not installed, one file is taken from it, and it
# is deleted. It must have the hash that wheels.txt has for its version; one that is not in there is taken as it comes, which is
# told. Binaries go to $VLLM_VCR_CACHE/frontends/VERSION/vllm-rs (default: .cache in the repository). A binary
# appears there whole or not at all; one that is there already costs no network.
set -euo pipefail
shopt -s inherit_errexit

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${VLLM_VCR_CACHE:-$here/../.cache}/frontends
python=${PYTHON:-python3}
work=

say() { echo "fetch-frontends: $*" >&2; }

cleanup() { [ -z "$work" ] || rm -rf "$work"; }
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

need_pip() {
    command -v "$python" >/dev/null || { say "$python is not installed; set PYTHON to another interpreter"; exit 1; }
    "$python" -m pip --version >/dev/null 2>&1 || { say "$python has no pip (Debian: apt-get install python3-pip)"; exit 1; }
}

fetch() {
    local version=$1 target=$cache/$1/vllm-rs
    if [ -x "$target" ]; then
        say "$version: cached"
        return
    fi
    need_pip
    mkdir -p "$cache/$version"
    work=$(mktemp -d "$cache/$version/.fetch.XXXXXX")
    if ! grep "^vllm==$version " "$here/wheels.txt" >"$work/wanted.txt"; then
        say "$version: no hash is known, whatever PyPI has is taken"
        echo "vllm==$version" >"$work/wanted.txt"
    fi
    say "$version: downloading the vllm wheel, about 330 MB"
    PIP_REQUIRE_VIRTUALENV=0 "$python" -m pip download --disable-pip-version-check --no-cache-dir --no-deps \
        --only-binary :all: --dest "$work" -r "$work/wanted.txt" >&2
    "$python" "$here/wheel.py" extract "$work"/vllm-*.whl vllm/vllm-rs "$work/vllm-rs"
    mv "$work/vllm-rs" "$target"
    rm -rf "$work"
    work=
    say "$version: ready"
}

[ $# -gt 0 ] || set -- 0.27.1 0.33.0
for version in "$@"; do
    [[ $version =~ ^[0-9]+(\.[0-9]+)+$ ]] || { say "$version is no version; want one such as 0.33.0"; exit 2; }
    fetch "$version"
    (cd "$cache/$version" && echo "$PWD/vllm-rs")
done
