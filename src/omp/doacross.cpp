// SPDX-License-Identifier: Apache-2.0
#include "omp/doacross.hpp"

#include <cstdlib>
#include <cstring>
#include <vector>

#include "omp/native.hpp"
#include "omp/node.hpp"

namespace amasia::omp {
namespace {

constexpr std::uint64_t kBits = 64;

struct Freed {
  void operator()(std::atomic<std::uint64_t>* words) const { std::free(words); }
};

}  // namespace

// To all other nodes: iteration `place` of the nest's row has been posted.
struct Doacross::PostBody {
  std::uint32_t region;
  std::uint32_t reserved;
  std::uint64_t number;
  std::uint64_t length;  // of the row: the receiver's threads may not have come to the loop yet
  std::uint64_t place;
};

struct Doacross::Loop {
  std::uint64_t number = 0;
  std::uint64_t length = 0;
  std::vector<loops::Space> nest;  // empty until a thread of the node has begun the loop
  std::uint32_t threads_left = 0;
  std::unique_ptr<std::atomic<std::uint64_t>[], Freed> posted;

  void set(std::uint64_t place) {
    posted[place / kBits].fetch_or(std::uint64_t{1} << place % kBits, std::memory_order_release);
  }
  bool is_set(std::uint64_t place) const {
    return (posted[place / kBits].load(std::memory_order_acquire) >> place % kBits & 1) != 0;
  }
};

Doacross::Doacross(Node& node) : node_(node) {
  node_.fabric().set_handler(kPostMessage, kPostMessage, this);
}

Doacross::~Doacross() = default;

// nullptr: all threads of the node have left it.
Doacross::Loop* Doacross::loop_of(std::uint32_t region, std::uint64_t number,
                                  std::uint64_t length) {
  if (region < region_) return nullptr;
  if (region > region_) {
    loops_.clear();
    region_ = region;
    ended_ = 0;
  }
  if (number < ended_) return nullptr;
  std::unique_ptr<Loop>& loop = loops_[number];
  if (loop != nullptr) return loop.get();
  loop = std::make_unique<Loop>();
  loop->number = number;
  loop->length = length;
  // Not touched before it is used: calloc gives untouched pages for long rows.
  void* const words = std::calloc(length / kBits + 1, sizeof(std::uint64_t));
  if (words == nullptr) {
    node_.services().abort_job(
        fmt::format("no memory for a doacross loop of {} iterations", length));
  }
  loop->posted.reset(static_cast<std::atomic<std::uint64_t>*>(words));
  return loop.get();
}

Doacross::Loop* Doacross::open(const Team& team, std::uint64_t number,
                               std::span<const loops::Space> nest) {
  const auto length = loops::row_length(nest);
  if (!length.has_value()) {
    node_.services().abort_job("a doacross loop has more iterations than fit 64 bits");
  }
  const std::lock_guard lock(mutex_);
  Loop* const loop = loop_of(team.region(), number, *length);
  AMASIA_CHECK(loop != nullptr && loop->length == *length, "all threads meet the same loops");
  if (loop->nest.empty()) {
    loop->nest.assign(nest.begin(), nest.end());
    loop->threads_left = team.local_size();
  }
  return loop;
}

void Doacross::close(const Team& team, std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  Loop* const loop = loop_of(team.region(), number, 0);
  AMASIA_CHECK(loop != nullptr && loop->threads_left > 0, "each thread ends a loop once");
  if (--loop->threads_left > 0) return;
  AMASIA_CHECK(number == ended_, "loops are left in the order of their numbers");  // D2
  loops_.erase(number);
  ++ended_;
}

void Doacross::begin(ThreadFrame& frame, std::span<const loops::Space> nest) {
  AMASIA_CHECK(!nest.empty() && frame.doacross == nullptr, "a thread is in one doacross loop");
  const std::uint64_t number = frame.doacrosses_met++;
  // The nest may be described on a managed stack.
  const std::vector<loops::Space> copy(nest.begin(), nest.end());
  on_native_stack([&, number] { frame.doacross = open(*frame.team, number, copy); });
}

void Doacross::end(ThreadFrame& frame) {
  AMASIA_CHECK(frame.doacross != nullptr, "only a loop that was begun is ended");
  const std::uint64_t number = static_cast<Loop*>(frame.doacross)->number;
  frame.doacross = nullptr;
  on_native_stack([&, number] { close(*frame.team, number); });
}

std::size_t Doacross::depth(const ThreadFrame& frame) {
  AMASIA_CHECK(frame.doacross != nullptr, "the thread is in a doacross loop");
  return static_cast<const Loop*>(frame.doacross)->nest.size();
}

void Doacross::post(ThreadFrame& frame, std::span<const std::int64_t> values) {
  Loop& loop = *static_cast<Loop*>(frame.doacross);
  const auto place = loops::row_place(loop.nest, values);
  if (!place.has_value()) return;
  loop.set(*place);  // partner: wait
  node_.wake();
  const Team& team = *frame.team;
  const PostBody post{team.region(), 0, loop.number, loop.length, *place};
  on_native_stack([&, post] { tell_others(team, post); });
}

void Doacross::tell_others(const Team& team, const PostBody& post) {
  node_.services().show_progress();
  for (const NodeShare& share : team.shares()) {
    if (share.node == node_.self()) continue;
    node_.fabric().send(share.node, kPostMessage, fabric::bytes_of(post));
  }
}

void Doacross::wait(ThreadFrame& frame, std::span<const std::int64_t> values) {
  const Loop& loop = *static_cast<Loop*>(frame.doacross);
  const auto place = loops::row_place(loop.nest, values);
  if (!place.has_value() || loop.is_set(*place)) return;
  on_native_stack([&, at = *place] {
    node_.wait_until([&loop, at] { return loop.is_set(at); }, node_.settings().spin_in_region,
                     "another iteration of a doacross loop");
  });
}

void Doacross::on_message(const fabric::Incoming& message) {
  PostBody body;
  AMASIA_CHECK(message.body.size() == sizeof body, "a post's message has its type's length");
  std::memcpy(&body, message.body.data(), sizeof body);
  AMASIA_CHECK(body.place < body.length, "a posted iteration is one of the loop's");
  {
    const std::lock_guard lock(mutex_);
    Loop* const loop = loop_of(body.region, body.number, body.length);
    if (loop == nullptr) return;
    AMASIA_CHECK(loop->length == body.length, "all nodes meet the same loops");
    loop->set(body.place);
  }
  node_.wake();
}

}  // namespace amasia::omp
