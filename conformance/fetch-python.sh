#!/usr/bin/env bash
# Installs vLLM's Python frontends 0.33.0 and 0.27.1 for `make conformance-python` and prints where they lie.
#
#   conformance/fetch-python.sh
#
# Needs python3 (3.10 or later) with venv and pip, about 8 GB of disk and some minutes: vLLM imports torch even where it
# computes nothing. One virtual environment holds 0.33.0 and all it needs; 0.27.1 is laid over it as a folder for
# PYTHONPATH. Both go to $VLLM_VCR_CACHE/frontends/python (default: .cache in the repository). Each part leaves a stamp
# when it is whole, so an interrupted run goes on where it was. pip's own settings (PIP_FIND_LINKS, PIP_INDEX_URL, …) hold.
set -euo pipefail
shopt -s inherit_errexit

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mkdir -p "${VLLM_VCR_CACHE:-$here/../.cache}/frontends/python/wheels"
cache=$(cd "${VLLM_VCR_CACHE:-$here/../.cache}/frontends/python" && pwd)
venv=$cache/venv
overlay=$cache/site-0.27.1
wheels=$cache/wheels

say() { echo "fetch-python: $*" >&2; }

# part NAME FUNCTION runs FUNCTION once: its stamp says that it came to its end.
part() {
    [ ! -e "$cache/$1.stamp" ] || return 0
    say "$1 …"
    "$2"
    touch "$cache/$1.stamp"
}

pip() { PIP_REQUIRE_VIRTUALENV=0 "$venv/bin/python" -m pip --disable-pip-version-check "$@" >&2; }

wheel() {
    local found=("$wheels/vllm-$1"-*.whl)
    if [ ! -e "${found[0]}" ]; then
        grep "^vllm==$1 " "$here/wheels.txt" >"$wheels/wanted.txt"
        pip download --no-cache-dir --no-deps --only-binary :all: --dest "$wheels" -r "$wheels/wanted.txt"
    fi
    found=("$wheels/vllm-$1"-*.whl)
    echo "${found[0]}"
}

make_venv() { "${PYTHON:-python3}" -m venv --clear "$venv"; }

install_torch() { pip install torch==2.14.0 torchvision==0.29.0; }

install_requirements() {
    local file
    file=$(wheel 0.33.0)
    "$venv/bin/python" "$here/wheel.py" requirements "$file" >"$cache/requirements.txt"
    pip install -r "$cache/requirements.txt"
}

install_033() {
    local file
    file=$(wheel 0.33.0)
    pip install --no-deps "$file"
}

# 0.27.1 takes its platform from its version, not from VLLM_TARGET_DEVICE: without "+cpu" it looks for a GPU.
install_027() {
    local file
    file=$(wheel 0.27.1)
    rm -rf "$overlay"
    pip install --no-deps --target "$overlay" "$file"
    sed -i 's/^Version: 0\.27\.1$/Version: 0.27.1+cpu/' "$overlay/vllm-0.27.1.dist-info/METADATA"
}

part venv make_venv
part torch install_torch
part requirements install_requirements
part vllm-0.33.0 install_033
part vllm-0.27.1 install_027
rm -rf "$wheels"
echo "$venv/bin/python"
echo "$overlay"
