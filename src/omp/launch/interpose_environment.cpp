// SPDX-License-Identifier: Apache-2.0
// The environment of the program on nodes other than the origin. Variables that the program sets
// lie in managed memory, but where their list begins is the C library's own knowledge, on each
// node. So the origin writes it down in managed memory, and getenv reads it there.
//
// The C library's own list is left as it is on the other nodes: threads of the runtime read it,
// which must not touch managed memory. But for TZ, by which the C library tells local time.
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <ctime>

#include "omp/launch/process.hpp"
#include "omp/real.hpp"
#include "os/os.hpp"

#define AMASIA_EXPORT extern "C" __attribute__((visibility("default")))

namespace amasia::omp {
namespace {

constinit Real<char*(const char*)> real_getenv{"getenv"};
constinit Real<int(const char*, const char*, int)> real_setenv{"setenv"};
constinit Real<int(const char*)> real_unsetenv{"unsetenv"};
constexpr const char* kTimeZone = "TZ";

// The change of TZ that this node has followed last; its main thread's.
std::uint32_t followed_time_zone = 0;

bool in_program_of_node() {
  return process.node.load(std::memory_order_acquire) != nullptr && !os::is_in_runtime_section();
}

const char* find(char** list, const char* name) {
  const std::size_t length = std::strlen(name);
  for (; list != nullptr && *list != nullptr; ++list) {
    if (std::strncmp(*list, name, length) == 0 && (*list)[length] == '=') return *list + length + 1;
  }
  return nullptr;
}

// Compared only: it changes rarely, and others read the page.
void publish_time_zone(SharedPage& page) {
  const char* const zone = real_getenv(kTimeZone);
  const bool same = zone == nullptr
                        ? !page.has_time_zone
                        : page.has_time_zone && std::strcmp(zone, page.time_zone) == 0;
  if (same || (zone != nullptr && std::strlen(zone) >= sizeof page.time_zone)) return;
  page.has_time_zone = zone != nullptr;
  if (zone != nullptr) std::strcpy(page.time_zone, zone);
  ++page.time_zone_changes;
}

// What a node's change of the environment means for the others. Only the origin's counts: as in any
// program, changing it while others read it is a mistake.
int changed(int result) {
  if (process.space.self() == base::kOrigin) publish_environment();
  return result;
}

}  // namespace

void publish_environment() noexcept {
  if (process.node.load(std::memory_order_acquire) == nullptr) return;
  SharedPage& page = shared_page();
  if (page.environment != environ) page.environment = environ;
  publish_time_zone(page);
}

void adopt_time_zone() noexcept {
  const SharedPage& page = shared_page();
  if (!has_changed(page.time_zone_changes, followed_time_zone)) return;
  const SharedPage copy = page;
  // In a runtime section: the C library's list, and what it keeps of a zone, are this node's.
  os::in_runtime_section([&copy] {
    if (copy.has_time_zone) {
      real_setenv(kTimeZone, copy.time_zone, 1);
    } else {
      real_unsetenv(kTimeZone);
    }
    tzset();
  });
}

}  // namespace amasia::omp

using namespace amasia::omp;  // NOLINT: the C entry points below are in no namespace

AMASIA_EXPORT char* getenv(const char* name) noexcept {
  if (!process.managed || process.space.self() == amasia::base::kOrigin || !in_program_of_node()) {
    return real_getenv(name);
  }
  return const_cast<char*>(find(shared_page().environment, name));
}

AMASIA_EXPORT char* secure_getenv(const char* name) noexcept {
  static constinit Real<char*(const char*)> real{"secure_getenv"};
  return process.managed ? getenv(name) : real(name);
}

AMASIA_EXPORT int setenv(const char* name, const char* value, int overwrite) noexcept {
  return changed(real_setenv(name, value, overwrite));
}

AMASIA_EXPORT int unsetenv(const char* name) noexcept {
  return changed(real_unsetenv(name));
}

AMASIA_EXPORT int putenv(char* setting) noexcept {
  static constinit Real<int(char*)> real{"putenv"};
  return changed(real(setting));
}

AMASIA_EXPORT int clearenv() noexcept {
  static constinit Real<int()> real{"clearenv"};
  return changed(real());
}
