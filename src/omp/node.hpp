// SPDX-License-Identifier: Apache-2.0
// One node's part of the layer: decides about regions (origin), serves them (others), and carries
// the leaders' messages. Made by the composition root, which hands it everything; the ABI reaches
// it by current_node().
//
// field        | written by                      | read by              | ordered by
// mailbox_     | handler (polling thread)        | leader, serving      | release/acquire in it
// bell_        | handler, after the mailbox;     | waiting threads      | BellWait (A3)
//              | other nodes on the board        |                      |
// records_     | forking and serving threads     | statistics           | records_mutex_
// copyin_met_  | forking threads                 | forking threads      | relaxed: one's own order
// thread_homes_, values_sent_: the first thread that forked (values_owner_), between regions
// thread_values_: thread_values.hpp
// N1 The handler takes no lock and touches no managed memory: it fills the mailbox and wakes. But
//    for Halt's, which is held for moments, on native stacks.
// N2 At most one global region runs at a time; region_busy_ says so on the origin.
#pragma once

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/base.hpp"
#include "fabric/fabric.hpp"
#include "loops/loops.hpp"
#include "machine/machine.hpp"
#include "omp/local_runtime.hpp"
#include "omp/long_wait.hpp"
#include "omp/meeting/mailbox.hpp"
#include "omp/meeting/meeting_board.hpp"
#include "omp/meeting/yield_pause.hpp"
#include "omp/region/argument_pages.hpp"
#include "omp/region/region.hpp"
#include "omp/region/region_profile.hpp"
#include "omp/services.hpp"
#include "omp/team/home_call.hpp"
#include "omp/team/affinity_format.hpp"
#include "omp/team/team.hpp"
#include "omp/thread_locals/thread_homes.hpp"
#include "omp/thread_locals/thread_values.hpp"
#include "omp/wait_scope.hpp"
#include "os/os.hpp"

namespace amasia::omp {

class LockService;  // locks and critical sections across nodes
class SpinWatch;    // teams with more threads than cores
class Doacross;     // loops whose iterations wait for named ones
class Turns;        // loops with ordered parts
class WorkSharing;  // loops that are handed out at run time
struct LoopAdvice;  // what these say about the nodes

// 0x200-0x23f is Node's own; 0x240-0x27f WorkSharing's, 0x280-0x2bf LockService's.
// Those of the constructs that order iterations follow.
inline constexpr fabric::MessageType kTeamFirst = 0x200, kTeamLast = 0x23f;
inline constexpr fabric::MessageType kWorkSharingFirst = 0x240, kWorkSharingLast = 0x27f;
inline constexpr fabric::MessageType kLocksFirst = 0x280, kLocksLast = 0x2bf;
inline constexpr fabric::MessageType kTurnMessage = 0x2c0, kPostMessage = 0x2c1,
                                     kAskPostMessage = 0x2c2;

struct NodeSettings {
  // Threads that each node takes before the next one is used; one entry per node, each > 0.
  std::vector<std::uint32_t> capacity;
  // How long a thread that waits for a message spins before it sleeps: leaders in a region, and
  // nodes between regions.
  Nanos spin_in_region = 50 * base::kMicrosecond;
  Nanos spin_between_regions = 20 * base::kMicrosecond;
  // Of a core of each node, relative, as far as is known; one entry per node, each > 0. Whether
  // they are to be taken as they are, instead of what is measured.
  std::vector<double> core_speeds;
  bool fixed_speeds = false;
  bool told_speeds = false;  // they were given to us: a calibration does not change them
  // How much longer computing takes on this node than the CPU time that it uses, where its cores
  // are not its own; at first.
  double stretch = 1;
  // Of CPU time; one entry per node, or none where no node has a limit.
  std::vector<loops::CpuLimit> cpu_limits;
  base::SharePolicy share = base::SharePolicy::kAuto;
  // What leaders count while a region is probed.
  CounterSettings counters;
  // A wait that takes longer is reported, again and again. 0: never.
  Nanos watchdog = 60 * base::kSecond;
  // OMP_DISPLAY_AFFINITY is on.
  bool display_affinity = false;
  // A thread's private copies of a reduction travel in the message if its frame is not larger.
  Bytes reduction_window = 32 * base::kKiB;
  HomeCall::Settings home_call;
};

class Node final : public fabric::Handler {
 public:
  // Registers the handler for kTeamFirst … kTeamLast. All outlive the node. `board`: where nodes
  // that share memory with this one post what they would send; nullptr: there are none.
  Node(fabric::Fabric& fabric, Services& services, NodeSettings settings,
       MeetingBoard* board = nullptr);
  ~Node() override;

