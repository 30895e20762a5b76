#!/usr/bin/env bash
# Makes a virtual environment of clients written in Python and prints its interpreter.
#
#   conformance/fetch-sdk.sh            the OpenAI SDK, and what judges its answers (80 MB)
#   conformance/fetch-sdk.sh aiperf     NVIDIA's load generator (1.2 GB)
#
# Needs python3 (3.10 or later) with venv and pip. What goes in is pinned with its hashes in sdk/requirements-NAME.txt (see sdk/lock.sh); the environment lies in
# $VLLM_VCR_CACHE/NAME (default: .cache in the repository) and is made anew when that file changes. One that is whole costs no
# network. pip's own settings (PIP_FIND_LINKS, PIP_INDEX_URL, …) hold.
set -euo pipefail
shopt -s inherit_errexit

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
name=${1:-sdk}
venv=${VLLM_VCR_CACHE:-$here/../.cache}/$name
wanted=$here/sdk/requirements-$name.txt
stamp=$venv/requirements.txt

say() { echo "fetch-sdk: $*" >&2; }

if [ ! -f "$wanted" ]; then
    say "$name is not known; want sdk or aiperf"
    exit 2
elif cmp -s "$wanted" "$stamp"; then
    say "$name: cached"
else
    python=${PYTHON:-python3}
    "$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' ||
        { say "$python 3.10 or later with venv is needed (Debian: apt-get install python3-venv), or set PYTHON"; exit 1; }
    say "$name: installing into $venv"
    "$python" -m venv --clear "$venv"
    PIP_REQUIRE_VIRTUALENV=0 "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r "$wanted" >&2
    cp "$wanted" "$stamp"
fi
(cd "$venv/bin" && echo "$PWD/python")
