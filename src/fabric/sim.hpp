// SPDX-License-Identifier: Apache-2.0
// N nodes in virtual time, in one thread: a test decides when time passes. The same settings and
// the same calls give the same run, on any machine.
#pragma once

#include <array>
#include <memory>
#include <optional>

#include "fabric/messages.hpp"

namespace amasia::fabric {

struct SimSettings {
  std::uint32_t node_count = 2;
  std::uint64_t seed = 1;
  // A message takes a random time in [latency_min, latency_max], plus its length by bandwidth.
  // Messages of different pairs overtake each other; those of one pair do not.
  Nanos latency_min = 5 * base::kMicrosecond;
  Nanos latency_max = 50 * base::kMicrosecond;
  double bytes_per_ns = 1.0;
  // One message in `spike_every` takes `spike` longer (0: none): a descheduled process.
  std::uint32_t spike_every = 64;
  Nanos spike = base::kMillisecond;
  // Latency to and from node i is multiplied by slowness[i]; at least 1.
  std::array<double, base::kMaxNodes> slowness = [] {
    std::array<double, base::kMaxNodes> ones{};
    ones.fill(1.0);
    return ones;
  }();
  // How long after its loss the others are told of it, each at a random time in [0, this].
  Nanos loss_notice_max = 10 * base::kMillisecond;
};

class SimNetwork {
 public:
  virtual ~SimNetwork() = default;
  // arm() of a simulated fabric is true when nothing is deliverable now; wait_descriptor() is -1.
  virtual Fabric& fabric(NodeId node) = 0;
  virtual Nanos now() const = 0;
  // When the next message (or notice of a loss) is due; nullopt if nothing is on its way. Due
  // times may already have passed, if a node has not polled.
  virtual std::optional<Nanos> next_due() const = 0;
  // Lets time pass until `time`, which must not lie before now(). Then poll() delivers what is due.
  virtual void advance_to(Nanos time) = 0;
  // Polls the nodes in the order of due times, moving the clock along, until nothing is on its way
  // or `message_count_max` messages were delivered. Returns how many were.
  virtual std::uint64_t run(std::uint64_t message_count_max) = 0;
  // Node `node` stops now: what it sent and is on its way still arrives or not, by seed.
  virtual void lose(NodeId node) = 0;
};

std::unique_ptr<SimNetwork> make_sim(const SimSettings& settings);

}  // namespace amasia::fabric
