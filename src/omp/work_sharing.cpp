// SPDX-License-Identifier: Apache-2.0
#include "omp/work_sharing.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "omp/native.hpp"
#include "omp/node.hpp"

namespace amasia::omp {
namespace {
constexpr fabric::MessageType kWantMessage = kWorkSharingFirst;
constexpr fabric::MessageType kGiveMessage = kWorkSharingFirst + 1;
}  // namespace

// From a node to the origin: what the origin needs to make the loop's global pool, should this be
// the first request, and how much the node may take.
struct WorkSharing::WantBody {
  std::uint32_t region;
  std::uint32_t node_threads;
  std::uint32_t threads;
  std::uint16_t nodes;
  loops::ScheduleKind kind;
  std::uint8_t unused;
  std::uint64_t number;
  std::uint64_t count;
  std::uint64_t chunk;
  std::uint64_t given;  // by the first deal
};

// The origin's answer.
struct WorkSharing::GiveBody {
  std::uint32_t region;
  std::uint32_t more;
  std::uint64_t number;
  std::uint64_t begin;
  std::uint64_t end;
};

struct WorkSharing::NodeLoop {
  std::mutex mutex;
  WantBody want{};  // what to send when the pool runs low; constant while the loop is open
  loops::NodePool pool;
  std::uint32_t threads_here = 0;  // of the node that have not ended the loop
  // Refills delivered. Release by who delivers, acquire by who waits for one.
  std::atomic<std::uint32_t> deliveries{0};
};

struct WorkSharing::GlobalLoop {
  loops::GlobalPool pool;
  std::uint32_t nodes_to_tell = 0;  // that do not know yet that there is no more
};

WorkSharing::WorkSharing(Node& node) : node_(node) {
  node_.fabric().set_handler(kWorkSharingFirst, kWorkSharingLast, this);
}

WorkSharing::~WorkSharing() = default;

void WorkSharing::begin(ThreadFrame& frame, const loops::Space& space,
                        loops::ScheduleRequest schedule) {
  frame.loop = ThreadLoop{};
  frame.loop.space = space;
  frame.loop.schedule = schedule;
  frame.loop.number = frame.loops_met++;
  if (!loops::schedule_of(schedule.kind).pooled() || space.count == 0) return;
  on_native_stack([this, &frame] {
    frame.loop.slot =
        open(*frame.team, frame.loop.number, frame.loop.schedule, frame.loop.space.count);
  });
}

WorkSharing::NodeLoop* WorkSharing::find(std::uint32_t region, std::uint64_t number) {
  for (const auto& loop : open_) {
    if (loop->want.region == region && loop->want.number == number) return loop.get();
  }
  return nullptr;
}

WorkSharing::NodeLoop* WorkSharing::open(const Team& team, std::uint64_t number,
                                         loops::ScheduleRequest schedule, std::uint64_t count) {
  const std::lock_guard lock(loops_mutex_);
  if (NodeLoop* const loop = find(team.region(), number)) return loop;
  if (spare_.empty()) spare_.push_back(std::make_unique<NodeLoop>());
  open_.push_back(std::move(spare_.back()));
  spare_.pop_back();
  NodeLoop& loop = *open_.back();
  std::array<std::uint32_t, base::kMaxNodes> node_threads;
  const std::size_t nodes = team.shares().size();
  for (std::size_t rank = 0; rank < nodes; ++rank) node_threads[rank] = team.shares()[rank].threads;
  const loops::FirstDeal deal =
      loops::first_deal(schedule, count, {node_threads.data(), nodes}, team.rank());
  loop.want = {team.region(),  team.local_size(),
               team.size(),    static_cast<std::uint16_t>(nodes),
               schedule.kind,  0,
               number,         count,
               schedule.chunk, deal.given};
  loop.pool = loops::NodePool(schedule, {team.local_size(), team.size()}, deal.refill);
  loop.threads_here = team.local_size();
  return &loop;
}

bool WorkSharing::next(ThreadFrame& frame, loops::Iterations& range) {
  ThreadLoop& loop = frame.loop;
  if (loop.space.count == 0) return false;
  if (loop.slot == nullptr) {
    const auto share = loops::schedule_of(loop.schedule.kind)
                           .share(loop.space.count, loop.schedule.chunk, frame.global_id,
                                  frame.team->size(), loop.round++);
    if (share) range = *share;
    return share.has_value();
  }
  loops::Iterations taken;
  on_native_stack([this, &loop, &taken] {
    auto& pooled = *static_cast<NodeLoop*>(loop.slot);
    loops::Iterations mine;  // on the native stack, see W1
    if (!next_from_pool(pooled, mine)) {
      close(pooled);
      loop = ThreadLoop{};
    }
    taken = mine;
  });
  range = taken;
  return !taken.empty();
}

bool WorkSharing::next_from_pool(NodeLoop& loop, loops::Iterations& range) {
  using Answer = loops::NodePool::Answer;
  for (;;) {
    loops::NodePool::Taken taken;
    std::uint32_t seen = 0;
    {
      const std::lock_guard lock(loop.mutex);
      taken = loop.pool.take();
      // Relaxed: deliveries change under the mutex.
      seen = loop.deliveries.load(std::memory_order_relaxed);
    }
    if (taken.answer == Answer::kDone) return false;
    if (taken.answer == Answer::kAsk || taken.answer == Answer::kIterationsAndAsk) ask(loop);
    if (taken.answer == Answer::kIterations || taken.answer == Answer::kIterationsAndAsk) {
      range = taken.range;
      return true;
    }
    node_.wait_until(
        [&loop, seen] { return loop.deliveries.load(std::memory_order_acquire) != seen; },
        node_.settings().spin_in_region, "more iterations of a loop", 0);
  }
}

void WorkSharing::ask(NodeLoop& loop) {
  node_.services().show_progress();
  refills_.fetch_add(1, std::memory_order_relaxed);
  const WantBody want = loop.want;
  if (node_.self() == base::kOrigin) {
    deliver(loop, take_global(want));
    node_.wake();
    return;
  }
  node_.fabric().send(base::kOrigin, kWantMessage, fabric::bytes_of(want));
}

void WorkSharing::deliver(NodeLoop& loop, loops::Refill refill) {
  const std::lock_guard lock(loop.mutex);
  loop.pool.deliver(refill);
  loop.deliveries.fetch_add(1, std::memory_order_release);
}

loops::Refill WorkSharing::take_global(const WantBody& want) {
  const std::lock_guard lock(global_mutex_);
  if (want.region != global_region_) {
    // Regions come one after the other; what is left of the last one was cancelled.
    global_.clear();
    global_region_ = want.region;
  }
  auto found = global_.find(want.number);
  if (found == global_.end()) {
    GlobalLoop loop{{{want.kind, want.chunk}, want.count, want.given, want.threads}, want.nodes};
    found = global_.emplace(want.number, loop).first;
  }
  const loops::Refill refill = found->second.pool.take(want.node_threads);
  // A node that knows that there is no more does not ask again.
  if (!refill.more && --found->second.nodes_to_tell == 0) global_.erase(found);
  return refill;
}

void WorkSharing::close(NodeLoop& loop) {
  const std::lock_guard lock(loops_mutex_);
  AMASIA_CHECK(loop.threads_here > 0, "each thread of the node ends a loop once");
  --loop.threads_here;
  retire_if_done(loop);
}

// Under loops_mutex_.
void WorkSharing::retire_if_done(NodeLoop& loop) {
  {
    const std::lock_guard lock(loop.mutex);
    if (loop.threads_here > 0 || loop.pool.asking()) return;
  }
  const auto at = std::find_if(open_.begin(), open_.end(),
                               [&loop](const auto& it) { return it.get() == &loop; });
  AMASIA_CHECK(at != open_.end(), "a loop is retired once");
  spare_.push_back(std::move(*at));
  open_.erase(at);
}

void WorkSharing::on_message(const fabric::Incoming& message) {
  if (message.type == kWantMessage && message.body.size() == sizeof(WantBody)) {
    WantBody want;
    std::memcpy(&want, message.body.data(), sizeof want);
    const loops::Refill refill = take_global(want);
    const GiveBody give{want.region, refill.more ? 1u : 0u, want.number, refill.range.begin,
                        refill.range.end};
    node_.fabric().send(message.from, kGiveMessage, fabric::bytes_of(give));
    return;
  }
  AMASIA_CHECK(message.type == kGiveMessage && message.body.size() == sizeof(GiveBody),
               "a work-sharing message has its type's length");
  GiveBody give;
  std::memcpy(&give, message.body.data(), sizeof give);
  {
    const std::lock_guard lock(loops_mutex_);
    NodeLoop* const loop = find(give.region, give.number);
    AMASIA_CHECK(loop != nullptr, "a loop stays until its request was answered");
    deliver(*loop, {{give.begin, give.end}, give.more != 0});
    retire_if_done(*loop);
  }
  node_.wake();
}

}  // namespace amasia::omp
