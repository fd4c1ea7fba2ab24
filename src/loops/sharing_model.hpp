// SPDX-License-Identifier: Apache-2.0
// Whether a region is worth sharing, and how much of it each node should do: what is known of one
// place in the program from its executions, and what follows for the next one (libHetMP, ACM TOCS
// 2022, 3.2 to 3.4; instead of its threshold on the page-fault period and its cache-miss counters,
// compute and stall are measured apart, so both times can be predicted from one execution).
//
// Of an execution on several nodes, node i did the part w_i of the work, sum w_i = 1, computing for
// b_i and waiting for pages for s_i (means over its threads). Then
//   alone     = b_0 / w_0                           the origin without the others, nor stall; also
//               sum b_i * speed of i / speed of 0     by all parts: only what both say is clear
//   rate_i    = w_i / (b_i + s_i)                   the node's speed with what sharing costs it
//   lag_i                                         how much later than the origin it begins, and is
//                                                   known to have ended (0 but over a slow link)
//   balanced  = (1 + sum rate_i * lag_i) / sum rate_i + rest
//                                                 rest = elapsed - max (b_i + s_i + lag_i): fork
//                                                   and join
//   shared    = balanced + charged                  charged: stall that it causes elsewhere
// (once some executions with the same shares tell how times vary, at least what variation.hpp says)
// and sharing pays if shared < alone. The first execution brings data to the nodes, which stays
// there; so the second one decides, unless the first was beyond hope.
//
// Another node than the origin may be the best one alone:
//   moved_k   = b_k / w_k + rest_1                  single_node.hpp, where nothing was measured
// What it waits for pages while others share with it, it need not wait for alone; what it would
// have to fetch from serial code nobody knows. So a node that promises much is tried.
//
//   phase       in it                         left for
//   kCold       never shared                  kWarm; kElsewhere or kAlone if it was beyond hope
//   kWarm       shared once                   kElsewhere, kShared, kTrial or kAlone, by the second
//                                             execution, or a later one while data still come
//   kTrial      runs alone: the model saw     kShared or kAlone, by what the first one took that
//               no clear difference, or       did not wait for pages; by all up to the fifth where
//               nodes wait for pages a lot    it was long, or executions are unlike
//   kShared     shared as long as it pays     kElsewhere, kAlone; kTrial, seldom
//   kAlone      on the origin                 kCold, now and then, as far as the loss is affordable
//   kElsewhere  on one other node, as long    kShared or kAlone, whichever was better than it turns
//               as that is better, or with    out to be; kCold as above
//               others (common_node.hpp)
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "base/base.hpp"
#include "loops/move_cost.hpp"
#include "loops/move_trial.hpp"
#include "loops/single_node.hpp"
#include "loops/variation.hpp"
#include "loops/weights.hpp"

namespace amasia::loops {

// One node's part in one execution.
struct RegionPart {
  std::uint32_t threads = 0;  // 0: it took no part
  double work = 0;            // the part of the whole that it did
  Nanos busy = 0;             // mean over its threads: waiting neither for pages nor for others
  Nanos stall = 0;            // mean over its threads: waiting for pages
  Nanos waited = 0;           // mean over its threads: in the region, for others
  Nanos joining = 0;          // the origin's: after the region, until the others had done it
  std::uint64_t faults = 0;   // of all its threads
  double time() const { return static_cast<double>(busy) + static_cast<double>(stall); }
  double whole() const { return time() + static_cast<double>(waited + joining); }
  // Of one of its threads, where that was counted; else 0.
  std::uint64_t cache_misses = 0;
  std::uint64_t instructions = 0;
};

class SharingModel {
 public:
  enum class Rule : std::uint8_t {
    kPrediction,  // as above
    kAlways,      // share whatever it costs
    // As the paper does (3.4): a node is used if its threads compute longer between two page faults
    // than the break-even that was calibrated. Decided by the first ten executions at most.
    kThreshold,
  };
  enum class Phase : std::uint8_t { kCold, kWarm, kTrial, kShared, kAlone, kElsewhere };
  static constexpr std::size_t kPhases = 6;

  // What was found by the last execution that was shared, in ns of an average of late executions.
  struct Findings {
    double alone = 0;    // predicted, or measured where it was tried
    double shared = 0;   // balanced + charged
    double balanced = 0;
    double stall = 0;    // of the node that waits longest for pages
    double charged = 0;  // stall caused elsewhere
    double rest = 0;
    bool tried_alone = false;
    // On one node other than the origin, with what is charged: as measured; 0: never tried so.
    double elsewhere = 0;
    std::size_t elsewhere_node = 0;
  };

