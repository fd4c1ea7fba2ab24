// SPDX-License-Identifier: Apache-2.0
// Where the daemon of this user is, and how a client comes to be connected to it.
#pragma once

#include <string>

#include "base/base.hpp"
#include "os/os.hpp"

namespace amasia::devices {

// AMASIA_DEVICES_SOCKET, else $XDG_RUNTIME_DIR/amasia/devices.sock, else
// /tmp/amasia-<uid>/devices.sock. Used by the daemon and by clients alike.
std::string default_socket_path();

// AMASIA_DEVICED, else amasia-deviced in ../bin as seen from the file that holds this code, else
// from PATH.
std::string daemon_executable();

struct ConnectSettings {
  std::string path;          // "": default_socket_path()
  bool start_daemon = true;  // where none listens
  std::string executable;    // "": daemon_executable()
};
// A connection to a daemon's socket; it has not said yet that it will serve. Starts a daemon where
// none listens: this process makes the socket, under a lock of its directory, and the daemon
// inherits it, so that of several first clients one starts it and the others find it listening.
// Errors: ENAMETOOLONG, EPERM (the directory is not this user's), ECONNREFUSED (no daemon, and
// none may be started), others of the system. Blocks for milliseconds.
Result<os::Descriptor> connect_to_daemon(const ConnectSettings& settings);

}  // namespace amasia::devices
