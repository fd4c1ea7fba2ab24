// SPDX-License-Identifier: Apache-2.0
// A stage over any back end that makes the links between nodes slower than they are.
#pragma once

#include <memory>

#include "fabric/messages.hpp"

namespace amasia::fabric {

// Hands each message of another node on no earlier than the link's latency after it was sent, and
// those of one node no faster than its bandwidth lets their bodies through, in order. Messages to
// oneself pass. All nodes must have the stage, with the same speed: it puts the time of sending
// before each body. Nodes on hosts of other clocks count from the arrival. While messages are on
// their way nobody spins: wait_descriptor() becomes readable when the first of them is due.
// An error: the system has no descriptor to give.
Result<std::unique_ptr<Fabric>> make_slow_link(std::unique_ptr<Fabric> inner,
                                               const base::LinkSpeed& speed);
// The same over a fabric that somebody else owns and that outlives it.
Result<std::unique_ptr<Fabric>> make_slow_link(Fabric& inner, const base::LinkSpeed& speed);

}  // namespace amasia::fabric
