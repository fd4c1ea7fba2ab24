// SPDX-License-Identifier: Apache-2.0
// The daemon's trace (trace/trace.hpp), written to a file while it runs.
#pragma once

#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include "devices/daemon/server.hpp"
#include "devices/trace/trace.hpp"

namespace amasia::devices {

// What was written is a trace at any moment: a daemon that is killed loses what it held back, at
// most the tasks of the last 100 ms of work. One thread.
class TraceFile final : public TaskSink {
 public:
  // Truncates the file. `now`: CLOCK_MONOTONIC, from which times count.
  static Result<std::unique_ptr<TraceFile>> open(const std::string& path, Nanos now);
  ~TraceFile() override;
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  void client_joined(ClientId client, const ClientState& state) override;
  void kernel_named(const KernelNamed& kernel) override;
  void ended(const TaskEnded& task, const DeviceDescription& device) override;
  // A full disk: nothing is written from then on.
  bool failed() const { return failed_; }

 private:
  TraceFile(std::FILE* file, std::string path, Nanos now);
  void write(const std::string& text);
  void flush();

  std::FILE* file_;
  std::string path_;
  TraceText text_;
  std::map<DeviceId, std::string> named_;  // identities of the devices that the trace knows
  std::map<std::uint64_t, std::string> kernels_;  // names, by identity
  Nanos flushed_at_;
  bool failed_ = false;
};

}  // namespace amasia::devices
