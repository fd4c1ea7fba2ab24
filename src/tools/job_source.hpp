// SPDX-License-Identifier: Apache-2.0
// Where a launcher's nodes come from: it starts all of them on this host, or it is one rank of a
// PMIx job and starts one.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/base.hpp"
#include "fabric/fabric.hpp"
#include "os/os.hpp"

namespace amasia::tools {

// The wires of one session: a node's end of its bootstrap socket for each local node, in their
// order, and the service at the other ends.
struct Wiring {
  std::unique_ptr<fabric::BootstrapService> service;
  std::vector<os::Descriptor> node_ends;
};

class JobSource {
 public:
  virtual ~JobSource() = default;
  virtual std::uint32_t node_count() const = 0;
  // The nodes that this launcher starts and watches.
  virtual std::vector<NodeId> local_nodes() const = 0;
  // Whether the command is run here, that is, whether the origin is.
  bool runs_command() const { return local_nodes().front() == base::kOrigin; }
  // Whether a second session can follow the first one.
  virtual bool can_repeat() const = 0;
  virtual Result<Wiring> wire() = 0;

  // Where the command runs: tells the other launchers what to start. Once a session; nullopt
  // (once, at the end) tells them that there is nothing to start.
  virtual Status announce(const std::optional<os::ProcessImage>& image) = 0;
  // Elsewhere: readable once the word of announce() has come. -1 where the command runs.
  virtual int word_descriptor() const { return -1; }
  virtual Result<std::optional<os::ProcessImage>> word() {
    return std::optional<os::ProcessImage>();
  }
  // The job has failed here: ends its other parts.
  virtual void abort(int status, std::string_view sentence) = 0;
};

// All nodes on this host, as children of this process.
std::unique_ptr<JobSource> make_fork_source(std::uint32_t node_count);

}  // namespace amasia::tools
