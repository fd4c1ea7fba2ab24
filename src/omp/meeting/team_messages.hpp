// SPDX-License-Identifier: Apache-2.0
// The messages between leaders; docs/protocols/team.md says who sends what when. All are of fixed
// layout and followed by what the comment says.
#pragma once

#include <cstdint>

#include "base/base.hpp"
#include "fabric/fabric.hpp"
#include "omp/frame.hpp"
#include "omp/local_runtime.hpp"
#include "omp/region/region.hpp"
#include "omp/work_sharing/loop_rest.hpp"
#include "os/os.hpp"

namespace amasia::omp {

inline constexpr fabric::MessageType kRegionMessage = 0x200;     // origin -> participant
inline constexpr fabric::MessageType kJoinedMessage = 0x201;     // participant -> origin
inline constexpr fabric::MessageType kSignalMessage = 0x202;     // participant -> participant
inline constexpr fabric::MessageType kReductionMessage = 0x203;  // participant -> origin
inline constexpr fabric::MessageType kConsumedMessage = 0x204;   // origin -> participant
inline constexpr fabric::MessageType kServeEndMessage = 0x205;   // origin -> all others
inline constexpr fabric::MessageType kClaimMessage = 0x206;      // participant -> origin
inline constexpr fabric::MessageType kAnswerMessage = 0x207;     // origin -> participant
inline constexpr fabric::MessageType kTakenMessage = 0x208;      // origin -> participants
inline constexpr fabric::MessageType kCancelMessage = 0x209;     // participant -> all others
inline constexpr fabric::MessageType kAskValuesMessage = 0x20a;  // origin -> participant
inline constexpr fabric::MessageType kValuesMessage = 0x20b;     // either way
inline constexpr fabric::MessageType kTravellersMessage = 0x20c;  // participant -> origin
inline constexpr fabric::MessageType kWorkMessage = 0x20d;       // participant -> origin
inline constexpr fabric::MessageType kLookMessage = 0x20e;       // origin -> participant
inline constexpr fabric::MessageType kSeenMessage = 0x20f;       // participant -> origin
inline constexpr fabric::MessageType kHaltMessage = 0x210;       // origin -> participant
inline constexpr fabric::MessageType kHaltedMessage = 0x211;     // participant -> origin
inline constexpr fabric::MessageType kVerdictMessage = 0x212;    // origin -> participant

// Followed by `share_count` WireShare, `word_count` words, `format_size` bytes of the affinity
// format (0: the program has set none) and `extra_size` bytes.
struct RegionHead {
  std::uint32_t region;
  std::uint32_t share_count;
  std::uint32_t word_count;
  std::uint32_t extra_size;
  std::uint64_t function;
  std::uint64_t location;
  std::uint64_t arguments;     // the page that argument_pages.hpp's window begins with,
  std::uint32_t to_give_back;  // and which of its pages the node gives back when it is done
  std::int32_t proc_bind;
  std::uint16_t format_size;
  std::uint8_t reentry;  // Reentry: the function's, where its loop is handed out in parts,
  std::uint8_t numbers_stay;
  std::uint8_t abi;
  std::uint8_t counts;          // 1: leaders read their counters (leader_counters.hpp)
  std::uint8_t shows_affinity;  // 1: each thread first shows what it is (affinity_display.hpp)
  KeptValues values;
  // Where a thread that has come home goes on (homecoming.hpp); 0: none will.
  std::uint64_t goes_on_at;
  std::uint32_t numbered_threads;  // and NumberedParts
  std::uint32_t numbered_extent;
  os::FloatingPointControl floating_point;  // of the thread that forks
  Icvs icvs;
};
static_assert(sizeof(RegionHead) % 8 == 0);

struct WireShare {
  std::uint16_t node;
  std::uint16_t seam;  // loops::Seam
  std::uint32_t threads;
  std::uint32_t speed;
  std::uint32_t values;  // so many kValuesMessage go to this node first
};

struct JoinedBody {
  std::uint32_t region;
  std::uint32_t given_back;  // which of the region's argument pages
  NodeTotals totals;
};

// How long the node's leader has computed since the region's begin, ns.
struct WorkBody {
  std::uint32_t region;
  std::uint32_t reserved;
  Nanos computed;
};

// Asks what the node does in the middle of a loop; `number` counts questions (home_call.hpp).
struct LookBody {
  std::uint32_t region;
  std::uint32_t number;
};

// The answer: the CPU time that the leader's thread has used, but for what it has spun
// (team/spin_sample.hpp), -1 if it is not in the region; and
// what the node's threads have waited for pages that it had and others have taken. Only differences
// say something.
struct SeenBody {
  std::uint32_t region;
  std::uint32_t number;
  Nanos cpu;         // of its leader
  Nanos calls;       // all its threads' that the origin made for them
  Nanos to_and_fro;  // all its threads' waits for pages that were taken, and their calls' carriage
};

// How far a thread has come in its region: all have where it may be taken home.
struct Progress {
  std::uint64_t singles = 0;
  std::uint64_t loops = 0;
  std::uint64_t doacrosses = 0;
  std::uint32_t meetings = 0;
  std::uint32_t reductions = 0;
  bool operator==(const Progress&) const = default;
};

// The node's threads are to stop where they are; `number` counts attempts. They may go home only
// where processors have the same registers.
struct HaltBody {
  std::uint32_t region;
  std::uint32_t number;
  std::uint64_t register_sets;
};

// They have all stopped, or not: some thread was where it may not, and those that have stopped go
// on. So many are in the last doacross loop that they have met, and in one with ordered parts.
struct HaltedBody {
  std::uint32_t number = 0;
  std::uint32_t held = 0;
  std::uint32_t in_doacross = 0;
  std::uint32_t in_ordered = 0;
  Progress progress{};
};

// Those that have stopped come home, or go on.
struct VerdictBody {
  std::uint32_t number;
  std::uint32_t goes_home;
};

// Followed by `count` Travellers: all the node's threads. In `rest` is what they have yet to do of
// the loop that they come out of.
struct TravellersHead {
  std::uint32_t region;
  std::uint32_t count;
  LoopRest rest{};
};

// A thread on its way home.
struct Traveller {
  MovableThread thread;
  std::uint64_t stack_guard;  // what the compiler's checks of its stack expect
  std::uint64_t in_doacross;  // 1: in the last doacross loop that it has met
  std::uint64_t turn;         // up to which its node knows it, where it is in an ordered loop
  Icvs icvs;
};
static_assert(sizeof(Traveller) % 8 == 0);

struct SignalBody {
  std::uint32_t region;
  std::uint32_t generation;
  std::uint32_t round;
  std::uint32_t has_word;
  std::uint64_t word;
};

// Followed by `list_count` words (the list) and `window_size` bytes, which are the sender's stack
// from address `window_begin` on.
struct ReductionHead {
  std::uint32_t region;
  std::uint32_t number;
  std::uint32_t rank;
  std::uint32_t list_count;
  std::uint64_t window_begin;
  std::uint64_t window_size;
  std::uint32_t given_back = 0;  // which of the region's argument pages
  std::uint32_t reserved = 0;
};

struct ConsumedBody {
  std::uint32_t region;
  std::uint32_t number;
};

// About single construct `number` of the region: asks for it (kClaim), says whether the thread
// that asked has it (kAnswer), or that a thread of the origin has (kTaken).
struct SingleBody {
  std::uint32_t region;
  std::uint32_t local_id;
  std::uint64_t number;
  std::uint32_t granted;
  std::uint32_t reserved;
};

// Asks for the thread-local variables of threads that have run on the node: followed by `count`
// numbers of threads, 32 bits each. It answers with a kValuesMessage for each, in this order.
struct AskValuesHead {
  std::uint32_t count;
  std::uint32_t reserved;
};
inline constexpr std::uint32_t kMaxThreadsAsked = 1 << 16;

// Followed by the packed variables of a thread; `thread_pointer` is that of their last place. An
// answer may have none of either: no thread of that number has run there. Those of a thread that
// comes home go before its node's Travellers.
struct ValuesHead {
  std::uint32_t thread;
  std::uint32_t reserved;
  std::uint64_t thread_pointer;
};

// See cancellation.hpp.
struct CancelBody {
  std::uint32_t region;
  std::uint32_t number;
  std::uint32_t what;
  std::uint32_t reserved;
};

struct ServeEndBody {
  std::uint64_t reserved;
};

}  // namespace amasia::omp
