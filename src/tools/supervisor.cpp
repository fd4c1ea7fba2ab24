// SPDX-License-Identifier: Apache-2.0
#include "tools/supervisor.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "tools/leftovers.hpp"

namespace amasia::tools {
namespace {

using base::LogLevel;

constexpr Nanos kSuspicionTime = base::kSecond;
// Shorter than the time after which the origin takes a lost node for the end.
constexpr Nanos kLastWordsTime = base::kSecond / 5;
// How long peers may take to leave once the origin has ended in order.
constexpr Nanos kDrainTime = base::kSecond;

// Ends that a user asked for, or that shells do not report either.
bool is_quiet(int signal) {
  switch (signal) {
    case SIGINT:
    case SIGTERM:
    case SIGHUP:
    case SIGQUIT:
    case SIGPIPE:
    case SIGUSR1:
    case SIGUSR2:
      return true;
    default:
      return false;
  }
}

Outcome outcome_of(int status) {
  if (WIFSIGNALED(status)) return {.exit_code = 128 + WTERMSIG(status), .signal = WTERMSIG(status)};
  return {.exit_code = WEXITSTATUS(status), .signal = 0};
}

}  // namespace

Supervisor::Supervisor(SupervisorSettings settings, JobSource& source)
    : settings_(std::move(settings)), source_(source) {}

Supervisor::~Supervisor() = default;

Outcome Supervisor::run() {
  Status begun = os::adopt_orphans();
  if (begun.ok() && source_.runs_command()) begun = start_command();
  if (!begun.ok()) fail(kExitUsage, begun.error().message);
  while (!finished()) poll_once();
  const bool complete = !failure_ && source_.runs_command();
  close_session();
  end_descendants(settings_.keeper);
  for (const pid_t node : started_nodes_) remove_segments_of(node);
  if (command_ > 0) remove_segments_of(command_);  // may be an OpenMP program, and no node
  if (failure_) return *failure_;
  if (!complete) return {};
  if (!had_session_ && !settings_.is_plain) {
    if (const Status told = source_.announce(std::nullopt); !told.ok()) {
      base::log_line(LogLevel::kWarning, "{}", told.error().message);
    }
    // 126 and 127 are a shell's or the loader's word that there was nothing to run.
    const Outcome outcome = outcome_of(*command_status_);
    if (outcome.signal == 0 && outcome.exit_code != 126 && outcome.exit_code != 127) {
      base::log_line(LogLevel::kWarning,
                     "'{}' ran on the origin alone: nothing that it started is linked to an OpenMP "
                     "runtime (libomp or libgomp), or has made itself a node "
                     "(amasia-tasks-nodes)",
                     settings_.command_name);
    }
  }
  return outcome_of(*command_status_);
}

Status Supervisor::start_command() {
  os::SpawnRequest request = settings_.command;
  request.randomised = settings_.is_plain;
  request.cores = settings_.cores_of(base::kOrigin);
  if (settings_.is_plain) request.cpu_group = settings_.cpu_group_of(base::kOrigin);
  request.network_namespace = settings_.namespace_of(base::kOrigin);
  // At a terminal the command stays in our process group: the terminal tells it of Ctrl-C and
  // Ctrl-Z, and it may read. Elsewhere a group of its own keeps a signal that someone sends to our
  // whole group from reaching it twice.
  command_group_ = !os::has_terminal();
  request.own_process_group = command_group_;
  auto started = os::spawn(request);
  if (!started.ok()) return started.error();
  command_ = started.value();
  return base::ok();
}

bool Supervisor::finished() const {
  if (failure_) return true;
  if (session_ || suspicion_ || loss_) return false;
  return source_.runs_command() ? command_status_.has_value() : word_taken_;
}

int Supervisor::time_to_deadline() const {
  Nanos earliest = INT64_MAX;
  if (suspicion_) earliest = std::min(earliest, suspicion_->until);
  if (loss_) earliest = std::min(earliest, loss_->until);
  if (session_ && session_->state() == SessionState::kStarting) {
    earliest = std::min(earliest, session_->deadline());
  }
  if (session_ && session_->state() == SessionState::kDraining) {
    earliest = std::min(earliest, drain_until_);
  }
  if (session_ && settings_.options.watchdog_s > 0) earliest = std::min(earliest, next_look_);
  if (earliest == INT64_MAX) return -1;
  const Nanos left = std::max<Nanos>(0, earliest - os::monotonic_now());
  return static_cast<int>(std::min<Nanos>(left / base::kMillisecond + 1, 1000 * 1000));
}

void Supervisor::poll_once() {
  std::vector<pollfd> waits;
  const auto wait_for = [&](int descriptor) { waits.push_back({descriptor, POLLIN, 0}); };
  wait_for(settings_.signals.descriptor());
  for (const os::Descriptor& listener : settings_.listeners) wait_for(listener.get());
  wait_for(word_taken_ ? -1 : source_.word_descriptor());
  std::vector<int> served;
  if (session_) {
    for (const LocalNode& node : session_->nodes()) {
      wait_for(node.watch.get());  // poll skips those below 0
      wait_for(node.connection.get());
    }
    served = session_->service().descriptors();
    for (const int descriptor : served) wait_for(descriptor);
  }
  for (const os::Descriptor& caller : callers_) wait_for(caller.get());
  if (::poll(waits.data(), waits.size(), time_to_deadline()) < 0 && errno != EINTR) {
    return fail(kExitNodeLost, base::errno_error(errno, "cannot wait for the nodes").message);
  }
  const auto is_ready = [&](int descriptor) {
    return std::any_of(waits.begin(), waits.end(), [&](const pollfd& wait) {
      return wait.fd == descriptor && wait.fd >= 0 && wait.revents != 0;
    });
  };
  // What nodes say comes before their ends, which it explains; and before new callers: a process
  // that runs another program closes its old connection before it calls again.
  for (std::size_t i = 0; session_ && i < session_->nodes().size(); ++i) {
    if (is_ready(session_->nodes()[i].connection.get())) hear_all(session_->nodes()[i].connection);
  }
  const bool origin_gone =
      session_ && session_->origin() != nullptr && is_ready(session_->origin()->watch.get());
  read_signals();
  if (session_ && origin_gone) origin_ended();
  for (const int descriptor : served) {
    if (!session_ || !is_ready(descriptor)) continue;
    if (const Status done = session_->service().serve(descriptor); !done.ok()) {
      base::log_line(LogLevel::kInfo, "bootstrap: {}", done.error().message);
    }
  }
  for (std::size_t i = 0; i < callers_.size(); ++i) {
    if (is_ready(callers_[i].get())) hear(callers_[i]);
  }
  std::erase_if(callers_, [](const os::Descriptor& caller) { return !caller.valid(); });
  for (const os::Descriptor& listener : settings_.listeners) {
    if (!failure_ && is_ready(listener.get())) accept_all(listener.get());
  }
  if (!word_taken_ && is_ready(source_.word_descriptor())) take_word();
  check_deadlines();
}

void Supervisor::read_signals() {
  while (const auto signal = settings_.signals.next()) {
    if (signal->number != SIGCHLD) forward(*signal);
  }
  reap();  // always: a SIGCHLD may stand for several
}

void Supervisor::forward(const os::ReceivedSignal& signal) {
  if (!source_.runs_command()) {
    // The command is elsewhere, and hears of it from whoever told us: mpirun tells all.
    if (is_quiet(signal.number) && signal.number != SIGUSR1 && signal.number != SIGUSR2) {
      failure_ = {.exit_code = 128 + signal.number, .signal = signal.number};
    }
    return;
  }
  if (command_ == 0 || command_status_) return;
  if (command_group_) {
    ::kill(-command_, signal.number);
  } else if (!signal.from_kernel) {
    ::kill(command_, signal.number);
  }
}

void Supervisor::tell_peers(int signal) {
  if (!session_) return;
  for (const LocalNode& node : session_->nodes()) {
    if (node.id != base::kOrigin && node.process != 0 && !node.ended) ::kill(node.process, signal);
  }
}

void Supervisor::command_stopped(int signal) {
  tell_peers(SIGSTOP);
  // At a terminal the shell waits for us, not for the command. Whatever continues us reaches the
  // command as well: the terminal's process group, or forward().
  if (!command_group_ && signal != SIGSTOP) os::stop_self(signal);
}

void Supervisor::reap() {
  std::vector<Ended> ended;
  int stopped_by = 0;
  while (true) {
    int status = 0;
    const pid_t process = ::waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED);
    if (process <= 0) break;
    if (WIFSTOPPED(status) || WIFCONTINUED(status)) {
      if (process != command_) continue;
      stopped_by = WIFSTOPPED(status) ? WSTOPSIG(status) : 0;
      if (stopped_by == 0) tell_peers(SIGCONT);
      continue;
    }
    ended.push_back({process, status});
    if (process == command_) command_status_ = status;
  }
  judge(ended);
  if (stopped_by != 0 && !command_status_) command_stopped(stopped_by);
}

