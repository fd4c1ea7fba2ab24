// SPDX-License-Identifier: Apache-2.0
// A trace of tasks in Chrome's format (Trace Event Format, JSON array), which Perfetto and
// chrome://tracing open and `amasia report` reads. Pure: text out of values.
//
// A device is a process of the trace: its tasks stand in lanes, as many as were in flight at once,
// each from grant to end, with copy in, run and copy out inside. A client is another process, whose
// lanes show how long tasks queued. Times are microseconds since the trace began.
// The text is a valid trace after every piece, but for the ']' that ends it: readers do without.
// With it the file is JSON.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "devices/ids.hpp"

namespace amasia::devices {

// A task that ended after a grant. Times in nanoseconds, put <= granted <= … <= finished; 0 where
// one is not known.
struct TraceTask {
  TaskKey task;
  DeviceId device;
  std::uint64_t kernel = 0;      // its identity; 0: a task without a kernel
  std::string_view kernel_name;  // "" where it is not known
  bool succeeded = true;
  double share = 1;  // of the device's processing elements, 0 … 1
  Nanos put_at = 0, granted_at = 0, copy_began = 0, run_began = 0, run_ended = 0, copy_ended = 0,
        finished_at = 0;
  Bytes copied = 0;
};

class TraceText {
 public:
  explicit TraceText(Nanos began) : began_(began) {}

  // Each returns what is to be appended to the file.
  std::string begin() const { return "["; }
  std::string device(DeviceId id, const DeviceDescription& description);
  std::string client(ClientId id, std::int32_t process, std::string_view program);
  std::string task(const TraceTask& task);
  // The file may end without it.
  std::string end() const { return "\n]\n"; }

 private:
  // On a line of its own, with the comma that parts it from the one before.
  std::string event(std::string_view text);
  // The first lane of the process that is free at `from`; it is taken until `until`.
  std::size_t lane(std::uint64_t process, Nanos from, Nanos until);
  std::string slice(std::string_view name, std::uint64_t process, std::size_t lane, Nanos from,
                    Nanos until, std::string_view arguments = {});
  std::string metadata(std::uint64_t process, std::string_view name, std::string_view more);

  Nanos began_;
  bool is_first_ = true;
  std::map<std::uint64_t, std::vector<Nanos>> lanes_;
};

}  // namespace amasia::devices
