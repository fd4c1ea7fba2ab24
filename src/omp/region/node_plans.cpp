// SPDX-License-Identifier: Apache-2.0
// Which nodes take part in a region, and what its executions tell about that.
#include <algorithm>
#include <array>
#include <numeric>

#include "omp/native.hpp"
#include "omp/node.hpp"
#include "omp/region/thread_deal.hpp"
#include "omp/region/thread_number.hpp"
#include "omp/team/spin_watch.hpp"
#include "omp/work_sharing/work_sharing.hpp"
#include "os/os.hpp"

namespace amasia::omp {
namespace {

// A page's way to and fro may take so long by a fast link, too, on a busy machine: then it says
// nothing of the link. ns.
constexpr double kNearLink = 150 * base::kMicrosecond;

// Nodes whose calibrated speeds differ by less begin with even shares, as a program would expect
// that schedule(static) gives: a busy moment may have made the difference.
constexpr double kAlike = 1.5;

// Of how many threads a team would be whose parts, handed out one after the other, even out unlike
// iterations; 0: there are too few of these.
std::uint32_t larger_team(std::uint32_t threads, std::size_t nodes, const IdleThread& idle) {
  constexpr std::uint64_t kLeastForEach = 16;  // a few iterations may be dear ones
  constexpr std::uint64_t kParts = 64, kReducing = 32, kLeastParts = 8;
  if (idle.iterations / kLeastForEach < threads) return 0;
  // Each part reduces by itself, for which pages move.
  const std::uint64_t parts =
      idle.reduces ? std::max(kReducing * nodes, kLeastParts * threads) : kParts * threads;
  return static_cast<std::uint32_t>(std::min(parts, idle.iterations));
}

// gcc's threads have equal shares, so that a node's power is told by how many it has: eight on a
// core at most, and no more than the program may know of. Numbers divide finer. That they may costs
// some 50 us in each execution, and each part of a reduction moves a page.
bool divides_by_numbers(const RegionPlan& plan, Nanos elapsed) {
  constexpr Nanos kLongEnough = 4 * base::kMillisecond;
  return plan.reentry == Reentry::kNumbered && !plan.numbered.reduce && elapsed >= kLongEnough;
}

// There are nodes without a share.
void hand_out_nothing(RegionPlan& plan) {
  if (plan.reentry == Reentry::kNumbered) {
    plan.numbered.stay = true;
  } else {
    plan.reentry = Reentry::kNever;
  }
}

// For further iterations, which need no other number of the thread's.
bool may_be_entered_again(Reentry reentry) {
  return reentry == Reentry::kPlain || reentry == Reentry::kReduces;
}

double clear_speed_ratio(const machine::Calibration& calibration, NodeId node) {
  const double ratio = calibration.core_speed_ratio(node);
  return ratio > 1 / kAlike && ratio < kAlike ? 1 : ratio;
}

// Whether some of its loops are divided by what the region's model says.
bool divides_by_speed(std::span<const NodeShare> shares, std::span<const NodeTotals> totals) {
  return std::ranges::any_of(shares, [totals](const NodeShare& share) {
    return (totals[share.node.value].marks & kDividedBySpeed) != 0;
  });
}

}  // namespace

void Node::adopt_thread(Abi abi) {
  ThreadContext& context = thread_context;
  const std::uint32_t bit = 1u << static_cast<unsigned>(abi);
  if ((context.adopted & bit) != 0 || context.frame != nullptr || context.local_depth != 0) return;
  context.adopted |= bit;
  if (!environment_sets_threads(abi)) runtime(abi).set_threads(default_threads(abi));
}

std::uint32_t Node::threads_of(const RegionRequest& request) {
  LocalRuntime& local = runtime(request.abi);
  const std::uint32_t wanted = request.threads != 0 ? request.threads : local.nested_threads();
  return std::clamp<std::uint32_t>(wanted, 1, std::max<std::uint32_t>(1, local.thread_limit()));
}

SingleReason Node::reason_to_stay(const RegionRequest& request, std::uint32_t threads) {
  if (settings_.share == base::SharePolicy::kNever) return SingleReason::kNotWanted;
  if (request.must_stay != SingleReason::kNone) return request.must_stay;
  if (self() != base::kOrigin) return SingleReason::kNotOnOrigin;
  if (threads == 1) return SingleReason::kOneThread;
  if (threads <= settings_.capacity[0] || node_count() == 1) return SingleReason::kFitsOneNode;
  // A region that shares a thread-local variable stays here, and with it what its threads then have
  // in their threadprivate ones. Later regions of as many threads must find that, and stay, too.
  if (copyin_met_.load(std::memory_order_relaxed) && keeps_placement()) {
    return SingleReason::kAfterCopyin;
  }
  if (changed_values_.load(std::memory_order_relaxed) == ChangedValues::kHere) {
    return SingleReason::kAfterChange;
  }
  LocalRuntime& local = runtime(request.abi);
  if (local.max_active_levels() < 1) return SingleReason::kOneThread;
  if (request.outlined.words.size() > kMaxRegionWords) return SingleReason::kManyArguments;
  if (!services_.code_is_everywhere(request.outlined.function)) return SingleReason::kLateLibrary;
  // The words stand on the forking thread's stack or in its argument area.
  if (!services_.is_managed(__builtin_frame_address(0))) return SingleReason::kUnmanagedStack;
  if (services_.has_own_mappings()) return SingleReason::kOwnMappings;
  for (void* const word : request.outlined.words) {
    if (!services_.is_thread_local(word)) {
      if (services_.is_private(word)) return SingleReason::kPrivateMemory;
    } else if (request.copied_in.empty()) {
      return SingleReason::kThreadLocal;
    }
  }
  return SingleReason::kNone;
}

RegionRecord* Node::record_of(const void* function, Abi abi, const void* location) {
  const std::lock_guard lock(records_mutex_);
  std::unique_ptr<RegionRecord>& record = records_[function];
  if (record == nullptr) {
    record = std::make_unique<RegionRecord>();
    record->site = site_of(function, runtime(abi).source_of(location));
    record->function = function;
    record->abi = abi;
  }
  return record.get();
}

// Several regions run at once where threads of the program fork: one of them is shown.
void Node::show_region(const RegionRecord& record) {
  regions_here_.fetch_add(1, std::memory_order_relaxed);  // a count, which orders nothing
  services_.enter_region(record.site);
}

void Node::unshow_region() {
  if (regions_here_.fetch_sub(1, std::memory_order_relaxed) == 1) services_.leave_region();
}

RegionPlan Node::plan_region(const RegionRequest& request) {
  RegionPlan plan;
  plan.threads = request.threads;
  const ThreadContext& context = thread_context;
  if (context.frame != nullptr || context.local_depth != 0) {
    plan.reason = SingleReason::kNested;
    LocalRuntime& local = runtime(request.abi);
    // A node team of one thread is serialized in the next runtime, which would therefore take the
    // nested region for the first active level.
    const ThreadFrame* const outer = outer_frame();
    if (outer != nullptr && outer->serial_below &&
        static_cast<std::int64_t>(local.active_level()) + 1 >= local.max_active_levels()) {
      plan.threads = 1;
    }
    return plan;
  }
  adopt_thread(request.abi);
  plan.started = os::monotonic_now();
  plan.record = record_of(request.outlined.function, request.abi, request.location);
  show_region(*plan.record);
  const std::uint32_t threads = threads_of(request);
  plan.reason = reason_to_stay(request, threads);
  if (plan.reason == SingleReason::kThreadLocal) {
    copyin_met_.store(true, std::memory_order_relaxed);
  }
  if (plan.reason != SingleReason::kNone) {
    bring_values_home(request, threads, plan);
    return plan;
  }
  // Acquire and release: one region after the other uses the team. Partner: run_region.
  if (region_busy_.exchange(true, std::memory_order_acq_rel)) {
    plan.reason = SingleReason::kConcurrent;
    return plan;
  }
  if (!decide_shares(request, threads, plan) && !plan.stands_in()) {
    region_busy_.store(false, std::memory_order_release);
    bring_values_home(request, plan.threads != 0 ? plan.threads : threads, plan);
  }
  if (plan.global() && owns_values()) {
    const bool follow = plan.may_come_home && uses_thread_locals(*plan.record);
    plan.values = follow ? KeptValues::kFollow : KeptValues::kStay;
  }
  return plan;
}

// Whether its threads may need thread-local variables of the program's.
bool Node::uses_thread_locals(const RegionRecord& record) const {
  return services_.has_thread_locals() && record.reached.uses_thread_locals;
}

// Whether they may find some there that they have left.
bool Node::finds_values_again(const RegionRecord& record) const {
  return uses_thread_locals(record) && !watches_values();
}

// Whether those go along with a thread that comes home.
bool Node::values_can_follow() {
  return services_.kind_of_thread_locals() == ThreadLocals::Kind::kMovable && owns_values() &&
         !services_.may_take_thread_local_addresses();
}

// Whether no team of another size will do, as the program may count on it. It cannot tell its
// thread's number in a region of clang's that has not asked for it. gcc makes one call of the
// program's and of its own loops', so there a region with a static loop may, once the program knows
// how large teams are (LULESH has a minimum for each thread, and takes the least of
// omp_get_max_threads() of them), unless its code shows that it does not. Threads find their
// variables again in teams of the same size.
bool Node::is_exact(const RegionRequest& request, const RegionRecord& record) const {
  const bool may_index = request.abi == Abi::kGomp && record.reached.asks_for_numbers &&
                         size_asked_.load(std::memory_order_relaxed);
  return request.threads != 0 || record.knows_team_size || may_index ||
         finds_values_again(record) || team_is_fixed_.load(std::memory_order_relaxed);
}

// Whether threads may find variables of their own again in the next region, which cannot follow
// them, so that each has to stay on its node: once one region is shared all are, by the same
// numbers of threads. A node can still be spared its part of the loops, where those ask for their
// bounds.
bool Node::keeps_placement() const {
  using Kind = ThreadLocals::Kind;
  const Kind kind = services_.kind_of_thread_locals();
  return kind == Kind::kBound || (kind == Kind::kWatched && !watches_values());
}

// By the thread whose region it is. False: the region is to stay.
bool Node::decide_shares(const RegionRequest& request, std::uint32_t threads, RegionPlan& plan) {
  const std::lock_guard lock(records_mutex_);
  RegionRecord& record = *plan.record;
  charge_stall(thread_context.stall_seen);
  if (!record.model.has_value() || record.dealt.threads != threads ||
      record.model->rule() != rule_for(request.abi)) {
    make_model(request, threads, record);
  }
  const bool exact = is_exact(request, record);
  follow_common_sharing(record);
  const bool held = common_trial_.holds(record.together) && record.apart == nullptr;
  const bool put_off = puts_off(*record.model, plan.started);
  plan.alone = held || put_off || !record.model->shares();
  const Gathering::Action action = gathering_.on_run(record.gathering, !plan.alone);
  if (action != Gathering::Action::kNone) {
    services_.gather_data(action == Gathering::Action::kGather);
  }
  if (plan.alone && !keeps_placement()) {
    plan.reason = held      ? SingleReason::kTogether
                  : put_off ? SingleReason::kPutOff
                            : SingleReason::kDearer;
    const bool is_brief = exact && is_brief_loop(record);
    if (!exact || (is_brief && may_be_entered_again(record.code.reentry))) {
      plan.threads = std::min(threads, settings_.capacity[0]);
    } else if (is_brief) {
      plan.numbered = numbers_here(request, record, threads);
    }
    return false;
  }
  plan_parts(request, record, threads, plan);
  const bool by_core = request.abi == Abi::kKmpc || plan.reentry == Reentry::kNumbered;
  // On the native stack: what is allocated on a managed one costs eight system calls.
  const RegionRecord::Dealt wanted{threads, record.model->version(), record.spreads,
                                   exact,   plan.alone,              by_core};
  if (record.dealt != wanted) {
    on_native_stack([&] { deal(wanted, record); });
  }
  plan.shares = record.shares;
  plan.counts = record.model->probes();
  const bool predicts = record.model->rule() == loops::SharingModel::Rule::kPrediction;
  plan.may_come_home = plan.counts && predicts && request.extra.empty() &&
                       (!uses_thread_locals(record) || values_can_follow()) &&
                       services_.can_move_threads();
  plan.may_lose = std::min(trial_budget_.left(plan.started - began_), record.model->may_lose());
  const auto works = [](const NodeShare& share) { return share.speed > 0; };
  if (!std::ranges::all_of(record.shares, works)) hand_out_nothing(plan);
  AMASIA_CHECK(plan.global(), "threads beyond the origin's capacity have another node");
  return true;
}

// How its loop would be handed out in parts. Where nobody has said what schedule(runtime) is,
// libomp's loops of that kind are static ones, too.
Reentry Node::way_to_parts(const RegionRequest& request, const RegionRecord& record) const {
  const bool may_ask = record.code.reentry == Reentry::kNever && request.abi == Abi::kKmpc &&
                       !schedule_is_set_.load(std::memory_order_relaxed);
  return may_ask ? Reentry::kAsks : record.code.reentry;
}

// Whether its static loop is handed out in parts: while nothing is known of it, and how its
// iterations are divided is left to the runtime. Where they wait for each other those are needed
// which all threads begin with. Under records_mutex_.
bool Node::hands_out_parts(const RegionRequest& request, const RegionRecord& record) {
  using Model = loops::SharingModel;
  return way_to_parts(request, record) != Reentry::kNever && !record.reached.waits &&
         record.model->phase() == Model::Phase::kCold &&
         record.model->rule() == Model::Rule::kPrediction && !settings_.fixed_speeds &&
         work_sharing_ != nullptr && work_sharing_->leaves_static_loops() &&
         !(request.abi == Abi::kGomp && watches_values()) &&
         request.copied_in.empty() && !runtime(request.abi).cancellation();
}

// By `threads`. Under records_mutex_.
void Node::plan_parts(const RegionRequest& request, const RegionRecord& record,
                      std::uint32_t threads, RegionPlan& plan) {
  const bool handed_out = hands_out_parts(request, record);
  if (!handed_out && !record.by_numbers) return;
  if (record.code.reentry == Reentry::kNumbered) {
    plan.numbered = numbers_for(request, record, threads);
    plan.numbered.stay = !handed_out;
    const bool fits = plan.numbered.threads > 0 && (handed_out || !plan.numbered.reduce);
    if (!fits) {
      plan.numbered = {};
      return;
    }
  }
  plan.reentry = way_to_parts(request, record);
}

// Whether its code shows that nobody can tell how many threads execute it, where it is a loop, and
// that they do not wait for each other in it by looking, as far as that is plain. Who does so in
// another way, on a core that they share, does it for a slice of the system's time, a millisecond
// and more: it has taken too little for that, too. Who waits by a call does what is not known.
bool Node::is_brief_loop(const RegionRecord& record) const {
  constexpr Nanos kBrief = 200 * base::kMicrosecond;
  constexpr std::uint64_t kOften = 4;  // alone, by all of them
  return record.alone.runs >= kOften && record.latest_alone < kBrief &&
         record.alone.mean_ns() < kBrief && !record.reached.asks_for_numbers &&
         !record.reached.waits && !finds_values_again(record) && !settings_.display_affinity;
}

// A region that stays on the origin and whose program counts on its `threads`, which are more than
// there are cores: they would take turns on these, and wait for each other in the end, for each of
// which the system has to switch. Of no threads, where others cannot stand in for them.
NumberedParts Node::numbers_here(const RegionRequest& request, const RegionRecord& record,
                                 std::uint32_t threads) {
  const bool may = record.code.reentry == Reentry::kNumbered &&
                   threads > settings_.capacity[0] && request.extra.empty() &&
                   request.copied_in.empty() && !runtime(request.abi).cancellation();
  if (!may) return {};
  return {.threads = threads,
          .extent = record.code.numbered.extent,
          .stay = true};
}

// For an execution by `threads`; of no threads, where it cannot be divided so.
NumberedParts Node::numbers_for(const RegionRequest& request, const RegionRecord& record,
                                std::uint32_t threads) {
  std::optional<IdleThread> idle;
  on_native_stack([&] { idle = runtime(request.abi).idle_thread_of(request.outlined); });
  if (!idle.has_value()) return {};
  return {.threads = larger_team(threads, node_count(), *idle),
          .extent = record.code.numbered.extent,
          .iterations = idle->iterations,
          .reduce = idle->reduces};
}

// Whether its model would find out what sharing takes, but may not yet: what is seen of a region
// that promises something is seen to its end. Under records_mutex_.
bool Node::puts_off(const loops::SharingModel& model, Nanos now) const {
  using Model = loops::SharingModel;
  const bool finds_out = model.phase() == Model::Phase::kCold ||
                         (model.phase() == Model::Phase::kWarm && !model.promises());
  return model.rule() == Model::Rule::kPrediction && finds_out &&
         trial_budget_.left(now - began_) < 0;
}

// At first each thread counts for as much as a core of its node does.
void Node::make_model(const RegionRequest& request, std::uint32_t threads, RegionRecord& record) {
  on_native_stack([&] {
    std::vector<double> cores(settings_.capacity.begin(), settings_.capacity.end());
    if (request.abi == Abi::kKmpc) {
      std::fill(cores.begin(), cores.end(), 0);
      for (const NodeShare& share : pack_threads(threads, settings_.capacity)) {
        cores[share.node.value] = share.threads;
      }
    }
    const std::span<const double> earlier = profile_.core_speeds(record.site);
    const bool has_speeds = !earlier.empty() && !settings_.fixed_speeds;
    std::vector<double> powers(node_count(), 0), throughputs(node_count(), 0);
    for (std::size_t i = 0; i < powers.size(); ++i) {
      throughputs[i] = settings_.core_speeds[i] * cores[i];
      powers[i] = has_speeds ? earlier[i] * cores[i] : throughputs[i];
    }
    // It may begin alone, and so without shares.
    record.dealt = {.threads = threads};
    record.shares.clear();
    record.cores = std::move(cores);
    record.took_part.reset();
    record.apart.reset();
    record.common = {};
    record.spread.reset();
    if (!record.model.has_value()) {
      gathering_.add(record.gathering);
      record.code = runtime(request.abi).code_of(request.outlined.function);
      const void* const function = request.outlined.function;
      record.reached = runtime(request.abi).reached_code_of(function, record.code);
    }
    if (record.book == nullptr) record.book = std::make_shared<LoopBook>();
    record.model.emplace(powers, rule_for(request.abi));
    record.model->set_core_speeds(settings_.core_speeds);
    // Shares of an earlier run are of iterations, which may be unlike.
    record.model->set_throughputs(throughputs);
    // gcc's threads have equal shares, and thread 0 is the origin's.
    if (request.abi == Abi::kKmpc && !settings_.fixed_speeds) record.model->allow_elsewhere();
    const double alone = profile_.until_retried(record.site);
    using Rule = loops::SharingModel::Rule;
    const bool begins_alone = alone > 0 && record.model->rule() == Rule::kPrediction;
    if (begins_alone) record.model->begin_alone(alone);
    record.is_profiled = has_speeds || begins_alone;
    if (!calibration_.has_value()) return;
    std::vector<double> break_even, round_trips;
    for (const auto& node : calibration_->nodes) {
      break_even.push_back(node.break_even_ns_per_fault);
      const bool is_far = node.fault_latency_ns > kNearLink;
      round_trips.push_back(is_far ? node.fault_latency_ns : 0);
    }
    record.model->set_break_even(break_even);
    if (!has_speeds) record.model->set_round_trips(round_trips);
  });
}

loops::SharingModel::Rule Node::rule_for(Abi abi) const {
  using Rule = loops::SharingModel::Rule;
  // gcc's loops cannot spare a node while its threads stay.
  if (abi == Abi::kGomp && keeps_placement()) return Rule::kAlways;
  switch (settings_.share) {
    case base::SharePolicy::kAlways:
      return Rule::kAlways;
    case base::SharePolicy::kThreshold:
      return Rule::kThreshold;
    default:
      return Rule::kPrediction;
  }
}

void Node::set_calibration(machine::Calibration calibration) {
  AMASIA_CHECK(calibration.nodes.size() == node_count(), "every node has been calibrated");
  // A brief one may have met a busy moment, and is kept for later runs. What it says of speeds is
  // found out soon anyway; NPB's LU went to a node that one had taken for faster, and stayed.
  if (!settings_.told_speeds && calibration.method != machine::Method::kBrief) {
    for (std::uint16_t i = 0; i < node_count(); ++i) {
      settings_.core_speeds[i] = clear_speed_ratio(calibration, NodeId{i});
    }
    count_threads();
  }
  calibration_ = std::move(calibration);
}

void Node::deal(RegionRecord::Dealt wanted, RegionRecord& record) {
  const std::span<const double> known = record.model->powers();
  std::vector<double> powers(known.begin(), known.end());
  if (record.spread.has_value()) record.spread->to_iterations(powers);
  const Deal deal{wanted.threads, wanted.exact, settings_.capacity, powers};
  if (holds_placement()) {
    if (record.shares.empty() || wanted.threads != record.dealt.threads) {
      record.shares = wanted.by_core ? pack_threads(wanted.threads, settings_.capacity)
                                     : deal_by_power(deal);
    }
    if (wanted.by_core) set_speeds(record.shares, powers, wanted.alone);
  } else {
    record.shares = wanted.by_core ? deal_by_core(deal) : deal_by_power(deal);
  }
  // Threads that are all needed on the origin, or that the others' powers do not suffice for. And
  // where they are seen to wait each has what it would have in one node's team.
  const bool are_alike = record.reached.waits && wanted.by_core && !wanted.alone;
  if (record.shares.size() < 2 || are_alike) {
    record.shares = pack_threads(wanted.threads, settings_.capacity);
  }
  for (NodeShare& share : record.shares) share.seam = record.model->seam();
  record.dealt = wanted;
}

// What the forking thread has waited for pages since the last region that was shared: these pages
// had gone to other nodes with it. Under records_mutex_.
void Node::charge_stall(Nanos& seen) {
  const Nanos stall = services_.thread_counters().stall_ns;
  if (last_shared_ != nullptr && stall > seen) {
    last_shared_->model->charge(stall - seen);
    common_node_.charge(stall - seen);
    common_sharing_.charge(stall - seen);
    trial_budget_.charge(stall - seen);
  }
  seen = stall;
}

// Of the calling thread, whose region it is. What others of its node waited for meanwhile is not in
// it.
Nanos Node::stall_since(Nanos seen) const { return services_.thread_counters().stall_ns - seen; }

void Node::log_decision(const RegionRecord& record, bool alone, Nanos elapsed) const {
  using base::LogLevel;
  if (!base::log_enabled(LogLevel::kDebug)) return;
  const loops::SharingModel::Findings& found = record.model->findings();
  std::string parts;
  for (std::size_t i = 0; !alone && i < node_count(); ++i) {
    const loops::RegionPart& node = record.samples.nodes[i];
    fmt::format_to(std::back_inserter(parts), " node {}: {:.3f} of it, {} us, stall {} us;", i,
                   node.work, node.busy / 1000, node.stall / 1000);
  }
  base::log_line(LogLevel::kDebug,
                 "{}: {} us,{} alone {:.0f}, shared {:.0f}, charged {:.0f}, rest {:.0f} us: {}; "
                 "tries may lose {:.0f} ms",
                 record.site, elapsed / 1000, parts, found.alone / 1e3, found.shared / 1e3,
                 found.charged / 1e3, found.rest / 1e3, name_of(record.model->phase()),
                 trial_budget_.left(os::monotonic_now() - began_) / 1e6);
}

// Under records_mutex_, as the next ones. `stall`: of the node that waited longest for pages.
void Node::count_time(RegionRecord& record, bool alone, Nanos elapsed, Nanos stall) {
  regions_time_ += elapsed;
  if (!alone) ++shared_runs_;
  record.seen = {regions_time_, shared_runs_};
  using Sharing = loops::CommonSharing::State;
  if (common_sharing_.state() == Sharing::kApart) try_together(record, alone, elapsed, stall);
  if (common_trial_.state() != loops::CommonTrial::State::kTrial) {
    try_all_shared(record, alone, elapsed);
  }
}

void Node::try_together(RegionRecord& record, bool alone, Nanos elapsed, Nanos stall) {
  using Model = loops::SharingModel;
  const Model& model = *record.model;
  if (model.rule() != Model::Rule::kPrediction) return;
  const bool shared = model.phase() == Model::Phase::kShared && !alone;
  const bool settled = !model.is_unsettled() && model.phase() != Model::Phase::kElsewhere;
  const loops::CommonTrial::State before = common_trial_.state();
  common_trial_.note(record.together, shared, settled, elapsed, stall);
  if (common_trial_.state() == before) return;
  base::log_line(base::LogLevel::kDebug, "regions that were shared are {} now",
                 name_of(common_trial_.state()));
}

void Node::try_all_shared(RegionRecord& record, bool alone, Nanos elapsed) {
  using Model = loops::SharingModel;
  const Model& model = *record.model;
  if (model.rule() != Model::Rule::kPrediction || holds_placement()) return;
  std::array<double, base::kMaxNodes> powers{};
  common_powers(record, powers);
  const double part = powers[0] / std::accumulate(powers.begin(), powers.end(), 0.0);
  const bool settled = !model.is_unsettled() && model.phase() != Model::Phase::kElsewhere;
  const loops::CommonSharing::State before = common_sharing_.state();
  using State = loops::CommonSharing::State;
  if (before == State::kTrial && record.common.counts) {
    trial_budget_.note(true, elapsed, record.common.mean);
  }
  const double allowance = trial_budget_.left(os::monotonic_now() - began_);
  common_sharing_.note(record.common, elapsed,
                       {.settled = settled,
                        .promise = model.promise_of_sharing(alone, elapsed, part),
                        .cost = model.cost_of_trying()},
                       allowance);
  if (common_sharing_.state() == before) return;
  base::log_line(base::LogLevel::kDebug, "all regions that promise something are {} now",
                 name_of(common_sharing_.state()));
}

// How much of a work each node is to do where regions are shared alike. Allocates nothing: it is
// asked on managed stacks, after every run.
void Node::common_powers(const RegionRecord& record, std::span<double> powers) const {
  for (std::size_t i = 0; i < node_count(); ++i) {
    powers[i] = settings_.core_speeds[i] * record.cores[i];
  }
  if (!settings_.fixed_speeds) common_sharing_.correct_powers(powers.first(node_count()));
}

// Before a run: its own model decides, or all together.
void Node::follow_common_sharing(RegionRecord& record) {
  const bool held = common_sharing_.holds(record.common);
  if (held == (record.apart != nullptr)) return;
  on_native_stack([&] {
    if (held) {
      record.apart = std::make_shared<loops::SharingModel>(*record.model);
      std::array<double, base::kMaxNodes> powers{};
      common_powers(record, powers);
      record.model->share_with_others(std::span(powers).first(node_count()));
    } else {
      *record.model = *record.apart;
      record.apart.reset();
    }
  });
}

// What other regions have taken since its last execution, if one of them was shared.
Nanos Node::others_since(const RegionRecord& record) const {
  return shared_runs_ > record.seen.shared_runs ? regions_time_ - record.seen.time : 0;
}

// Of an execution across nodes: how much of the work each node did, where iterations are unlike.
void Node::weigh_work(const RegionPlan& plan, const LoopAdvice& advice,
                      RegionRecord& record) const {
  const std::span<loops::RegionPart> nodes(record.samples.nodes.data(), node_count());
  if (plan.is_in_parts()) {
    record.spread = advice.spread;
    record.has_agreed = false;
    ++record.spreads;
    if (!record.spread.has_value()) return;
    record.model->expect_shift();
    for (std::size_t i = 0; i < nodes.size(); ++i) nodes[i].work = advice.parts[i];
  } else if (record.spread.has_value()) {
    std::array<double, base::kMaxNodes> parts{}, times{}, speeds{};
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      parts[i] = nodes[i].work;
      times[i] = static_cast<double>(nodes[i].busy);
      speeds[i] = settings_.core_speeds[i] * nodes[i].threads;
    }
    const auto of_nodes = [&nodes](auto& values) { return std::span(values).first(nodes.size()); };
    if (!record.has_agreed &&
        !record.spread->agrees(of_nodes(parts), of_nodes(times), of_nodes(speeds))) {
      record.spread.reset();
      ++record.spreads;
      return;
    }
    record.has_agreed = true;
    record.spread->to_costs(of_nodes(parts));
    for (std::size_t i = 0; i < nodes.size(); ++i) nodes[i].work = parts[i];
  }
}

