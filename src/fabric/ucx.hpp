// SPDX-License-Identifier: Apache-2.0
// The back end between processes: UCX active messages over whatever the machine has.
#pragma once

#include <memory>
#include <string>

#include "fabric/bootstrap.hpp"
#include "fabric/messages.hpp"

namespace amasia::fabric {

struct UcxSettings {
  // UCX's list of transports ("tcp", "posix,cma", …); empty: all that UCX finds. UCX_TLS in the
  // environment comes before it. Where network namespaces stand for hosts it must be "tcp".
  std::string transports;
  // UCX's list of network devices; empty: all. UCX_NET_DEVICES comes before it.
  std::string net_devices;
  // How long all nodes may take to come, connect and prove the secret.
  Nanos connect_timeout = 30 * base::kSecond;
  // How often idle connections are checked for a peer that died without a word.
  Nanos keepalive = base::kSecond;
};

// Whether messages between the nodes of a job with these options may go through memory.
bool may_share_memory(const base::Options& options);

// Opens a worker, exchanges addresses through `bootstrap` (key "ucx", one fence), connects to all
// nodes and proves the secret to each. Returns when every peer has proved it too. Blocks up to
// connect_timeout. `bootstrap` is not used after return. Destruction tells the peers that this
// node leaves in order, and waits at most five seconds for all that was sent to go out.
Result<std::unique_ptr<Fabric>> connect_ucx(Bootstrap& bootstrap, const UcxSettings& settings);
// The same as the job's options want it: transports, time limit, and links made slower.
Result<std::unique_ptr<Fabric>> connect_job(Bootstrap& bootstrap, const base::Options& options);

}  // namespace amasia::fabric
