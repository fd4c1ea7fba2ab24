#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs what building, testing and the demonstration need on Debian 12. Quick, and without
# network, when all is there. `--build-only` leaves out what only tests need.
set -euo pipefail

build=(
  ca-certificates ccache cmake g++-12 gcc-12 git gnuplot-nox iproute2 libboost-context-dev
  libfmt-dev libgtest-dev libhwloc-dev libjemalloc-dev libpmix-dev libsodium-dev libucx-dev
  liburing-dev libzydis-dev ninja-build nlohmann-json3-dev ocl-icd-opencl-dev opencl-headers
  pkg-config procps python3
  clang-19 libomp-19-dev
)
tests=(
  gfortran-12 libtbb-dev openmpi-bin libopenmpi-dev pocl-opencl-icd python3-numpy
  python3-pip python3-setuptools python3-venv python3-wheel ucx-utils
  # Programs of Debian that use OpenMP (tests/packages).
  andi cd-hit clustalo fasttree gettext graphicsmagick imagemagick-6.q16 jpegqs kalign muscle par2
  phylonium pngquant primecount sox sumaclust
)
wanted=("${build[@]}")
[[ ${1:-} == --build-only ]] || wanted+=("${tests[@]}")

missing=()
for package in "${wanted[@]}"; do
  state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ $state == installed ]] || missing+=("$package")
done
if ((${#missing[@]} == 0)); then
  echo "packages: all ${#wanted[@]} are installed"
  exit 0
fi

as_root=()
if ((EUID != 0)); then
  command -v sudo >/dev/null || {
    echo "install-packages: needs root or sudo to install: ${missing[*]}" >&2
    exit 2
  }
  as_root=(sudo)
fi
echo "packages: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -q
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -q -y --no-install-recommends "${missing[@]}"