// Of an execution all of whose loops were handed out at run time.
void Node::heed_loops(const LoopAdvice& advice, RegionRecord& record) const {
  if (work_sharing_ == nullptr || settings_.fixed_speeds) return;
  std::array<bool, base::kMaxNodes> idle{};
  for (std::size_t i = 0; i < node_count(); ++i) idle[i] = advice.is_idle(i);
  record.model->leave_out(std::span(idle).first(node_count()));
  record.model->expect_moves(advice.moves);
}

// After an execution across nodes; `totals` by node, `joining` as take_samples() takes it.
void Node::note_shared(const RegionPlan& plan, std::span<const NodeTotals> totals,
                       Nanos joining) {
  const Nanos elapsed = os::monotonic_now() - plan.started;
  const std::lock_guard lock(records_mutex_);
  RegionRecord& record = *plan.record;
  ++record.runs;
  record.nodes = static_cast<std::uint32_t>(plan.shares.size());
  record.elapsed_ns += elapsed;
  for (const NodeShare& share : plan.shares) {
    const NodeTotals& one = totals[share.node.value];
    record.faults += one.faults;
    record.stall_ns += one.stall_ns;
    if ((one.marks & kKnowsTeamSize) != 0) record.knows_team_size = true;
    if ((one.marks & kAskedForSize) != 0) note_size_asked();
    if ((one.marks & kChangedValues) != 0) note_changed_values(ChangedValues::kApart);
  }
  record.by_numbers = !holds_placement() && divides_by_numbers(plan, elapsed);
  const bool by_core = team_.runtime().abi() == Abi::kKmpc || plan.reentry == Reentry::kNumbered;
  using Way = RegionRecord::Way;
  const bool moved = record.model->phase() == loops::SharingModel::Phase::kElsewhere;
  record.note_outcome(elapsed, plan.alone ? Way::kAlone : moved ? Way::kElsewhere : Way::kShared);
  if (plan.alone) {
    record.model->observe_alone(elapsed, stall_since(thread_context.stall_seen));
  } else if (const std::optional<double> lost = team_.lost_before_home(); lost) {
    ++record.runs_come_home;
    record.lost_before_home = static_cast<Nanos>(*lost);
    record.model->observe_come_home(elapsed, *lost);
    trial_budget_.note(true, elapsed, static_cast<double>(elapsed) - *lost);
    last_shared_end_ = plan.started + elapsed;
    last_shared_ = &record;
  } else {
    Samples& samples = record.samples;
    take_samples(plan.shares, totals, joining, !by_core, samples);
    hold_to_limits(plan.shares, totals, settings_.cpu_limits, plan.started - last_shared_end_,
                   samples);
    last_shared_end_ = plan.started + elapsed;
    LoopAdvice advice;
    if (work_sharing_ != nullptr) advice = work_sharing_->take_advice(last_region_);
    weigh_work(plan, advice, record);
    if (plan.counts) record.count(samples);
    for (const NodeShare& share : plan.shares) record.took_part.set(share.node.value);
    const bool bound = !by_core && holds_placement();
    record.model->note_others(others_since(record));
    record.model->set_allowance(trial_budget_.left(plan.started + elapsed - began_));
    const bool tries = record.model->probes();
    record.model->observe_shared({samples.nodes.data(), node_count()}, elapsed,
                                 samples.divided && !settings_.fixed_speeds && !bound);
    trial_budget_.note(tries, elapsed, record.model->findings().alone);
    common_sharing_.note_speeds({samples.nodes.data(), node_count()}, elapsed);
    const bool is_one_loop = plan.reentry != Reentry::kNever && plan.reentry != Reentry::kAsks;
    if (by_core && !is_one_loop && !divides_by_speed(plan.shares, totals)) {
      heed_loops(advice, record);
    }
    last_shared_ = &record;
  }
  common_node_.note(*record.model, elapsed);
  Nanos stall = stall_since(thread_context.stall_seen);
  for (std::size_t i = 0; !plan.alone && i < node_count(); ++i) {
    stall = std::max(stall, record.samples.nodes[i].stall);
  }
  count_time(record, plan.alone, elapsed, stall);
  log_decision(record, plan.alone, elapsed);
  // Alone, it is the last shared region's.
  if (!plan.alone) thread_context.stall_seen = services_.thread_counters().stall_ns;
}

