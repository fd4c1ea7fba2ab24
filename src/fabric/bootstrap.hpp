// SPDX-License-Identifier: Apache-2.0
// How nodes learn of each other before they can send: a key-value space with a fence. A node talks
// to its launcher over one socket; the launcher serves it (BootstrapServer, serve_pmix in
// pmix.hpp). The frames are in docs/protocols/fabric.md.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/base.hpp"

namespace amasia::fabric {

// Known to the nodes of one job only. It reaches a node over its own socket, never in its
// environment or arguments, which others can read.
struct JobSecret {
  std::array<std::byte, 32> bytes{};
};
// Fresh random bytes from the kernel. Any thread; does not block after boot.
JobSecret make_job_secret();

inline constexpr std::size_t kMaxBootstrapKey = 255;
inline constexpr std::size_t kMaxBootstrapValue = 1 << 20;

// A node's view of the key-value space. One thread at a time. Every call may block up to its
// time-out and returns an error with a sentence when the launcher is gone or refuses.
class Bootstrap {
 public:
  virtual ~Bootstrap() = default;
  Bootstrap(const Bootstrap&) = delete;
  Bootstrap& operator=(const Bootstrap&) = delete;

  virtual NodeId self() const = 0;
  virtual std::uint32_t node_count() const = 0;
  virtual const JobSecret& secret() const = 0;

  // Publishes `value` under this node's `key`; others see it after the next fence. A key is put
  // once.
  virtual Status put(std::string_view key, std::span<const std::byte> value) = 0;
  // Returns when all nodes have called it. After `timeout` an error that names the missing nodes;
  // the job cannot go on then.
  virtual Status fence(Nanos timeout) = 0;
  // What `node` put under `key` before the last fence; an error if it put nothing.
  virtual Result<std::vector<std::byte>> get(NodeId node, std::string_view key) = 0;

 protected:
  Bootstrap() = default;
};

// The client of either server. Takes `descriptor` (a connected stream socket), also on failure;
// waits up to `timeout` for the server's welcome, which tells who this node is.
Result<std::unique_ptr<Bootstrap>> connect_bootstrap(int descriptor,
                                                     Nanos timeout = 30 * base::kSecond);

// The launcher's side: embed it in a poll(2) loop. One thread. Nothing blocks.
class BootstrapService {
 public:
  virtual ~BootstrapService() = default;
  BootstrapService(const BootstrapService&) = delete;
  BootstrapService& operator=(const BootstrapService&) = delete;

  // Wait for these to become readable. They change as clients leave: ask before each poll(2).
  virtual std::vector<int> descriptors() const = 0;
  // To be called when `descriptor`, one of descriptors(), is readable or has hung up. An error
  // tells about one client that was dropped because it broke the protocol; the rest goes on.
  virtual Status serve(int descriptor) = 0;
  // While a fence is open (some are waiting), the nodes that have not come to it; else empty.
  virtual std::vector<NodeId> missing_from_fence() const = 0;
  // Makes every pending and future fence and get fail with this sentence: say so when a node has
  // died, so that the others end at once.
  virtual void fail(std::string_view sentence) = 0;

 protected:
  BootstrapService() = default;
};

// Serves nodes 0 … n-1 of this host over `sockets`, one each, in the order of the nodes; takes the
// sockets. Holds the values itself.
std::unique_ptr<BootstrapService> serve_bootstrap(const JobSecret& secret,
                                                  std::vector<int> sockets);

}  // namespace amasia::fabric
