// SPDX-License-Identifier: Apache-2.0
// The threads of one region on all its nodes, as one node sees them, and what they do together.
//
// A node has one Team object, which its global regions use one after the other. Inside the node
// threads meet by the next runtime's barrier; between nodes the leaders (local id 0) meet by
// messages. docs/protocols/team.md has the messages.
//
// field            | written by                      | read by         | ordered by
// identity         | begin(), before the fork        | all threads     | the fork
// frames_[i]       | thread i                        | thread i        | –
// deposits_[i]     | thread i, before gather         | leader after it | the local barrier
// singles_         | threads and handler             | same            | its own table
// word_, agreed_   | the leader between the halves   | all after them  | the local barrier
// cancels_         | threads and handler             | same            | its own table
// T1 Every thread of the team calls barrier(), reduce() and copy_private() equally often and in
//    the same order; so the leaders' meetings can be numbered.
// T2 Only leaders send or wait for messages, and only on native stacks.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/base.hpp"
#include "omp/frame.hpp"
#include "omp/launch/stack_pool.hpp"
#include "omp/local_runtime.hpp"
#include "omp/region/region.hpp"
#include "omp/team/cancellation.hpp"
#include "omp/team/copy_private.hpp"
#include "omp/team/halt.hpp"
#include "omp/team/homecoming.hpp"
#include "omp/team/leader_counters.hpp"
#include "omp/team/single_board.hpp"

namespace amasia::omp {

// A reduction as the compiler passes it: `list` are the addresses of the thread's private copies
// (or sizes, for arrays of variable length); combine(to, from) folds one list into another.
struct Reduction {
  std::span<void*> list;
  void (*combine)(void* to_list, void* from_list) = nullptr;
};

class Team {
 public:
  explicit Team(Node& node);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  // Identity; constant while the region runs.
  std::uint32_t region() const {
    return region_.load(std::memory_order_acquire);
  }                                             // id, the same on all nodes, never reused
  std::uint32_t size() const { return size_; }  // threads on all nodes
  std::uint32_t local_size() const { return shares_[rank_].threads; }
  // Of these, whom the next runtime has forked for it: all but guests.
  std::uint32_t forked() const { return forked_; }
  std::uint32_t local_offset() const { return shares_[rank_].offset; }
  std::span<const NodeShare> shares() const { return shares_; }  // participants, by rank
  std::span<const loops::Power> powers() const { return powers_; }  // the same for schedules
  std::uint32_t rank() const { return rank_; }
  // The same as when the region began, by which static loops are divided to its end.
  std::span<const loops::Power> first_powers() const { return first_powers_; }
  // One node only has a part in loops, by their speeds.
  bool works_alone() const { return works_alone_; }
  bool on_origin() const { return rank_ == 0; }
  // All participants share memory, on which their leaders meet.
  bool meets_on_board() const { return meets_on_board_; }
  Node& node() const { return node_; }
  const Outlined& outlined() const { return outlined_; }  // the region's
  const void* function() const { return outlined_.function; }
  // Whether its static loop is handed out in parts, for which threads enter it again.
  Reentry reentry() const { return reentry_; }
  const NumberedParts& numbered() const { return numbered_; }  // where that is kNumbered
  // Names what this node does in it, as long as the shares stay as they are; 0: nothing.
  std::uint64_t place() const { return place_; }
  LocalRuntime& runtime() const { return *runtime_; }
  // What the ABI of the origin gave in RegionRequest::extra.
  std::span<const std::byte> extra() const { return extra_; }

  // The constructs. All are called by the frame's own thread, may block and may run tasks.