  // `powers`: how much of a work each node is thought to do in the time in which the others do
  // theirs, relative; one for each node of the job; 0: it takes no part. The origin's is > 0.
  explicit SharingModel(std::span<const double> powers, Rule rule = Rule::kPrediction);
  // For Rule::kThreshold: the time between two page faults of a thread, for each node, from which
  // on it is worth while; 0: always. Set before the first execution.
  void set_break_even(std::span<const double> ns_per_fault);
  // How fast one core of each node is, relative; by node. Without it: as fast as the node as a
  // whole. Before the first execution.
  void set_core_speeds(std::span<const double> speeds);
  // How much each node computes with all its cores, relative, where more is known than powers say.
  // By node. Before the first execution.
  void set_throughputs(std::span<const double> throughputs);
  // How long a message to each node and its answer take, ns, by node; before the first execution,
  // unless powers are of executions that had that lag. It is a node's until its own shows.
  void set_round_trips(std::span<const double> ns);
  // Whether the origin's threads can be left without a part, so that another node does it all.
  // Before the first execution.
  void allow_elsewhere() { may_move_ = true; }
  // As an earlier run has found, it goes alone, until it has taken so long there, ns. Before the
  // first execution.
  void begin_alone(double until_retried);

  // What an execution that is shared to find out may lose before it is brought home, ns: what has
  // been put by for that, if this is not the first time.
  double may_lose() const { return set_aside_; }

  // For the next execution: on the nodes of powers > 0, or on the origin alone.
  bool shares() const { return phase_ != Phase::kTrial && phase_ != Phase::kAlone; }
  std::span<const double> powers() const { return {powers_.data(), node_count_}; }
  // Coarse at first, and where a page that two nodes write costs more than iterations that are out
  // of balance.
  Seam seam() const { return seam_; }
  // Changes whenever powers() or seam() do.
  std::uint32_t version() const { return version_; }

  // After an execution; `nodes` by node id, all of the job. `skewed`: whether powers() decided who
  // did how much, so that changing them will have an effect.
  void observe_shared(std::span<const RegionPart> nodes, Nanos elapsed, bool skewed);
  // The same if it was brought home on the way, as it had lost `lost` ns by then (homeward.hpp).
  void observe_come_home(Nanos elapsed, double lost);
  // `stall`: how long of that the origin waited for pages, which is charged to the region that took
  // them and says nothing about this one.
  void observe_alone(Nanos elapsed, Nanos stall);
  // After observe_shared(), where all loops were handed out at run time: by what they measured, the
  // nodes of `idle` are not worth a part of any of them. By node id; the origin stays.
  void leave_out(std::span<const bool> idle);
  // The same: whether they begin the next execution with other shares, whose data follow.
  void expect_moves(bool moves) { moves_next_ = moves; }
  // Before observe_shared(), of the first execution: the next one has its seams elsewhere, where
  // its data will stay.
  void expect_shift() { shifts_ = true; }
  // Before observe_shared(): what other regions have taken since this one's last execution, if one
  // of them was shared. They may use the same data, which follow its shares. 0: there was none.
  void note_others(Nanos elapsed) { others_ = static_cast<double>(elapsed); }
  // The same: what this execution and further ones may lose to find out, ns (trial_budget.hpp).
  void set_allowance(double allowance) { allowance_ = allowance; }
  // Stall outside of this region that it has caused: its data had gone to other nodes.
  void charge(Nanos stall);

  // Whether the next execution, if it is shared, is expected to gain, with what was charged since
  // the last one. True where nothing is known.
  bool promises() const {
    return findings_.alone <= 0 || findings_.shared + charged_since_ < findings_.alone;
  }

  // For CommonNode, which decides for all regions together. Whether this one is one node's,
  // by its own choice, and could be another's.
  bool may_gather() const;
  // What it would compute there at best, in ns, if the origin takes `here` (0: as predicted): by
  // what the node did of it with its data just come, or by what its cores can do. 0: nothing tells.
  double promise(std::size_t node, double here) const;
  // Whether its cores are, by what was known beforehand. If not, a promise is the word of one
  // execution or two.
  bool is_known_faster(std::size_t node) const;
  // From then on `node` does it, whatever it takes, until scatter(): then it is the origin's again.
  void gather_to(std::size_t node);
  void scatter();
  bool is_gathered() const { return gathered_; }
  // For CommonSharing: from then on it is shared by these powers, whatever it takes.
  void share_with_others(std::span<const double> powers);
  // What an execution would take with all data in place, in ns, if one like that took `elapsed` on
  // the origin (`alone`) or shared, and the origin's part of the work is `part`. 0: it was never
  // shared.
  double promise_of_sharing(bool alone, Nanos elapsed, double part) const;
  // Finding out what is best: what it takes now says nothing about later executions.
  bool is_unsettled() const {
    return phase_ == Phase::kCold || phase_ == Phase::kWarm || phase_ == Phase::kTrial;
  }
  // What the last tries have lost against what was decided, in ns.
  double cost_of_trying() const { return cost_of_trying_; }
  // How long it has yet to take alone until sharing it is tried again, ns; 0: it is not alone.
  double until_retried() const;