void Supervisor::judge(const std::vector<Ended>& ended) {
  if (!session_) return;
  const LocalNode* origin = session_->origin();
  for (const Ended& one : ended) {
    LocalNode* node = session_->node_of(one.process);
    if (node == nullptr || node->ended || node == origin) continue;
    hear_all(node->connection);  // its last words may have come since we looked
    node->ended = true;
    const std::string lost = session_->judge_end(*node, one.status);
    if (lost.empty()) continue;
    if (WIFSIGNALED(one.status)) {
      // Nobody but us kills peers, so this is a cause and no consequence.
      // Only the origin's launcher ends as the program did: mpirun takes a rank that dies of a
      // signal for one that crashed, and says so beside our sentence.
      const bool by_itself =
          source_.runs_command() && session_->is_programs_end(*node, WTERMSIG(one.status));
      lose(by_itself ? outcome_of(one.status) : Outcome{kExitNodeLost}, lost);
    } else {
      const bool starting = session_->state() == SessionState::kStarting;
      suspect(node->id, starting ? kExitUsage : kExitNodeLost, lost);
    }
  }
  for (const Ended& one : ended) {
    if (origin == nullptr || one.process != origin->process || origin->ended) continue;
    report_origin(*origin, one.status);
    origin_ended();
  }
}

