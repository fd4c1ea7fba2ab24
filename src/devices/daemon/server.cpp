// SPDX-License-Identifier: Apache-2.0
#include "devices/daemon/server.hpp"

#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "devices/daemon/connection.hpp"

namespace amasia::devices {
namespace {

constexpr std::uint64_t kListeningTag = 0, kStopTag = 2;
// Records of one client in a row, so that the others get their turn.
constexpr std::uint32_t kBatch = 128;
// How often sockets are looked at while the rings are never empty.
constexpr Nanos kSocketInterval = base::kMillisecond;
// How long the end of a task may lie in a ring while tasks are queued; while none is.
constexpr Nanos kLookWhileQueued = base::kMillisecond;
constexpr Nanos kLookWhileGranted = 100 * base::kMillisecond;
// How long a task may be under way before it is asked whether its program is stopped, and how often
// that is asked.
constexpr Nanos kStoppedAfter = 100 * base::kMillisecond;

}  // namespace

Server::Server(ServerSettings settings, os::Descriptor listening, std::unique_ptr<Policy> policy,
               TaskSink* sink)
    : settings_(std::move(settings)),
      listening_(std::move(listening)),
      state_(std::move(policy)),
      sink_(sink) {}

Server::~Server() = default;

Status Server::prepare(StopSource& stop) {
  auto poll = os::EventPoll::make();
  if (!poll.ok()) return poll.error();
  poll_ = std::move(poll).value();
  if (auto done = os::set_nonblocking(listening_.get()); !done.ok()) return done;
  if (auto done = poll_.add(listening_.get(), kListeningTag); !done.ok()) return done;
  return poll_.add(stop.descriptor(), kStopTag);
}

Status Server::run(StopSource& stop) {
  if (auto done = prepare(stop); !done.ok()) return done;
  Nanos now = os::monotonic_now();
  Nanos busy_until = now, looked_at_sockets = now;
  idle_since_ = now;
  std::vector<std::uint64_t> ready;
  while (!end_now_) {
    now = os::monotonic_now();
    if (read_rings(now)) busy_until = now + time_to_look();
    const bool looks = patience_.lasts(now, busy_until);
    if (looks && now - looked_at_sockets < kSocketInterval) {
      const Nanos before = os::monotonic_now();
      os::yield_core();  // what is waited for may need this core
      patience_.note(before, os::monotonic_now());
      continue;
    }
    looked_at_sockets = now;
    ready.clear();
    bool asleep = !looks;
    for (auto& [tag, connection] : connections_) {
      if (!asleep) break;
      if (connection->incoming.has_value() &&
          !connection->incoming->may_sleep(state_.least_urgency(connection->client))) {
        asleep = false;
      }
    }
    poll_.wait(asleep ? sleep_limit(now) : 0, &ready);
    for (auto& [tag, connection] : connections_) {
      if (connection->incoming.has_value()) connection->incoming->wake();
    }
    now = os::monotonic_now();
    // What was not urgent counts before questions are answered.
    if (read_rings(now)) busy_until = now + time_to_look();
    handle_ready(ready, stop);
    look_for_stopped(now);
    decide(now);
    if (idle_over(now) || drain_over(now)) break;
  }
  remove_socket();
  connections_.clear();  // that is how clients learn of it
  return base::ok();
}

// While tasks are queued the devices have work, and nobody waits for an answer: looking would only
// take a core from the kernels. It lets others have it between two looks, but a daemon in a session
// of its own is scheduled as a group, which gets it back at once.
Nanos Server::time_to_look() const { return state_.has_queued() ? 0 : settings_.spin; }

bool Server::read_rings(Nanos now) {
  bool any = false;
  somebody_asks_ = false;
  for (auto& [tag, connection] : connections_) any |= read_ring(*connection, now);
  if (any) decide(now);
  return somebody_asks_;
}

void Server::decide(Nanos now) {
  state_.schedule(now, effects_);
  carry_out(effects_);
  flush_all();
  if (complained_) return;
  if (const std::string complaint = state_.policy().complaint(); !complaint.empty()) {
    base::log_line(base::LogLevel::kWarning, "the policy is dismissed: {}", complaint);
    complained_ = true;
  }
}

bool Server::read_ring(Connection& connection, Nanos now) {
  if (connection.phase != Connection::Phase::kServed) return false;
  Record record;
  for (std::uint32_t i = 0; i < kBatch; ++i) {
    switch (connection.incoming->pop(&record)) {
      case RingState::kNothing:
        return i > 0;
      case RingState::kCorrupt:
        disconnect(connection.tag, "the counts of its ring make no sense");
        return true;
      case RingState::kOk:
        somebody_asks_ |= record.kind() != RecordKind::kRan;
        state_.step(Received{connection.client, record}, now, effects_);
        carry_out(effects_);
        if (connection.phase != Connection::Phase::kServed) return true;
    }
  }
  return true;
}

// What lies in a client's ring, and nobody was woken for; it may go on writing: no more than a ring
// of it.
void Server::read_rest(Connection& connection) {
  const Nanos now = os::monotonic_now();
  for (std::uint32_t read = 0; read < kRingSlots && read_ring(connection, now); read += kBatch) {
  }
}

void Server::look_for_stopped(Nanos now) {
  if (now - looked_for_stopped_ < kStoppedAfter) return;
  looked_for_stopped_ = now;
  for (const ClientId client : state_.holding_up(now - kStoppedAfter)) {
    const Connection* connection = connection_of(client);
    if (connection == nullptr) continue;
    if (os::is_stopped_or_traced(connection->peer.pid)) {
      state_.step(Stopped{client}, now, effects_);
    } else {
      state_.step(Continued{client}, now, effects_);
    }
  }
}

Server::Connection* Server::connection_of(ClientId client) {
  const auto found = connections_.find(client.value);
  return found == connections_.end() ? nullptr : found->second.get();
}

void Server::carry_out(std::vector<Effect>& effects) {
  for (const Effect& effect : effects) {
    if (const auto* sent = std::get_if<Send>(&effect)) {
      Connection* connection = connection_of(sent->client);
      AMASIA_CHECK(connection != nullptr, "a record for a client that has left");
      connection->waiting.push_back(sent->record);
      connection->wrote = true;
    } else if (const auto* ended = std::get_if<TaskEnded>(&effect)) {
      if (sink_ != nullptr) {
        sink_->ended(*ended, state_.devices()[ended->device.value].description);
      }
    } else if (const auto* named = std::get_if<KernelNamed>(&effect)) {
      if (sink_ != nullptr) sink_->kernel_named(*named);
    } else {
      const auto& close = std::get<Close>(effect);
      disconnect(close.client.value, close.sentence);
    }
  }
  effects.clear();
}

void Server::flush(Connection& connection) {
  if (connection.phase != Connection::Phase::kServed) return;
  bool pushed = false;
  while (!connection.waiting.empty()) {
    const RingState state = connection.outgoing->push(connection.waiting.front());
    if (state == RingState::kCorrupt) {
      disconnect(connection.tag, "the counts of its ring make no sense");
      return;
    }
    if (state == RingState::kNothing) break;
    connection.waiting.pop_front();
    pushed = true;
  }
  if (pushed && connection.outgoing->publish()) connection.wakes_client.raise();
}

void Server::flush_all() {
  for (auto& [tag, connection] : connections_) {
    if (!connection->waiting.empty()) flush(*connection);
  }
  remove_closed();
}

Nanos Server::sleep_limit(Nanos now) const {
  // The last task may have ended among the records just read: nobody would wake it then.
  if (drain_began_ >= 0 && !state_.has_tasks()) return 0;
  Nanos limit = -1;
  const auto not_later = [&](Nanos when) {
    const Nanos left = std::max<Nanos>(when - now, 0);
    limit = limit < 0 ? left : std::min(limit, left);
  };
  if (const Nanos ask = state_.ask_again_at(); ask >= 0) not_later(ask);
  if (drain_began_ >= 0) not_later(drain_began_ + settings_.drain_limit);
  if (settings_.idle_end >= 0 && connections_.empty()) {
    not_later(idle_since_ + settings_.idle_end);
  }
  // Ends of tasks may lie in rings unsaid (ring.hpp, invariant D).
  if (state_.has_granted()) {
    not_later(now + (state_.has_queued() ? kLookWhileQueued : kLookWhileGranted));
  }
  if (state_.has_suspended()) not_later(now + kStoppedAfter);
  for (const auto& [tag, connection] : connections_) {
    // Nobody tells when a full ring has room again; that is rare, and short.
    if (!connection->waiting.empty()) not_later(now + base::kMillisecond);
  }
  return limit;
}

void Server::handle_ready(const std::vector<std::uint64_t>& ready, StopSource& stop) {
  for (const std::uint64_t tag : ready) {
    if (tag == kListeningTag) {
      accept_all();
    } else if (tag == kDoorbellTag) {
      // The rings are looked at after each sleep.
    } else if (tag == kStopTag) {
      stop.consume();
      if (drain_began_ >= 0) end_now_ = true;
      if (drain_began_ < 0) {
        drain_began_ = os::monotonic_now();
        // The next daemon may listen from now on.
        remove_socket();
        poll_.remove(listening_.get());
        listening_.close();
        state_.step(DrainBegins{}, drain_began_, effects_);
        carry_out(effects_);
      }
    } else if (connections_.contains(tag)) {
      read_packets(tag);
    }
  }
  remove_closed();
}

void Server::disconnect(std::uint64_t tag, const std::string& why) {
  const auto found = connections_.find(tag);
  if (found == connections_.end()) return;
  Connection& connection = *found->second;
  if (connection.phase == Connection::Phase::kClosed) return;
  if (!why.empty()) {
    // Its name may be any bytes.
    base::log_line(base::LogLevel::kWarning, "process {} ({}) is disconnected: {}",
                   connection.peer.pid, base::json_text(text_of(connection.hello.program)), why);
  }
  const bool served = connection.phase == Connection::Phase::kServed;
  connection.phase = Connection::Phase::kClosed;  // taken out later: this may be within a loop
  connection.waiting.clear();
  poll_.remove(connection.socket.get());
  // The client may have it open longer, and poll_ would go on telling of it.
  if (served) poll_.remove(connection.doorbell.descriptor());
  connection.socket.close();
  if (!served) return;
  std::vector<Effect> effects;
  state_.step(Left{connection.client}, os::monotonic_now(), effects);
  AMASIA_CHECK(effects.empty(), "a client that leaves is not answered");
  for (const std::string& name : segments_.leave(connection.client)) segment_memory_.erase(name);
  constexpr std::uint32_t kLost = 0x07;  // MCL_ERR_SRVCOMM
  answer(shared_tasks_.leave(connection.client, kLost));
}

void Server::remove_closed() {
  const std::size_t before = connections_.size();
  std::erase_if(connections_, [](const auto& one) {
    return one.second->phase == Connection::Phase::kClosed;
  });
  if (before > 0 && connections_.empty()) idle_since_ = os::monotonic_now();
}

bool Server::idle_over(Nanos now) {
  if (settings_.idle_end < 0 || !connections_.empty() || drain_began_ >= 0 ||
      now - idle_since_ < settings_.idle_end) {
    return false;
  }
  // From the removal on nobody new can connect; who has done so before is served.
  remove_socket();
  accept_all();
  if (connections_.empty()) return true;
  drain_began_ = now;
  state_.step(DrainBegins{}, now, effects_);
  carry_out(effects_);
  return false;
}

bool Server::drain_over(Nanos now) const {
  if (drain_began_ < 0) return false;
  if (now - drain_began_ >= settings_.drain_limit) {
    base::log_line(base::LogLevel::kWarning, "tasks are left after {} s of draining",
                   settings_.drain_limit / base::kSecond);
    return true;
  }
  return !state_.has_tasks();
}

void Server::remove_socket() {
  if (settings_.own_path.empty()) return;
  const std::filesystem::path path = std::exchange(settings_.own_path, {});
  const std::string directory = path.parent_path();
  // Clients that start a daemon hold this lock while they make the socket.
  const auto lock = os::lock_directory(directory);
  ::unlink(path.c_str());
  ::rmdir(directory.c_str());  // fails where something else is in it
}

}  // namespace amasia::devices
