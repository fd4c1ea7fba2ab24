// SPDX-License-Identifier: Apache-2.0
// Where a thread stands: the only thread-local state of the layer. The ABI asks it first and passes
// the call down to the program's own runtime unless a frame of a global team is there.
//
// A thread is in one of three places:
//   serial   frame == nullptr, local_depth == 0   not in a region that we know of
//   local    frame == nullptr, local_depth > 0    in a region of this node only: everything that
//                                                 it asks is the next runtime's to answer
//   global   frame != nullptr                     in a region whose team spans nodes
//
// A worker's place is set when its region begins and never taken back: tasks may still run in the
// join barrier of the next runtime, and they must see their team. So *every* fork that is passed
// down gets a wrapper that calls enter_local_team() on each thread.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/base.hpp"
#include "loops/loops.hpp"
#include "omp/launch/thread_state.hpp"
#include "omp/region/region.hpp"
#include "omp/thread_counters.hpp"
#include "omp/work_sharing/post_table.hpp"
#include "os/os.hpp"

namespace amasia::omp {

class GivenCopies;
class LeaderCounters;
class LoopBook;
class LockService;
class Node;
class Team;

// A loop that the thread is in, between its begin and its last `next` (work_sharing.hpp).
struct ThreadLoop {
  loops::Space space;
  loops::ScheduleRequest schedule;
  std::uint64_t number = 0;      // of the loop in its region
  std::uint64_t unit = 1;        // kmpc: iterations that are handed out together (simd)
  std::uint64_t iterations = 0;  // kmpc: of the loop, where space.count counts units
  std::uint64_t end = 0;         // gomp: as the program gave it
  std::uint64_t round = 0;       // shares taken, where the schedule fixes them beforehand
  bool by_region = false;        // a static one that is handed out in parts (ThreadParts)
  void* slot = nullptr;          // WorkSharing's or, of an ordered loop, Turns'
  // Of a loop that is handed out at run time: how many iterations the thread executes now, since
  // when, and what it had waited for pages by then.
  std::uint64_t whole = 1;  // iterations that are handed out together, where the schedule is not
                            // the one that the program's chunks are for
  std::uint64_t in_hand = 0;
  Nanos begun_ns = 0;
  Nanos stall_before_ns = 0;
  std::uint64_t faults_before = 0;
  Nanos cpu_before_ns = 0;
  // Of an ordered loop (turns.hpp): the chunk under way, in how many of its iterations the ordered
  // part is over, and whether the thread has yet to pass the turn on.
  bool ordered = false;
  bool has_turn_to_pass = false;
  std::uint64_t ordered_parts = 0;
  loops::Iterations chunk;
};

// The static loop of a region whose function may be entered again (code/reentry.hpp), where it is
// handed out in parts: the thread has this part, and enters the function for each further one.
struct ThreadParts {
  bool open = false;    // the thread has been given the first one
  bool inside = false;  // it is in the function again
  // What it is to execute; of a region of gcc's (NumberedParts): for which threads it is still to
  // stand in, and for which it does.
  loops::Iterations part;
  std::uint32_t number = 0;
  void** copies = nullptr;  // while it is: the private copies of the reduction that it has come to
};

// What a thread of a global team takes along when it goes on on another node (homecoming.hpp). The
// addresses are of managed memory and of code, which all nodes have at the same place.
struct MovableThread {
  std::uint32_t global_id = 0;  // in the team: the node's offset + the local id
  // Who it was when the region began: by that it gets its part of static loops, to the end.
  std::uint32_t first_rank = 0;
  std::uint32_t first_local_id = 0;
  // How often it asked for its number and for the team's size.
  std::uint32_t asked_number = 0;
  std::uint32_t asked_size = 0;
  std::uint32_t interrupted_size = 0;  // of `interrupted`
  std::int32_t error = 0;              // its errno
  std::uint32_t sections = 0;  // gomp: so many has the construct under way
  // How many of each work-sharing construct this thread has met in the region. All threads of a
  // team meet the same ones in the same order, so equal counts name the same construct.
  std::uint64_t singles_met = 0;
  std::uint64_t loops_met = 0;
  std::uint64_t doacrosses_met = 0;
  // The stack that the outlined function runs on: [stack_low, stack_top). Managed memory.
  std::byte* stack_low = nullptr;
  std::byte* stack_top = nullptr;
  EntryFrame* entry = nullptr;  // the call of the outlined function, on that stack
  ThreadState departure;        // where it has left that stack, and another thread goes on
  // The same where it was interrupted (os/interrupted_thread.hpp), on that stack; nullptr: it was
  // not.
  std::byte* interrupted = nullptr;
  bool in_the_middle = false;  // of the program, not at a barrier of it
  // Of the sections construct under way: the next one that is this thread's.
  std::uint64_t next_section = 0;
  // The loop under way. What its node has left of it comes, too (WorkSharing::depart).
  ThreadLoop loop;
  ThreadParts parts;
  // kmpc: what the outlined function was called with, on that stack: gtid and bound id.
  std::array<std::int32_t*, 2> numbers{};
};

// One thread of a global team. Lives in the Team (runtime memory); used by its thread only, but
// for what other files say of their own fields.
struct alignas(64) ThreadFrame : MovableThread {
  Team* team = nullptr;
  std::uint32_t local_id = 0;  // in the node team
  // To the next runtime its thread is in no active region: it is its node's only one, or a guest.
  bool serial_below = false;
  bool is_guest = false;  // homecoming.hpp
  // What the next runtime gave its thread: kmpc: the addresses of the local gtid and bound id.
  std::array<void*, 2> abi{};
  // gomp: it has made tasks since its last barrier, or may have.
  bool may_have_tasks = false;
  // Of the doacross construct that the thread is in: Doacross's; else nullptr.
  void* doacross = nullptr;
  UntoldPosts untold;
  os::Ticks told_posts = 0;  // when other nodes were last told of any
  // What this thread has given and others read until it has come through the next barrier.
  GivenCopies* given = nullptr;
  // How far it is followed while it is to stop (team/halt.hpp).
  std::uint32_t steps_to_program = 0;
  // What the thread does with its time in the region; `waited` is for other threads, by WaitScope,
  // of which `waits` are open. The rest, known at its end, is `active`; so is the CPU time, where
  // it is measured, without what was used in waits.
  Nanos active = 0;
  ThreadCounters before;  // its thread's when it began
  Nanos calls = 0;        // what the origin did for it, known at its end
  Nanos waited = 0;
  std::uint32_t waits = 0;
  Nanos wait_began = 0;
  bool measures_cpu = false;
  bool waits_briefly = false;  // its last wait was brief: the CPU time in the next one is guessed
  Nanos cpu = 0;
  // Of a node's leader, while the region is probed and where there are counters; else nullptr.
  LeaderCounters* counters = nullptr;
  // Of locks that it has taken in the region and not released.
  std::int32_t locks_held = 0;
  // At the barrier where it waits it keeps an address of its thread's (own_addresses.hpp).
  bool keeps_own_address = false;
  NodeTotals totals;
  // The region's, where this is the team's thread 0; else nullptr.
  LoopBook* book = nullptr;
  // Of a thread that another one goes on for: how it leaves its stack.
  ThreadState home;
};

struct ThreadContext {
  ThreadFrame* frame = nullptr;
  std::uint32_t local_depth = 0;
  // Set by num_threads and proc_bind clauses for the next region only; 0: not given.
  std::int32_t pushed_threads = 0;
  std::int32_t pushed_proc_bind = 0;
  // The frame that a serialized region hides, until local_depth is 0 again.
  ThreadFrame* hidden = nullptr;
  // In a region of this node inside a global team: the thread of that team that forked it. The
  // next runtime knows of its node team only, so level 1 is answered from here.
  const ThreadFrame* outer = nullptr;
  // A stack outside managed memory on which this thread may run while it is on a managed one;
  // nullptr: the thread is on such a stack now. See native.hpp.
  void* native_stack = nullptr;
  // In a region of this node whose team is one thread, as far as that is known.
  bool team_of_one = false;
  // The next runtime is forking for this thread. It makes a team of one by entry points that are
  // ours, too.
  bool in_fork = false;
  // Bit per Abi: this initial thread's ICVs were given the job's defaults (Node::adopt_thread).
  std::uint32_t adopted = 0;
  // What this thread had waited for pages when it last began or ended a region; origin only.
  Nanos stall_seen = 0;
  // Only in emulation, where a process holds several nodes; else nullptr.
  Node* node = nullptr;
};

// initial-exec: the ABI's first instructions read it, and it must never allocate. constinit here,
// too: else each access asks whether it has to be initialised.
extern constinit thread_local ThreadContext thread_context
    __attribute__((tls_model("initial-exec")));

// The frame of the global team that the calling thread is in, or nullptr.
inline ThreadFrame* current_frame() { return thread_context.frame; }

// The node that the calling thread belongs to; nullptr before the composition root has set one
// (static initialisers), in children of fork(), and when there is one node only: step aside then.
inline Node* current_node();
// Set once by the composition root, nullptr when it goes. Any thread afterwards sees it. `locks`:
// the node's, if the process has no other node.
void set_process_node(Node* node, LockService* locks = nullptr);

// The process-wide pointers of the layer: the ABI's way to the composed runtime. Programs take
// locks of some nanoseconds, so theirs is the shortest.
extern std::atomic<Node*> process_node;
extern std::atomic<LockService*> process_locks;
inline Node* current_node() {
  Node* const own = thread_context.node;
  // Acquire, partner: set_process_node.
  return own != nullptr ? own : process_node.load(std::memory_order_acquire);
}

// The thread of a global team that the calling thread is, or on whose behalf a region of this node
// runs; nullptr outside of global teams.
inline const ThreadFrame* outer_frame() {
  const ThreadContext& context = thread_context;
  if (context.frame != nullptr) return context.frame;
  return context.hidden != nullptr ? context.hidden : context.outer;
}

// Puts a thread into a region of this node only; for the wrapper of each fork passed down. `node`:
// as the forking thread has it in its context; `outer`: its outer_frame(). `team_of_one`: whether
// the next runtime was asked for one thread.
inline void enter_local_team(Node* emulated_node, const ThreadFrame* outer,
                             bool team_of_one = false) {
  ThreadContext& context = thread_context;
  context.frame = nullptr;
  context.hidden = nullptr;
  context.local_depth = 1;
  context.team_of_one = team_of_one;
  context.in_fork = false;
  context.outer = outer;
  context.node = emulated_node;
}

// The forking thread's place during a fork, serial or nested, that is passed down or carried out;
// put back at the end of the scope.
class PlaceScope {
 public:
  PlaceScope() : saved_(thread_context) {}
  ~PlaceScope() {
    thread_context.frame = saved_.frame;
    thread_context.hidden = saved_.hidden;
    thread_context.local_depth = saved_.local_depth;
    thread_context.outer = saved_.outer;
    thread_context.team_of_one = saved_.team_of_one;
    thread_context.in_fork = saved_.in_fork;
    thread_context.node = saved_.node;
    thread_context.native_stack = saved_.native_stack;
  }
  PlaceScope(const PlaceScope&) = delete;
  PlaceScope& operator=(const PlaceScope&) = delete;

 private:
  const ThreadContext saved_;
};

// Hides the frame while the next runtime is asked something: it calls its own entry points through
// the PLT, which are ours, and must get its own answers. Not around calls that execute tasks.
class HideFrame {
 public:
  HideFrame() : frame_(thread_context.frame) { thread_context.frame = nullptr; }
  ~HideFrame() { thread_context.frame = frame_; }
  HideFrame(const HideFrame&) = delete;
  HideFrame& operator=(const HideFrame&) = delete;

 private:
  ThreadFrame* const frame_;
};

// A serialized region (if(0), or nested where the runtime does not nest) begins and ends on the
// calling thread: until its end the thread is local.
inline void enter_serialized() {
  ThreadContext& context = thread_context;
  if (context.local_depth++ == 0) context.hidden = context.frame;
  context.frame = nullptr;
}
inline void leave_serialized() {
  ThreadContext& context = thread_context;
  if (context.local_depth == 0) return;  // the matching begin came before there was a node
  if (--context.local_depth == 0) {
    context.frame = context.hidden;
    context.hidden = nullptr;
  }
}

}  // namespace amasia::omp
