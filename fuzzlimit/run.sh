#!/usr/bin/env bash
# Runs every fuzz target of the tree for a while.
#
#   fuzzlimit/run.sh FUZZTIME      as go test's -fuzztime has it: 30s each, or 200x for so many inputs
#
# Up to Go 1.26 the fuzzer now and then fails with "context deadline exceeded", and without an input, at the end of its time
# (go.dev/issue/75804). Such a target is run again, at most twice, and that is told.
set -euo pipefail
shopt -s inherit_errexit

time=${1:?usage: fuzzlimit/run.sh FUZZTIME}
go=${GO:-go}
cd "$(dirname "${BASH_SOURCE[0]}")/.."
log=$(mktemp)
trap 'rm -f "$log"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

fuzz() {
    "$go" test -run '^$' -fuzz "^$2\$" -fuzztime "$time" -fuzzminimizetime 100x "$1" 2>&1 | tee "$log"
}

# interrupted says that a run failed for want of time alone.
interrupted() {
    grep -q '^    context deadline exceeded$' "$log" && ! grep -q 'Failing input written' "$log"
}

grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u | while read -r package; do
    for target in $(sed -n 's/^func \(Fuzz[A-Za-z_]*\).*/\1/p' "$package"/*_test.go); do
        echo "$package $target"
        tries=1
        until fuzz "$package" "$target" </dev/null; do
            if [ "$tries" -ge 3 ] || ! interrupted; then
                exit 1
            fi
            tries=$((tries + 1))
            echo "$package $target: its time ended in the middle of an input: try $tries"
        done
    done
done
