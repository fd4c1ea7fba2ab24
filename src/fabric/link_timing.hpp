// SPDX-License-Identifier: Apache-2.0
// When a message arrives over a slow link. Pure.
#pragma once

#include "base/base.hpp"

namespace amasia::fabric {

// One direction of one pair of nodes: messages enter the wire one after the other, each as long as
// its bytes take, and leave it `latency` later.
//   begin(n) = max(sent(n), end(n-1)), end(n) = begin(n) + bytes(n) / bandwidth
//   due(n) = end(n) + latency
// So due times do not fall, whatever the times of sending are.
class LinkTiming {
 public:
  explicit LinkTiming(const base::LinkSpeed& speed) : speed_(speed) {}
  // Of messages in the order in which they were sent.
  Nanos due(Nanos sent, Bytes bytes);

 private:
  base::LinkSpeed speed_;
  Nanos free_ = 0;  // when the last message has entered
};

}  // namespace amasia::fabric
