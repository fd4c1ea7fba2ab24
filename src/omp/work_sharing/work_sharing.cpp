// SPDX-License-Identifier: Apache-2.0
#include "omp/work_sharing/work_sharing.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "omp/native.hpp"
#include "omp/node.hpp"

namespace amasia::omp {
namespace {
constexpr fabric::MessageType kWantMessage = kWorkSharingFirst;
constexpr fabric::MessageType kGiveMessage = kWorkSharingFirst + 1;
}  // namespace

// A node that shares a loop, in messages.
struct WorkSharing::Sharer {
  std::uint32_t node;
  std::uint32_t threads;
  std::uint32_t speed;  // that the loop begins with
};

// From a node to the origin: what the origin needs to make the loop's dealer, should this be the
// first request, and what the node has executed. The sharers follow, by rank.
struct WorkSharing::WantBody {
  std::uint32_t region;
  std::uint16_t nodes;
  std::uint16_t rank;
  std::uint64_t number;
  std::uint64_t count;
  std::uint64_t chunk;
  std::uint64_t key;
  loops::ScheduleKind kind;
  std::uint8_t known;
  std::uint8_t unused[6];
  loops::Report report;  // since the last request
  loops::Report late;    // of the loop's last run, after its last request
};

struct WorkSharing::Want {
  WantBody body{};
  std::array<Sharer, base::kMaxNodes> sharers;

  std::span<const Sharer> all() const { return {sharers.data(), body.nodes}; }
};

// The origin's answer. When there is no more, the speeds of the next run follow, by rank.
struct WorkSharing::GiveBody {
  std::uint32_t region;
  std::uint16_t nodes;
  std::uint8_t more;
  std::uint8_t known;  // the next run
  std::uint64_t number;
  std::uint64_t begin;
  std::uint64_t end;
  std::uint64_t piece;
};

struct WorkSharing::Give {
  NodeId to;
  GiveBody body{};
  std::array<std::uint32_t, base::kMaxNodes> speeds;