SpinWatch* Node::watch_of(const RegionRequest& request, const RegionPlan& plan) {
  if (plan.record == nullptr) return nullptr;  // a nested one
  RegionRequest passed_down;
  passed_down.abi = request.abi;
  passed_down.threads = plan.threads;
  const std::size_t cores = services_.cores().size();  // 0: that is not known
  const bool is_crowded = cores > 0 && threads_of(passed_down) > cores;
  return is_crowded ? &SpinWatch::of_process() : nullptr;
}

void Node::finish_single(const RegionPlan& plan) {
  if (plan.record == nullptr) return;
  unshow_region();
  const Nanos elapsed = os::monotonic_now() - plan.started;
  const std::lock_guard lock(records_mutex_);
  RegionRecord& record = *plan.record;
  ++record.runs;
  ++record.runs_single;
  record.nodes = 1;
  record.single_reason = plan.reason;
  record.elapsed_ns += elapsed;
  const bool is_decided = plan.reason == SingleReason::kDearer ||
                          plan.reason == SingleReason::kTogether ||
                          plan.reason == SingleReason::kPutOff;
  if (!is_decided) return;
  record.note_outcome(elapsed, RegionRecord::Way::kAlone);
  record.model->observe_alone(elapsed, stall_since(thread_context.stall_seen));
  common_node_.note(*record.model, elapsed);
  count_time(record, true, elapsed, stall_since(thread_context.stall_seen));
}

}  // namespace amasia::omp