  // Barrier of all threads; tasks of all nodes are complete.
  void barrier(ThreadFrame& frame);
  // The same where the program has one, or a loop of it ends, at `place` in its code: a region that
  // is found out about may come home at it (homecoming.hpp). Then this returns on a thread of the
  // origin, which has another frame; the caller uses neither its own nor anything else of its node
  // afterwards.
  void barrier_of_program(ThreadFrame& frame, const void* place);
  // The same as barrier(); whether the region was cancelled before all had come.
  bool barrier_or_cancelled(ThreadFrame& frame) {
    barrier(frame);
    return (agreed_ & kCancelled) != 0;
  }
  // The two halves of the same: gather() returns true on global thread 0, once all have come; the
  // others return false after it called release().
  bool gather(ThreadFrame& frame);
  void release(ThreadFrame& frame);
  // The same; returns what the one thread that gave a value gave, on every thread. Without one: 0.
  std::uint64_t barrier_with(ThreadFrame& frame, std::optional<std::uint64_t> value);
  // Whether this thread executes this single construct: the first to come of all. On nodes other
  // than the origin the first thread to come may wait for the origin's answer.
  bool single(ThreadFrame& frame);
  // Copies the variables of the thread with `did_it` to all others by copy(to, from). Two barriers.
  void copy_private(ThreadFrame& frame, PrivateList list, void (*copy)(void* to, void* from),
                    bool did_it);
  // The same as gcc compiles it: the thread that executed the construct gives `data` (see
  // GivenCopies), the others (nullptr) get what they are to read. All then come to barrier().
  void* give_or_take(ThreadFrame& frame, void* data);
  // Combines the private copies of all threads, in the order of global ids. True on global thread
  // 0 only, whose list then has the result; it calls reduce_end() after use. Without `nowait` the
  // others return after that call; with it, once their copies are no longer needed.
  bool reduce(ThreadFrame& frame, const Reduction& reduction, bool nowait);
  void reduce_end(ThreadFrame& frame, bool nowait);
  // The thread's part of a static loop without a chunk; notes whether the nodes' speeds decide it.
  loops::Iterations static_share(ThreadFrame& frame, const loops::Space& space) const;
  // The thread begins the loop whose compiled code is at `code`: what its node waited for there
  // before is asked for.
  void enter_loop(const ThreadFrame& frame, const void* code) const;
  // The next section (0, 1, …) for this thread, or `count`: thread g gets g, g + size, …
  void begin_sections(ThreadFrame& frame) { frame.next_section = frame.global_id; }
  std::uint32_t next_section(ThreadFrame& frame, std::uint32_t count);

  // Whether constructs of this region can be cancelled (OMP_CANCELLATION).
  bool can_be_cancelled() const { return can_be_cancelled_; }
  // Cancels the region, or the loop or sections construct that the thread is in. False: it cannot
  // be. True: the thread is in no loop any more, and goes to the end of what it has cancelled.
  bool cancel(ThreadFrame& frame, Cancels what);
  // Whether the same has been cancelled, as far as is known here; then as cancel().
  bool cancellation_point(ThreadFrame& frame, Cancels what);
  // Whether a thread that waits in this loop, which is handed out at run time, need not wait.
  bool gives_up_loop(std::uint64_t number) const;

  // For Node's handler.
  CancelFlags& cancels() { return cancels_; }
  // The same, while the region runs.
  SingleBoard& singles() { return singles_; }

  // For Node: a region begins and ends on this node.
  struct Begin {
    std::uint32_t region = 0;
    std::uint32_t rank = 0;
    Abi abi = Abi::kKmpc;
    LocalRuntime* runtime = nullptr;
    std::span<const NodeShare> shares;
    Outlined outlined;
    const void* location = nullptr;
    std::int32_t proc_bind = 0;
    bool mend_dynamic = false;  // the forking thread had dyn-var on: each implicit task gets it
    bool shows_affinity = false;  // each thread first shows what it is
    KeptValues values = KeptValues::kNone;
    std::span<const std::byte> extra;
    LoopBook* book = nullptr;  // on the origin: the region's
    bool counts = false;       // the leader reads its counters
    bool is_measured = true;   // totals() are to be asked for
    PageWindow arguments;      // which other nodes give back
    // All threads may come home to the origin at a barrier; whether this node's can. On the origin:
    // what the region may lose before that, ns.
    bool may_come_home = false;
    bool can_leave = false;
    double allowance = 0;
    Reentry reentry = Reentry::kNever;
    NumberedParts numbered;
  };
  void begin(const Begin& begin);
  // `frame` is that of the node's thread `local_id`, as the region begins.
  void enlist(ThreadFrame& frame, std::uint32_t local_id);
  // Forks the node team, runs the region's part, returns when it has joined. Native stack.
  void run();