  // Before the first region or serve(). `runtime` outlives the node.
  void set_runtime(Abi abi, LocalRuntime& runtime);
  void set_locks(LockService* locks) { locks_ = locks; }
  void set_work_sharing(WorkSharing* sharing) { work_sharing_ = sharing; }
  void set_turns(Turns* turns) { turns_ = turns; }
  void set_doacross(Doacross* doacross) { doacross_ = doacross; }

  // On the origin, before main: what the nodes and their links are worth, where that is known.
  void set_calibration(machine::Calibration calibration);
  const std::optional<machine::Calibration>& calibration() const { return calibration_; }
  // The same: what an earlier run found of its regions.
  void set_profile(RegionProfile profile) { profile_ = std::move(profile); }

  NodeId self() const { return fabric_.self(); }
  std::uint32_t node_count() const { return fabric_.node_count(); }
  fabric::Fabric& fabric() const { return fabric_; }
  Services& services() const { return services_; }
  const NodeSettings& settings() const { return settings_; }
  LocalRuntime& runtime(Abi abi) const { return *runtimes_[static_cast<std::size_t>(abi)]; }
  LockService* locks() const { return locks_; }
  WorkSharing* work_sharing() const { return work_sharing_; }
  Turns* turns() const { return turns_; }
  Doacross* doacross() const { return doacross_; }
  Team& team() { return team_; }
  // How many threads a region has that asks for nothing: one for each core of all nodes, or, where
  // threads carry the nodes' speeds, as many as that takes.
  std::uint32_t default_threads(Abi abi) const {
    return default_threads_[static_cast<std::size_t>(abi)];
  }
  std::uint32_t own_capacity() const { return settings_.capacity[self().value]; }
  std::uint32_t cores() const { return default_threads(Abi::kKmpc); }
  // The program counts on its teams' size: it has set it, or its threads keep variables that cannot
  // follow them. Any thread.
  // Where thread-local variables are watched: none has been changed yet but by first threads of
  // teams. A few ns.
  bool watches_values() const {
    return changed_values_.load(std::memory_order_relaxed) == ChangedValues::kNone &&
           services_.kind_of_thread_locals() == ThreadLocals::Kind::kWatched;
  }
  // On a thread of a region that stayed, not its first one, as its part ends.
  void look_at_values() {
    if (services_.has_changed_thread_locals()) note_changed_values(ChangedValues::kHere);
  }
  void fix_team_size() { team_is_fixed_.store(true, std::memory_order_relaxed); }
  // The user or the program has said what schedule(runtime) is. Any thread.
  void note_schedule_set() { schedule_is_set_.store(true, std::memory_order_relaxed); }
  // The program has been told how many threads teams have. Any thread.
  void note_size_asked() { size_asked_.store(true, std::memory_order_relaxed); }

  // On the origin, what the program has set, which regions take along; elsewhere, what came with
  // the last one.
  AffinityFormat& affinity_format() { return affinity_format_; }

  // Gives a thread that is in no region the job's default number of threads, once, unless
  // OMP_NUM_THREADS sets one. To be called before the next runtime is asked for or told a number of
  // threads outside of regions. Any thread.
  void adopt_thread(Abi abi);

