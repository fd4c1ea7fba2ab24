// SPDX-License-Identifier: Apache-2.0
// system and posix_spawn, which need no help on the origin: the child borrows its parent's memory
// until it executes something. On other nodes execve is refused, but in the child, where nobody
// hears why: a caught call kills it. So they are refused here.
#include <spawn.h>

#include <cerrno>

#include "omp/launch/origin_only.hpp"
#include "omp/real.hpp"

#define AMASIA_EXPORT extern "C" __attribute__((visibility("default")))

namespace {
using Spawn = int(pid_t*, const char*, const posix_spawn_file_actions_t*, const posix_spawnattr_t*,
                  char* const*, char* const*);
}  // namespace

using namespace amasia::omp;  // NOLINT: the C entry points below are in no namespace

// Without a command the question is whether there is anything that would execute one.
AMASIA_EXPORT int system(const char* command) {
  static constinit Real<int(const char*)> real{"system"};
  if (!refuses_on_this_node("system")) return real(command);
  errno = EPERM;
  return command == nullptr ? 0 : -1;
}

AMASIA_EXPORT int posix_spawn(pid_t* child, const char* file,
                              const posix_spawn_file_actions_t* actions,
                              const posix_spawnattr_t* attributes, char* const* arguments,
                              char* const* environment) {
  static constinit Real<Spawn> real{"posix_spawn"};
  if (refuses_on_this_node("posix_spawn")) return EPERM;
  return real(child, file, actions, attributes, arguments, environment);
}

AMASIA_EXPORT int posix_spawnp(pid_t* child, const char* file,
                               const posix_spawn_file_actions_t* actions,
                               const posix_spawnattr_t* attributes, char* const* arguments,
                               char* const* environment) {
  static constinit Real<Spawn> real{"posix_spawnp"};
  if (refuses_on_this_node("posix_spawnp")) return EPERM;
  return real(child, file, actions, attributes, arguments, environment);
}
