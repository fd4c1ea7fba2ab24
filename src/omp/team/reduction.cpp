// SPDX-License-Identifier: Apache-2.0
// Reductions of a team. The compiler's call gives the addresses of the private copies, but not
// their sizes (EVIDENCE 4a). Copies that lie in the leader's frame can nevertheless travel in the
// message: whatever their sizes, they end before the stack does, so the leader sends its stack from
// the lowest copy up, and the origin combines from that image. Copies elsewhere, or in a large
// frame, and objects that own memory (movable_copies), are read through managed memory instead.
// Either way the sender waits until its copies have been used.
#include <algorithm>
#include <cstring>

#include "omp/native.hpp"
#include "omp/node.hpp"
#include "omp/team/movable_copies.hpp"
#include "omp/team/team.hpp"
#include "omp/wait_scope.hpp"

namespace amasia::omp {
namespace {

constexpr std::uintptr_t kAlignment = 64;  // that of any private copy

struct Window {
  std::uintptr_t begin = 0;
  std::size_t size = 0;
};

// The part of the leader's stack that holds all of `list` that lies on it; empty if that may not be
// moved, or is longer than `limit`.
Window window_of(const ThreadFrame& frame, std::span<void* const> list, Bytes limit,
                 const Services& services) {
  const auto low = reinterpret_cast<std::uintptr_t>(frame.stack_low);
  const auto top = reinterpret_cast<std::uintptr_t>(frame.stack_top);
  std::uintptr_t begin = top;
  for (void* const entry : list) {
    const auto address = reinterpret_cast<std::uintptr_t>(entry);
    if (address >= low && address < top) begin = std::min(begin, address);
  }
  begin = std::max(low, base::round_down(begin, kAlignment));
  if (top - begin > limit) return {};
  const auto is_heap = [&services](std::uintptr_t word) { return services.is_heap(word); };
  if (!are_movable(list, low, top, is_heap)) return {};
  return {begin, top - begin};
}

}  // namespace

bool Team::reduce(ThreadFrame& frame, const Reduction& reduction, bool nowait) {
  deposits_[frame.local_id].list = reduction.list.data();
  // Combining counts as waiting: it is done by leaders only, whatever the shares are.
  const WaitScope waiting(frame);
  if (!gather_here(frame)) return false;
  // What is added to lies where the other nodes have read the region's arguments, often. While the
  // origin waits for their copies it gets that back.
  enter_part(reinterpret_cast<const void*>(reduction.combine));
  combine_local(reduction);
  if (nowait) release_here(frame);
  if (on_origin()) {
    if (!combine_remote(reduction, nowait)) combine_guests(reduction, nowait);
    ++reductions_;
    return true;  // reduce_end lets the others go
  }
  send_reduction(frame, reduction, nowait);
  ++reductions_;
  if (!nowait) {
    meet(std::nullopt);
    release_here(frame);
  }
  return false;
}

void Team::reduce_end(ThreadFrame& frame, bool nowait) {
  if (nowait) return;
  const WaitScope waiting(frame);
  meet(std::nullopt);
  release_here(frame);
}

void Team::combine_local(const Reduction& reduction) {
  for (std::uint32_t id = 1; id < local_size(); ++id) {
    reduction.combine(reduction.list.data(), deposits_[id].list);
  }
}

// The others' threads have come home before they came to the reduction: all that had not reduced,
// and ended the region, before.
void Team::combine_guests(const Reduction& reduction, bool nowait) {
  await_guests();
  guests_->each([&](const ThreadFrame& guest) {
    reduction.combine(reduction.list.data(), deposits_[guest.local_id].list);
  });
  if (nowait) guests_->let_go();
}

// False: they have not told, and come home.
bool Team::combine_remote(const Reduction& reduction, bool nowait) {
  std::vector<void*>& list = received_list_;
  std::vector<std::byte>& image = received_image_;
  for (std::uint32_t rank = 1; rank < shares_.size(); ++rank) {
    ReductionHead head{};
    bool have_come = true;
    on_native_stack([&] {
      const std::span<const std::byte> body = node_.await_reduction(*this, rank, reductions_);
      have_come = !body.empty();
      if (!have_come) return;
      std::memcpy(&head, body.data(), sizeof head);
      node_.take_arguments_back(shares_[rank].node, arguments_among(head.given_back));
      AMASIA_CHECK(head.list_count == reduction.list.size(),
                   "all threads of a team reduce the same variables");
      list.resize(head.list_count);
      std::memcpy(list.data(), body.data() + sizeof head, list.size() * sizeof(void*));
      image.resize(head.window_size + kAlignment);
      std::memcpy(image.data() +
                      (kAlignment - reinterpret_cast<std::uintptr_t>(image.data()) % kAlignment) %
                          kAlignment,
                  body.data() + sizeof head + list.size() * sizeof(void*), head.window_size);
    });
    if (!have_come) return false;
    const std::uintptr_t image_begin =
        base::round_up(reinterpret_cast<std::uintptr_t>(image.data()), kAlignment);
    for (void*& entry : list) {
      const auto address = reinterpret_cast<std::uintptr_t>(entry);
      if (address >= head.window_begin && address < head.window_begin + head.window_size) {
        entry = reinterpret_cast<void*>(image_begin + (address - head.window_begin));
      }
    }
    reduction.combine(reduction.list.data(), list.data());
    if (nowait) {
      on_native_stack([&] { node_.tell_consumed(shares_[rank].node, region(), reductions_); });
    }
  }
  return true;
}

void Team::send_reduction(ThreadFrame& frame, const Reduction& reduction, bool nowait) {
  const Window window = window_of(frame, reduction.list, node_.settings().reduction_window,
                                  node_.services());
  const ReductionHead head{.region = region(),
                           .number = reductions_,
                           .rank = rank_,
                           .list_count = static_cast<std::uint32_t>(reduction.list.size()),
                           .window_begin = window.begin,
                           .window_size = window.size};
  // Copied before the fabric is entered: a page of the stack may be away, and its return must not
  // find the fabric's lock taken.
  std::vector<std::byte>& payload = sent_copies_;
  on_native_stack([&] { payload.resize(reduction.list.size_bytes() + window.size); });
  std::memcpy(payload.data(), reduction.list.data(), reduction.list.size_bytes());
  std::memcpy(payload.data() + reduction.list.size_bytes(),
              reinterpret_cast<const void*>(window.begin), window.size);
  on_native_stack([&] {
    ReductionHead copy = head;
    // What the origin combines into lies where the arguments are, often.
    copy.given_back = give_arguments_back();
    node_.give_reduction(copy, payload);
    if (nowait) node_.await_consumed(region(), reductions_);
  });
}

}  // namespace amasia::omp
