// SPDX-License-Identifier: Apache-2.0
#include "omp/launch/stack_pool.hpp"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>

namespace amasia::omp {
namespace {

constexpr Bytes kDefaultStack = 8 * base::kMiB;
constexpr Bytes kSmallestStack = 256 * base::kKiB;
constexpr Bytes kLargestStack = base::kGiB;

// "n", "nB", "nK", "nM", "nG"; a bare number is in KiB (OpenMP 5.2, 21.2.1). 0: not such a value.
Bytes parse_stack_size(const char* text) {
  char* end = nullptr;
  errno = 0;
  const unsigned long long number = std::strtoull(text, &end, 10);
  if (end == text || errno != 0 || number > (1ULL << 40)) return 0;
  while (std::isspace(static_cast<unsigned char>(*end))) ++end;
  Bytes unit = base::kKiB;
  switch (std::tolower(static_cast<unsigned char>(*end))) {
    case '\0':
    case 'k':
      break;
    case 'b':
      unit = 1;
      break;
    case 'm':
      unit = base::kMiB;
      break;
    case 'g':
      unit = base::kGiB;
      break;
    default:
      return 0;
  }
  return number * unit;
}

Bytes configured_stack_size(bool for_team) {
  if (for_team) {
    for (const char* name : {"OMP_STACKSIZE", "KMP_STACKSIZE", "GOMP_STACKSIZE"}) {
      const char* value = std::getenv(name);
      if (value == nullptr) continue;
      const Bytes size = parse_stack_size(value);
      if (size != 0) return size;
    }
  }
  rlimit limit{};
  if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    return limit.rlim_cur;
  }
  return kDefaultStack;
}

}  // namespace

Bytes managed_stack_size(bool for_team) {
  const Bytes size = std::clamp(configured_stack_size(for_team), kSmallestStack, kLargestStack);
  return base::round_up(size, base::kPageSize);
}

StackPool::StackPool(std::byte* base, Bytes length, Bytes stack_size)
    : base_(base),
      stack_size_(base::round_up(stack_size, base::kPageSize) + base::kPageSize),
      capacity_(length / stack_size_) {
  AMASIA_CHECK(reinterpret_cast<std::uintptr_t>(base) % base::kPageSize == 0,
               "stacks are made of whole pages");
  AMASIA_CHECK(capacity_ > 0, "the arena's stack part holds not even one stack");
}

Result<ManagedStack> StackPool::acquire() {
  std::size_t slice;
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      const ManagedStack stack = free_.back();
      free_.pop_back();
      return stack;
    }
    if (next_ == capacity_) {
      return Error{
          fmt::format("all {} managed stacks of {} bytes are in use", capacity_, stack_size_),
          ENOMEM};
    }
    slice = next_++;
  }
  std::byte* const guard = base_ + slice * stack_size_;
  if (mprotect(guard, base::kPageSize, PROT_NONE) != 0) {
    return base::errno_error(errno, "cannot set the guard page of a managed stack");
  }
  return ManagedStack{guard + base::kPageSize, guard + stack_size_};
}

void StackPool::release(ManagedStack stack) {
  AMASIA_CHECK(stack.bottom >= base_ && stack.top <= base_ + capacity_ * stack_size_,
               "a stack is given back to the pool that it came from");
  const std::lock_guard lock(mutex_);
  AMASIA_CHECK_DEBUG(free_.size() < capacity_, "a stack was given back twice");
  free_.push_back(stack);
}

}  // namespace amasia::omp
