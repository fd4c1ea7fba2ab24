// SPDX-License-Identifier: Apache-2.0
#include "omp/work_sharing/post_table.hpp"

#include <algorithm>

namespace amasia::omp {

PostLoop::PostLoop(const PostLoop& other)
    : number(other.number),
      length(other.length),
      nest(other.nest),
      threads_left(other.threads_left) {
  if (!other.has_memory() || !reserve()) return;
  for (std::uint64_t place = 0; place < length; ++place) {
    if (other.is_set(place)) set(place);
  }
  for (std::size_t slot = 0; slot < kWants; ++slot) wanted_[slot] = other.wanted(slot);
  all_wanted_ = other.all_wanted_.load();
}

PostRun PostLoop::run_from(std::uint64_t place) const {
  PostRun run{place, 0};
  const std::uint64_t most = std::min(UntoldPosts::kMost, length - place);
  while (run.count < most && is_set(place + run.count)) ++run.count;
  return run;
}

void PostLoop::want(std::uint64_t place) {
  for (auto& slot : wanted_) {
    std::uint64_t none = 0;
    if (slot.compare_exchange_strong(none, place + 1, std::memory_order_seq_cst)) return;
  }
  all_wanted_.store(true, std::memory_order_seq_cst);
}

bool PostLoop::take_want(std::uint64_t place) {
  for (auto& slot : wanted_) {
    std::uint64_t wanted = place + 1;
    if (slot.load(std::memory_order_seq_cst) == wanted &&
        slot.compare_exchange_strong(wanted, 0, std::memory_order_relaxed)) {
      return true;
    }
  }
  return all_wanted_.load(std::memory_order_seq_cst);
}

bool PostLoop::reserve() {
  void* const words = std::calloc(length / kBits + 1, sizeof(std::uint64_t));
  posted_.reset(static_cast<std::atomic<std::uint64_t>*>(words));
  return has_memory();
}

// nullptr: all threads of the node have left it.
PostLoop* PostTable::loop_of(std::uint32_t region, std::uint64_t number, std::uint64_t length) {
  if (region < region_) return nullptr;
  if (region > region_) {
    // Regions come one after the other; what is left of the last one was cancelled.
    loops_.clear();
    region_ = region;
    ended_ = 0;
  }
  if (number < ended_) return nullptr;
  const auto [found, is_new] = loops_.try_emplace(number);
  PostLoop& loop = found->second;
  if (is_new) {
    loop.number = number;
    loop.length = length;
    loop.reserve();
  }
  return &loop;
}

PostLoop& PostTable::open(std::uint32_t region, std::uint64_t number, std::uint64_t length,
                          std::span<const loops::Space> nest, std::uint32_t threads) {
  PostLoop* const loop = loop_of(region, number, length);
  AMASIA_CHECK(loop != nullptr && loop->length == length, "all threads meet the same loops");
  if (loop->nest.empty()) {
    loop->nest.assign(nest.begin(), nest.end());
    loop->threads_left = threads;
  }
  return *loop;
}

void PostTable::close(std::uint32_t region, std::uint64_t number) {
  PostLoop* const loop = loop_of(region, number, 0);
  AMASIA_CHECK(loop != nullptr && loop->threads_left > 0, "each thread ends a loop once");
  if (--loop->threads_left > 0) return;
  AMASIA_CHECK(number == ended_, "loops are left in the order of their numbers");
  loops_.erase(number);
  ++ended_;
}

bool PostTable::hear(std::uint32_t region, std::uint64_t number, std::uint64_t length,
                     PostRun run) {
  PostLoop* const loop = loop_of(region, number, length);
  if (loop == nullptr) return true;
  AMASIA_CHECK(loop->length == length && run.first < length && run.count <= length - run.first,
               "all nodes meet the same loops");
  if (!loop->has_memory()) return false;
  for (std::uint64_t i = 0; i < run.count; ++i) loop->set(run.first + i);
  return true;
}

std::optional<PostRun> PostTable::ask(std::uint32_t region, std::uint64_t number,
                                      std::uint64_t length, std::uint64_t place) {
  PostLoop* const loop = loop_of(region, number, length);
  // Who has left it has told all that was its own.
  if (loop == nullptr || !loop->has_memory()) return std::nullopt;
  AMASIA_CHECK(loop->length == length && place < length, "all nodes meet the same loops");
  if (!loop->is_set(place)) loop->want(place);
  if (!loop->is_set(place)) return std::nullopt;
  loop->take_want(place);
  return loop->run_from(place);
}

PostLoop& PostTable::join(std::uint32_t region, std::uint64_t number) {
  AMASIA_CHECK(is_open(region, number), "a thread joins those that are in it");
  PostLoop& loop = *find(number);
  ++loop.threads_left;
  return loop;
}

bool PostTable::is_open(std::uint32_t region, std::uint64_t number) {
  const PostLoop* const loop = region == region_ ? find(number) : nullptr;
  return loop != nullptr && loop->threads_left > 0;
}

PostLoop* PostTable::find(std::uint64_t number) {
  const auto found = loops_.find(number);
  return found == loops_.end() ? nullptr : &found->second;
}

}  // namespace amasia::omp
