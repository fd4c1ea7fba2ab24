// SPDX-License-Identifier: Apache-2.0
// What the program's threads keep in thread-local variables from one region to the next, and how it
// is packed, so that it can follow them to another node.
//
// A thread of a team finds its threadprivate variables again in the next team of the same size
// (OpenMP 5.2, 5.2), whichever node executes that thread then. The linker keeps them in blocks at
// distances from the thread pointer that are the same for all threads on all nodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/base.hpp"

namespace amasia::omp {

// The variables of one object of the program: [offset, offset + size) from the thread pointer.
struct ThreadBlock {
  std::ptrdiff_t offset = 0;
  Bytes size = 0;
};

struct ThreadLocals {
  enum class Kind : std::uint8_t {
    kNone,     // threads may run anywhere
    kMovable,  // they can be packed: `blocks` has them all
    // They cannot, but as long as no thread has changed any nobody can tell where threads run:
    // `watched` has them all.
    kWatched,
    kBound,  // they cannot, so threads stay on their nodes
  };
  Kind kind = Kind::kBound;
  std::vector<ThreadBlock> blocks;
  // What a new thread has in a block: `image`, and zeroes behind it.
  struct Watched {
    ThreadBlock block;
    std::span<const std::byte> image;
  };
  std::vector<Watched> watched;

  // Whether the calling thread's differ from what a new one has; some ns for each 64 bytes.
  bool are_changed() const;
};

// Packed blocks are at most so large, since they travel in one message.
inline constexpr Bytes kMaxThreadValues = 2 * base::kMiB;

// Of the threads that this node has executed or is about to, by their number in the team.
//
// field        | written by                        | read by      | ordered by
// slots_       | begin(), between regions          | all          | the fork
// slots_[id]   | thread id as its part begins, and | same         | the fork; the join, and what
//              | as it leaves; the serving thread  |              | follows it; the leaving
//              | between them                      |              | thread's message
// V1 A runtime may end threads when a team has fewer than the one before. So what those have is
//    packed before.
// V2 A thread that goes on as another one (team/homecoming.hpp) takes its slot along: it leaves one
//    node's, which it had entered, and enters the origin's, where there is room for the whole team.
class ThreadValues {
 public:
  explicit ThreadValues(std::span<const ThreadBlock> blocks);

  // Whether there is anything to be kept.
  bool any() const { return size_ > 0; }
  // Of a thread's values, packed.
  Bytes size() const { return size_; }

  // Before this node's part of a region begins, with the threads first … first + threads - 1 of the
  // team, and after what has left the node was taken. `at_most`: there may be fewer of them.
  void begin(std::uint32_t first, std::uint32_t threads, bool at_most = false);
  // On the origin, before a region of so many threads, whose values may come home.
  void make_room(std::uint32_t team);

  // On the thread with this number, as its part of a region begins: it gets what was kept for it.
  // Native stack. A number that was not expected is none of the team's.
  void enter(std::uint32_t id);
  // On the thread with this number, in the middle of a region: what it has, which is the node's no
  // more. Not empty, as it has entered. Native stack.
  std::vector<std::byte> leave(std::uint32_t id);
  // On a thread that has entered and is about to end: what it has is kept. Native stack.
  void keep_own(std::uint32_t id);

  struct Packed {
    std::uintptr_t thread_pointer = 0;  // of the thread that had them; 0: none had
    std::span<const std::byte> bytes;   // size(), or none
  };
  // Between regions, what thread `id` had, which leaves the node. None if it has not run here: the
  // next runtime may have made a team smaller than it was to be. Valid until the next call.
  Packed take(std::uint32_t id);
  // Before thread `id` enters, for it to find then. `values.bytes` has size().
  void keep(std::uint32_t id, const Packed& values);

 private:
  struct alignas(64) Slot {
    std::uintptr_t thread_pointer = 0;  // of the thread that has them; 0: none has
    std::uint32_t place = 0;            // its number in the node's team then
    std::uintptr_t kept_from = 0;       // 0: nothing is kept
    std::vector<std::byte> kept;
  };
  void pack(std::uintptr_t thread_pointer, std::vector<std::byte>& to) const;
  void unpack(const Packed& values, std::uintptr_t to) const;

  std::vector<ThreadBlock> blocks_;
  Bytes size_ = 0;
  std::vector<Slot> slots_;
  std::uint32_t first_ = 0;  // of the node's team
  std::vector<std::byte> taken_;
};

}  // namespace amasia::omp
