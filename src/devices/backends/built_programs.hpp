// SPDX-License-Identifier: Apache-2.0
// What a back end has built, kept as long as the back end, for all kernels of a program.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "devices/backends/backend.hpp"
#include "os/os.hpp"

namespace amasia::devices {

// Any thread. `Program` is what one back end makes of a ProgramCode on one device.
template <typename Program>
class BuiltPrograms {
 public:
  // Threads that want the same program at once wait for the one that builds it with
  // `build() -> std::shared_ptr<Program>`; one that does not build is tried again.
  template <typename Build>
  std::shared_ptr<Program> find_or_build(LocalDevice device, const ProgramCode& code,
                                         Build&& build) {
    const std::shared_ptr<Entry> entry =
        entry_of({device, code.kind, code.options, code.code, code.code.empty() ? code.path : ""});
    const os::MutexLock lock(entry->mutex);
    if (entry->program == nullptr) entry->program = build();
    return entry->program;
  }

 private:
  using Key = std::tuple<LocalDevice, ProgramKind, std::string, std::string, std::string>;
  struct Entry {
    os::Mutex mutex;
    std::shared_ptr<Program> program AMASIA_GUARDED_BY(mutex);
  };

  std::shared_ptr<Entry> entry_of(Key key) {
    const os::MutexLock lock(mutex_);
    auto& entry = entries_[std::move(key)];
    if (entry == nullptr) entry = std::make_shared<Entry>();
    return entry;
  }

  os::Mutex mutex_;
  std::map<Key, std::shared_ptr<Entry>> entries_ AMASIA_GUARDED_BY(mutex_);
};

}  // namespace amasia::devices
