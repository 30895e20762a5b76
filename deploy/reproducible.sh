#!/usr/bin/env bash
# Builds the committed tree twice, in two folders and without any cache in common, and compares the binaries byte by byte.
#
#   deploy/reproducible.sh VERSION
#
# Needs go, make and git. Nothing of it is left.
set -euo pipefail
shopt -s inherit_errexit

version=${1:?usage: deploy/reproducible.sh VERSION}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

build() {
    mkdir -p "$1"
    git -C "$here" archive HEAD | tar -x -C "$1"
    make --no-print-directory -C "$1" build VERSION="$version" GO="${GO:-go}" >/dev/null
    sha256sum <"$1/bin/vllm-vcr" | cut -d ' ' -f 1
}

first=$(build "$work/one")
second=$(GOCACHE=$work/cache build "$work/another/and deeper")
if [ "$first" != "$second" ]; then
    echo "reproducible: two builds of $version differ: $first and $second" >&2
    exit 1
fi
echo "reproducible: two builds of $version are the same: sha256 $first"
