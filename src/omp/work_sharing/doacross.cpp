// SPDX-License-Identifier: Apache-2.0
#include "omp/work_sharing/doacross.hpp"

#include <cstring>
#include <vector>

#include "omp/native.hpp"
#include "omp/node.hpp"

namespace amasia::omp {

// To all other nodes: iteration `place` of the nest's row has been posted.
struct Doacross::PostBody {
  std::uint32_t region;
  std::uint32_t reserved;
  std::uint64_t number;
  std::uint64_t length;  // of the row: the receiver's threads may not have come to the loop yet
  std::uint64_t place;
};

Doacross::Doacross(Node& node) : node_(node) {
  node_.fabric().set_handler(kPostMessage, kPostMessage, this);
}

Doacross::~Doacross() = default;

void Doacross::lack_memory(std::uint64_t length) {
  node_.services().abort_job(
      fmt::format("no memory for a doacross loop of {} iterations", length));
}

PostLoop* Doacross::open(const Team& team, std::uint64_t number,
                         std::span<const loops::Space> nest) {
  const auto length = loops::row_length(nest);
  if (!length.has_value()) {
    node_.services().abort_job("a doacross loop has more iterations than fit 64 bits");
  }
  const std::lock_guard lock(mutex_);
  PostLoop& loop = table_.open(team.region(), number, *length, nest, team.local_size());
  if (!loop.has_memory()) lack_memory(*length);
  return &loop;
}

void Doacross::close(const Team& team, std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  table_.close(team.region(), number);
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
  const std::uint64_t number = static_cast<PostLoop*>(frame.doacross)->number;
  frame.doacross = nullptr;
  on_native_stack([&, number] { close(*frame.team, number); });
}

std::size_t Doacross::depth(const ThreadFrame& frame) {
  AMASIA_CHECK(frame.doacross != nullptr, "the thread is in a doacross loop");
  return static_cast<const PostLoop*>(frame.doacross)->nest.size();
}

void Doacross::post(ThreadFrame& frame, std::span<const std::int64_t> values) {
  PostLoop& loop = *static_cast<PostLoop*>(frame.doacross);
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
  const PostLoop& loop = *static_cast<PostLoop*>(frame.doacross);
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
    if (!table_.hear(body.region, body.number, body.length, body.place)) lack_memory(body.length);
  }
  node_.wake();
}

}  // namespace amasia::omp
