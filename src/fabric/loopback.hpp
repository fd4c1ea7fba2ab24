// SPDX-License-Identifier: Apache-2.0
// N nodes in one process, joined by queues; each may be polled by its own thread.
#pragma once

#include <memory>

#include "fabric/messages.hpp"

namespace amasia::fabric {

class LoopbackNetwork {
 public:
  virtual ~LoopbackNetwork() = default;
  // The end of one node. Any thread. It lives as long as the network.
  virtual Fabric& fabric(NodeId node) = 0;
  // From here on `node` neither sends nor receives, and the others are told that it is lost.
  virtual void lose(NodeId node) = 0;
};

// 1 <= node_count <= kMaxNodes.
std::unique_ptr<LoopbackNetwork> make_loopback(std::uint32_t node_count);

}  // namespace amasia::fabric
