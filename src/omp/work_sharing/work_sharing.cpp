// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "omp/native.hpp"
#include "omp/node.hpp"
#include "omp/work_sharing/work_sharing_state.hpp"

namespace amasia::omp {
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
  if (loop.by_region) {
    form = LoopForm::kParts;
  } else if (frame.doacross != nullptr) {
    form = LoopForm::kOrdered;
  } else if (!loops::schedule_of(loop.schedule.kind).pooled()) {
    form = loop.schedule.chunk == 0 ? LoopForm::kBlocks : LoopForm::kChunks;
  }
  const std::uint64_t count = site.iterations != 0 ? site.iterations : loop.space.count;
  const auto carried_out = loop.by_region ? asked.kind : loop.schedule.kind;
  frame.book->note(site, {form, asked.kind, carried_out, asked.chunk, count});
}

}  // namespace

LoopSettings loop_settings(const base::Options& options) {
  using loops::ScheduleKind;
  constexpr std::array kKinds = {
      ScheduleKind::kAuto,   ScheduleKind::kStatic,   ScheduleKind::kDynamic,
      ScheduleKind::kGuided, ScheduleKind::kFac2,     ScheduleKind::kWf,
      ScheduleKind::kAwf,    ScheduleKind::kHetProbe, ScheduleKind::kHetProbeI};
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
  on_native_stack(
      [this, &frame, code = site.code] { frame.loop.slot = open(*frame.team, frame.loop, code); });
}

void WorkSharing::begin_static(ThreadFrame& frame, const loops::Space& space,
                               const LoopSite& site) {
  frame.loop = ThreadLoop{};
  frame.loop.space = space;
  frame.loop.schedule = {loops::ScheduleKind::kHetProbeI, 0};
  frame.loop.by_region = true;
  frame.loop.number = frame.loops_met++;
  if (frame.book != nullptr) note_run(frame, {}, site);
  frame.team->enter_loop(frame, site.code);
  on_native_stack(
      [this, &frame, code = site.code] { frame.loop.slot = open(*frame.team, frame.loop, code); });
}

WorkSharing::NodeLoop* WorkSharing::find(std::uint32_t region, std::uint64_t number) {
  for (const auto& loop : open_) {
    if (loop->want.body.region == region && loop->want.body.number == number) return loop.get();
  }
  return nullptr;
}

WorkSharing::NodeLoop& WorkSharing::open_another() {
  if (spare_.empty()) spare_.push_back(std::make_unique<NodeLoop>());
  open_.push_back(std::move(spare_.back()));
  spare_.pop_back();
  return *open_.back();
}

WorkSharing::NodeLoop* WorkSharing::open(const Team& team, const ThreadLoop& begun,
                                         const void* site) {
  const std::lock_guard lock(loops_mutex_);
  if (NodeLoop* const loop = find(team.region(), begun.number)) return loop;
  // Regions come one after the other; what is left of the last one was cancelled.
  std::erase_if(open_,
                [&team](const auto& loop) { return loop->want.body.region != team.region(); });
  NodeLoop& loop = open_another();
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
  const bool is_known = !team.works_alone() && !team.can_be_cancelled() && !begun.by_region;
  body.key = is_known ? key_of(site, team.shares()) : 0;
  auto& powers = loop.powers;
  loop.function = team.function();
  loop.code = site;
  loop.opened = node_.self() == base::kOrigin ? os::monotonic_now() : 0;
  latest_ = {body.region, body.number, body.key};
  History* const history = body.key != 0 ? &known_[body.key] : nullptr;
  if (history != nullptr) {
    body.known = history->next.known ? 1 : 0;
    body.late = std::exchange(history->late, {});
  }
  if (begun.by_region) {
    body.known = body.by_region = 1;
    body.first = begun.space.step == 1 ? begun.space.first % loops::kMostGrain : 0;
  }
  for (std::size_t rank = 0; rank < body.nodes; ++rank) {
    const NodeShare& share = team.shares()[rank];
    // Until the loop itself is known the speeds are those by which its region divides others.
    powers[rank] = {share.threads, share.speed};
    // Which of its iterations are in pages, threads of a larger team do not say.
    const bool has_seams = begun.by_region && team.numbered().threads == 0;
    if (has_seams) powers[rank].seam = share.seam;
    if (history != nullptr && body.known != 0) powers[rank].speed = history->next.speeds[rank];
    loop.want.sharers[rank] = {share.node.value, powers[rank].seam, share.threads,
                               powers[rank].speed};
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
  terms.by_region = body.by_region != 0;
  terms.first = body.first;
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
  if (limit_.holds() || thread.by_region) thread.cpu_before_ns = os::own_cpu_time();
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
  return {before.in_hand, static_cast<std::uint64_t>(compute), static_cast<std::uint64_t>(stall),
          thread.faults_before - before.faults_before, static_cast<std::uint64_t>(cpu)};
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
    node_.wait_until(
        [&] { return delivered() || team.gives_up_loop(number) || node_.others_hold(); },
        node_.settings().spin_in_region, "more iterations of a loop", 0);
    // What they have to tell may be what is waited for.
    if (node_.others_hold() && !delivered() && !take_over(loop)) node_.let_others_go();
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
  const bool adopted = loop.want.body.nodes == 0;
  if (loop.threads_here == 0 && node_.self() == base::kOrigin && !adopted) note_left(loop);
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
  drop(loop);
}

void WorkSharing::drop(const NodeLoop& loop) {
  const auto at = std::find_if(open_.begin(), open_.end(),
                               [&loop](const auto& it) { return it.get() == &loop; });
  AMASIA_CHECK(at != open_.end(), "a loop is retired once");
  spare_.push_back(std::move(*at));
  open_.erase(at);
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