  // A fork, in two steps, on the forking thread:
  //   plan = plan_region(request);
  //   plan.global()    ? run_region(request, plan)
  //   plan.stands_in() ? run_here(request, plan)
  //                    : (fork by the next runtime with a wrapper, then) finish_single(plan)
  // plan_region answers for any thread and place; run_region blocks until the region has joined on
  // all nodes. plan.threads is what to push down before a fork that stays (0: nothing).
  RegionPlan plan_region(const RegionRequest& request);
  void run_region(const RegionRequest& request, const RegionPlan& plan);
  void run_here(const RegionRequest& request, const RegionPlan& plan);
  void finish_single(const RegionPlan& plan);
  // Who is to look at the threads of a fork that stays; nullptr: each may have a core.
  SpinWatch* watch_of(const RegionRequest& request, const RegionPlan& plan);
  // What the program's threads keep in thread-local variables. Threads of a region that
  // keeps_values() enter it, be it shared or not.
  ThreadValues& thread_values() { return thread_values_; }
  // Outside of regions, on the origin: the next runtime's idle threads may be about to end.
  void pack_thread_values();

  // On the nodes other than the origin, on their main thread (native stack): takes part in regions
  // until the origin calls shutdown(). Sleeps when there is nothing to do.
  void serve();
  // On the origin, outside of regions: lets the others' serve() return.
  void shutdown();

  // On the nodes other than the origin: blocks until the origin ends, then leaves the job. Native
  // stack.
  void await_end();

  // Whether a region runs across nodes. On the origin, any thread.
  bool in_region() const { return region_busy_.load(std::memory_order_acquire); }
  // On another node: the origin called shutdown(), be it in a region. Any thread.
  bool told_to_end() const { return mailbox_.has_serve_end(); }

  // A peer is gone: whoever waits ends the job, unless that turns out to have been the cause. On
  // the polling thread.
  void peer_lost(NodeId peer, std::string_view why);

  // Regions by place, longest elapsed first. On the origin, any thread.
  std::vector<RegionRecord> region_records() const;
  // The same as `--stats` reports it, with its loops.
  std::vector<base::RegionStatistics> region_statistics() const;

  // Waiting for what a handler does, or another node posts. `ready` must read with acquire what
  // handlers wrote before wake(), and sequentially consistently what is posted on the board. Spins
  // for `spin`, then sleeps; fetches messages meanwhile. Native stack; may block for long, and says
  // so (LongWait): `what`, and which node it waits for, if it is one.
  template <typename Ready>
  void wait_until(Ready ready, Nanos spin, const char* what, int waits_for = -1);
  // The same for an earlier iteration of a loop.
  template <typename Ready>
  void wait_for_turn(Ready ready, Nanos spin, const char* what);
  // What threads of this node have waited so, and for locks that other nodes had, ns. Any thread.
  void note_wait_for_others(Nanos waited) {
    waited_for_others_.fetch_add(waited, std::memory_order_relaxed);
  }
  Nanos waited_for_others() const { return waited_for_others_.load(std::memory_order_relaxed); }
  // After a handler, or another thread of the node, changed what a thread may wait for.
  void wake();
  // On the origin: whether other nodes' threads hold in the middle of the program, to come home
  // (HomeCall). Who waits for what they would do lets them go on.
  bool others_hold() const;
  void let_others_go();

  void on_message(const fabric::Incoming& message) override;

 private:
  friend class Team;
  friend class Halt;
  friend class HomeCall;

  // A wait's clock: when to give up spinning, when to tell of it.
  struct Patience {
    LongWait wait;
    Nanos help_from;  // until then it only looks: what is posted on the board comes soon
    Nanos spin_until;
    bool helping = false;
  };
  template <typename Ready>
  bool comes_at_once(Ready ready, Nanos spin) const;
  Patience begin_wait(Nanos spin, const char* what, int waits_for);
  // True: it made a round of spinning. False: the time for that is over.
  bool spin_round(Patience& patience);
  // To what runs there next. False: not now, as that was something else (yield_pause.hpp).
  bool yields_core(Nanos now);
  void sleep_round(Patience& patience, std::uint32_t rung);
  Nanos time_to_judge_loss(Nanos now);
  void end_wait(Patience& patience);

