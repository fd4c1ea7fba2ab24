// SPDX-License-Identifier: Apache-2.0
#include "launch/report.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string_view>

#include "os/os.hpp"

namespace amasia::launch {
namespace {

Status write_all(int descriptor, std::string_view text, const std::string& name) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return base::errno_error(errno, "cannot write the statistics to " + name);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return base::ok();
}

}  // namespace

Status write_statistics(const std::string& destination, const base::JobStatistics& job) {
  if (destination.empty()) return base::ok();
  if (destination == "-") return write_all(STDERR_FILENO, to_table(job), "standard error");
  // A reader that waits for the file never sees half of it.
  const std::string partial = destination + ".partial";
  const std::string quoted = "'" + destination + "'";
  os::Descriptor file(::open(partial.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file.valid()) return base::errno_error(errno, "cannot write the statistics to " + quoted);
  Status written = write_all(file.get(), to_json(job), quoted);
  if (written.ok() && ::rename(partial.c_str(), destination.c_str()) != 0) {
    written = base::errno_error(errno, "cannot write the statistics to " + quoted);
  }
  if (!written.ok()) ::unlink(partial.c_str());
  return written;
}

}  // namespace amasia::launch
