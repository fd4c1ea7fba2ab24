// SPDX-License-Identifier: Apache-2.0
// The client: how a process under `amasia run` becomes a node. Called early in the life of the
// process, before main, while it has one thread.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/base.hpp"
#include "launch/board.hpp"
#include "os/os.hpp"

namespace amasia::launch {

// A node's tie to its launcher. Keep it for the life of the process: closing the connection tells
// the launcher that the node has left. If the launcher dies, the kernel kills this process
// (SIGKILL), with no thread of ours needed for it.
class Membership {
 public:
  Membership(NodeId self, std::uint32_t node_count, os::Descriptor connection,
             os::Descriptor bootstrap, os::Descriptor lifeline, JobBoard board,
             std::string cpu_group);

  NodeId self() const { return self_; }
  std::uint32_t node_count() const { return node_count_; }
  bool is_origin() const { return self_ == base::kOrigin; }
  // The connected stream socket for fabric::connect_bootstrap, once.
  int take_bootstrap() { return bootstrap_.release(); }
  // Where the program's threads enter the control group that slows them (os::enter_cpu_group); "":
  // they are not slowed.
  const std::string& cpu_group() const { return cpu_group_; }
  BoardSlot& slot() { return board_.slot(self_); }
  // What this node shares with those that the same launcher started.
  std::span<std::byte> common_memory() { return board_.common(); }

  // This node is connected and alike: ends the start-up time limit for it. Any thread, once.
  // `outputs`: none, or for its standard output, then error, a file with the line that has begun
  // and a pipe with what is behind it: the launcher reads them once the node has been lost.
  void ready(std::span<const int> outputs = {}) noexcept;
  // Tells the launcher why this node cannot take part: it prints the sentence, with the node's
  // number, and ends the job with exit code 2. The caller then leaves with _exit(2). Any thread.
  void failed(std::string_view sentence) noexcept;
  // The end is in order: main has returned or exit was called on the origin, and the others will be
  // told to leave. From now on a node that exits with 0 has not been lost. Any thread, on the
  // origin; harmless elsewhere.
  void finishing() noexcept;

 private:
  NodeId self_;
  std::uint32_t node_count_;
  os::Descriptor connection_;
  os::Descriptor bootstrap_;
  os::Descriptor lifeline_;
  JobBoard board_;
  std::string cpu_group_;
};

// True if this process was started below an `amasia run` that hands out nodes. One look at the
// environment; no allocation.
bool below_launcher() noexcept;

// Asks the launcher whether this process is a node, and which. Blocks for the answer, which takes
// the launcher milliseconds (peers are started but not waited for).
//  - a Membership: become that node;
//  - nullopt: run as if Amasia were not there; the launcher has said why where a user should know;
//  - an error: the launcher is gone or refused to talk; say so and run plainly.
Result<std::optional<Membership>> join();

}  // namespace amasia::launch