  bool on_single(const fabric::Incoming& message);
  bool on_home_call(const fabric::Incoming& message);
  bool on_cancel(const fabric::Incoming& message);
  bool is_on_board(NodeId node) const { return board_ != nullptr && board_->has(node); }
  // For Team, on leaders' native stacks.
  bool all_on_board(std::span<const NodeShare> shares) const;
  // nullopt, on the origin: the others' threads come home (HomeCall) instead of to the meeting.
  std::optional<Word> meet(const Team& team, std::uint32_t generation, Word word);
  std::optional<Word> meet_on_board(const Team& team, std::uint32_t generation, Word word);
  std::optional<Word> meet_by_messages(const Team& team, std::uint32_t generation, Word word);
  // Waits as wait_until() does, for what other nodes' threads do. False, on the origin: they have
  // come home before that. By the team's leader, when all threads of its node wait for others.
  template <typename Ready>
  bool await_or_take_home(Ready ready, const char* what, int waits_for = -1);
  // The message of `rank`, once it has come; valid until the sender is let go. Empty: as above.
  std::span<const std::byte> await_reduction(const Team& team, std::uint32_t rank,
                                             std::uint32_t number);
  // Origin: asks for it (Mailbox), and once all have told: how long its team would have computed
  // for what the others' have, ns.
  void expect_work() { mailbox_.expect_work(); }
  std::optional<double> work_of_others(const Team& team) const;
  // Once threads of these nodes are on their way home. What a node has left of a loop that is
  // handed out is theirs here (WorkSharing::adopt).
  std::vector<Traveller> await_travellers(const Team& team, std::span<const NodeShare> from);
  // Of each of them, where they follow, its thread-local variables, by the origin's leader; and of
  // one that is on its way, by itself. Native stack.
  void take_values_home(std::span<const Traveller> travellers);
  void send_values_home(std::uint32_t thread);
  // To the origin. `tail` is what follows the head.
  void give_reduction(const ReductionHead& head, std::span<const std::byte> tail);
  void await_consumed(std::uint32_t region, std::uint32_t number);
  void tell_consumed(NodeId to, std::uint32_t region, std::uint32_t number);

  SingleReason reason_to_stay(const RegionRequest& request, std::uint32_t threads);
  std::uint32_t threads_of(const RegionRequest& request);
  bool is_exact(const RegionRequest& request, const RegionRecord& record) const;
  bool decide_shares(const RegionRequest& request, std::uint32_t threads, RegionPlan& plan);
  bool keeps_placement() const;
  bool holds_placement() const { return keeps_placement() || watches_values(); }
  bool finds_values_again(const RegionRecord& record) const;
  // Where variables that were watched have been changed first: from then on threads stay there.
  enum class ChangedValues : std::uint8_t { kNone, kHere, kApart };
  void note_changed_values(ChangedValues where) {
    ChangedValues none = ChangedValues::kNone;
    changed_values_.compare_exchange_strong(none, where, std::memory_order_relaxed);
  }
  bool uses_thread_locals(const RegionRecord& record) const;
  bool values_can_follow();
  Reentry way_to_parts(const RegionRequest& request, const RegionRecord& record) const;
  bool hands_out_parts(const RegionRequest& request, const RegionRecord& record);
  void plan_parts(const RegionRequest& request, const RegionRecord& record, std::uint32_t threads,
                  RegionPlan& plan);
  bool is_brief_loop(const RegionRecord& record) const;
  NumberedParts numbers_here(const RegionRequest& request, const RegionRecord& record,
                             std::uint32_t threads);
  NumberedParts numbers_for(const RegionRequest& request, const RegionRecord& record,
                            std::uint32_t threads);
  bool puts_off(const loops::SharingModel& model, Nanos now) const;
  void make_model(const RegionRequest& request, std::uint32_t threads, RegionRecord& record);
  void deal(RegionRecord::Dealt wanted, RegionRecord& record);
  void charge_stall(Nanos& seen);
  Nanos stall_since(Nanos seen) const;
  // The thread-local variables of a region's threads are brought to where these are to run. Between
  // regions of the team, by the thread that forks them; native stack.
  void bring_values(std::span<const NodeShare> shares, bool at_most = false);
  void bring_values_home(const RegionRequest& request, std::uint32_t threads, RegionPlan& plan);
  void ask_for_values(std::span<const ThreadHomes::Move> moves);
  void send_values(NodeId to, std::uint32_t thread, const ThreadValues::Packed& values);
  void answer_ask();
  void take_values(const NodeShare& own, std::uint32_t count);
  template <typename IsExpected>
  void keep_values(std::uint32_t count, IsExpected is_expected);
  bool owns_values();
  void note_shared(const RegionPlan& plan, std::span<const NodeTotals> totals, Nanos joining);
  void weigh_work(const RegionPlan& plan, const LoopAdvice& advice, RegionRecord& record) const;
  void heed_loops(const LoopAdvice& advice, RegionRecord& record) const;
  void log_decision(const RegionRecord& record, bool alone, Nanos elapsed) const;
  void count_time(RegionRecord& record, bool alone, Nanos elapsed, Nanos stall);
  void try_together(RegionRecord& record, bool alone, Nanos elapsed, Nanos stall);
  void try_all_shared(RegionRecord& record, bool alone, Nanos elapsed);
  void common_powers(const RegionRecord& record, std::span<double> powers) const;
  void follow_common_sharing(RegionRecord& record);
  Nanos others_since(const RegionRecord& record) const;
  RegionRecord* record_of(const void* function, Abi abi, const void* location);
  void show_region(const RegionRecord& record);
  void unshow_region();
  void start_region(const RegionRequest& request, const RegionPlan& plan);
  PageWindow offer_arguments(const RegionRequest& request, const RegionPlan& plan);
  void take_arguments_back(NodeId from, const PageWindow& window);
  void tell_region(const RegionPlan& plan, const RegionHead& head, std::span<const std::byte> tail);
  void join_region(const RegionPlan& plan);
  // Whether the node has ended the region: any thread that knows of the region.
  bool has_joined(NodeId node) const;
  bool has_joined_on_board(NodeId node) const;
  bool region_is_posted() const;
  void serve_region();
  void adopt_floating_point(const RegionHead& head);
  void tell_joined(const JoinedBody& joined, bool by_message);
  void send(NodeId to, fabric::MessageType type, std::span<const std::byte> head,
            std::span<const std::byte> payload = {});

