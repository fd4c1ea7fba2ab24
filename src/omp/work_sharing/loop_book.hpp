// SPDX-License-Identifier: Apache-2.0
// Which work-sharing loops a region's executions across nodes have met, for `--stats`: on the
// origin, by place in the program, in the order in which they were met first.
//
// field      | written by                                  | read by    | ordered by
// sites_ …   | the team's thread 0, within the region      | statistics | used_, release/acquire
// counts     | the same                                    | statistics | relaxed: counts only
// Loops in which a compiler's code deals the iterations by itself (gcc's static ones) call nothing
// and are not met.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "base/base.hpp"
#include "loops/loops.hpp"

namespace amasia::omp {

// How iterations come to threads.
enum class LoopForm : std::uint8_t {
  kBlocks,        // a run for each thread, by the nodes' speeds
  kChunks,        // chunks in turn, as schedule(static, chunk) says
  kVectorBlocks,  // a run of whole vectors for each thread
  kPooled,        // handed out at run time
  kOrdered,       // chunks in the order of the iterations
  kParts,         // a run for each thread as kBlocks, in parts that others may take over
};

// Where a loop is. `place`: kmpc's ident_t, which may name the source, or nullptr.
struct LoopSite {
  const void* code = nullptr;
  const void* place = nullptr;
  std::uint64_t iterations = 0;  // 0: as many as are handed out

  LoopSite() = default;
  // A test's or a caller's that knows no more than the address.
  LoopSite(const void* at, const void* named = nullptr, std::uint64_t count = 0)
      : code(at), place(named), iterations(count) {}
};

// A run as it begins.
struct LoopRun {
  LoopForm form = LoopForm::kBlocks;
  loops::ScheduleKind asked = loops::ScheduleKind::kStatic;
  loops::ScheduleKind carried_out = loops::ScheduleKind::kStatic;
  std::uint64_t chunk = 0;  // 0: none was given
  std::uint64_t iterations = 0;
};

class LoopBook {
 public:
  // Of one region; runs of further ones are counted together.
  static constexpr std::size_t kMostLoops = 64;

  // What is told of one loop: `last` is its latest run.
  struct Entry {
    const void* code = nullptr;
    const void* place = nullptr;
    std::uint64_t runs = 0;
    std::uint64_t iterations = 0;
    LoopRun last;
  };

  // The team's thread 0 begins a loop. No allocation, no lock: a few nanoseconds where loops come
  // in the same order again.
  void note(const LoopSite& site, const LoopRun& run) {
    if (site.code == nullptr) return;
    const std::size_t used = used_.load(std::memory_order_relaxed);  // its own writes
    if (next_ >= used || sites_[next_] != site.code) next_ = position(site, used);
    if (next_ == kMostLoops) {
      add(left_out_, 1);
      return;
    }
    Line& line = lines_[next_++];
    add(line.runs, 1);
    add(line.iterations, run.iterations);
    line.count.store(run.iterations, std::memory_order_relaxed);
    line.chunk.store(run.chunk, std::memory_order_relaxed);
    line.how.store(packed(run), std::memory_order_relaxed);
  }

  // Any thread.
  std::vector<Entry> entries() const;
  // Runs of loops beyond kMostLoops.
  std::uint64_t left_out() const { return left_out_.load(std::memory_order_relaxed); }

 private:
  struct Line {
    const void* place = nullptr;
    std::atomic<std::uint64_t> runs{0}, iterations{0}, count{0}, chunk{0};
    std::atomic<std::uint32_t> how{0};
  };

  // One thread writes, so a count needs no locked instruction.
  static void add(std::atomic<std::uint64_t>& sum, std::uint64_t more) {
    sum.store(sum.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
  }
  static std::uint32_t packed(const LoopRun& run) {
    return static_cast<std::uint32_t>(run.form) << 16 | static_cast<std::uint32_t>(run.asked) << 8 |
           static_cast<std::uint32_t>(run.carried_out);
  }
  [[gnu::noinline]] std::size_t position(const LoopSite& site, std::size_t used);

  std::array<const void*, kMostLoops> sites_{};
  std::array<Line, kMostLoops> lines_;
  std::atomic<std::size_t> used_{0};
  std::size_t next_ = 0;  // where the next loop is, if they come in the same order again
  std::atomic<std::uint64_t> left_out_{0};
};

}  // namespace amasia::omp