  std::span<const std::uint32_t> all() const {
    return {speeds.data(), body.more != 0 ? std::size_t{0} : body.nodes};
  }
};

struct WorkSharing::NodeLoop {
  std::mutex mutex;
  Want want{};  // what to send when the pool runs low; constant, but for the reports
  loops::NodePool pool;
  loops::Report news;  // what was executed since the last request
  // Where it is, when the node's first thread came to it, and what the nodes count with.
  const void* function = nullptr;
  const void* code = nullptr;
  Nanos opened = 0;
  std::array<loops::Power, base::kMaxNodes> powers;
  std::uint32_t threads_here = 0;  // of the node that have not ended the loop
  // Refills delivered. Release by who delivers, acquire by who waits for one.
  std::atomic<std::uint32_t> deliveries{0};
};

struct WorkSharing::GlobalLoop {
  loops::Dealer dealer;
  Want want;                          // the first one: who shares the loop, and how it began
  std::uint32_t nodes_to_tell = 0;    // that do not know yet that there is no more
  std::vector<loops::Report> totals;  // by rank
  std::optional<loops::NextRun> next{};  // once a node was told that there is no more
  double expected_ns = 0;  // of an iteration, before the run; 0: nothing was known
  Nanos expected_end = 0;  // by the run's first decision; 0: there was none
  // Once the origin's threads have left the loop: where it is, and when they came and went.
  const void* function = nullptr;
  const void* code = nullptr;
  Nanos opened = 0, left = 0;
};

namespace {

// One loop of the program, shared by these nodes.
std::uint64_t key_of(const void* site, std::span<const NodeShare> shares) {
  if (site == nullptr) return 0;
  std::uint64_t key = reinterpret_cast<std::uintptr_t>(site);
  for (const NodeShare& share : shares) {
    key = (key ^ (std::uint64_t{share.threads} << 16 | share.node.value)) * 0x9e3779b97f4a7c15ull;
    key ^= key >> 29;
  }
  return key | 1;
}

// By the team's thread 0, which has begun the loop.
void note_run(ThreadFrame& frame, loops::ScheduleRequest asked, const LoopSite& site) {
  const ThreadLoop& loop = frame.loop;
  LoopForm form = LoopForm::kPooled;
  if (frame.doacross != nullptr) {
    form = LoopForm::kOrdered;
  } else if (!loops::schedule_of(loop.schedule.kind).pooled()) {
    form = loop.schedule.chunk == 0 ? LoopForm::kBlocks : LoopForm::kChunks;
  }
  const std::uint64_t count = site.iterations != 0 ? site.iterations : loop.space.count;
  frame.book->note(site, {form, asked.kind, loop.schedule.kind, asked.chunk, count});
}

}  // namespace

LoopSettings loop_settings(const base::Options& options) {
  using loops::ScheduleKind;
  constexpr std::array kKinds = {
      ScheduleKind::kAuto, ScheduleKind::kStatic, ScheduleKind::kDynamic,  ScheduleKind::kGuided,
      ScheduleKind::kFac2, ScheduleKind::kWf,     ScheduleKind::kAwf,      ScheduleKind::kHetProbe,
      ScheduleKind::kHetProbeI};
  LoopSettings settings;
  settings.schedule = kKinds[static_cast<std::size_t>(options.schedule)];
  settings.rules = {static_cast<std::uint32_t>(options.probe_percent),
                    static_cast<std::uint32_t>(options.reprobe_percent)};
  if (const auto& runtime = options.runtime_schedule; runtime.has_value()) {
    const auto kind = runtime->again ? ScheduleKind::kHetProbeI : ScheduleKind::kHetProbe;
    settings.runtime = loops::ScheduleRequest{kind, runtime->chunk, runtime->monotonic};
  }
  return settings;
}

WorkSharing::WorkSharing(Node& node, LoopSettings settings) : node_(node), settings_(settings) {
  const std::vector<loops::CpuLimit>& limits = node.settings().cpu_limits;
  if (!limits.empty()) limit_ = limits[node.self().value];
  node_.fabric().set_handler(kWorkSharingFirst, kWorkSharingLast, this);
}

WorkSharing::~WorkSharing() = default;

loops::ScheduleRequest WorkSharing::carried_out(loops::ScheduleRequest asked) const {
  const bool left_to_us = asked.kind == loops::ScheduleKind::kAuto;
  if (!left_to_us && !loops::schedule_of(asked.kind).pooled()) return asked;
  if (settings_.schedule == loops::ScheduleKind::kStatic) return {settings_.schedule, asked.chunk};
  if (settings_.schedule != loops::ScheduleKind::kAuto) {
    asked.kind = settings_.schedule;
  } else if (left_to_us) {
    // Probing once is as good where iterations are alike, but a loop whose first ones are cheap can
    // end up many times slower (loop_simulation_test).
    asked.kind = loops::ScheduleKind::kHetProbeI;
  }
  return loops::carried_out(asked);
}

void WorkSharing::begin(ThreadFrame& frame, const loops::Space& space,
                        loops::ScheduleRequest schedule, const LoopSite& site) {
  frame.loop = ThreadLoop{};
  frame.loop.space = space;
  frame.loop.schedule = carried_out(schedule);
  if (frame.team->works_alone() && loops::schedule_of(frame.loop.schedule.kind).probes()) {
    // The region has decided: there is nothing to be found out.
    frame.loop.schedule.kind = loops::ScheduleKind::kGuided;
  }
  frame.loop.number = frame.loops_met++;
  if (frame.book != nullptr && space.count > 0) note_run(frame, schedule, site);
  frame.team->enter_loop(frame, site.code);
  if (!loops::schedule_of(frame.loop.schedule.kind).pooled() || space.count == 0) return;
  // Chunks of a dynamic loop stay whole, whatever it is carried out by.
  const bool dynamic = schedule.kind == loops::ScheduleKind::kDynamic;
  if (dynamic && frame.loop.schedule.kind != schedule.kind && schedule.chunk > 1) {
    frame.loop.whole = schedule.chunk;
    frame.loop.schedule.chunk = 0;
  }
  on_native_stack([this, &frame, code = site.code] {
    frame.loop.slot = open(*frame.team, frame.loop, code);
  });
}

WorkSharing::NodeLoop* WorkSharing::find(std::uint32_t region, std::uint64_t number) {
  for (const auto& loop : open_) {
    if (loop->want.body.region == region && loop->want.body.number == number) return loop.get();
  }
  return nullptr;
}

WorkSharing::NodeLoop* WorkSharing::open(const Team& team, const ThreadLoop& begun,
                                         const void* site) {
  const std::lock_guard lock(loops_mutex_);
  if (NodeLoop* const loop = find(team.region(), begun.number)) return loop;
  // Regions come one after the other; what is left of the last one was cancelled.
  std::erase_if(open_, [&team](const auto& loop) {
    return loop->want.body.region != team.region();
  });
  if (spare_.empty()) spare_.push_back(std::make_unique<NodeLoop>());
  open_.push_back(std::move(spare_.back()));
  spare_.pop_back();
  NodeLoop& loop = *open_.back();
  WantBody& body = loop.want.body;
  body = {};
  body.region = team.region();
  body.nodes = static_cast<std::uint16_t>(team.shares().size());
  body.rank = static_cast<std::uint16_t>(team.rank());
  body.number = begun.number;
  body.count = (begun.space.count - 1) / begun.whole + 1;
  body.chunk = begun.schedule.chunk;
  body.kind = begun.schedule.kind;
  // What is known of the loop is of runs by all of them, and of a loop that was cancelled they do
  // not know the same (W4).
  const bool is_known = !team.works_alone() && !team.can_be_cancelled();
  body.key = is_known ? key_of(site, team.shares()) : 0;
  auto& powers = loop.powers;
  loop.function = team.function();
  loop.code = site;
  loop.opened = node_.self() == base::kOrigin ? os::monotonic_now() : 0;
  History* const history = body.key != 0 ? &known_[body.key] : nullptr;
  if (history != nullptr) {
    body.known = history->next.known ? 1 : 0;
    body.late = std::exchange(history->late, {});
  }
  for (std::size_t rank = 0; rank < body.nodes; ++rank) {
    const NodeShare& share = team.shares()[rank];
    // Until the loop itself is known the speeds are those by which its region divides others.
    powers[rank] = {share.threads, share.speed};
    if (body.known != 0) powers[rank].speed = history->next.speeds[rank];
    loop.want.sharers[rank] = {share.node.value, share.threads, powers[rank].speed};
  }
  loop.pool = loops::NodePool(
      begun.schedule, body.count, team.local_size(),
      loops::first_refill(terms_of(body), {powers.data(), body.nodes}, team.rank()));
  loop.news = {};
  loop.threads_here = team.local_size();
  return &loop;
}

loops::LoopTerms WorkSharing::terms_of(const WantBody& body) const {
  loops::LoopTerms terms;
  terms.schedule = {body.kind, body.chunk};
  terms.rules = settings_.rules;
  terms.count = body.count;
  terms.known = body.known != 0;
  return terms;
}

bool WorkSharing::next(ThreadFrame& frame, loops::Iterations& range) {
  ThreadLoop& loop = frame.loop;
  if (loop.space.count == 0) return false;
  const bool whole = loop.schedule.kind == loops::ScheduleKind::kStatic && loop.schedule.chunk == 0;
  if (loop.slot == nullptr && whole) {
    // As loops whose bounds are asked for at their start.
    if (loop.round++ != 0) return false;
    range = frame.team->static_share(frame, loop.space);
    return !range.empty();
  }
  if (loop.slot == nullptr) {
    const auto share = loops::schedule_of(loop.schedule.kind)
                           .share(loop.space.count, loop.schedule.chunk, frame.global_id,
                                  frame.team->size(), loop.round++);
    if (share) range = *share;
    return share.has_value();
  }
  loops::Iterations taken;
  on_native_stack([this, &frame, &loop, &taken] {
    auto& pooled = *static_cast<NodeLoop*>(loop.slot);
    loops::Iterations mine;  // on the native stack, see W1
    if (!next_from_pool(pooled, *frame.team, loop, mine)) {
      close(pooled);
      loop = ThreadLoop{};
    }
    taken = mine;
  });
  if (taken.empty()) return false;
  // The last product of a loop near 2^64 would overflow.
  const std::uint64_t chunks = (loop.space.count - 1) / loop.whole + 1;
  range = {taken.begin * loop.whole,
           taken.end == chunks ? loop.space.count : taken.end * loop.whole};
  frame.totals.iterations += range.size();
  return true;
}

// The clock is read once a chunk, unless the thread waits: when it is back is when it goes on.
void WorkSharing::read_clock(ThreadLoop& thread) const {
  const ThreadCounters counters = node_.services().thread_counters();
  thread.begun_ns = os::monotonic_now();
  thread.stall_before_ns = counters.stall_ns;
  thread.faults_before = counters.faults;
  if (limit_.holds()) thread.cpu_before_ns = os::own_cpu_time();
}

// A node with a limit of CPU time is taken for as busy as it would be with nothing but that.
loops::Report WorkSharing::executed(ThreadLoop& thread, std::uint32_t threads) const {
  const ThreadLoop before = thread;
  read_clock(thread);
  if (before.in_hand == 0) return {};
  const Nanos elapsed = std::max<Nanos>(thread.begun_ns - before.begun_ns, 0);
  const Nanos stall = std::min(thread.stall_before_ns - before.stall_before_ns, elapsed);
  const Nanos cpu = thread.cpu_before_ns - before.cpu_before_ns;
  const Nanos compute = std::max(elapsed - stall, loops::sustained_time(limit_, cpu * threads, 0));
  return {before.in_hand, static_cast<std::uint64_t>(compute),
          static_cast<std::uint64_t>(stall), thread.faults_before - before.faults_before};
}

bool WorkSharing::next_from_pool(NodeLoop& loop, const Team& team, ThreadLoop& thread,
                                 loops::Iterations& range) {
  using Answer = loops::NodePool::Answer;
  loops::Report report = executed(thread, team.local_size());
  thread.in_hand = 0;
  for (bool waited = false;; waited = true) {
    loops::NodePool::Taken taken;
    std::uint32_t seen = 0;
    WantBody body;
    {
      const std::lock_guard lock(loop.mutex);
      loop.news += report;
      taken = loop.pool.take(report.iterations > 0);
      report = {};
      // Relaxed: deliveries change under the mutex.
      seen = loop.deliveries.load(std::memory_order_relaxed);
      if (taken.answer == Answer::kAsk || taken.answer == Answer::kIterationsAndAsk) {
        body = loop.want.body;
        body.report = std::exchange(loop.news, {});
        loop.want.body.late = {};
      }
    }
    if (taken.answer == Answer::kDone) return false;
    if (taken.answer == Answer::kAsk || taken.answer == Answer::kIterationsAndAsk) {
      ask(loop, body);
    }
    if (taken.answer == Answer::kIterations || taken.answer == Answer::kIterationsAndAsk) {
      range = taken.range;
      thread.in_hand = range.size();
      if (waited) read_clock(thread);
      return true;
    }
    const auto delivered = [&loop, seen] {
      return loop.deliveries.load(std::memory_order_acquire) != seen;
    };
    const std::uint64_t number = thread.number;
    node_.wait_until([&] { return delivered() || team.gives_up_loop(number); },
                     node_.settings().spin_in_region, "more iterations of a loop", 0);
    if (!delivered() && team.gives_up_loop(number)) return false;
  }
}

// `body` is that of the loop's want, with the reports.
void WorkSharing::ask(NodeLoop& loop, const WantBody& body) {
  node_.services().show_progress();
  refills_.fetch_add(1, std::memory_order_relaxed);
  if (node_.self() == base::kOrigin) {
    hand_out(ask_dealer(body, loop.want.all()));
    return;
  }
  node_.fabric().send(base::kOrigin, kWantMessage, fabric::bytes_of(body),
                      std::as_bytes(loop.want.all()));
}

// Regions come one after the other: what is left of the last one was cancelled. global_mutex_ held.
void WorkSharing::enter_region(std::uint32_t region) {
  if (region <= global_region_) return;
  global_.clear();
  advice_ = {};
  global_region_ = region;
}

WorkSharing::GlobalLoop& WorkSharing::global_loop(const WantBody& body,
                                                  std::span<const Sharer> sharers) {
  enter_region(body.region);
  if (const auto found = global_.find(body.number); found != global_.end()) return found->second;
  std::array<loops::Power, base::kMaxNodes> powers;
  Want want;
  want.body = body;
  for (std::size_t rank = 0; rank < sharers.size(); ++rank) {
    powers[rank] = {sharers[rank].threads, sharers[rank].speed};
    want.sharers[rank] = sharers[rank];
  }
  std::vector<loops::Report> told = std::exchange(told_after_end_[body.key], {});
  told.resize(sharers.size());
  GlobalLoop loop{loops::Dealer(terms_of(body), {powers.data(), sharers.size()}), want, body.nodes,
                  std::move(told)};
  loop.expected_ns = body.key != 0 ? cache_.expected_ns(body.key) : 0;
  return global_.emplace(body.number, std::move(loop)).first->second;
}

// What the next run begins with: fixed when the first node is told that there is no more, so that
// all are told the same.
const loops::NextRun& WorkSharing::next_run(GlobalLoop& loop) {
  if (loop.next.has_value()) return *loop.next;
  loop.next.emplace();
  if (loop.want.body.key == 0) {
    for (const Sharer& sharer : loop.want.all()) advice_.note(sharer.node, true);
    return *loop.next;
  }
  std::array<std::uint32_t, base::kMaxNodes> threads;
  for (std::size_t r = 0; r < loop.totals.size(); ++r) threads[r] = loop.want.sharers[r].threads;
  loop.next = cache_.finish(loop.want.body.key, {threads.data(), loop.totals.size()}, loop.totals);
  // Of other schedules data move in each run.
  const bool settles = loops::schedule_of(loop.want.body.kind).probes();
  for (std::size_t r = 0; r < loop.totals.size(); ++r) {
    const bool used = !loop.next->known || loop.next->speeds[r] > 0;
    const bool stays = loop.next->known && loop.want.body.known != 0 &&
                       loop.next->speeds[r] == loop.want.sharers[r].speed;
    advice_.moves = advice_.moves || (settles && !stays);
    advice_.note(loop.want.sharers[r].node, used);
  }
  return *loop.next;
}

std::vector<WorkSharing::Give> WorkSharing::ask_dealer(const WantBody& body,
                                                       std::span<const Sharer> sharers) {
  const std::lock_guard lock(global_mutex_);
  if (body.region < global_region_) return {};  // it was cancelled: who asked has left
  GlobalLoop& loop = global_loop(body, sharers);
  const bool agree = std::equal(sharers.begin(), sharers.end(), loop.want.sharers.begin(),
                                [](const Sharer& a, const Sharer& b) {
                                  return a.node == b.node && a.speed == b.speed;
                                });
  AMASIA_CHECK(agree && body.known == loop.want.body.known && body.count == loop.want.body.count,
               "all nodes begin a loop with the same terms (W4)");
  // Who asks when the first has been told that there is no more is mostly the slowest: what it has
  // to tell counts in the next run.
  const bool has_ended = loop.next.has_value() && body.key != 0;
  std::vector<loops::Report>& totals = has_ended ? told_after_end_[body.key] : loop.totals;
  totals.resize(body.nodes);
  totals[body.rank] += body.report;
  totals[body.rank] += body.late;
  std::vector<loops::Grant> grants;
  loop.dealer.ask(body.rank, body.report, grants);
  expect(loop);
  std::vector<Give> gives;
  for (const loops::Grant& grant : grants) {
    Give give;
    give.to = NodeId{static_cast<std::uint16_t>(loop.want.sharers[grant.rank].node)};
    give.body = {body.region, body.nodes, grant.refill.more, 0, body.number,
                 grant.refill.range.begin, grant.refill.range.end, grant.refill.piece};
    if (!grant.refill.more) {
      give.body.known = next_run(loop).known ? 1 : 0;
      give.speeds = next_run(loop).speeds;
      --loop.nodes_to_tell;
    }
    gives.push_back(give);
  }
  // A node that knows that there is no more does not ask again.
  if (loop.nodes_to_tell == 0 && loop.left != 0) {
    conclude(loop);
    global_.erase(body.number);
  }
  return gives;
}

void WorkSharing::hand_out(const std::vector<Give>& gives) {
  for (const Give& give : gives) {
    if (give.to == node_.self()) {
      receive(give.body, give.all());
    } else {
      node_.fabric().send(give.to, kGiveMessage, fabric::bytes_of(give.body),
                          std::as_bytes(give.all()));
    }
  }
}

void WorkSharing::receive(const GiveBody& give, std::span<const std::uint32_t> speeds) {
  {
    const std::lock_guard lock(loops_mutex_);
    NodeLoop* const loop = find(give.region, give.number);
    if (loop == nullptr) return;  // its region was cancelled, and is over
    const std::uint64_t key = loop->want.body.key;
    if (give.more == 0 && key != 0) {
      loops::NextRun& next = known_[key].next;
      next.known = give.known != 0;
      std::copy(speeds.begin(), speeds.end(), next.speeds.begin());
    }
    {
      const std::lock_guard pool_lock(loop->mutex);
      loop->pool.deliver({{give.begin, give.end}, give.more != 0, give.piece});
      loop->deliveries.fetch_add(1, std::memory_order_release);
    }
    retire_if_done(*loop);
  }
  node_.wake();
}

void WorkSharing::leave(ThreadFrame& frame) {
  AMASIA_CHECK(frame.loop.slot != nullptr && !frame.loop.ordered, "the thread is in such a loop");
  on_native_stack([this, &frame] { close(*static_cast<NodeLoop*>(frame.loop.slot)); });
  frame.loop = ThreadLoop{};
}

void WorkSharing::close(NodeLoop& loop) {
  const std::lock_guard lock(loops_mutex_);
  AMASIA_CHECK(loop.threads_here > 0, "each thread of the node ends a loop once");
  --loop.threads_here;
  if (loop.threads_here == 0 && node_.self() == base::kOrigin) note_left(loop);
  retire_if_done(loop);
}

// Under loops_mutex_.
void WorkSharing::retire_if_done(NodeLoop& loop) {
  {
    const std::lock_guard lock(loop.mutex);
    if (loop.threads_here > 0 || loop.pool.asking()) return;
    if (const std::uint64_t key = loop.want.body.key; key != 0) {
      known_[key].late += loop.news;
      known_[key].late += loop.want.body.late;
    }
  }
  const auto at = std::find_if(open_.begin(), open_.end(),
                               [&loop](const auto& it) { return it.get() == &loop; });
  AMASIA_CHECK(at != open_.end(), "a loop is retired once");
  spare_.push_back(std::move(*at));
  open_.erase(at);
}

// What the rest was expected to take when shares were decided for the first time.
void WorkSharing::expect(GlobalLoop& loop) {
  const loops::ProbeDealer* const probe = loop.dealer.probe();
  if (loop.expected_end != 0 || probe == nullptr || probe->decisions() == 0) return;
  loop.expected_end = os::monotonic_now() + static_cast<Nanos>(probe->expected_ns());
}

// The origin's last thread has left the loop; under loops_mutex_.
void WorkSharing::note_left(const NodeLoop& loop) {
  const Nanos now = os::monotonic_now();
  const std::lock_guard lock(global_mutex_);
  const auto found = global_.find(loop.want.body.number);
  if (loop.want.body.region != global_region_ || found == global_.end()) {
    return conclude_dealt_at_once(loop, now - loop.opened);
  }
  GlobalLoop& global = found->second;
  global.function = loop.function;
  global.code = loop.code;
  global.opened = loop.opened;
  global.left = now;
  if (global.nodes_to_tell > 0) return;
  conclude(global);
  global_.erase(found);
}

// Under global_mutex_; all nodes know that there is no more, and the origin's threads have left.
void WorkSharing::conclude(const GlobalLoop& loop) {
  if (loop.code == nullptr) return;
  const WantBody& body = loop.want.body;
  LoopRunOutcome run;
  run.count = body.count;
  run.elapsed = loop.left - loop.opened;
  if (loop.expected_ns > 0) {
    run.expected = static_cast<Nanos>(loop.expected_ns * static_cast<double>(body.count));
  } else if (loop.expected_end > loop.opened) {
    run.expected = loop.expected_end - loop.opened;
  }
  for (std::size_t r = 0; r < body.nodes; ++r) {
    LoopRunOutcome::Part part;
    part.node = NodeId{static_cast<NodeId::representation>(loop.want.sharers[r].node)};
    part.given = loop.dealer.given(r);
    part.speed = loop.dealer.speed(r);
    if (const auto* const told = cache_.find(body.key, r); told != nullptr) {
      part.cost = told->mean;
      part.probes = told->runs;
    }
    run.parts.push_back(part);
  }
  outcomes_.add(loop.function, loop.code, std::move(run));
}

// Nobody had to ask: the first deal was all.
void WorkSharing::conclude_dealt_at_once(const NodeLoop& loop, Nanos elapsed) {
  const WantBody& body = loop.want.body;
  enter_region(body.region);
  for (std::size_t r = 0; r < body.nodes; ++r) advice_.note(loop.want.sharers[r].node, true);
  if (loop.code == nullptr) return;
  const loops::Dealer dealt(terms_of(body), {loop.powers.data(), body.nodes});
  LoopRunOutcome run;
  run.count = body.count;
  run.elapsed = elapsed;
  for (std::size_t r = 0; r < body.nodes; ++r) {
    LoopRunOutcome::Part part;
    part.node = NodeId{static_cast<NodeId::representation>(loop.want.sharers[r].node)};
    part.given = dealt.given(r);
    part.speed = dealt.speed(r);
    run.parts.push_back(part);
  }
  outcomes_.add(loop.function, loop.code, std::move(run));
}

LoopAdvice WorkSharing::take_advice(std::uint32_t region) {
  const std::lock_guard lock(global_mutex_);
  return region == global_region_ ? std::exchange(advice_, {}) : LoopAdvice{};
}

std::optional<LoopOutcome> WorkSharing::outcome_of(const void* function, const void* code) const {
  const std::lock_guard lock(global_mutex_);
  const LoopOutcome* const found = outcomes_.find(function, code);
  return found != nullptr ? std::optional(*found) : std::nullopt;
}

void WorkSharing::on_message(const fabric::Incoming& message) {
  const std::span<const std::byte> body = message.body;
  if (message.type == kWantMessage && body.size() >= sizeof(WantBody)) {
    Want want;
    std::memcpy(&want.body, body.data(), sizeof want.body);
    const std::size_t rest = body.size() - sizeof want.body;
    AMASIA_CHECK(want.body.nodes <= base::kMaxNodes && want.body.rank < want.body.nodes &&
                     rest == want.all().size_bytes(),
                 "a request names those who share the loop");
    std::memcpy(want.sharers.data(), body.data() + sizeof want.body, rest);
    return hand_out(ask_dealer(want.body, want.all()));
  }
  AMASIA_CHECK(message.type == kGiveMessage && body.size() >= sizeof(GiveBody),
               "a work-sharing message has its type's length");
  Give give;
  std::memcpy(&give.body, body.data(), sizeof give.body);
  const std::size_t rest = body.size() - sizeof give.body;
  AMASIA_CHECK(give.body.nodes <= base::kMaxNodes && rest == give.all().size_bytes(),
               "an answer that ends a loop has all speeds");
  std::memcpy(give.speeds.data(), body.data() + sizeof give.body, rest);
  receive(give.body, give.all());
}

loops::ScheduleRequest named_by_user(loops::ScheduleRequest said) {
  const Node* const node = current_node();
  if (node == nullptr || node->work_sharing() == nullptr) return said;
  const LoopSettings& settings = node->work_sharing()->settings();
  if (said.kind != loops::ScheduleKind::kAuto) {
    if (settings.schedule != loops::ScheduleKind::kAuto) said.kind = settings.schedule;
    return said;
  }
  const auto& named = settings.runtime;
  if (!named.has_value()) return said;
  return {named->kind, named->chunk, said.monotonic || named->monotonic};
}

}  // namespace amasia::omp