void Supervisor::suspect(NodeId who, int exit_code, std::string sentence) {
  if (suspicion_) {
    // What came first is nearer to the cause. But where the origin complains as well, that was no
    // consequence of its end, for which drain() takes it.
    if (who == base::kOrigin) suspicion_->who = who;
    return;
  }
  suspicion_ = {who, std::move(sentence), exit_code, os::monotonic_now() + kSuspicionTime};
}

void Supervisor::report_origin(const LocalNode& origin, int status) {
  if (!WIFSIGNALED(status) || is_quiet(WTERMSIG(status)) || failure_) return;
  if (const std::string what = session_->judge_end(origin, status); !what.empty()) {
    base::log_line(LogLevel::kError, "{}", what);
  }
}

void Supervisor::origin_ended() {
  LocalNode* origin = session_->origin();
  if (origin == nullptr || origin->ended) return;
  hear_all(origin->connection);  // its last words may have come since we looked
  origin->ended = true;
  origin->connection.close();
  origin->watch.close();
  drain();
}

// Whether the origin goes on although the command has ended: a shell left it in the background.
bool Supervisor::origin_is_left() {
  LocalNode* origin = session_->origin();
  if (origin == nullptr || origin->ended) return false;
  if (!os::has_ended(origin->watch.get())) return true;
  origin_ended();  // between two looks
  return false;
}

void Supervisor::drain() {
  // Whatever another node complained about was this.
  if (suspicion_ && suspicion_->who != base::kOrigin) suspicion_.reset();
  if (session_->state() == SessionState::kDraining) return;
  session_->mark_draining();
  drain_until_ = os::monotonic_now() + kDrainTime;
}

void Supervisor::check_deadlines() {
  const Nanos now = os::monotonic_now();
  if (loss_ && now >= loss_->until && !failure_) return fail(loss_->outcome, loss_->sentence);
  if (suspicion_ && now >= suspicion_->until && !failure_) {
    // By now it is known whether all nodes had come up.
    const bool running = session_ && session_->state() != SessionState::kStarting;
    return fail(running ? kExitNodeLost : suspicion_->exit_code, suspicion_->sentence);
  }
  if (!session_) return;
  if (session_->state() == SessionState::kStarting && now >= session_->deadline()) {
    return fail(kExitUsage,
                fmt::format("{} within {} seconds (--timeout, AMASIA_START_TIMEOUT, sets the "
                            "limit)",
                            session_->missing(), settings_.options.start_timeout_s));
  }
  const auto& nodes = session_->nodes();
  const bool all_ended =
      std::all_of(nodes.begin(), nodes.end(), [](const LocalNode& node) { return node.ended; });
  if (command_status_ && origin_is_left()) return close_session();
  // An origin that ended without a word leaves peers that will not leave.
  const LocalNode* origin = session_->origin();
  const bool abandoned = origin != nullptr && origin->ended && !session_->in_order();
  const bool draining = session_->state() == SessionState::kDraining;
  if (all_ended || (draining && (abandoned || now >= drain_until_))) return close_session();
  watch_progress(now);
}

void Supervisor::watch_progress(Nanos now) {
  if (settings_.options.watchdog_s == 0 || now < next_look_) return;
  next_look_ = now + settings_.options.watchdog_s * base::kSecond;
  const std::uint64_t progress = session_->progress();
  if (progress != last_progress_ || session_->state() != SessionState::kRunning) {
    last_progress_ = progress;
    hang_reported_ = false;
    return;
  }
  if (std::exchange(hang_reported_, true)) return;  // once for each standstill
  base::log_line(LogLevel::kWarning, "no node has shown progress for {} seconds (--watchdog):",
                 settings_.options.watchdog_s);
  for (const std::string& line : session_->describe()) {
    base::log_line(LogLevel::kWarning, "{}", line);
  }
}

void Supervisor::lose(Outcome outcome, std::string sentence) {
  if (!loss_) loss_ = {outcome, std::move(sentence), os::monotonic_now() + kLastWordsTime};
}

void Supervisor::fail(Outcome outcome, const std::string& sentence) {
  if (failure_) return;
  failure_ = outcome;
  write_last_words();
  base::log_line(LogLevel::kError, "{}", sentence);
  source_.abort(outcome.exit_code, sentence);
}

}  // namespace amasia::tools
