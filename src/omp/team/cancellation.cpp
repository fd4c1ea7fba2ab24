// SPDX-License-Identifier: Apache-2.0
#include "omp/team/cancellation.hpp"

namespace amasia::omp {
namespace {

// Never 0, since regions are numbered from 1.
std::uint64_t name_of(Cancels what, Epoch epoch) {
  if (what == Cancels::kParallel) return epoch.region;
  return (static_cast<std::uint64_t>(epoch.region) << 32) | epoch.number;
}

}  // namespace

CancelFlags& CancelFlags::operator=(const CancelFlags& other) noexcept {
  parallel_.store(other.parallel_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  workshare_.store(other.workshare_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  loop_.store(other.loop_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  return *this;
}

const std::atomic<std::uint64_t>& CancelFlags::flag_of(Cancels what) const noexcept {
  switch (what) {
    case Cancels::kParallel:
      return parallel_;
    case Cancels::kWorkshare:
      return workshare_;
    case Cancels::kLoop:
      return loop_;
  }
  AMASIA_CHECK(false, "a message about something else is refused");
}

bool CancelFlags::raise(Cancels what, Epoch epoch) noexcept {
  AMASIA_CHECK_DEBUG(epoch.region != 0, "regions are numbered from 1");
  auto& flag = const_cast<std::atomic<std::uint64_t>&>(flag_of(what));
  const std::uint64_t name = name_of(what, epoch);
  std::uint64_t before = flag.load(std::memory_order_relaxed);
  while (before < name) {
    // D1: a later name is never taken back by one that comes late.
    if (flag.compare_exchange_weak(before, name, std::memory_order_relaxed)) return true;
  }
  return false;
}

bool CancelFlags::is_raised(Cancels what, Epoch epoch) const noexcept {
  return flag_of(what).load(std::memory_order_relaxed) == name_of(what, epoch);
}

}  // namespace amasia::omp
