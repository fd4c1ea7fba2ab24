// SPDX-License-Identifier: Apache-2.0
// The doacross loops that a node's threads are in, and which of their iterations have been posted,
// as far as the node knows. No lock and no wait here: Doacross has those, and the explorer
// (post_table_test) takes every order of what threads and messages do.
//
// A loop is there from the first thread that begins it, or the first message about it, until all
// the node's threads have ended it. News of it may still come then, and is dropped: a node's
// threads leave loops in the order of their numbers, so loops below ended_ have been left by all.
//
// What a thread posts it tells other nodes in runs (UntoldPosts), so one may wait for what has been
// posted and not been told: it asks. Either the asked node finds the iteration posted, and answers,
// or the thread that posts it finds that it is wanted, and tells at once: both look after they have
// written, which is sequentially consistent.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/base.hpp"
#include "loops/loops.hpp"

namespace amasia::omp {

// Iterations that follow each other in the nest's row.
struct PostRun {
  std::uint64_t first = 0, count = 0;

  friend bool operator==(const PostRun&, const PostRun&) = default;
};

// Of one thread: what it has posted, and other nodes have not been told by it.
struct UntoldPosts {
  static constexpr std::uint64_t kMost = 4096;

  PostRun run;

  bool extends(std::uint64_t place) const {
    return run.count == 0 || (place == run.first + run.count && run.count < kMost);
  }
  // One that extends it.
  void add(std::uint64_t place) {
    if (run.count++ == 0) run.first = place;
  }
};

struct PostLoop {
  std::uint64_t number = 0;
  std::uint64_t length = 0;        // of the nest's row
  std::vector<loops::Space> nest;  // empty until a thread of the node has begun the loop
  std::uint32_t threads_left = 0;

  PostLoop() = default;
  // For models, which copy what they explore.
  PostLoop(const PostLoop& other);
  PostLoop& operator=(const PostLoop&) = delete;

  // False: there is no memory for so many iterations.
  bool reserve();
  bool has_memory() const { return posted_ != nullptr; }
  // Partners of each other: the iteration's work is done.
  void set(std::uint64_t place) {
    posted_[place / kBits].fetch_or(std::uint64_t{1} << place % kBits, std::memory_order_seq_cst);
  }
  bool is_set(std::uint64_t place) const {
    return (posted_[place / kBits].load(std::memory_order_seq_cst) >> place % kBits & 1) != 0;
  }
  // Those that are set from there on.
  PostRun run_from(std::uint64_t place) const;

  // Another node waits for it. By one thread at a time.
  void want(std::uint64_t place);
  // Whether that is so; it is told now. Any thread.
  bool take_want(std::uint64_t place);
  // In models: which are wanted.
  std::uint64_t wanted(std::size_t slot) const { return wanted_[slot].load(); }
  static constexpr std::size_t kWants = 4;

 private:
  static constexpr std::uint64_t kBits = 64;
  std::array<std::atomic<std::uint64_t>, kWants> wanted_{};  // place + 1, 0: none
  // More than there is room for: from then on all is told at once.
  std::atomic<bool> all_wanted_{false};
  struct Freed {
    void operator()(std::atomic<std::uint64_t>* words) const { std::free(words); }
  };
  // Not touched before it is used: calloc gives untouched pages for long rows.
  std::unique_ptr<std::atomic<std::uint64_t>[], Freed> posted_;
};

class PostTable {
 public:
  // A thread begins its region's doacross loop of this number; `threads` are the node's. The loop
  // stays where it is until the thread ends it. It may lack memory.
  PostLoop& open(std::uint32_t region, std::uint64_t number, std::uint64_t length,
                 std::span<const loops::Space> nest, std::uint32_t threads);
  void close(std::uint32_t region, std::uint64_t number);
  // A thread that was in this loop on another node is in it here now. The node's threads have begun
  // it, and not all have ended it.
  PostLoop& join(std::uint32_t region, std::uint64_t number);
  // A message: iterations of a loop of this length have been posted. False: no memory for it.
  bool hear(std::uint32_t region, std::uint64_t number, std::uint64_t length, PostRun run);
  // Another: a thread of another node waits for this one. What to answer at once, if it has been
  // posted as far as is known here. By one thread at a time.
  std::optional<PostRun> ask(std::uint32_t region, std::uint64_t number, std::uint64_t length,
                             std::uint64_t place);

  std::size_t size() const { return loops_.size(); }
  // Of the latest region; nullptr: it is not there.
  PostLoop* find(std::uint64_t number);
  // Whether the node's threads have begun this loop, and not all have ended it.
  bool is_open(std::uint32_t region, std::uint64_t number);

 private:
  PostLoop* loop_of(std::uint32_t region, std::uint64_t number, std::uint64_t length);

  std::uint32_t region_ = 0;  // whose loops these are
  std::uint64_t ended_ = 0;
  std::map<std::uint64_t, PostLoop> loops_;
};

}  // namespace amasia::omp
