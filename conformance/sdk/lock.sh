#!/usr/bin/env bash
# Writes requirements-NAME.txt for every requirements-NAME.in: each package that comes along, with its version and the hashes of
# its files, for every platform and every Python from the one in its first line on. pip then takes nothing else.
#
#   conformance/sdk/lock.sh
#
# Needs uv (python3 -m pip install uv).
set -euo pipefail
shopt -s inherit_errexit

cd "$(dirname "${BASH_SOURCE[0]}")"
for wanted in requirements-*.in; do
    python=$(sed -n '1s/^# Python //p' "$wanted")
    uv pip compile --quiet --universal --python-version "$python" --generate-hashes --no-annotate \
        --custom-compile-command conformance/sdk/lock.sh --output-file "${wanted%.in}.txt" "$wanted"
done
