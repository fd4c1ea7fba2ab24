// SPDX-License-Identifier: Apache-2.0
// The supervisor's part that talks to processes and starts peers.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "tools/supervisor.hpp"

namespace amasia::tools {
namespace {

using base::LogLevel;
using launch::Message;
using launch::MessageType;

constexpr std::size_t kMaxCallers = 256;  // processes between their connect and their join

}  // namespace

void Supervisor::accept_all(int listener) {
  while (callers_.size() < kMaxCallers) {
    auto accepted = os::accept_connection(listener);
    if (!accepted.ok()) return;
    callers_.push_back(std::move(accepted).value());
  }
}

void Supervisor::hear_all(os::Descriptor& connection) {
  constexpr int kMostInARow = 16;  // a node that never stops talking must not stop the others
  for (int i = 0; i < kMostInARow && connection.valid(); ++i) {
    pollfd ready{connection.get(), POLLIN, 0};
    if (::poll(&ready, 1, 0) <= 0) return;
    hear(connection);
  }
}

// Reads one message from a node or a caller. Closes the connection of who is gone or talks wrongly.
void Supervisor::hear(os::Descriptor& connection) {
  Message message;
  auto packet =
      os::receive_packet(connection.get(), std::as_writable_bytes(std::span(&message, 1)));
  LocalNode* node = nullptr;
  if (session_) {
    for (LocalNode& one : session_->nodes()) {
      if (&one.connection == &connection) node = &one;
    }
  }
  const bool gone = !packet.ok() || packet.value().size == 0;
  const char* wrong = gone ? "it has closed" : launch::malformed(message, packet.value().size);
  if (wrong != nullptr) {
    if (!gone) base::log_line(LogLevel::kInfo, "a message to the launcher is refused: {}", wrong);
    connection.close();
    if (node != nullptr) node_left(*node);
    return;
  }
  if (node != nullptr) {
    return node_says(*node, message, std::move(packet.value().descriptors));
  }
  if (message.type != MessageType::kJoin) return connection.close();
  join(std::move(connection), std::move(packet.value().descriptors));
}

void Supervisor::join(os::Descriptor connection, std::vector<os::Descriptor> outputs) {
  const auto peer = os::peer_of(connection.get());
  if (!peer.ok() || peer.value().uid != ::getuid() || peer.value().pid == 0) {
    return tell_alone(connection,
                      "an OpenMP program of another user or process namespace runs on "
                      "the origin alone");
  }
  if (session_ && session_->state() == SessionState::kDraining) {
    // A program that follows the last one: what is left of that need not be waited for.
    if (session_->node_of(peer.value().pid) == nullptr ||
        session_->origin() == session_->node_of(peer.value().pid)) {
      close_session();
    }
  }
  if (!session_) {
    // A peer whose session has closed before it came: it has been killed.
    if (std::ranges::find(started_peers_, peer.value().pid) != started_peers_.end()) return;
    return start_session(std::move(connection), peer.value(), std::move(outputs));
  }
  LocalNode* node = session_->node_of(peer.value().pid);
  if (node != nullptr && !node->joined && !node->ended) {
    const Status admitted =
        session_->admit(*node, std::move(connection), settings_.cpu_group_of(node->id));
    if (!admitted.ok()) fail(kExitUsage, admitted.error().message);
    return;
  }
  // A child of the origin, or a second program beside it. Not worth a word: many programs start
  // small ones.
  tell_alone(connection, "");
}

void Supervisor::tell_alone(const os::Descriptor& connection, const std::string& why) {
  Message answer;
  answer.type = MessageType::kAlone;
  answer.set_text(why);
  static_cast<void>(os::send_packet(connection.get(), std::as_bytes(std::span(&answer, 1)), {}));
  if (!why.empty()) base::log_line(LogLevel::kWarning, "{}", why);
}

Status Supervisor::open_session() {
  const Nanos limit = settings_.options.start_timeout_s * base::kSecond;
  auto opened = Session::open(source_, os::monotonic_now() + limit);
  if (!opened.ok()) return opened.error();
  session_ = std::move(opened).value();
  had_session_ = true;
  next_look_ = os::monotonic_now() + settings_.options.watchdog_s * base::kSecond;
  return base::ok();
}

void Supervisor::start_session(os::Descriptor connection, const os::Peer& peer,
                               std::vector<os::Descriptor> outputs) {
  if (!source_.runs_command()) return tell_alone(connection, "");
  if (had_session_ && !source_.can_repeat()) {
    return tell_alone(connection,
                      fmt::format("process {} runs on the origin alone: under PMIx only the first "
                                  "OpenMP program of a command runs across nodes",
                                  peer.pid));
  }
  auto watch = os::watch_process(peer.pid);
  auto image = os::image_of(peer.pid);
  if (!watch.ok() || !image.ok()) {
    const std::string& why = watch.ok() ? image.error().message : watch.error().message;
    return tell_alone(connection,
                      fmt::format("process {} runs on the origin alone: {}", peer.pid, why));
  }
  Status done = open_session();
  if (done.ok()) {
    LocalNode& origin = *session_->origin();
    origin.process = peer.pid;
    note_started(peer.pid);
    origin.watch = std::move(watch).value();
    // Peers first: they start while the origin gets its answer.
    done = start_peers(image.value(), std::move(outputs));
    if (done.ok()) done = source_.announce(image.value());
    if (done.ok()) {
      done = session_->admit(origin, std::move(connection), settings_.cpu_group_of(origin.id));
    }
  }
  if (!done.ok()) fail(kExitUsage, done.error().message);
}

void Supervisor::note_started(pid_t node) {
  started_nodes_.push_back(node);
  settings_.node_started(node);
}

Status Supervisor::start_peers(const os::ProcessImage& image,
                               std::vector<os::Descriptor> outputs) {
  program_outputs_ = std::move(outputs);
  const os::Descriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  os::SpawnRequest request;
  request.executable = image.executable;
  request.arguments = image.arguments;
  request.environment = image.environment;
  request.working_directory = image.working_directory;
  request.limits = image.limits;
  request.file_mode_mask = image.file_mode_mask;
  request.standard_input = nothing.get();
  if (program_outputs_.size() == 2) {
    request.standard_output = program_outputs_[0].get();
    request.standard_error = program_outputs_[1].get();
  }
  request.own_process_group = true;
  request.randomised = false;
  for (LocalNode& node : session_->nodes()) {
    if (node.id == base::kOrigin) continue;
    request.cores = settings_.cores_of(node.id);
    request.network_namespace = settings_.namespace_of(node.id);
    auto started = os::spawn(request);
    if (!started.ok()) {
      return Error{fmt::format("node {}: {}", node.id.value, started.error().message),
                   started.error().code};
    }
    node.process = started.value();
    started_peers_.push_back(node.process);
    note_started(node.process);
  }
  return base::ok();
}

void Supervisor::take_word() {
  auto word = source_.word();
  word_taken_ = true;
  if (!word.ok()) return fail(kExitUsage, word.error().message);
  if (!word.value()) return;  // nothing to start
  Status done = open_session();
  if (done.ok()) done = start_peers(*word.value(), {});
  if (!done.ok()) fail(kExitUsage, done.error().message);
}

void Supervisor::node_says(LocalNode& node, const Message& message,
                           std::vector<os::Descriptor> descriptors) {
  switch (message.type) {
    case MessageType::kReady:
      session_->mark_ready(node, std::move(descriptors));
      return;
    case MessageType::kFinishing:
      if (node.id == base::kOrigin || session_->origin() == nullptr) session_->mark_finishing();
      return;
    case MessageType::kFailed: {
      if (session_->state() == SessionState::kDraining) return;
      const bool starting = session_->state() == SessionState::kStarting;
      suspect(node.id, starting ? kExitUsage : kExitNodeLost,
              fmt::format("node {}: {}", node.id.value, message.text_view()));
      return;
    }
    case MessageType::kJoin:
    case MessageType::kMembership:
    case MessageType::kAlone:
      base::log_line(LogLevel::kInfo, "node {} sent a message that is not its to send",
                     node.id.value);
      return;
  }
}

// What lost nodes had written and not sent on to the origin.
void Supervisor::write_last_words() {
  if (!session_) return;
  for (LocalNode& node : session_->nodes()) {
    if (!node.ended) continue;
    for (std::size_t i = 0; i < node.outputs.size() && i < 4; ++i) {
      const std::size_t stream = i / 2;
      const int to = program_outputs_.size() == 2 ? program_outputs_[stream].get()
                                                  : (stream == 0 ? STDOUT_FILENO : STDERR_FILENO);
      os::pass_on(node.outputs[i].get(), to);
    }
    node.outputs.clear();
  }
}

void Supervisor::node_left(LocalNode& node) {
  // A peer's end is told by the kernel. The origin's process is about to end, which the kernel will
  // tell as well, or goes on as another program (exec): then nobody will.
  if (node.id == base::kOrigin) drain();
}

void Supervisor::close_session() {
  if (!session_) return;
  tell_peers(SIGKILL);
  session_.reset();
  program_outputs_.clear();  // who reads from a pipe waits until the last one has closed it
  if (!source_.runs_command()) word_taken_ = true;
}

}  // namespace amasia::tools
