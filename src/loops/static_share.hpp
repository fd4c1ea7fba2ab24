// SPDX-License-Identifier: Apache-2.0
// Static shares as libomp and libgomp compute them, as functions of (thread, threads). gcc computes
// them inline in the program, so ours must agree to the iteration: two loops of one program with
// equal bounds and schedule(static) must give a thread the same iterations (OpenMP 5.1, 2.11.4).
#pragma once

#include <cstdint>
#include <optional>

#include "loops/space.hpp"

namespace amasia::loops {

// schedule(static) without a chunk: one run a thread, sizes differ by at most one, the longer ones
// first. Empty for threads beyond `count`.
Iterations static_block(std::uint64_t count, std::uint32_t thread, std::uint32_t threads);

// schedule(static, chunk): chunk number round * threads + thread. nullopt once past the loop's end.
// `chunk` > 0.
std::optional<Iterations> static_chunk(std::uint64_t count, std::uint64_t chunk,
                                       std::uint32_t thread, std::uint32_t threads,
                                       std::uint64_t round);

// schedule(simd:static, chunk) as libomp's static_balanced_chunked: one run a thread, its size the
// even share rounded up to a multiple of `chunk`, which is a power of two (a vector's length).
Iterations static_block_of_chunks(std::uint64_t count, std::uint64_t chunk, std::uint32_t thread,
                                  std::uint32_t threads);

}  // namespace amasia::loops
