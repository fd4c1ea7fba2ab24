#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# build.sh PRESET [TARGET…]: configures once and builds. Does nothing where nothing has changed.
set -euo pipefail
cd "$(dirname "$0")/../.."

preset=$1
shift
targets=()
for target in "$@"; do targets+=(--target "$target"); done
if command -v ccache >/dev/null; then
  export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
  # Without it nothing that uses precompiled headers is kept.
  export CCACHE_SLOPPINESS=pch_defines,time_macros
fi
export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}
[[ -f build/$preset/build.ninja ]] || cmake --preset "$preset" >/dev/null
cmake --build --preset "$preset" "${targets[@]}"
