// SPDX-License-Identifier: Apache-2.0
// The program's locale on all nodes. It is a state of each C library; the origin writes the name of
// what the program has set into the shared page, and the others set the same before a region.
// What the C library keeps of a locale that it has loaded is this node's own memory, like the files
// that it points to: threads of the runtime look there as well, as sscanf does for the decimal
// point. The engine's would wait for ever for a page of managed memory.
#include <clocale>
#include <cstring>

#include "omp/launch/process.hpp"
#include "omp/real.hpp"
#include "os/os.hpp"

#define AMASIA_EXPORT extern "C" __attribute__((visibility("default")))

namespace amasia::omp {
namespace {

constinit Real<char*(int, const char*)> real_setlocale{"setlocale"};
constinit Real<locale_t(int, const char*, locale_t)> real_newlocale{"newlocale"};

void tell_others() {
  const char* const name = real_setlocale(LC_ALL, nullptr);
  SharedPage& page = shared_page();
  if (name == nullptr || std::strlen(name) >= sizeof page.locale) return;
  std::strcpy(page.locale, name);
  ++page.locale_changes;
}

// The change that this node has followed last; its main thread's.
std::uint32_t followed = 0;

}  // namespace

void adopt_locale() noexcept {
  const SharedPage& page = shared_page();
  if (!has_changed(page.locale_changes, followed)) return;
  const SharedPage copy = page;
  // In a runtime section: its files are this node's, and so is the memory that they are kept in.
  os::in_runtime_section([&copy] {
    if (real_setlocale(LC_ALL, copy.locale) != nullptr) return;
    base::log_line(base::LogLevel::kWarning, "the locale {} cannot be set on this node",
                   copy.locale);
  });
}

}  // namespace amasia::omp

using namespace amasia::omp;  // NOLINT: the C entry point below is in no namespace

AMASIA_EXPORT char* setlocale(int category, const char* name) noexcept {
  const AllocationScope scope(AllocationMode::kPrivate);
  char* const result = real_setlocale(category, name);
  const bool changed = name != nullptr && result != nullptr;
  if (!changed || process.node.load(std::memory_order_acquire) == nullptr) return result;
  const bool origin = process.space.self() == amasia::base::kOrigin;
  if (origin && !amasia::os::is_in_runtime_section()) tell_others();
  return result;
}

AMASIA_EXPORT locale_t newlocale(int categories, const char* name, locale_t base) noexcept {
  const AllocationScope scope(AllocationMode::kPrivate);
  return real_newlocale(categories, name, base);
}

// As C++'s library calls it.
AMASIA_EXPORT locale_t __newlocale(int categories, const char* name, locale_t base) noexcept {
  return newlocale(categories, name, base);
}