  // Those of the pages in `mask` that nodes were to give back.
  PageWindow arguments_among(std::uint32_t mask) const {
    return {arguments_.first, arguments_.mask & mask};
  }
  // Coming home out of a loop: for the handler and HomeCall. How far the team's leader has come,
  // once it stands; and whether all of the node's threads have come as far.
  Halt& halt() { return halt_; }
  Progress progress() const { return progress_of(*frames_[0]); }
  bool is_in_step() const;
  // Of those that the next runtime has forked, while they stand: for how many is(frame) holds.
  std::uint32_t count_threads(bool (*is)(const ThreadFrame& frame)) const;
  // By a thread that was asked to stop in a call of ours (Halt::end_call), on its managed stack.
  // Blocks until there is a verdict. False: it has come home, as another thread, to which `frame`
  // and all else of the node that it was on are nothing any more: it is to look them up again.
  bool stop_in_call(ThreadFrame& frame);
  // How long a thread of this node looks at what it waits for before it sleeps.
  Nanos spin_here() const;
  // On the origin: how many barriers have been passed. Any thread.
  std::uint32_t meetings() const { return meetings_.load(std::memory_order_relaxed); }
  // On the origin, by its leader: takes in the threads that are on their way, `from` these nodes,
  // while the others have ended the region; `lost`: what it has lost by now, ns. Those that come
  // out of a loop end at the barrier or the reduction where the leader is, which waits for them by
  // await_guests(), or at the region's end.
  void take_guests(std::span<const NodeShare> from, double lost);
  void await_guests();
  void await_guests_end();
  // The same in the middle of the program, where all threads of the origin stand: whether the
  // others have come, who go on where they were. join_guests(): what each of the origin's does
  // then.
  bool take_in_here();
  void join_guests(const ThreadFrame& frame) { guests_->watch(frame); }

  // On another node than the origin, at its end: those pages that it still has.
  std::uint32_t give_arguments_back();

  bool mends_dynamic() const { return mend_dynamic_; }
  // Whether threads that come home take their thread-local variables along.
  bool values_follow() const { return values_ == KeptValues::kFollow; }
  // After run(), on the origin: what the region had lost when it was brought home, ns; nullopt: it
  // was not.
  std::optional<double> lost_before_home() const;

  // What the threads did, after run(); once.
  NodeTotals totals();

 private:
  class Body;
  friend class Guests;
  friend class Halt;
  // What a thread leaves for its leader before the node's threads gather.
  struct alignas(64) Deposit {
    void** list = nullptr;
    std::uint64_t word = 0;
    bool has_word = false;
    std::uint32_t meeting = 0;  // for which the word is: a thread that is cancelled brings no other
    bool at_end = false;  // the thread has come to the region's end
  };