  // Whether the next execution is to tell what sharing takes, so that counters are worth reading.
  bool probes() const { return phase_ == Phase::kCold || phase_ == Phase::kWarm; }
  // Of all executions that were counted; nullopt: none was.
  std::optional<double> misses_per_kilo() const;

  Phase phase() const { return phase_; }
  Rule rule() const { return rule_; }
  const Findings& findings() const { return findings_; }

 private:
  // Trying again may cost this part of the time.
  static constexpr double kBudget = 0.01;
  static constexpr std::uint32_t kRunsInDoubt = 4;
  // Executions after the first in which data may come, before it is decided.
  static constexpr std::uint32_t kMostWarmRuns = 4;
  // And some more, where they come back from where the first one took them.
  static constexpr std::uint32_t kShiftedRuns = 2;
  // Of what differs by less, the model cannot tell which is better: it is tried.
  static constexpr double kClearGain = 0.9, kClearLoss = 1.3;
  struct Judgement;
  // Of the last shared execution: what it took, ns, and the same with shares in balance but for
  // what it waited for pages.
  struct Latest {
    double elapsed = 0, waiting = 0;
  };
  Judgement judge(std::span<const RegionPart> nodes, Nanos elapsed) const;
  void forget_late_fork(Judgement& now);
  void note(const Judgement& now);
  void note_variation(std::span<const RegionPart> nodes, double elapsed);
  void decide_when_cold(const Judgement& now, const RegionPart& origin);
  // In an execution before, which tells what it takes alone as all parts of later ones do.
  bool did_most_before() const;
  double least_alone() const;
  bool follow_moves(bool moves);
  void decide_when_warm(std::span<const RegionPart> nodes, bool settles, bool moves);
  void decide_when_shared(const Judgement& now, const Latest& before);
  void observe_trial(double time, double stall);
  void decide_after_trial(double measured);
  void enter(Phase phase);
  void go_alone();
  void note_waiting(double elapsed, double stall, double alone_at_least);
  bool is_doubtful() const { return doubt_ >= most_doubt_; }
  double usual() const;
  // What it takes alone is tried, and held against `shared`.
  void doubt(double shared);
  bool has_lost(double expected, double seen, double otherwise);
  void rebalance(std::span<const RegionPart> nodes, double elapsed);
  void choose_seam(std::span<const RegionPart> nodes, double computing);
  void note_data(std::span<const RegionPart> nodes, double longest, double elapsed);
  bool is_settling() const { return window_.settling > 0 || data_come_; }
  bool tells_of_shares(double elapsed);
  void note_lags(std::span<const RegionPart> nodes);
  void forget_lags();
  void heed_lags(double alone);
  double end_of(double work, std::span<const double> rates) const;
  double lag_of(std::size_t node, double balanced) const;
  bool is_worth_moving(double imbalance, double moved) const;
  bool is_move_open(double elapsed);
  void undo_move();
  void give_time_to_follow();
  void apply_threshold(std::span<const RegionPart> nodes);
  void drop_useless(std::span<const RegionPart> nodes, double rest);
  void leave_out_costly(std::span<const RegionPart> nodes);
  void note_nodes(std::span<const RegionPart> nodes, bool first);
  void start_over();
  bool move_elsewhere();
  void move_to(std::size_t node);
  void observe_elsewhere(Nanos elapsed);
  void come_back();
  std::size_t nodes_in_use() const;

