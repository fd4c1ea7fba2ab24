// SPDX-License-Identifier: Apache-2.0
// The text that omp_set_affinity_format sets (OpenMP 5.0, 6.14): what of it concerns the team is
// written in here, since the runtime of a node knows only its own threads; and the text itself,
// which the origin tells with each region once the program has set one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace amasia::omp {

// Longer ones are cut, as libomp does (it keeps 512 bytes with the end).
inline constexpr std::size_t kMaxAffinityFormat = 511;

// What a thread is in the team of all nodes, as far as the runtime of its node knows it otherwise.
struct TeamPlace {
  std::optional<std::uint32_t> thread;    // %n, %{thread_num}
  std::optional<std::uint32_t> threads;   // %N, %{num_threads}
  std::optional<std::uint32_t> ancestor;  // %a, %{ancestor_tnum}: at the level around this one
  std::optional<std::uint32_t> level;     // %L, %{nesting_level}
  friend bool operator==(const TeamPlace&, const TeamPlace&) = default;
};

// The format with the fields that are known filled in, each in the width and alignment that it asks
// for; all else is left to the runtime. A field is % [[0].] [width] type, where type is a letter or
// {name}. Pure.
std::string fill_affinity_format(std::string_view format, const TeamPlace& place);

// What the program has set. Any thread; blocks for no longer than a copy takes.
class AffinityFormat {
 public:
  void set(std::string_view format);
  // Empty: nothing has been set.
  std::string get() const;

 private:
  mutable std::mutex mutex_;
  std::string format_;  // guarded by mutex_
};

}  // namespace amasia::omp
