// SPDX-License-Identifier: Apache-2.0
// What the options of a job say about its messages.
#include "fabric/slow_link.hpp"
#include "fabric/ucx.hpp"

namespace amasia::fabric {
namespace {

const char* transports_of(const base::Options& options) {
  if (!may_share_memory(options)) return "tcp";
  return options.transport == base::Transport::kShared ? "shm" : "";
}

}  // namespace

bool may_share_memory(const base::Options& options) {
  // Nodes in network namespaces of their own stand for hosts, which share no memory.
  return !options.netns && options.transport != base::Transport::kTcp;
}

Result<std::unique_ptr<Fabric>> connect_job(Bootstrap& bootstrap, const base::Options& options) {
  UcxSettings settings;
  settings.transports = transports_of(options);
  settings.connect_timeout = options.start_timeout_s * base::kSecond;
  auto connected = connect_ucx(bootstrap, settings);
  if (!connected.ok()) return connected.error();
  const auto speed = base::parse_link(options.link);
  AMASIA_CHECK(speed.has_value(), "the table of options takes no other");
  if (!speed->is_slowed()) return connected;
  return make_slow_link(std::move(connected).value(), *speed);
}

}  // namespace amasia::fabric