  std::size_t node_count_;
  Rule rule_;
  std::array<double, base::kMaxNodes> break_even_{};
  std::array<double, base::kMaxNodes> fault_period_{};  // averages; 0: not known
  std::uint32_t version_ = 1;
  Phase phase_ = Phase::kCold;
  std::uint32_t runs_in_phase_ = 0;
  std::array<double, base::kMaxNodes> powers_{};
  std::array<double, base::kMaxNodes> rates_{};  // the last one known; 0: none is
  // What nodes have done since powers() were last looked at.
  struct Window {
    std::uint32_t runs = 0;
    std::uint32_t length = 1;  // after which they are
    std::uint32_t settling = 0;  // executions that do not count yet
    double elapsed = 0;          // of those that do, ns
    // `time` is made of medians (Recent), `whole` of what each execution took; `long_runs` are
    // those that took much longer than the median, `bursts` how often that began.
    std::array<double, base::kMaxNodes> work{}, time{}, whole{};
    std::array<std::uint32_t, base::kMaxNodes> long_runs{}, bursts{};
    std::array<bool, base::kMaxNodes> was_long{};
    void note_length(std::size_t node, bool is_long);
    // What the node took for its work: without exceptions, but with what is the rule.
    double time_of(std::size_t node) const;
  };
  Window window_;
  // A node's time per work in the last executions that counted, or what they took. The median is
  // blind to some in a row that were disturbed, as by another program; it sees what lasts.
  struct Recent {
    std::array<double, 7> values{};
    std::uint32_t count = 0;  // ever
    double median_with(double latest);
  };
  std::array<Recent, base::kMaxNodes> recent_{};
  // How much later than the origin a node begins its part and is known to have ended it.
  struct Lag {
    Recent recent;          // of the executions that the origin waited for it
    double ns = 0;
    bool is_fresh = false;  // there was one since shares were last looked at
  };
  std::array<Lag, base::kMaxNodes> lags_{};
  Recent recent_elapsed_;
  double others_ = 0;     // note_others()
  double allowance_ = std::numeric_limits<double>::infinity();  // set_allowance()
  MoveTrial move_trial_;
  MoveCost move_cost_;
  Seam seam_ = Seam::kCoarse;
  std::uint32_t trial_of_ = 0;  // the version of the powers
  std::array<double, base::kMaxNodes> powers_before_move_{};
  Variation variation_;
  std::uint32_t variation_of_ = 0;  // the version of the powers
  Findings findings_;
  std::uint32_t findings_of_ = 0;  // executions
  double charged_since_ = 0;       // the last shared execution
  double predicted_ = 0;           // time alone by the last shared execution
  double alone_by_all_ = 0;        // the same, by what all nodes did
  double did_most_ = 0;            // what the origin computed where it did most of it, at most
  double computing_ = 0;           // the same, and without forks and joins
  double without_stall_ = 0;       // what sharing takes in balance, with all data in place
  double spread_ = 0;              // of these predictions, relative; of the better ones
  double measured_by_predicted_ = 1;
  double cost_of_trying_ = 0;  // what the last tries lost against what was decided
  // Of the executions while finding out; and of those since the cold one.
  double least_rest_ = 0, least_elapsed_ = 0;
  Latest latest_;
  // What nodes waited for in the last shared execution; in so many in a row it was much less each
  // time, so that data are on their way still.
  double stalls_before_ = 0;
  std::uint32_t data_run_ = 0;
  bool data_come_ = false;
  // It took less than the one before, or a quarter less; or half as much again.
  bool falls_ = false, comes_ = false, jumps_ = false;
  double fell_by_ = 0;  // the latest execution took so much less than the one before
  std::uint32_t most_warm_runs_ = kMostWarmRuns;
  bool moves_next_ = false;    // expect_moves()
  bool shifts_ = false;        // expect_shift(), or for lags
  bool heeds_lags_ = false;    // powers are no more those that were known beforehand
  std::uint32_t moves_ = 0;    // executions that were not judged for that, since the beginning
  // In this phase against the next best, by what executions are expected to take, and by what they
  // took; never below 0.
  double lost_ = 0, lost_as_seen_ = 0;
  double tried_ = 0;           // what these executions took, one cold and the warm ones
  double first_stalls_ = 0;    // of these, in which all data came that were needed
  double spent_alone_ = 0;     // since then
  double set_aside_ = std::numeric_limits<double>::infinity();  // may_lose()
  double trial_time_ = 0, longest_trial_ = 0;  // of the trial's executions that count
  std::uint32_t trial_runs_ = 0;               // so many
  // Of the predicted time alone, as executions in this phase wait; and what is too much.
  double doubt_ = 0, most_doubt_ = kRunsInDoubt;
  double usual_ = 0;    // what late shared executions took, their median
  double doubted_ = 0;  // the same before this trial, if it was doubt that led to it
  double patience_ = 1;        // doubled by every try in vain
  bool tried_before_ = false;
  // About single nodes: what each would take alone, what is known of its cores, what was counted.
  std::array<SingleNode, base::kMaxNodes> single_{};
  double cache_misses_ = 0, instructions_ = 0;
  bool may_move_ = false;
  bool divisible_ = false;  // powers() decided in the last shared execution who did how much
  bool gathered_ = false;   // elsewhere, with others
  bool with_others_ = false;  // share_with_others()
  // While elsewhere: what to go back to, and what that took.
  double alternative_ = 0;
  bool alternative_is_shared_ = false;
  std::array<double, base::kMaxNodes> powers_before_{};
  // A move in vain: it is tried again after so many new beginnings, more each time.
  std::uint32_t beginnings_ = 0, next_move_ = 0, vain_moves_ = 0;
  std::uint32_t runs_since_drop_ = 0;
  // The latest executions of so many nodes, and the least that one of them took to fork and join.
  struct Joins {
    std::size_t nodes = 0;
    std::uint32_t runs = 0;
    double least_rest = 0;
  } joins_;
};

const char* name_of(SharingModel::Phase phase);

}  // namespace amasia::loops
