// SPDX-License-Identifier: Apache-2.0
// OpenMP's variables as far as they say something that the program's own runtime does not know:
// OMP_SCHEDULE=hetprobe or hetprobe-i, and OMP_HET_PTG, both of libHetMP. The launcher takes them
// out of the program's environment, or its runtime would complain.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.hpp"

namespace amasia::base {

// What the launcher passes OMP_SCHEDULE's value on by, where it is one of ours.
inline constexpr const char* kOwnScheduleVariable = "AMASIA_OMP_SCHEDULE";
// What it puts in its place: every runtime knows it, and leaves it to us.
inline constexpr const char* kScheduleForRuntime = "auto";

struct RuntimeSchedule {
  bool again = false;  // hetprobe-i
  bool monotonic = false;
  std::uint64_t chunk = 0;  // 0: not given
  friend bool operator==(const RuntimeSchedule&, const RuntimeSchedule&) = default;
};

// A value of OMP_SCHEDULE, [monotonic:|nonmonotonic:]kind[,chunk] in any case. nullopt: it is for
// the program's runtime. The error is a sentence with the name and what is allowed.
Result<std::optional<RuntimeSchedule>> parse_omp_schedule(std::string_view name,
                                                          std::string_view value);

}  // namespace amasia::base