  void run_thread(std::uint32_t local_id, std::uint32_t local_size, void* abi0, void* abi1);
  std::uint32_t marks_of(const ThreadFrame& frame) const;
  void combine_local(const Reduction& reduction);
  bool combine_remote(const Reduction& reduction, bool nowait);
  void combine_guests(const Reduction& reduction, bool nowait);
  void send_reduction(ThreadFrame& frame, const Reduction& reduction, bool nowait);
  std::uint64_t meet(std::optional<std::uint64_t> value, std::uint64_t flags = 0);
  void leave_together(ThreadFrame& frame);
  bool gather_here(ThreadFrame& frame);
  void release_here(ThreadFrame& frame);
  bool goes_home() const { return (agreed_ & (kComesHome | kStays)) == kComesHome; }
  Nanos computed(const ThreadFrame& frame) const;
  std::uint64_t wishes_for_home(const ThreadFrame& frame, const void* place);
  std::uint64_t flags_for_home() const;
  void tell_work(const ThreadFrame& frame);
  Progress progress_of(const ThreadFrame& frame) const;
  void depart(ThreadFrame& frame);
  void leave(ThreadFrame& frame);
  void raise(Cancels what, std::uint32_t number);
  void leave_loop(ThreadFrame& frame);
  void enter_part(const void* code) const;
  void announce_single(std::uint64_t number);
  bool ask_for_single(const ThreadFrame& frame, std::uint64_t number);
  std::optional<std::uint64_t> deposited_word() const;
  void* given_here() const;

  Node& node_;
  LocalRuntime* runtime_ = nullptr;
  std::atomic<std::uint32_t> region_{0};  // released by begin(), when the handler may act on it
  std::uint32_t size_ = 0;
  std::uint32_t rank_ = 0;
  std::uint32_t forked_ = 0;
  std::vector<NodeShare> shares_;
  std::vector<loops::Power> powers_, first_powers_;
  bool works_alone_ = false;
  bool meets_on_board_ = false;
  Outlined outlined_;
  Reentry reentry_ = Reentry::kNever;
  NumberedParts numbered_;
  std::uint64_t place_ = 0;
  std::vector<void*> words_;
  const void* location_ = nullptr;
  std::int32_t proc_bind_ = 0;
  bool mend_dynamic_ = false;
  bool shows_affinity_ = false;
  KeptValues values_ = KeptValues::kNone;
  std::vector<std::byte> extra_;
  LoopBook* book_ = nullptr;
  bool counts_ = false;
  bool is_measured_ = true;
  PageWindow arguments_;
  LeaderCounters counters_;

  // Grown, never shrunk: a task that ends late may still look at its frame.
  std::vector<std::unique_ptr<ThreadFrame>> frames_;
  std::vector<ManagedStack> stacks_;
  // Which threads had faults in the node's last region: they measure their CPU time in the next
  // one, too, which costs half a microsecond.
  std::vector<std::uint8_t> faulted_;
  bool cpu_is_limited_ = false;
  double stretch_;  // how much longer computing takes than CPU time, on a core of its own
  std::vector<Deposit> deposits_;
  SingleBoard singles_;
  std::uint64_t word_ = 0;
  bool can_be_cancelled_ = false;
  CancelFlags cancels_;       // of all regions, one after the other
  std::uint64_t agreed_ = 0;  // the flags of the last meeting's word
  // Coming home: written at the region's begin and, on the origin, by its leader between the halves
  // of a barrier.
  bool may_come_home_ = false, can_leave_ = false;
  loops::Homeward homeward_;                  // the leader's
  Nanos own_work_ = 0;                        // when nodes were asked for theirs
  std::unique_ptr<Guests> guests_;            // on the origin, once they have come
  std::vector<Traveller> travellers_;         // elsewhere, each written by its thread
  std::atomic<std::uint32_t> departed_{0};    // of these; who is last reads them
  Halt halt_{*this};
  double lost_at_home_ = 0;                   // by then, ns
  // Barriers between nodes so far: the next one's generation. By the leader; others look.
  std::atomic<std::uint32_t> meetings_{0};
  std::uint32_t reductions_ = 0;  // the next reduction's number
  // The leader's, kept from one reduction to the next: an allocation on a managed stack costs four
  // system calls. Resized on native stacks.
  std::vector<void*> received_list_;
  std::vector<std::byte> received_image_;
  std::vector<std::byte> sent_copies_;
};

}  // namespace amasia::omp
