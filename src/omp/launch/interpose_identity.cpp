// SPDX-License-Identifier: Apache-2.0
// setuid and its kind. The C library has each thread of the process make the call, by a signal, and
// waits for all of them; threads that wait in calls that are caught (delegate) do not hear it, so
// that it would wait for ever. What changes nothing succeeds; the rest is refused with a sentence.
#include <grp.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "omp/launch/process.hpp"
#include "omp/real.hpp"

#define AMASIA_EXPORT extern "C" __attribute__((visibility("default")))

using namespace amasia;       // NOLINT: the C entry points below are in no namespace
using namespace amasia::omp;  // NOLINT

namespace {

// Real, effective, saved.
using Identity = std::array<unsigned, 3>;
constexpr auto kSame = static_cast<unsigned>(-1);

Identity uids() {
  Identity now{};
  ::getresuid(&now[0], &now[1], &now[2]);
  return now;
}

Identity gids() {
  Identity now{};
  ::getresgid(&now[0], &now[1], &now[2]);
  return now;
}

bool is_as(const Identity& now, const Identity& wanted) {
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (wanted[i] != kSame && wanted[i] != now[i]) return false;
  }
  return true;
}

bool calls_are_caught() { return process.catches_calls && !process.is_child; }

int refuse(const char* call) {
  base::log_line(base::LogLevel::kWarning,
                 "{}: a program whose system calls are shared by nodes keeps its user and groups",
                 call);
  errno = EPERM;
  return -1;
}

// `unchanged`: whether the identity is already as asked for.
template <typename Function, typename... Arguments>
int change(const char* call, Function& real, bool unchanged, Arguments... arguments) {
  if (!calls_are_caught()) return real(arguments...);
  return unchanged ? 0 : refuse(call);
}

}  // namespace

AMASIA_EXPORT int setuid(uid_t id) noexcept {
  static constinit Real<int(uid_t)> real{"setuid"};
  return change("setuid", real, is_as(uids(), {id, id, id}), id);
}

AMASIA_EXPORT int seteuid(uid_t id) noexcept {
  static constinit Real<int(uid_t)> real{"seteuid"};
  return change("seteuid", real, is_as(uids(), {kSame, id, kSame}), id);
}

AMASIA_EXPORT int setreuid(uid_t own, uid_t effective) noexcept {
  static constinit Real<int(uid_t, uid_t)> real{"setreuid"};
  return change("setreuid", real, is_as(uids(), {own, effective, effective}), own, effective);
}

AMASIA_EXPORT int setresuid(uid_t own, uid_t effective, uid_t saved) noexcept {
  static constinit Real<int(uid_t, uid_t, uid_t)> real{"setresuid"};
  return change("setresuid", real, is_as(uids(), {own, effective, saved}), own, effective, saved);
}

AMASIA_EXPORT int setgid(gid_t id) noexcept {
  static constinit Real<int(gid_t)> real{"setgid"};
  return change("setgid", real, is_as(gids(), {id, id, id}), id);
}

AMASIA_EXPORT int setegid(gid_t id) noexcept {
  static constinit Real<int(gid_t)> real{"setegid"};
  return change("setegid", real, is_as(gids(), {kSame, id, kSame}), id);
}

AMASIA_EXPORT int setregid(gid_t own, gid_t effective) noexcept {
  static constinit Real<int(gid_t, gid_t)> real{"setregid"};
  return change("setregid", real, is_as(gids(), {own, effective, effective}), own, effective);
}

AMASIA_EXPORT int setresgid(gid_t own, gid_t effective, gid_t saved) noexcept {
  static constinit Real<int(gid_t, gid_t, gid_t)> real{"setresgid"};
  return change("setresgid", real, is_as(gids(), {own, effective, saved}), own, effective, saved);
}

AMASIA_EXPORT int setgroups(size_t count, const gid_t* groups) noexcept {
  static constinit Real<int(size_t, const gid_t*)> real{"setgroups"};
  return change("setgroups", real, false, count, groups);
}
