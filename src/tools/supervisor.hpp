// SPDX-License-Identifier: Apache-2.0
// The launcher's event loop: runs one command, makes a job of the OpenMP programs below it, and
// sees to it that all ends together. One thread. docs/protocols/launch.md is its specification.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/base.hpp"
#include "os/os.hpp"
#include "tools/job_source.hpp"
#include "tools/session.hpp"

namespace amasia::tools {

// How the job ended, for the exit of `amasia run`.
struct Outcome {
  int exit_code = 0;
  int signal = 0;  // not 0: the command was killed by it
};

// Exit codes of our own; the program's pass through.
inline constexpr int kExitUsage = 2;  // the user can mend it: bad input, a node that cannot start
inline constexpr int kExitNodeLost = 125;  // a node was lost while the program ran

inline constexpr std::initializer_list<int> kSupervisedSignals = {
    SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};

struct SupervisorSettings {
  base::Options options;
  os::SpawnRequest command;  // everything but cores, process group and namespace
  std::string command_name;  // as the user typed it
  // Where AMASIA_LAUNCHER points, in each network namespace of the job.
  std::vector<os::Descriptor> listeners;
  os::SignalQueue signals;  // kSupervisedSignals
  pid_t keeper = 0;         // a child that is not part of the job
  std::function<void(pid_t)> node_started;
  // The cores and the network namespace (-1: ours) of a local node.
  std::function<std::vector<int>(NodeId)> cores_of;
  std::function<int(NodeId)> namespace_of;
  // The entry of the control group that slows a node's program, "": none.
  std::function<std::string(NodeId)> cpu_group_of = [](NodeId) { return std::string(); };
  // The command runs without the runtime, whatever it is: nobody joins, and all of it is slowed.
  bool is_plain = false;
};

class Supervisor {
 public:
  Supervisor(SupervisorSettings settings, JobSource& source);
  ~Supervisor();
  // Runs the command to its end. Nothing is left running below this process afterwards, but the
  // keeper.
  Outcome run();

 private:
  struct Ended {
    pid_t process;
    int status;
  };

  Status start_command();
  void poll_once();
  int time_to_deadline() const;
  // Signals and processes.
  void read_signals();
  void forward(const os::ReceivedSignal& signal);
  void reap();
  void command_stopped(int signal);
  void tell_peers(int signal);
  void judge(const std::vector<Ended>& ended);
  void origin_ended();
  bool origin_is_left();
  void drain();
  void report_origin(const LocalNode& origin, int status);
  // Connections.
  void accept_all(int listener);
  void hear(os::Descriptor& connection);
  void hear_all(os::Descriptor& connection);
  // `outputs`: the caller's standard output and error, or none.
  void join(os::Descriptor connection, std::vector<os::Descriptor> outputs);
  void tell_alone(const os::Descriptor& connection, const std::string& why);
  void node_says(LocalNode& node, const launch::Message& message,
                 std::vector<os::Descriptor> descriptors);
  void node_left(LocalNode& node);
  // Sessions.
  Status open_session();
  void start_session(os::Descriptor connection, const os::Peer& peer,
                     std::vector<os::Descriptor> outputs);
  void note_started(pid_t node);
  Status start_peers(const os::ProcessImage& image, std::vector<os::Descriptor> outputs);
  void take_word();
  void close_session();
  void check_deadlines();
  void watch_progress(Nanos now);
  void write_last_words();
  // A node is dead: the job ends so, once the origin has had time to write what came from there.
  void lose(Outcome outcome, std::string sentence);
  // Ends the job with this sentence (once) and outcome.
  void fail(Outcome outcome, const std::string& sentence);
  void fail(int exit_code, const std::string& sentence) { fail(Outcome{exit_code}, sentence); }
  bool finished() const;

  SupervisorSettings settings_;
  JobSource& source_;
  std::vector<os::Descriptor> callers_;  // connected, not joined
  std::unique_ptr<Session> session_;
  std::vector<pid_t> started_nodes_;  // of all sessions, for what they leave in shared memory
  std::vector<pid_t> started_peers_;  // those of them that we started
  bool had_session_ = false;
  bool word_taken_ = false;

  pid_t command_ = 0;
  bool command_group_ = false;  // the command has a process group of its own
  std::optional<int> command_status_;
  std::optional<Outcome> failure_;

  void suspect(NodeId who, int exit_code, std::string sentence);

  // A node said that it failed, or ended by itself: it may only be the first to notice the end of
  // another one, which is reported to us later, when the kernel has taken that one apart.
  struct Suspicion {
    NodeId who;
    std::string sentence;
    int exit_code;
    Nanos until;
  };
  std::optional<Suspicion> suspicion_;
  struct Loss {
    Outcome outcome;
    std::string sentence;
    Nanos until;
  };
  std::optional<Loss> loss_;
  // The origin's standard output and error, where it has told them.
  std::vector<os::Descriptor> program_outputs_;
  Nanos drain_until_ = 0;
  Nanos next_look_ = 0;  // of the watchdog
  std::uint64_t last_progress_ = 0;
  bool hang_reported_ = false;
};

}  // namespace amasia::tools
