#!/usr/bin/env python3
"""Takes apart a wheel without installing it, with the standard library alone.

  wheel.py extract WHEEL MEMBER FILE   writes one member of WHEEL to FILE, executable
  wheel.py requirements WHEEL          prints what the frontend of the vllm WHEEL needs, one requirement a line
"""
import os
import re
import shutil
import sys
import zipfile

# What only kernels, GPUs, video and weights need: a frontend whose engines live elsewhere never imports these, and some
# of them exist for CUDA alone. torch itself is installed apart.
NOT_FOR_A_FRONTEND = re.compile(
    r"(torch|torchaudio|torchvision|torchcodec|pynvvideocodec|flashinfer|apache-tvm|tilelang|nvidia|nvtx"
    r"|fastsafetensors|instanttensor|quack|tokenspeed|humming|numba)",
    re.IGNORECASE,
)


def extract(wheel, member, target):
    with zipfile.ZipFile(wheel) as archive, archive.open(member) as source, open(target, "wb") as out:
        shutil.copyfileobj(source, out, 1 << 20)
    os.chmod(target, 0o755)


def requirements(wheel):
    with zipfile.ZipFile(wheel) as archive:
        name = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        metadata = archive.read(name).decode()
    for line in metadata.splitlines():
        key, _, requirement = line.partition(": ")
        if key != "Requires-Dist" or "extra ==" in requirement:
            continue
        if not NOT_FOR_A_FRONTEND.match(requirement):
            print(requirement)


def main(args):
    match args:
        case ["extract", wheel, member, target]:
            extract(wheel, member, target)
        case ["requirements", wheel]:
            requirements(wheel)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
