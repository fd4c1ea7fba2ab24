// SPDX-License-Identifier: Apache-2.0
// Sizes that several schedules take by.
#pragma once

#include <cstdint>

#include "loops/schedule.hpp"

namespace amasia::loops {

// `wanted`, but at least `chunk`, at least one and at most `remaining`; and no rest of less than
// `chunk` is left: OpenMP asks for that much in all chunks but the one with the last iteration.
std::uint64_t at_least_chunk(std::uint64_t wanted, std::uint64_t remaining, std::uint64_t chunk);

// A chunk for each thread of a node, or all if that is less.
std::uint64_t chunk_per_thread(std::uint64_t remaining, std::uint64_t chunk,
                               std::uint32_t threads);

// Factoring (Flynn Hummel, Schonberg, Flynn, CACM 1992): half of what remains is a batch, given out
// in equal parts. A node takes those of its threads, `part` of `whole` of the batch.
std::uint64_t batch_take(std::uint64_t remaining, std::uint64_t chunk, std::uint32_t threads,
                         std::uint64_t part, std::uint64_t whole, Batch& batch);
// The part of one thread.
std::uint64_t thread_of_batch_take(const Stock& stock, std::uint64_t chunk);

}  // namespace amasia::loops
