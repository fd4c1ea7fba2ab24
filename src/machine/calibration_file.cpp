// SPDX-License-Identifier: Apache-2.0
#include "machine/calibration_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "os/os.hpp"

namespace amasia::machine {
namespace {

constexpr std::size_t kMostBytes = 4 * base::kMiB;  // far more than kMostCalibrations take

std::string quoted(const std::string& path) { return "'" + path + "'"; }

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Status make_folder(const std::string& folder) {
  for (std::size_t at = 1; at <= folder.size(); ++at) {
    if (at != folder.size() && folder[at] != '/') continue;
    const std::string part = folder.substr(0, at);
    if (::mkdir(part.c_str(), 0777) == 0 || errno == EEXIST) continue;
    // One that is there may be where nothing can be made: what counts is the last one.
    const int why = errno;
    struct stat found {};
    if (::stat(part.c_str(), &found) != 0) {
      return base::errno_error(why, "cannot make the folder " + quoted(part));
    }
  }
  return base::ok();
}

Status write_all(int descriptor, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return base::errno_error(errno, "cannot write " + quoted(path));
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return base::ok();
}

}  // namespace

std::string calibration_path(const std::string& chosen) {
  if (!chosen.empty()) return chosen;
  constexpr const char* kName = "/amasia/calibration.json";
  // The rule of the XDG base directories: a path that is not absolute counts as not set.
  if (const char* folder = std::getenv("XDG_CONFIG_HOME"); folder != nullptr && *folder == '/') {
    return std::string(folder) + kName;
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/') {
    return std::string(home) + "/.config" + kName;
  }
  return "";
}

Result<std::vector<Calibration>> load_calibrations(const std::string& path) {
  const os::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid() && (errno == ENOENT || errno == ENOTDIR)) return std::vector<Calibration>();
  const std::string name = "the calibration file " + quoted(path);
  if (!file.valid()) return base::errno_error(errno, "cannot read " + name);
  const Result<std::string> text = os::read_to_end(file, kMostBytes);
  if (!text.ok() && text.error().code == EFBIG) {
    return Error{name + " is larger than any of amasia's", 0};
  }
  if (!text.ok()) return base::errno_error(text.error().code, "cannot read " + name);
  auto parsed = parse_calibrations(text.value());
  if (!parsed.ok()) {
    return Error{name + " " + parsed.error().message +
                     "; remove it, or name another one with "
                     "--calibration",
                 0};
  }
  return parsed;
}

Status store_calibration(const std::string& path, Calibration calibration) {
  auto all = load_calibrations(path);
  if (!all.ok()) return all.error();
  add_calibration(all.value(), std::move(calibration));
  if (const Status made = make_folder(folder_of(path)); !made.ok()) return made;
  const std::string partial = path + "." + std::to_string(::getpid()) + ".partial";
  os::Descriptor file(::open(partial.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file.valid()) return base::errno_error(errno, "cannot write " + quoted(path));
  Status written = write_all(file.get(), to_json(all.value()), path);
  file.close();
  if (written.ok() && ::rename(partial.c_str(), path.c_str()) != 0) {
    written = base::errno_error(errno, "cannot write " + quoted(path));
  }
  if (!written.ok()) ::unlink(partial.c_str());
  return written;
}

Status check_can_store(const std::string& path) {
  if (path.empty()) {
    return Error{
        "there is no place for the calibration: neither XDG_CONFIG_HOME nor HOME is set "
        "(--calibration names a file)",
        0};
  }
  if (const auto all = load_calibrations(path); !all.ok()) return all.error();
  const std::string folder = folder_of(path);
  if (const Status made = make_folder(folder); !made.ok()) return made;
  struct stat found {};
  if (::stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode)) {
    return base::errno_error(EISDIR, "cannot write " + quoted(path));
  }
  if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    return base::errno_error(errno, "cannot write " + quoted(path));
  }
  return base::ok();
}

}  // namespace amasia::machine
