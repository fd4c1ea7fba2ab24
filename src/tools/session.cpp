// SPDX-License-Identifier: Apache-2.0
#include "tools/session.hpp"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>

namespace amasia::tools {
namespace {

// Why a node shows no progress, where its process tells.
const char* what_holds(pid_t process) {
  if (process == 0) return "";
  if (os::is_stopped(process)) return ", stopped by a signal";
  if (os::waits_in_kernel(process, "amasia-engine", "handle_userfault")) {
    return "; its engine's thread waits for a page that it would have to fetch itself, which is a "
           "mistake of Amasia's";
  }
  return "";
}

}  // namespace

Result<std::unique_ptr<Session>> Session::open(JobSource& source, Nanos deadline) {
  auto wiring = source.wire();
  if (!wiring.ok()) return wiring.error();
  auto board = launch::JobBoard::create();
  if (!board.ok()) return board.error();
  std::unique_ptr<Session> session(new Session(source.node_count(), std::move(wiring).value(),
                                               std::move(board).value(), deadline));
  const std::vector<NodeId> local = source.local_nodes();
  AMASIA_CHECK(local.size() == session->wiring_.node_ends.size(),
               "each local node has one end of a bootstrap socket");
  for (std::size_t i = 0; i < local.size(); ++i) {
    LocalNode node;
    node.id = local[i];
    node.bootstrap = std::move(session->wiring_.node_ends[i]);
    session->nodes_.push_back(std::move(node));
  }
  return session;
}

LocalNode* Session::node_of(pid_t process) {
  const auto found = std::find_if(nodes_.begin(), nodes_.end(), [&](const LocalNode& node) {
    return node.process == process && process != 0;
  });
  return found == nodes_.end() ? nullptr : &*found;
}

LocalNode* Session::origin() {
  return nodes_.front().id == base::kOrigin ? &nodes_.front() : nullptr;
}

Status Session::admit(LocalNode& node, os::Descriptor connection,
                      const std::string& cpu_group) {
  AMASIA_CHECK(!node.joined, "a node joins once");
  auto lifeline = os::make_pipe();
  if (!lifeline.ok()) return lifeline.error();
  launch::Message answer;
  answer.type = launch::MessageType::kMembership;
  answer.node = node.id.value;
  answer.node_count = node_count_;
  answer.set_text(cpu_group);
  std::array<int, launch::kMembershipDescriptors> handed{};
  handed[static_cast<int>(launch::MembershipDescriptor::kBootstrap)] = node.bootstrap.get();
  handed[static_cast<int>(launch::MembershipDescriptor::kBoard)] = board_.descriptor();
  handed[static_cast<int>(launch::MembershipDescriptor::kLifeline)] = lifeline.value().first.get();
  // Relaxed: the node only writes states that come after this one, once it has the answer.
  board_.slot(node.id).state.store(launch::NodeState::kStarting, std::memory_order_relaxed);
  const Status sent =
      os::send_packet(connection.get(), std::as_bytes(std::span(&answer, 1)), handed);
  if (!sent.ok()) return sent;
  node.bootstrap.close();
  node.lifeline = std::move(lifeline.value().second);
  node.connection = std::move(connection);
  node.joined = true;
  return base::ok();
}

void Session::mark_ready(LocalNode& node, std::vector<os::Descriptor> outputs) {
  node.ready = true;
  node.outputs = std::move(outputs);
  if (state_ != SessionState::kStarting) return;
  const bool all = std::all_of(nodes_.begin(), nodes_.end(), [](const auto& n) { return n.ready; });
  if (all) state_ = SessionState::kRunning;
}

void Session::mark_finishing() {
  if (state_ == SessionState::kDraining) return;
  state_ = SessionState::kFinishing;
  in_order_ = true;
}

void Session::mark_draining() { state_ = SessionState::kDraining; }

std::string Session::missing() const {
  std::string out;
  const auto add = [&](const LocalNode& node, const char* what) {
    if (!out.empty()) out += ", ";
    out += fmt::format("node {} (process {}) {}", node.id.value, node.process, what);
  };
  // Who has not even joined is the cause; the others then wait for it.
  for (const LocalNode& node : nodes_) {
    if (!node.joined) add(node, "has not started");
  }
  if (!out.empty()) return out;
  for (const NodeId absent : wiring_.service->missing_from_fence()) {
    for (const LocalNode& node : nodes_) {
      if (node.id == absent) add(node, "has not met the others");
    }
  }
  if (!out.empty()) return out;
  for (const LocalNode& node : nodes_) {
    if (!node.ready) add(node, "is not ready");
  }
  return out;
}

std::string Session::judge_end(const LocalNode& node, int status) const {
  if (state_ == SessionState::kDraining && node.id != base::kOrigin) return {};
  std::string how;
  if (WIFSIGNALED(status)) {
    how = "was killed by " + os::signal_name(WTERMSIG(status));
    if (WTERMSIG(status) == SIGKILL && kills_for_memory() > kills_for_memory_) {
      how += " (the system had no memory left)";
    }
  } else {
    const int code = WEXITSTATUS(status);
    // Where the origin is on another host, only the node itself knows whether it was told to leave.
    const bool told = state_ == SessionState::kFinishing || nodes_.front().id != base::kOrigin;
    if (code == 0 && told && state_ != SessionState::kStarting) return {};
    how = fmt::format("ended with exit code {}", code);
  }
  return fmt::format("node {} (process {}) {} while it was {}; the job ends", node.id.value,
                     node.process, how, board_.describe(node.id));
}

bool Session::is_programs_end(const LocalNode& node, int signal) {
  switch (signal) {
    case SIGABRT:
    case SIGBUS:
    case SIGFPE:
    case SIGILL:
    case SIGSEGV:
    case SIGSYS:
    case SIGTRAP:
    case SIGXCPU:
    case SIGXFSZ:
      return true;
    default:
      return board_.slot(node.id).raised.load(std::memory_order_relaxed) == signal;
  }
}

std::uint64_t Session::progress() const {
  std::uint64_t sum = 0;
  for (const LocalNode& node : nodes_) {
    sum += board_.slot(node.id).progress.load(std::memory_order_relaxed);
  }
  return sum;
}

std::vector<std::string> Session::describe() const {
  std::vector<std::string> out;
  for (const LocalNode& node : nodes_) {
    out.push_back(fmt::format("node {} (process {}) is {}{}", node.id.value, node.process,
                              board_.describe(node.id), what_holds(node.process)));
  }
  return out;
}

}  // namespace amasia::tools
