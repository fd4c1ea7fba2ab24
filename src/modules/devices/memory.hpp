// SPDX-License-Identifier: Apache-2.0
// Memory at the place of a device_tasks::library: the host's, registered with the client library,
// which keeps the newest bytes of each part wherever they were written.
#pragma once

#include <map>
#include <memory>

#include "modules/devices/endings.hpp"

namespace amasia::device_tasks {

class Memory : public std::enable_shared_from_this<Memory> {
 public:
  Memory(std::shared_ptr<Line> line, std::uint64_t classes)
      : line_(std::move(line)), classes_(classes) {}

  // While the module is attached; nullptr else.
  void use(tasks::module_host* host) { host_ = host; }

  tasks::future<void*> allocate(std::size_t bytes);
  tasks::future<void> release(void* block);
  // In tasks.
  tasks::future<void> copy_to_device(void* to, const void* from, std::size_t bytes);
  tasks::future<void> copy_from_device(void* to, const void* from, std::size_t bytes);
  tasks::future<void> copy_on_device(void* to, const void* from, std::size_t bytes);

 private:
  struct Part {
    char* base;
    std::size_t offset, bytes;
  };
  // Throws error where the bytes are not within one block.
  Part part_of(const void* at, std::size_t bytes);
  tasks::module_host& host() const;
  // Bytes of the part move: to a device, or (`back`) to the host.
  tasks::future<void> transfer(std::unique_ptr<Ending::Handle> prepared);
  std::unique_ptr<Ending::Handle> prepare(const Part& part, std::uint64_t flags);

  const std::shared_ptr<Line> line_;
  const std::uint64_t classes_;
  tasks::module_host* host_ = nullptr;
  os::Mutex mutex_;
  std::map<const char*, std::size_t> blocks_ AMASIA_GUARDED_BY(mutex_);
};

}  // namespace amasia::device_tasks
