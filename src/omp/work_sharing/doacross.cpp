// SPDX-License-Identifier: Apache-2.0
#include "omp/work_sharing/doacross.hpp"

#include <cstring>
#include <utility>
#include <vector>

#include "omp/native.hpp"
#include "omp/node.hpp"
#include "omp/team/leavable_call.hpp"

namespace amasia::omp {

namespace {

// What a thread posts within this time after it has told others is told later. To tell costs a
// microsecond or two for each other node. In ticks, as each post looks: some 20 us at 2 to 4 GHz.
constexpr os::Ticks kTellAfter = 60'000;

}  // namespace

// To all other nodes, or to one that has asked: these of the nest's row have been posted.
struct Doacross::PostBody {
  std::uint32_t region;
  std::uint32_t reserved;
  std::uint64_t number;
  std::uint64_t length;  // of the row: the receiver's threads may not have come to the loop yet
  std::uint64_t first, count;
};

// To all other nodes: a thread waits for this one.
struct Doacross::AskBody {
  std::uint32_t region;
  std::uint32_t reserved;
  std::uint64_t number;
  std::uint64_t length;
  std::uint64_t place;
};

Doacross::Doacross(Node& node) : node_(node) {
  node_.fabric().set_handler(kPostMessage, kAskPostMessage, this);
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
  frame.untold = {};
  // The nest may be described on a managed stack.
  const std::vector<loops::Space> copy(nest.begin(), nest.end());
  on_native_stack([&, number] { frame.doacross = open(*frame.team, number, copy); });
}

void Doacross::end(ThreadFrame& frame) {
  AMASIA_CHECK(frame.doacross != nullptr, "only a loop that was begun is ended");
  send_untold(frame);
  const std::uint64_t number = static_cast<PostLoop*>(frame.doacross)->number;
  frame.doacross = nullptr;
  on_native_stack([&, number] { close(*frame.team, number); });
}

std::size_t Doacross::depth(const ThreadFrame& frame) {
  AMASIA_CHECK(frame.doacross != nullptr, "the thread is in a doacross loop");
  return static_cast<const PostLoop*>(frame.doacross)->nest.size();
}

void Doacross::join(ThreadFrame& frame) {
  const std::lock_guard lock(mutex_);
  frame.doacross = &table_.join(frame.team->region(), frame.doacrosses_met - 1);
}

bool Doacross::is_open(std::uint32_t region, std::uint64_t met) {
  const std::lock_guard lock(mutex_);
  return met != 0 && table_.is_open(region, met - 1);
}

void Doacross::post(ThreadFrame& frame, std::span<const std::int64_t> values) {
  PostLoop& loop = *static_cast<PostLoop*>(frame.doacross);
  const auto place = loops::row_place(loop.nest, values);
  if (!place.has_value()) return;
  loop.set(*place);  // partner: wait
  node_.wake();
  if (frame.team->shares().size() == 1) return;  // all are at home
  UntoldPosts& untold = frame.untold;
  if (!untold.extends(*place)) send_untold(frame);
  untold.add(*place);
  const bool is_wanted = loop.take_want(*place);
  if (is_wanted || os::ticks_now() - frame.told_posts >= kTellAfter) tell(frame);
}

void Doacross::tell(ThreadFrame& frame) {
  leavable_call(frame, [this, &frame] { send_untold(frame); });
}

template <typename Body>
void Doacross::send_to_others(const Team& team, fabric::MessageType type, const Body& body) {
  node_.services().show_progress();
  for (const NodeShare& share : team.shares()) {
    if (share.node == node_.self()) continue;
    node_.fabric().send(share.node, type, fabric::bytes_of(body));
  }
}

void Doacross::send_untold(ThreadFrame& frame) {
  const PostRun run = std::exchange(frame.untold, {}).run;
  if (run.count == 0) return;
  const PostLoop& loop = *static_cast<const PostLoop*>(frame.doacross);
  const Team& team = *frame.team;
  const PostBody post{team.region(), 0, loop.number, loop.length, run.first, run.count};
  on_native_stack([&, post] { send_to_others(team, kPostMessage, post); });
  frame.told_posts = os::ticks_now();
}

void Doacross::wait(ThreadFrame& frame, std::span<const std::int64_t> values) {
  const PostLoop& loop = *static_cast<PostLoop*>(frame.doacross);
  const auto place = loops::row_place(loop.nest, values);
  if (!place.has_value()) return;
  while (!loop.is_set(*place)) {
    const bool stays = leavable_call(frame, [this, &frame, &loop, at = *place] {
      send_untold(frame);
      await(frame, loop, at);
    });
    if (!stays) return wait_at_home(values);
  }
}

void Doacross::wait_at_home(std::span<const std::int64_t> values) {
  ThreadFrame& frame = *current_frame();
  frame.team->node().doacross()->wait(frame, values);
}

// Until it is posted, or the thread is asked to stop. Asks other nodes before it sleeps.
void Doacross::await(const ThreadFrame& frame, const PostLoop& loop, std::uint64_t place) {
  constexpr const char* kWhat = "another iteration of a doacross loop";
  const Team& team = *frame.team;
  const Halt& halt = frame.team->halt();
  const Nanos spin = team.spin_here();
  const Nanos ask_at = os::monotonic_now() + spin / 2;
  const auto is_over = [&] { return loop.is_set(place) || halt.is_asked(frame); };
  node_.wait_for_turn([&] { return is_over() || os::monotonic_now() >= ask_at; }, spin, kWhat);
  if (is_over()) return;
  send_to_others(team, kAskPostMessage,
                 AskBody{team.region(), 0, loop.number, loop.length, place});
  node_.wait_for_turn(is_over, spin, kWhat);
}

void Doacross::on_message(const fabric::Incoming& message) {
  if (message.type == kAskPostMessage) {
    AskBody ask;
    AMASIA_CHECK(message.body.size() == sizeof ask, "a question has its type's length");
    std::memcpy(&ask, message.body.data(), sizeof ask);
    return on_ask(message.from, ask);
  }
  PostBody post;
  AMASIA_CHECK(message.body.size() == sizeof post, "a post's message has its type's length");
  std::memcpy(&post, message.body.data(), sizeof post);
  {
    const std::lock_guard lock(mutex_);
    const PostRun run{post.first, post.count};
    if (!table_.hear(post.region, post.number, post.length, run)) lack_memory(post.length);
  }
  node_.wake();
}

void Doacross::on_ask(NodeId from, const AskBody& ask) {
  std::optional<PostRun> run;
  {
    const std::lock_guard lock(mutex_);
    run = table_.ask(ask.region, ask.number, ask.length, ask.place);
  }
  if (!run.has_value()) return;
  const PostBody post{ask.region, 0, ask.number, ask.length, run->first, run->count};
  node_.fabric().send(from, kPostMessage, fabric::bytes_of(post));
}

}  // namespace amasia::omp
