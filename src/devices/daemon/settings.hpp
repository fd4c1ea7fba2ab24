// SPDX-License-Identifier: Apache-2.0
// The daemon's command line.
#pragma once

#include <span>
#include <string>

#include "devices/daemon/server.hpp"

namespace amasia::devices {

struct DaemonSettings {
  ServerSettings server;
  std::string socket;           // "": default_socket_path()
  bool inherited = false;       // its standard input listens already
  bool detach = false;
  std::string policy, policy_settings;
  std::string trace;            // "": none
  std::string group;
  bool help = false;
};

// An error is a sentence for the user that names the flag, the value and the values allowed.
Result<DaemonSettings> parse_daemon_arguments(std::span<const char* const> arguments);
std::string daemon_usage();

}  // namespace amasia::devices
