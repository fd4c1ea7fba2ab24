// SPDX-License-Identifier: Apache-2.0
#include "devices/daemon/trace_file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <vector>

#include "devices/policy/terms.hpp"

namespace amasia::devices {
namespace {

constexpr Nanos kHeldBack = 100 * base::kMillisecond;
// Of all clients together; further kernels are shown by their identities.
constexpr std::size_t kMostKernels = 65536;

// Of a run its first task's beginning and its last one's end are known: each takes as long.
std::vector<TaskEnded> each_of(const TaskEnded& run) {
  std::vector<TaskEnded> out(run.count, run);
  const bool known = run.run_began != 0 && run.run_ended >= run.run_began;
  const Nanos from = known ? run.run_began : run.granted_at;
  const Nanos until = known ? run.run_ended : run.finished_at;
  for (std::uint32_t i = 0; i < run.count; ++i) {
    TaskEnded& one = out[i];
    const Nanos began = from + (until - from) * i / run.count;
    const Nanos ended = from + (until - from) * (i + 1) / run.count;
    if (known) one.run_began = began;
    if (known) one.run_ended = ended;
    one.copied = run.copied / run.count;
    one.succeeded = i >= run.failed;
    if (i != 0) one.copy_began = 0;
    if (i != 0) one.granted_at = began;
    if (i + 1 == run.count) break;
    one.copy_ended = 0;
    one.finished_at = ended;
  }
  return out;
}

}  // namespace

TraceFile::TraceFile(std::FILE* file, std::string path, Nanos now)
    : file_(file), path_(std::move(path)), text_(now), flushed_at_(now) {}

Result<std::unique_ptr<TraceFile>> TraceFile::open(const std::string& path, Nanos now) {
  std::FILE* const file = std::fopen(path.c_str(), "we");
  if (file == nullptr) {
    return base::errno_error(errno, fmt::format("cannot write the trace '{}'", path));
  }
  std::unique_ptr<TraceFile> out(new TraceFile(file, path, now));
  out->write(out->text_.begin());
  out->flush();
  return out;
}

TraceFile::~TraceFile() {
  write(text_.end());
  flush();
  std::fclose(file_);
}

void TraceFile::write(const std::string& text) {
  if (failed_ || std::fwrite(text.data(), 1, text.size(), file_) == text.size()) return;
  failed_ = true;
  base::log_line(base::LogLevel::kWarning, "{}",
                 base::errno_error(errno, fmt::format("the trace '{}' ends here", path_)).message);
}

void TraceFile::flush() {
  if (!failed_ && std::fflush(file_) != 0) failed_ = true;
}

void TraceFile::client_joined(ClientId client, const ClientState& state) {
  write(text_.client(client, state.process, state.program));
}

void TraceFile::kernel_named(const KernelNamed& kernel) {
  if (kernels_.size() < kMostKernels) kernels_.emplace(kernel.kernel, kernel.name);
}

void TraceFile::ended(const TaskEnded& ended, const DeviceDescription& device) {
  if (ended.count > 1) {
    for (TaskEnded& one : each_of(ended)) {
      one.count = 1;
      this->ended(one, device);
    }
    return;
  }
  if (std::string& named = named_[ended.device]; named != device.identity) {
    named = device.identity;
    write(text_.device(ended.device, device));
  }
  TraceTask task;
  task.task = ended.task;
  task.device = ended.device;
  task.kernel = ended.kernel;
  if (const auto name = kernels_.find(ended.kernel); name != kernels_.end()) {
    task.kernel_name = name->second;
  }
  task.succeeded = ended.succeeded;
  TaskDescription about;
  about.work_items = ended.work_items;
  task.share = policy::share_of(about, policy::terms_of(device));
  task.put_at = ended.put_at;
  task.granted_at = ended.granted_at;
  task.copy_began = ended.copy_began;
  task.run_began = ended.run_began;
  task.run_ended = ended.run_ended;
  task.copy_ended = ended.copy_ended;
  task.finished_at = ended.finished_at;
  task.copied = ended.copied;
  write(text_.task(task));
  if (ended.finished_at - flushed_at_ < kHeldBack) return;
  flushed_at_ = ended.finished_at;
  flush();
}

}  // namespace amasia::devices