  fabric::Fabric& fabric_;
  Services& services_;
  void count_threads();
  loops::SharingModel::Rule rule_for(Abi abi) const;

  NodeSettings settings_;  // constant once main runs
  std::array<std::uint32_t, kAbis> default_threads_{};
  // Relaxed: a thread's own order suffices.
  std::atomic<bool> team_is_fixed_{false}, size_asked_{false}, schedule_is_set_{false};
  std::array<LocalRuntime*, kAbis> runtimes_{};
  LockService* locks_ = nullptr;
  WorkSharing* work_sharing_ = nullptr;
  Turns* turns_ = nullptr;
  Doacross* doacross_ = nullptr;
  std::atomic<Nanos> waited_for_others_{0};
  std::optional<machine::Calibration> calibration_;  // written before main only
  RegionProfile profile_;                            // the same
  AffinityFormat affinity_format_;
  ThreadValues thread_values_;
  ThreadHomes thread_homes_;  // on the origin
  // By node: how many threads' variables were sent there before the region that begins.
  std::array<std::uint32_t, base::kMaxNodes> values_sent_{};
  // The thread pointer of the first thread that forked: others' teams are not the same threads.
  std::atomic<std::uintptr_t> values_owner_{0};
  Team team_;
  std::unique_ptr<HomeCall> home_call_;  // on the origin of several nodes
  Mailbox mailbox_;

  MeetingBoard* const board_;
  Bell own_bell_;  // where there is no board
  Bell& bell_;
  std::atomic<std::uint64_t> lost_{0};  // bit per node
  std::string why_lost_;                // of the first one; written before lost_, as is lost_at_
  Nanos lost_at_ = 0;
  YieldPause yield_pause_;
  std::atomic<bool> region_busy_{false};
  std::atomic<bool> copyin_met_{false};
  std::atomic<ChangedValues> changed_values_{ChangedValues::kNone};
  std::atomic<std::uint32_t> regions_here_{0};  // begun and not ended; nested ones do not count
  std::uint32_t last_region_ = 0;               // that began here
  bool has_floating_point_control_ = false;     // of a program's thread, from another node
  // Of the region that begins, kept for their memory: on the origin the end of its message,
  std::vector<std::byte> message_;
  // elsewhere what the message tells.
  std::vector<NodeShare> told_shares_;
  std::vector<void*> told_words_;

