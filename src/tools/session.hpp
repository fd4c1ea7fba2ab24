// SPDX-License-Identifier: Apache-2.0
// One run of one OpenMP program across nodes, as its launcher sees it: who the local nodes are, how
// far each has come, and what their ends mean. No process is started or awaited here.
// The states and events are those of docs/protocols/launch.md.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "base/base.hpp"
#include "launch/launch.hpp"
#include "os/os.hpp"
#include "tools/job_source.hpp"
#include "tools/memory_share.hpp"

namespace amasia::tools {

enum class SessionState {
  kStarting,  // not all local nodes are ready
  kRunning,
  kFinishing,  // the origin said so: nodes may leave
  kDraining,   // the origin has ended: what the others do does not matter any more
};

struct LocalNode {
  NodeId id;
  pid_t process = 0;          // 0: not started
  os::Descriptor connection;  // invalid: has not joined, or has left
  os::Descriptor bootstrap;   // the node's end, until it is handed over
  os::Descriptor watch;       // readable once the process has ended; the origin's only
  // The writing end of the node's lifeline: closing it kills the node. A pipe for each node, since
  // the kernel keeps whom to signal with the open pipe, not with the descriptor.
  os::Descriptor lifeline;
  // None, or what is left of its standard output, then error: the line that has begun (a file) and
  // what is behind it (a pipe's reading end) each.
  std::vector<os::Descriptor> outputs;
  bool joined = false;
  bool ready = false;
  bool ended = false;
};

class Session {
 public:
  // `deadline` (monotonic) is when all local nodes must be ready.
  static Result<std::unique_ptr<Session>> open(JobSource& source, Nanos deadline);

  SessionState state() const { return state_; }
  std::vector<LocalNode>& nodes() { return nodes_; }
  LocalNode* node_of(pid_t process);
  // The origin, if it is local.
  LocalNode* origin();
  fabric::BootstrapService& service() { return *wiring_.service; }
  launch::JobBoard& board() { return board_; }

  // Answers a node's join. After an error the node will not come up. `cpu_group`: the entry of the
  // group that slows the program there, or "".
  Status admit(LocalNode& node, os::Descriptor connection, const std::string& cpu_group);
  void mark_ready(LocalNode& node, std::vector<os::Descriptor> outputs);
  void mark_finishing();
  // Whether the origin said, before anything else, that the program ends.
  bool in_order() const { return in_order_; }
  // The origin has ended, or what was its process runs another program now.
  void mark_draining();

  Nanos deadline() const { return deadline_; }
  // The nodes that the job waits for while starting: "node 2 (process 77) has not connected to the
  // others".
  std::string missing() const;
  // Empty if the end of this node's process is as it should be, else what has happened, as a
  // sentence. `status` as from waitpid.
  std::string judge_end(const LocalNode& node, int status) const;
  // Whether a node that was killed by this signal ended by the program's doing: a fault, an abort,
  // or what it sent to itself. What comes from outside takes a node away from the program.
  bool is_programs_end(const LocalNode& node, int signal);
  // The sum of all local nodes' progress.
  std::uint64_t progress() const;
  std::vector<std::string> describe() const;

 private:
  Session(std::uint32_t node_count, Wiring wiring, launch::JobBoard board, Nanos deadline)
      : node_count_(node_count),
        wiring_(std::move(wiring)),
        board_(std::move(board)),
        deadline_(deadline),
        kills_for_memory_(kills_for_memory()) {}

  std::uint32_t node_count_;
  Wiring wiring_;
  launch::JobBoard board_;
  Nanos deadline_;
  std::uint64_t kills_for_memory_;  // on this host, when the session began
  SessionState state_ = SessionState::kStarting;
  bool in_order_ = false;
  std::vector<LocalNode> nodes_;
};

}  // namespace amasia::tools
