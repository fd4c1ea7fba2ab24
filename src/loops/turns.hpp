// SPDX-License-Identifier: Apache-2.0
// Loops whose iterations, or parts of them, wait for earlier ones: ordered and doacross loops.
//
// Their threads proceed in the order of iterations whatever the schedule is. So what is dealt out
// at run time elsewhere is dealt out in turn here: a thread that has finished its chunk would get
// the next one in that order anyway. Then everybody can compute who has which chunk, and a node's
// threads have neighbouring ones.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "loops/schedule.hpp"
#include "loops/space.hpp"

namespace amasia::loops {

// The schedule by which such a loop is carried out: one that fixes all shares beforehand.
ScheduleRequest in_turn(ScheduleRequest asked);

// The thread that has the chunk which begins at iteration `next` < count, where `thread` had the
// one before as its share number `round`. `schedule` is one of in_turn().
std::uint32_t thread_after(ScheduleRequest schedule, std::uint64_t count, std::uint64_t next,
                           std::uint32_t thread, std::uint64_t round, std::uint32_t threads);

// The iterations of a nest of loops as one row, the innermost loop fastest.
// The length of that row; nullopt if it does not fit 64 bits.
std::optional<std::uint64_t> row_length(std::span<const Space> nest);
// The place in that row of the iteration in which loop d has the value values[d]; nullopt: there is
// no such iteration. Values are taken as signed 64-bit.
std::optional<std::uint64_t> row_place(std::span<const Space> nest,
                                       std::span<const std::int64_t> values);

}  // namespace amasia::loops
