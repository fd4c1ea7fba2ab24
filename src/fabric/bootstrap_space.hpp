// SPDX-License-Identifier: Apache-2.0
// The key-value space with its fence, as a pure state machine: messages in, answers out. Without
// I/O, so that a test drives it message by message.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fabric/bootstrap_wire.hpp"

namespace amasia::fabric {

struct BootstrapAnswer {
  NodeId to;
  BootstrapMessage message;
};

// Invariants: a fence is open exactly while arrived_ is neither empty nor complete; a value is
// visible to others only from the fence after its put on.
class BootstrapSpace {
 public:
  BootstrapSpace(std::uint32_t node_count, const JobSecret& secret);

  // What to send after `from` said `message`. An error if it may not say that now: it breaks the
  // protocol.
  Result<std::vector<BootstrapAnswer>> step(NodeId from, BootstrapMessage message);
  // Every fence and get, pending and to come, is answered with this sentence.
  std::vector<BootstrapAnswer> fail(std::string_view sentence);
  std::vector<NodeId> missing_from_fence() const;

 private:
  std::vector<BootstrapAnswer> arrive(NodeId from);
  BootstrapAnswer look_up(NodeId from, NodeId node, const std::string& key) const;

  std::uint32_t node_count_;
  JobSecret secret_;
  std::uint64_t arrived_ = 0;  // a bit for each node
  std::string failure_;
  std::map<std::pair<NodeId, std::string>, std::vector<std::byte>> values_;
  std::map<std::pair<NodeId, std::string>, std::vector<std::byte>> unfenced_;
};

BootstrapMessage bootstrap_error(std::string_view sentence);
BootstrapMessage bootstrap_welcome(NodeId node, std::uint32_t node_count, const JobSecret& secret);
BootstrapMessage bootstrap_absent(const std::vector<NodeId>& nodes);

}  // namespace amasia::fabric
