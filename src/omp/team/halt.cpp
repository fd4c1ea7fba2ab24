// SPDX-License-Identifier: Apache-2.0
#include "omp/team/halt.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

#include "omp/launch/own_addresses.hpp"
#include "omp/long_wait.hpp"
#include "omp/meeting/mailbox.hpp"
#include "omp/node.hpp"
#include "omp/team/team.hpp"
#include "omp/wait_scope.hpp"
#include "omp/work_sharing/turns.hpp"

namespace amasia::omp {
namespace {

// Below the stack pointer: what the calling convention lets a function use there, and room to
// spare.
constexpr std::size_t kRedZone = 128;
constexpr std::size_t kRoom = 16 * base::kKiB;
constexpr std::size_t kMostState = 12 * base::kKiB;  // with AMX it has 11
constexpr Nanos kPause = base::kMillisecond;
// To follow a thread out of a library; some 2 us each.
constexpr std::uint32_t kMostSteps = 5000;

// What the C++ library keeps for a thread that handles an exception, or for which one is on its
// way.
bool has_exceptions() {
  struct Globals {
    void* caught;
    unsigned uncaught;
  };
  const auto* const globals = reinterpret_cast<const Globals*>(abi::__cxa_get_globals());
  return globals->caught != nullptr || globals->uncaught != 0;
}

// On its stack, up to where the region's function was called, or in any register.
bool keeps_own_address(const ThreadFrame& frame, const os::InterruptedThread& thread) {
  constexpr std::size_t kWord = sizeof(std::uintptr_t);
  constexpr std::size_t kMost = base::kMiB;  // to look at; what has more stays
  const std::uintptr_t from = base::round_down(thread.stack_pointer() - kRedZone, kWord);
  const auto* const words = reinterpret_cast<const std::uintptr_t*>(from);
  const auto* const end = reinterpret_cast<const std::uintptr_t*>(frame.entry);
  std::array<std::uintptr_t, kMostState / kWord> state;
  if (words >= end || thread.size() > kMostState || (end - words) * kWord > kMost) return true;
  thread.keep(std::as_writable_bytes(std::span(state)).first(thread.size()));
  return has_own_address({words, end}) ||
         has_own_address(std::span(state).first(thread.size() / kWord));
}

// The loader's first entry: it has pushed the address of what this process's loader keeps of an
// object, and is about to jump into the loader.
bool is_on_the_way_to_the_loader(const unsigned char* instruction, const Services& services) {
  constexpr unsigned char kPush[] = {0xff, 0x35};  // of what lies relative to the instruction
  constexpr std::ptrdiff_t kLength = 6;
  const unsigned char* const before = instruction - kLength;
  return services.is_program_code(before) && std::equal(std::begin(kPush), std::end(kPush), before);
}

// The calling thread, by what it has begun and not ended.
bool has_open(const ThreadFrame& frame) {
  const ThreadContext& context = thread_context;
  return context.local_depth != 0 || frame.waits != 0 || frame.locks_held != 0 ||
         frame.given != nullptr || frame.may_have_tasks;
}

}  // namespace

void Halt::open(std::uint32_t region, std::uint32_t threads) {
  Status caught = os::catch_interruptions();
  if (caught.ok()) caught = os::catch_steps();
  const std::lock_guard lock(mutex_);
  if (!caught.ok()) {
    base::log_line(base::LogLevel::kInfo, "loops stay where they are: {}", caught.error().message);
    return;
  }
  if (room_ < threads) {
    members_ = std::make_unique<Member[]>(threads);
    room_ = threads;
  }
  for (std::uint32_t id = 0; id < threads; ++id) {
    members_[id].thread_id.store(0, std::memory_order_relaxed);
    members_[id].call.store(Call::kNone, std::memory_order_relaxed);
  }
  threads_ = threads;
  region_ = region;
}

void Halt::close() {
  const std::lock_guard lock(mutex_);
  region_ = 0;
}

void Halt::enter(std::uint32_t local_id) {
  if (region_ == 0 || !os::have_alternate_stack().ok()) return;
  if (local_id == 0) sample_.begin(team_.function());
  Member& own = members_[local_id];
  own.carrying = team_.node().services().own_carrying();
  own.thread_id.store(os::current_thread_id(), std::memory_order_release);
}

void Halt::leave(std::uint32_t local_id) {
  if (region_ != 0) members_[local_id].thread_id.store(0, std::memory_order_release);
}

Halt::Member* Halt::member_of(const ThreadFrame& frame) const {
  return region_ != 0 && !frame.is_guest ? &members_[frame.local_id] : nullptr;
}

void Halt::begin_call(const ThreadFrame& frame) {
  Member* const own = member_of(frame);
  Call none = Call::kNone;  // or it has been asked before
  if (own != nullptr) own->call.compare_exchange_strong(none, Call::kUnderWay);
}

void Halt::Member::ask_at_next_call() {
  Call none = Call::kNone;
  call.compare_exchange_strong(none, Call::kAsked);
}

bool Halt::is_asked(const ThreadFrame& frame) const {
  const Member* const own = member_of(frame);
  return own != nullptr && own->call.load(std::memory_order_relaxed) == Call::kAsked;
}

bool Halt::end_call(const ThreadFrame& frame) {
  Member* const own = member_of(frame);
  return own != nullptr && !own->end_call();
}

bool Halt::Member::end_call() {
  Call now = Call::kUnderWay;
  return call.compare_exchange_strong(now, Call::kNone, std::memory_order_seq_cst);
}

// Sequentially consistent, as what stop() does: it sees the attempt, or that it has been asked.
bool Halt::Member::ask_in_call() {
  Call now = Call::kUnderWay;
  return call.compare_exchange_strong(now, Call::kAsked, std::memory_order_seq_cst) ||
         now == Call::kAsked;
}

bool Halt::has_call() const {
  const std::lock_guard lock(mutex_);
  const std::span<const Member> members(members_.get(), region_ != 0 ? threads_ : 0);
  return std::ranges::any_of(members, &Member::is_in_call);
}

// Interrupted meanwhile, it is taken to be asked: so it votes once about an attempt.
bool Halt::stop(ThreadFrame& frame) {
  Member& own = *member_of(frame);
  const bool at_home = team_.on_origin();
  do {
    own.call.store(Call::kUnderWay, std::memory_order_seq_cst);
    const HaltVote now(vote_.load(std::memory_order_seq_cst));
    if (now.state() != HaltVote::State::kVoting) continue;
    if (has_open(frame) || (!at_home && (has_exceptions() || frame.keeps_own_address))) {
      refuse(now.number());
      continue;
    }
    const WaitScope waiting(frame);
    if (!hold(frame, now.number())) continue;
    if (!at_home) return true;
    team_.join_guests(frame);
  } while (!own.end_call());
  return false;
}

// What its threads do stands for what they all do.
bool Halt::on_look(const LookBody& look) {
  SeenBody seen{
      .region = look.region, .number = look.number, .cpu = -1, .calls = 0, .to_and_fro = 0};
  if (team_.region() == look.region) seen.cpu = computed_by_leader();
  const Services& services = team_.node().services();
  const delegate::CallTimes calls = services.call_times();
  seen.calls = calls.at_origin;
  seen.to_and_fro =
      services.stall_for_lost() + calls.carriage + team_.node().waited_for_others();
  team_.node().send(base::kOrigin, kSeenMessage, fabric::bytes_of(seen));
  return true;
}

bool Halt::on_halt(const HaltBody& halt) {
  if (halt.number <= HaltVote(vote_.load(std::memory_order_relaxed)).number()) return false;  // H2
  const std::lock_guard lock(mutex_);
  const bool may_ask = region_ == halt.region && halt.register_sets == os::register_sets();
  if (!may_ask || !asks_all(halt.number)) tell(halt.number, false);
  return true;
}

int Halt::leader() const {
  const std::lock_guard lock(mutex_);
  return region_ != 0 ? members_[0].thread_id.load(std::memory_order_acquire) : 0;
}

Nanos Halt::computed_by_leader() {
  const int thread = leader();
  if (thread == 0) return -1;
  const Nanos cpu = os::thread_cpu_time(thread);
  const Nanos computed = cpu < 0 ? cpu : std::max<Nanos>(0, cpu - sample_.spun());
  if (os::thread_activity(thread) == os::ThreadActivity::kRuns) os::interrupt_thread(thread, *this);
  return computed;
}

std::optional<os::InterruptedThread::Registers> Halt::glance_at_leader() {
  const int thread = leader();
  if (thread == 0 || os::waits_in_system_call(thread)) return std::nullopt;
  glance_.is_wanted.store(1, std::memory_order_release);  // or it has not answered the last time
  if (!os::interrupt_thread(thread, *this)) return std::nullopt;
  os::futex_wait(glance_.is_wanted, 1, base::kMillisecond);
  const bool is_there = glance_.is_wanted.load(std::memory_order_acquire) == 0;
  if (!is_there || !glance_.is_programs) return std::nullopt;
  return glance_.registers;
}

bool Halt::ask_here(std::uint32_t number) {
  const std::lock_guard lock(mutex_);
  return region_ != 0 && asks_all(number);
}

// One that sleeps would be woken, which the program would see; not where the origin makes the call.
bool Halt::Member::can_be_interrupted() const {
  const int id = thread_id.load(std::memory_order_acquire);  // partner: enter
  if (id == 0) return false;
  if (is_in_call()) return true;
  return (carrying != nullptr && carrying->load(std::memory_order_relaxed)) ||
         !os::waits_in_system_call(id);
}

bool Halt::asks_all(std::uint32_t number) {
  const std::span<Member> members(members_.get(), threads_);
  if (!std::ranges::all_of(members, &Member::can_be_interrupted)) return false;
  change(&HaltVote::ask, number);
  for (Member& member : members) {
    if (member.ask_in_call()) continue;
    const int thread = member.thread_id.load(std::memory_order_acquire);
    if (thread == 0 || !os::interrupt_thread(thread, *this)) refuse(number);
  }
  team_.node().wake();  // who is asked in a call
  return true;
}

bool Halt::on_verdict(const VerdictBody& verdict) {
  const bool goes_home = verdict.goes_home != 0;
  if (!change(&HaltVote::decide, verdict.number, goes_home).first) return false;
  ring();
  return true;
}

template <typename... Arguments>
std::pair<bool, HaltVote> Halt::change(bool (HaltVote::*by)(Arguments...), Arguments... arguments) {
  std::uint64_t word = vote_.load(std::memory_order_acquire);
  for (;;) {
    HaltVote vote(word);
    if (!(vote.*by)(arguments...)) return {false, vote};
    // At least acquire and release, as the last one to hold says how far the others have come.
    if (vote_.compare_exchange_weak(word, vote.word(), std::memory_order_seq_cst,
                                    std::memory_order_acquire)) {
      return {true, vote};
    }
  }
}

void Halt::ring() {
  news_.fetch_add(1, std::memory_order_release);
  os::futex_wake(news_, INT_MAX);
}

void Halt::interrupted(const os::InterruptedThread& thread) {
  ThreadFrame* const frame = current_frame();
  if (frame != nullptr && frame->team == &team_ && frame->local_id == 0) note_leader(thread);
  // The signal may have been for that, or under way since an earlier attempt.
  const HaltVote now(vote_.load(std::memory_order_acquire));
  if (now.state() == HaltVote::State::kVoting) vote(frame, thread, now.number());
}

void Halt::note_leader(const os::InterruptedThread& thread) {
  sample_.note(thread, members_[0].is_in_call());
  if (glance_.is_wanted.load(std::memory_order_acquire) == 0) return;
  // Or in a function that the program has called, as sched_yield(), or one of ours that needs no
  // native stack.
  glance_.is_programs = thread_context.native_stack != nullptr;
  glance_.registers = thread.registers();
  glance_.is_wanted.store(0, std::memory_order_release);  // partner: glance_at_leader
  os::futex_wake(glance_.is_wanted, 1);
}

void Halt::vote(ThreadFrame* frame, const os::InterruptedThread& thread, std::uint32_t number) {
  if (frame == nullptr || frame->team != &team_) return refuse(number);
  Member* const own = member_of(*frame);
  if (own != nullptr && own->ask_in_call()) return;
  if (frame->locks_held > 0 && own != nullptr) return own->ask_at_next_call();
  if (thread_context.native_stack == nullptr || has_open(*frame)) return refuse(number);
  if (!is_in_program(thread)) {
    // It is soon back from a library's function, such as a write that the origin makes.
    frame->steps_to_program = kMostSteps;
    if (!os::follow_thread(thread, *this, *this)) refuse(number);
    return;
  }
  const bool at_home = team_.on_origin();
  if (!at_home && !may_hold(*frame, thread)) return refuse(number);
  frame->error = errno;
  ThreadContext& context = thread_context;
  void* const native = std::exchange(context.native_stack, nullptr);  // the handler's is one, too
  bool goes = false;
  {
    const WaitScope waiting(*frame);
    goes = hold(*frame, number);
    if (goes && at_home) team_.join_guests(*frame);
  }
  context.native_stack = native;
  if (!goes || at_home) return;
  frame->in_the_middle = true;
  const std::size_t size = thread.size();
  const std::uintptr_t below = thread.stack_pointer() - kRedZone - size;
  frame->interrupted = reinterpret_cast<std::byte*>(base::round_down(below, 64));
  frame->interrupted_size = static_cast<std::uint32_t>(size);
  thread.keep({frame->interrupted, size});
  const auto top = base::round_down(reinterpret_cast<std::uintptr_t>(native), 64);
  thread.redirect(
      [](void* it) {
        auto& leaving = *static_cast<ThreadFrame*>(it);
        leaving.team->leave(leaving);
      },
      frame, reinterpret_cast<void*>(top));
}

os::Follower::Next Halt::follow(const os::InterruptedThread& thread) noexcept {
  ThreadFrame* const frame = current_frame();
  const HaltVote vote(vote_.load(std::memory_order_acquire));
  if (frame == nullptr || vote.state() != HaltVote::State::kVoting) return Next::kLetGo;
  if (is_in_program(thread)) return Next::kInterrupt;
  Member* const own = member_of(*frame);
  if (own != nullptr && own->ask_in_call()) return Next::kLetGo;
  if (frame->steps_to_program-- > 0 && !thread.is_at_system_call()) return Next::kFollow;
  refuse(vote.number());
  return Next::kLetGo;
}

bool Halt::is_in_program(const os::InterruptedThread& thread) const {
  const auto* const instruction = reinterpret_cast<const unsigned char*>(thread.instruction());
  return team_.node().services().is_program_code(instruction);
}

bool Halt::may_hold(const ThreadFrame& frame, const os::InterruptedThread& thread) const {
  const std::uintptr_t stack = thread.stack_pointer();
  const auto low = reinterpret_cast<std::uintptr_t>(frame.stack_low);
  const auto top = reinterpret_cast<std::uintptr_t>(frame.stack_top);
  const auto* const instruction = reinterpret_cast<const unsigned char*>(thread.instruction());
  const Services& services = team_.node().services();
  return stack < top && stack > low + kRoom &&
         !is_on_the_way_to_the_loader(instruction, services) && !has_exceptions() &&
         !(services.may_keep_own_addresses() && keeps_own_address(frame, thread));
}

void Halt::refuse(std::uint32_t number) {
  if (change(&HaltVote::refuse, number).first) ring();
}

// Whether the thread goes home, or the others have come.
bool Halt::hold(const ThreadFrame& frame, std::uint32_t number) {
  const auto [held, now] = change(&HaltVote::hold, number, team_.forked());
  if (!held) return false;
  // All have stopped before this one, which so knows what they have done.
  if (now.state() == HaltVote::State::kAllHold) {
    if (team_.on_origin()) {
      ring();
    } else {
      tell(number, team_.is_in_step());
    }
  }
  const bool decides = team_.on_origin() && frame.local_id == 0;
  const Node& node = team_.node();
  LongWait wait(node.services(), node.self(), node.settings().watchdog,
                {.what = "a verdict on going home, in the middle of a loop,", .node = 0},
                os::monotonic_now());
  for (;;) {
    const std::uint32_t news = news_.load(std::memory_order_acquire);
    const HaltVote vote(vote_.load(std::memory_order_acquire));
    if (!vote.waits(number)) {
      const bool is_first = change(&HaltVote::tell_refusal, number).first;
      if (is_first && !team_.on_origin()) tell(number, false);
      return vote.goes_home(number);
    }
    if (decides && vote.state() == HaltVote::State::kAllHold) {
      change(&HaltVote::decide, number, team_.take_in_here());
      ring();
      continue;
    }
    if (node.told_to_end()) node.services().leave_job();
    // Pages that come for it, which it had asked for before, are not kept for it.
    node.services().note_pause();
    wait.tell(os::monotonic_now());
    os::futex_wait(news_, news, kPause);
  }
}

// By a thread that holds, or the handler.
void Halt::tell(std::uint32_t number, bool held) {
  HaltedBody halted{.number = number, .held = held ? 1U : 0U};
  if (held) {
    halted.in_doacross =
        team_.count_threads([](const ThreadFrame& it) { return it.doacross != nullptr; });
    halted.in_ordered =
        team_.count_threads([](const ThreadFrame& it) { return Turns::is_in_one(it.loop); });
    halted.progress = team_.progress();
  }
  team_.node().send(base::kOrigin, kHaltedMessage, fabric::bytes_of(halted));
}

}  // namespace amasia::omp
