// SPDX-License-Identifier: Apache-2.0
#include "devices/trace/trace.hpp"

#include <fmt/format.h>

#include <utility>

namespace amasia::devices {
namespace {

using base::json_text;

// Numbers of the trace's processes: devices first, then clients.
constexpr std::uint64_t kFirstDevice = 1;
constexpr std::uint64_t kFirstClient = 1000;
// A device or client with more tasks at once shows the others in its last lane.
constexpr std::size_t kMostLanes = 4096;

double microseconds(Nanos nanos) { return static_cast<double>(nanos) / 1000; }

}  // namespace

std::string TraceText::event(std::string_view text) {
  return fmt::format("{}\n{}", std::exchange(is_first_, false) ? "" : ",", text);
}

std::string TraceText::metadata(std::uint64_t process, std::string_view name,
                                std::string_view more) {
  return event(fmt::format(R"({{"name":"process_name","ph":"M","pid":{},"args":{{"name":{}{}}}}})",
                           process, json_text(name), more));
}

std::string TraceText::device(DeviceId id, const DeviceDescription& description) {
  const std::string more = fmt::format(R"(,"device":{},"class":{},"depth":{},"memory":{})",
                                       id.value, json_text(name_of(description.device_class)),
                                       description.queue_depth, description.memory);
  return metadata(kFirstDevice + id.value, fmt::format("device {}: {}", id.value, description.name),
                  more);
}

std::string TraceText::client(ClientId id, std::int32_t process, std::string_view program) {
  return metadata(kFirstClient + id.value, fmt::format("{} ({})", program, process),
                  fmt::format(R"(,"client":{})", id.value));
}

std::size_t TraceText::lane(std::uint64_t process, Nanos from, Nanos until) {
  std::vector<Nanos>& busy = lanes_[process];
  for (std::size_t i = 0; i < busy.size(); ++i) {
    if (busy[i] > from) continue;
    busy[i] = until;
    return i;
  }
  if (busy.size() < kMostLanes) busy.push_back(until);
  return busy.size() - 1;
}

std::string TraceText::slice(std::string_view name, std::uint64_t process, std::size_t lane,
                             Nanos from, Nanos until, std::string_view arguments) {
  const std::string more =
      arguments.empty() ? std::string() : fmt::format(R"(,"args":{{{}}})", arguments);
  return event(fmt::format(R"({{"name":{},"ph":"X","ts":{:.3f},"dur":{:.3f},"pid":{},"tid":{}{}}})",
                           json_text(name), microseconds(from - began_),
                           microseconds(until - from), process, lane, more));
}

std::string TraceText::task(const TraceTask& task) {
  const std::uint64_t device = kFirstDevice + task.device.value;
  const std::uint64_t client = kFirstClient + task.task.client.value;
  const std::size_t on = lane(device, task.granted_at, task.finished_at);
  const std::size_t in = lane(client, task.put_at, task.granted_at);
  const std::string name = task.kernel == 0           ? "no kernel"
                           : task.kernel_name.empty() ? fmt::format("kernel {:016x}", task.kernel)
                                                      : std::string(task.kernel_name);
  const std::string arguments = fmt::format(
      R"("client":{},"task":{},"device":{},"share":{:.4f},"queued_us":{:.3f},"copied":{},)"
      R"("succeeded":{})",
      task.task.client.value, task.task.task, task.device.value, task.share,
      microseconds(task.granted_at - task.put_at), task.copied, task.succeeded);
  std::string out = slice("queued", client, in, task.put_at, task.granted_at,
                          fmt::format(R"("task":{})", task.task.task));
  out += slice(name, device, on, task.granted_at, task.finished_at, arguments);
  const auto copy = [&](const char* what, Nanos from, Nanos until) {
    if (from != 0 && until > from) out += slice(what, device, on, from, until);
  };
  copy("copy in", task.copy_began, task.run_began);
  // Also one that took no time: the daemon's clock stands still while it reads what has arrived.
  if (task.run_began != 0) out += slice("run", device, on, task.run_began, task.run_ended);
  copy("copy out", task.run_ended, task.copy_ended);
  return out;
}

}  // namespace amasia::devices
