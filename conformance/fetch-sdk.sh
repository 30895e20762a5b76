#!/usr/bin/env bash
# Makes the virtual environment of the clients written in Python, the OpenAI SDK above all, and prints its interpreter.
#
#   conformance/fetch-sdk.sh
#
# Needs python3 (3.10 or later) with venv and pip. What goes in is pinned in sdk/requirements.txt; the environment lies in
# $VLLM_VCR_CACHE/sdk (default: .cache in the repository) and is made anew when that file changes. One that is whole costs no
# network. pip's own settings (PIP_FIND_LINKS, PIP_INDEX_URL, …) hold.
set -euo pipefail
shopt -s inherit_errexit

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
venv=${VLLM_VCR_CACHE:-$here/../.cache}/sdk
wanted=$here/sdk/requirements.txt
stamp=$venv/requirements.txt

say() { echo "fetch-sdk: $*" >&2; }

if cmp -s "$wanted" "$stamp"; then
    say "cached"
else
    python=${PYTHON:-python3}
    "$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' ||
        { say "$python 3.10 or later with venv is needed (Debian: apt-get install python3-venv), or set PYTHON"; exit 1; }
    say "installing into $venv"
    "$python" -m venv --clear "$venv"
    PIP_REQUIRE_VIRTUALENV=0 "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$wanted" >&2
    cp "$wanted" "$stamp"
fi
(cd "$venv/bin" && echo "$PWD/python")
