// SPDX-License-Identifier: Apache-2.0
#include "omp/node.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include "omp/locks/lock_service.hpp"
#include "omp/native.hpp"
#include "omp/region/thread_deal.hpp"
#include "os/os.hpp"

namespace amasia::omp {
namespace {

// A node that leaves because the program has ended can be missed by another one before that one
// hears of the end from the origin. And if a node was killed, its launcher knows better why.
constexpr Nanos kGrace = base::kSecond / 2;

}  // namespace

Node::Node(fabric::Fabric& fabric, Services& services, NodeSettings settings, MeetingBoard* board)
    : fabric_(fabric),
      services_(services),
      settings_(std::move(settings)),
      thread_values_(services.thread_blocks()),
      team_(*this),
      board_(board),
      bell_(board != nullptr ? board->bell() : own_bell_),
      common_node_(fabric.node_count()) {
  AMASIA_CHECK(settings_.capacity.size() == fabric.node_count(), "every node has a capacity");
  for (const std::uint32_t threads : settings_.capacity) {
    AMASIA_CHECK(threads > 0, "every node has room for a thread");
  }
  AMASIA_CHECK(settings_.core_speeds.size() == settings_.capacity.size(),
               "every node's cores have a speed");
  if (self() == base::kOrigin && node_count() > 1) {
    home_call_ = std::make_unique<HomeCall>(*this, settings_.home_call);
  }
  began_ = os::monotonic_now();
  count_threads();
  fabric_.set_handler(kTeamFirst, kTeamLast, this);
}

Node::~Node() = default;

void Node::count_threads() {
  if (settings_.share == base::SharePolicy::kNever) {
    default_threads_.fill(settings_.capacity[base::kOrigin.value]);
    return;
  }
  default_threads_[static_cast<std::size_t>(Abi::kKmpc)] =
      std::accumulate(settings_.capacity.begin(), settings_.capacity.end(), std::uint32_t{0});
  default_threads_[static_cast<std::size_t>(Abi::kGomp)] =
      threads_to_divide(settings_.capacity, settings_.core_speeds);
}

void Node::set_runtime(Abi abi, LocalRuntime& runtime) {
  runtimes_[static_cast<std::size_t>(abi)] = &runtime;
}

void Node::send(NodeId to, fabric::MessageType type, std::span<const std::byte> head,
                std::span<const std::byte> payload) {
  // A peer that is lost is told to peer_lost(), which ends the waits that would follow.
  (void)fabric_.send(to, type, head, payload);
}

void Node::on_message(const fabric::Incoming& message) {
  bool good = true;
  switch (message.type) {
    case kRegionMessage:
      good = message.from == base::kOrigin && mailbox_.put_region(message.body);
      break;
    case kJoinedMessage:
      good = self() == base::kOrigin && mailbox_.put_joined(message.from, message.body);
      break;
    case kWorkMessage:
      good = self() == base::kOrigin && mailbox_.put_work(message.from, message.body);
      break;
    case kTravellersMessage:
      good = self() == base::kOrigin && mailbox_.put_travellers(message.from, message.body);
      break;
    case kSignalMessage:
      good = mailbox_.put_signal(message.body);
      break;
    case kReductionMessage:
      good = self() == base::kOrigin && mailbox_.put_reduction(message.body);
      break;
    case kConsumedMessage:
      good = message.from == base::kOrigin && mailbox_.put_consumed(message.body);
      break;
    case kServeEndMessage:
      mailbox_.put_serve_end();
      // exit() in a region: threads that wait leave by themselves, those that compute do not look.
      if (regions_here_.load(std::memory_order_relaxed) != 0) services_.leave_job_soon();
      break;
    case kClaimMessage:
    case kAnswerMessage:
    case kTakenMessage:
      good = on_single(message);
      break;
    case kAskValuesMessage:
      good = message.from == base::kOrigin && mailbox_.put_ask(message.body);
      break;
    case kValuesMessage:
      good = (message.body.size() == sizeof(ValuesHead) + thread_values_.size() ||
              message.body.size() == sizeof(ValuesHead)) &&
             mailbox_.put_values(message.body);
      break;
    case kCancelMessage:
      good = on_cancel(message);
      break;
    case kLookMessage:
    case kSeenMessage:
    case kHaltMessage:
    case kHaltedMessage:
    case kVerdictMessage:
      good = on_home_call(message);
      break;
    default:
      good = false;
  }
  if (!good) {
    services_.abort_job(fmt::format("node {} sent node {} a malformed message of type {:#x}",
                                    message.from.value, self().value, message.type));
  }
  wake();
}

bool Node::on_cancel(const fabric::Incoming& message) {
  CancelBody body;
  if (message.body.size() != sizeof body) return false;
  std::memcpy(&body, message.body.data(), sizeof body);
  if (body.region == 0 || body.what < static_cast<std::uint32_t>(Cancels::kParallel) ||
      body.what > static_cast<std::uint32_t>(Cancels::kLoop)) {
    return false;
  }
  // Of a region that is over, or has not begun here: the flags know (D1).
  team_.cancels().raise(static_cast<Cancels>(body.what), {body.region, body.number});
  return true;
}

// Whether `message` is a Body, and `handle` takes it.
template <typename Body, typename Handle>
static bool is_taken(const fabric::Incoming& message, Handle handle) {
  Body body;
  if (message.body.size() != sizeof body) return false;
  std::memcpy(&body, message.body.data(), sizeof body);
  return body.number != 0 && handle(body);
}

bool Node::others_hold() const { return home_call_ != nullptr && home_call_->is_held(); }

void Node::let_others_go() { home_call_->let_go(); }

bool Node::on_home_call(const fabric::Incoming& message) {
  Halt& halt = team_.halt();
  if (home_call_ != nullptr) {
    switch (message.type) {
      case kSeenMessage:
        return is_taken<SeenBody>(message, [&](const SeenBody& body) {
          return home_call_->on_seen(message.from, body);
        });
      case kHaltedMessage:
        return is_taken<HaltedBody>(message, [&](const HaltedBody& body) {
          return home_call_->on_halted(message.from, body);
        });
      default:
        return false;
    }
  }
  if (message.from != base::kOrigin) return false;
  switch (message.type) {
    case kLookMessage:
      return is_taken<LookBody>(message, [&](const LookBody& body) { return halt.on_look(body); });
    case kHaltMessage:
      return is_taken<HaltBody>(message, [&](const HaltBody& body) { return halt.on_halt(body); });
    case kVerdictMessage:
      return is_taken<VerdictBody>(message,
                                   [&](const VerdictBody& body) { return halt.on_verdict(body); });
    default:
      return false;
  }
}

bool Node::on_single(const fabric::Incoming& message) {
  SingleBody body;
  if (message.body.size() != sizeof body) return false;
  std::memcpy(&body, message.body.data(), sizeof body);
  if (body.region != team_.region()) {
    // News may overtake the region's begin on this node; without them its threads ask. Questions
    // and answers are always about the region that runs: its end waits for those who ask.
    return message.type == kTakenMessage && message.from == base::kOrigin;
  }
  if (message.type == kClaimMessage) {
    if (self() != base::kOrigin) return false;
    body.granted = team_.singles().claim(body.number) ? 1 : 0;
    send(message.from, kAnswerMessage, fabric::bytes_of(body));
    return true;
  }
  if (message.from != base::kOrigin) return false;
  if (message.type == kAnswerMessage) {
    return team_.singles().answer(body.local_id, body.number, body.granted != 0);
  }
  team_.singles().tell(body.number);
  return true;
}

void Node::wake() {
  // Both sequentially consistent, partner: wait_until. Either the sleeper sees the new count, or
  // this sees the sleeper.
  bell_.rung.fetch_add(1, std::memory_order_seq_cst);
  if (bell_.sleepers.load(std::memory_order_seq_cst) != 0) {
    os::futex_wake_shared(bell_.rung, 1 << 30);
  }
}

void Node::peer_lost(NodeId peer, std::string_view why) {
  base::log_line(base::LogLevel::kInfo, "node {} is lost: {}", peer.value, why);
  if (lost_.load(std::memory_order_relaxed) == 0) {  // written on this thread only
    why_lost_ = why;
    lost_at_ = os::monotonic_now();
  }
  lost_.fetch_or(std::uint64_t{1} << peer.value, std::memory_order_release);  // partner: waits
  wake();
}

Node::Patience Node::begin_wait(Nanos spin, const char* what, int waits_for) {
  // Posts on the board need no help. It also costs a switch to the service thread at the end, so
  // that a wait of a few microseconds is better off without.
  constexpr Nanos kOnlyLooking = 4 * base::kMicrosecond;
  const Nanos now = os::monotonic_now();
  services_.note_pause();
  if (locks_ != nullptr) locks_->note_pause(now);
  Nanos help_from = now;
  if (board_ != nullptr) {
    // Who shares its core leaves messages to the service thread, which runs when there are any.
    help_from = now + (board_->cores_are_shared() ? spin : kOnlyLooking);
  }
  return {.wait = {services_, self(), settings_.watchdog, {.what = what, .node = waits_for}, now},
          .help_from = help_from,
          .spin_until = now + spin};
}

void Node::end_wait(Patience& patience) {
  if (patience.helping) services_.end_help();
  patience.helping = false;
}

bool Node::spin_round(Patience& patience) {
  const Nanos now = os::monotonic_now();
  if (now >= patience.spin_until) {
    end_wait(patience);
    return false;
  }
  if (now >= patience.help_from) {
    if (!patience.helping) services_.begin_help();
    patience.helping = true;
    services_.help();
  } else if (board_->cores_are_shared()) {
    if (yields_core(now)) return true;  // to the node that is waited for, perhaps
    end_wait(patience);
    return false;
  } else {
    os::pause_core();
  }
  return true;
}

bool Node::yields_core(Nanos now) {
  if (!yield_pause_.may_yield(now)) return false;
  os::yield_core();
  yield_pause_.note(now, os::monotonic_now());
  return true;
}

// How long until a peer's loss ends the job; -1: there was none.
Nanos Node::time_to_judge_loss(Nanos now) {
  const std::uint64_t lost = lost_.load(std::memory_order_acquire);  // partner: peer_lost
  if (lost == 0) return -1;
  const Nanos left = lost_at_ + kGrace - now;
  if (left <= 0) {
    services_.abort_job(fmt::format("node {} was lost while node {} waited for others: {}",
                                    std::countr_zero(lost), self().value, why_lost_));
  }
  return left;
}

void Node::sleep_round(Patience& patience, std::uint32_t rung) {
  // What a region waits for does not come once the origin has ended.
  const bool in_region = regions_here_.load(std::memory_order_relaxed) != 0;
  if (in_region && mailbox_.has_serve_end()) services_.leave_job();
  const Nanos now = os::monotonic_now();
  const Nanos told = patience.wait.tell(now);
  const Nanos judged = time_to_judge_loss(now);
  const Nanos timeout = told < 0 || judged < 0 ? std::max(told, judged) : std::min(told, judged);
  os::futex_wait_shared(bell_.rung, rung, timeout);
}

}  // namespace amasia::omp
