// SPDX-License-Identifier: Apache-2.0
// For tests: what one node does, written as reactions so that the same body runs in a thread
// (loopback), in virtual time (sim) and in a process (ucx).
#pragma once

#include <string>

#include "fabric/fabric.hpp"

namespace amasia::fabric {

class Scenario : public Handler, public PeerLostHandler {
 public:
  // Runs once, before the first poll, with the handlers set.
  virtual void start(Fabric& fabric) = 0;
  // The node stops polling when this is true, or when failure is not empty.
  virtual bool is_done() const = 0;
  void on_peer_lost(NodeId peer, std::string_view why) override {
    fail(fmt::format("lost node {}: {}", peer.value, why));
  }

  const std::string& failure() const { return failure_; }
  void fail(std::string why) {
    if (failure_.empty()) failure_ = std::move(why);
  }

  void attach(Fabric& fabric) {
    fabric.set_handler(kFirstFreeType, kTypeCount - 1, this);
    fabric.set_peer_lost_handler(this);
    start(fabric);
  }

 private:
  std::string failure_;
};

// Polls, sleeping when there is nothing to do, until the scenario is done, failed, or has heard
// nothing for 20 s.
inline void play(Fabric& fabric, Scenario& scenario, Nanos spin = 0) {
  scenario.attach(fabric);
  while (!scenario.is_done() && scenario.failure().empty()) {
    if (wait_and_poll(fabric, 64, spin, 20 * base::kSecond) == 0) {
      scenario.fail("heard nothing for 20 s");
    }
  }
}

}  // namespace amasia::fabric