  mutable std::mutex records_mutex_;
  std::map<const void*, std::unique_ptr<RegionRecord>> records_;
  RegionRecord* last_shared_ = nullptr;  // the region that last moved data; under records_mutex_
  Nanos last_shared_end_ = 0;            // under records_mutex_
  // Executions of all regions whose times decide; under records_mutex_.
  Nanos regions_time_ = 0;
  std::uint64_t shared_runs_ = 0;
  Gathering gathering_;                  // under records_mutex_
  loops::CommonNode common_node_;        // under records_mutex_
  loops::CommonTrial common_trial_;      // under records_mutex_
  loops::CommonSharing common_sharing_;  // under records_mutex_
  loops::TrialBudget trial_budget_;      // under records_mutex_
  Nanos began_ = 0;                      // the node; constant
  ArgumentPages argument_pages_;         // on the origin, of the region that runs
};

template <typename Ready>
void Node::wait_for_turn(Ready ready, Nanos spin, const char* what) {
  // Where threads share a core whose turn it is runs next: to sleep takes longer than to let it.
  constexpr Nanos kYields = 100 * base::kMicrosecond;
  const Nanos began = os::monotonic_now();
  for (Nanos now = began; spin == 0 && now - began < kYields && yields_core(now);) {
    if (ready()) return;
    now = os::monotonic_now();
  }
  wait_until(ready, spin, what);
  note_wait_for_others(os::monotonic_now() - began);
}

template <typename Ready>
void Node::wait_until(Ready ready, Nanos spin, const char* what, int waits_for) {
  if (ready() || comes_at_once(ready, spin)) return;
  std::optional<WaitScope> booked;
  if (ThreadFrame* const frame = current_frame(); frame != nullptr) booked.emplace(*frame);
  const int error = errno;  // the program's, which a barrier leaves alone
  Patience patience = begin_wait(spin, what, waits_for);
  std::uint32_t rung = 0;
  for (BellWait wait;;) {
    switch (wait.action()) {
      case BellWait::Action::kLook: {
        const bool posted = ready();
        wait.looked(posted, !posted && !wait.marked() && spin_round(patience));
        continue;
      }
      // Acquire, partners: wake, MeetingBoard::ring.
      case BellWait::Action::kReadBell:
        rung = bell_.rung.load(std::memory_order_acquire);
        break;
      // Partner: whoever looks for sleepers.
      case BellWait::Action::kMark:
        bell_.sleepers.fetch_add(1, std::memory_order_seq_cst);
        break;
      case BellWait::Action::kSleep:
        sleep_round(patience, rung);
        break;
      case BellWait::Action::kUnmark:
        bell_.sleepers.fetch_sub(1, std::memory_order_relaxed);
        break;
      case BellWait::Action::kGo:
        end_wait(patience);
        errno = error;
        return;
    }
    wait.done();
  }
}

template <typename Ready>
bool Node::await_or_take_home(Ready ready, const char* what, int waits_for) {
  for (;;) {
    wait_until([&] { return ready() || others_hold(); }, settings_.spin_in_region, what, waits_for);
    if (ready()) return true;
    if (!home_call_->take()) continue;
    team_.take_guests(home_call_->called(), home_call_->lost());
    return false;
  }
}

// What another node on the board is about to post takes a fraction of a microsecond, less than it
// costs to read the clock and to help.
template <typename Ready>
bool Node::comes_at_once(Ready ready, Nanos spin) const {
  constexpr int kRounds = 64;
  if (board_ == nullptr || board_->cores_are_shared() || spin == 0) return false;
  for (int round = 0; round < kRounds; ++round) {
    os::pause_core();
    if (ready()) return true;
  }
  return false;
}

// Of the node that the calling thread belongs to: the job's locks, whatever region the thread is
// in. nullptr: as current_node().
inline LockService* current_locks() {
  LockService* const only = process_locks.load(std::memory_order_acquire);
  if (only != nullptr) [[likely]] return only;
  const Node* const node = current_node();
  return node != nullptr ? node->locks() : nullptr;
}

}  // namespace amasia::omp
