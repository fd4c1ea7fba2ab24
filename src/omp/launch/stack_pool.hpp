// SPDX-License-Identifier: Apache-2.0
// The managed stacks of one node: equal slices of the last part of its arena, each with a guard
// page at its low end. What runs on one can be reached from every node at the same address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "base/base.hpp"

namespace amasia::omp {

// One managed stack; `top` is exclusive and 16-byte aligned, [guard, bottom) is not accessible.
struct ManagedStack {
  std::byte* bottom = nullptr;
  std::byte* top = nullptr;

  explicit operator bool() const { return top != nullptr; }
  Bytes size() const { return static_cast<Bytes>(top - bottom); }
};

// field       | written by            | read by   | guarded by
// next_       | acquire               | acquire   | mutex_
// free_       | acquire, release      | acquire   | mutex_
// All of it is runtime memory; the lock is never held while managed memory is touched.
class StackPool {
 public:
  // Takes stacks of `stack_size` bytes (rounded up to pages, guard page included) from
  // [base, base + length), which must be mapped already and belong to this node's arena.
  StackPool(std::byte* base, Bytes length, Bytes stack_size);

  // A stack that nobody else uses. Any thread; does not block on other nodes. Stacks given back
  // last are handed out first, because their pages are still here. On exhaustion (or when the guard
  // page cannot be set) an Error that names the limit.
  Result<ManagedStack> acquire();

  // Gives a stack back; nothing may run on it. Its contents are left as they are.
  void release(ManagedStack stack);

  Bytes stack_size() const { return stack_size_; }
  std::size_t capacity() const { return capacity_; }

 private:
  std::byte* const base_;
  const Bytes stack_size_;
  const std::size_t capacity_;
  std::mutex mutex_;
  std::size_t next_ = 0;  // slices [0, next_) have their guard page
  std::vector<ManagedStack> free_;
};

// The size of a managed stack: OMP_STACKSIZE or KMP_STACKSIZE or GOMP_STACKSIZE where `for_team`
// and set, else the soft RLIMIT_STACK, else 8 MiB; clamped to [256 KiB, 1 GiB]. A value that does
// not parse is ignored, as the OpenMP runtimes do after their own warning.
Bytes managed_stack_size(bool for_team);

}  // namespace amasia::omp
