#!/usr/bin/env bash
# Takes what fuzzing has found into the tree: of each target the smallest inputs in Go's cache that none of its testdata is like.
# They are seeds of every later run, and every `go test` puts them to the decoders. Inputs of a target whose arguments were others once make
# `go test` fail and are to be deleted.
#
#   fuzzlimit/collect.sh [INPUTS] [BYTES]      default: 12 inputs of a target, of at most 2048 bytes each
set -euo pipefail
shopt -s inherit_errexit

cd "$(dirname "${BASH_SOURCE[0]}")/.."
most=${1:-12}
size=${2:-2048}
go=${GO:-go}
cache=$("$go" env GOCACHE)/fuzz/$("$go" list -m)

find "$cache" -mindepth 2 -type d -name 'Fuzz*' | sort | while read -r found; do
    package=${found#"$cache"/}
    target=${package##*/}
    package=${package%/*}
    grep -qs "^func $target(" "$package"/*_test.go || continue # of another time
    kept=$package/testdata/fuzz/$target
    mkdir -p "$kept"
    have=$(find "$kept" -type f | wc -l)
    find "$found" -type f -size "-$((size / 512 + 1))b" -printf '%s %p\n' | sort -n | cut -d ' ' -f 2- |
        awk -v room="$((most - have))" 'NR <= room' | xargs -r cp -n -t "$kept"
    rmdir --ignore-fail-on-non-empty "$kept"
done
