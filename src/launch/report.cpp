// SPDX-License-Identifier: Apache-2.0
#include "launch/report.hpp"

#include <fcntl.h>
#include <sys/stat.h>
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

// A reader that waits for the file never sees half of it.
std::string partial_of(const std::string& destination) { return destination + ".partial"; }

os::Descriptor create(const std::string& path) {
  return os::Descriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
}

// What is written to and not replaced: /dev/null, a pipe, a link such as /dev/stdout, which may
// lead to a file that has text already.
bool is_written_through(const std::string& path) {
  struct stat there;
  return ::lstat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode) &&
         !S_ISDIR(there.st_mode) && ::access(path.c_str(), W_OK) == 0;
}

}  // namespace

Status write_statistics(const std::string& destination, const base::JobStatistics& job) {
  if (destination.empty()) return base::ok();
  if (destination == "-") return write_all(STDERR_FILENO, to_table(job), "standard error");
  const std::string quoted = "'" + destination + "'";
  if (is_written_through(destination)) {
    os::Descriptor file(::open(destination.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
    if (!file.valid()) return base::errno_error(errno, "cannot write the statistics to " + quoted);
    return write_all(file.get(), to_json(job), quoted);
  }
  const std::string partial = partial_of(destination);
  os::Descriptor file = create(partial);
  if (!file.valid()) return base::errno_error(errno, "cannot write the statistics to " + quoted);
  Status written = write_all(file.get(), to_json(job), quoted);
  if (written.ok() && ::rename(partial.c_str(), destination.c_str()) != 0) {
    written = base::errno_error(errno, "cannot write the statistics to " + quoted);
  }
  if (!written.ok()) ::unlink(partial.c_str());
  return written;
}

Status check_statistics_destination(const std::string& destination) {
  if (destination.empty() || destination == "-") return base::ok();
  const std::string what = "--stats: cannot write to '" + destination + "'";
  // Not opened: a pipe would wait for its reader, which would see an end.
  if (is_written_through(destination)) return base::ok();
  struct stat there;
  // rename() replaces any file but a folder.
  if (::stat(destination.c_str(), &there) == 0 && S_ISDIR(there.st_mode)) {
    return base::errno_error(EISDIR, what);
  }
  const std::string partial = partial_of(destination);
  if (!create(partial).valid()) return base::errno_error(errno, what);
  ::unlink(partial.c_str());
  return base::ok();
}

}  // namespace amasia::launch
