// SPDX-License-Identifier: Apache-2.0
#include "os/private_directory.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "os/free_memory.hpp"

namespace amasia::os {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
// The code of an error: somebody has removed what was there a moment ago.
constexpr int kRemoved = EAGAIN;

Status make_private_directory(const std::string& path, mode_t permissions) {
  if (::mkdir(path.c_str(), permissions) == 0) {
    // mkdir takes the umask's bits away.
    if (::chmod(path.c_str(), permissions) == 0) return base::ok();
    if (errno == ENOENT) return Error{"", kRemoved};
    return base::errno_error(errno, fmt::format("cannot set the permissions of '{}'", path));
  }
  if (errno != EEXIST) {
    return base::errno_error(errno, fmt::format("cannot make the directory '{}'", path));
  }
  struct stat state{};
  if (::lstat(path.c_str(), &state) != 0) {
    if (errno == ENOENT) return Error{"", kRemoved};
    return base::errno_error(errno, fmt::format("cannot look at '{}'", path));
  }
  if (!S_ISDIR(state.st_mode) || state.st_uid != ::geteuid() || (state.st_mode & 022) != 0) {
    return Error{fmt::format("'{}' is not a directory of user {} that others cannot write", path,
                             ::geteuid()),
                 EPERM};
  }
  return base::ok();
}

}  // namespace

Result<Descriptor> lock_directory(const std::string& path) {
  Descriptor directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!directory.valid()) return base::errno_error(errno, fmt::format("cannot open '{}'", path));
  while (::flock(directory.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return base::errno_error(errno, fmt::format("cannot lock '{}'", path));
  }
  struct stat held{}, there{};
  if (::fstat(directory.get(), &held) != 0 || ::stat(path.c_str(), &there) != 0 ||
      held.st_ino != there.st_ino || held.st_dev != there.st_dev) {
    return Error{fmt::format("'{}' was removed while its lock was waited for", path), ENOENT};
  }
  return directory;
}

Result<Descriptor> lock_private_directory(const std::string& path, mode_t permissions) {
  constexpr int kAttempts = 1000;  // each but the last: somebody else has got on meanwhile
  for (int attempt = 1;; ++attempt) {
    const Status made = make_private_directory(path, permissions);
    if (!made.ok() && made.error().code != kRemoved) return made.error();
    if (made.ok()) {
      auto lock = lock_directory(path);
      if (lock.ok() || lock.error().code != ENOENT) return lock;
    }
    if (attempt == kAttempts) {
      return Error{fmt::format("'{}' is removed again and again", path), EAGAIN};
    }
  }
}

Result<Descriptor> make_sealed_memory(const char* name, Bytes size) {
  Descriptor made(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!made.valid()) return base::errno_error(errno, "cannot make a file in memory");
  const FreeMemory free = free_memory();
  if (free.available != 0 && size > free.available + free.swap) {
    return base::errno_error(ENOMEM, fmt::format("cannot have {} bytes of shared memory ({} are "
                                                 "free)",
                                                 size, free.available + free.swap));
  }
  const int reason = ::posix_fallocate(made.get(), 0, static_cast<off_t>(size));
  if (reason != 0) {
    return base::errno_error(reason, fmt::format("cannot have {} bytes of shared memory", size));
  }
  if (::fcntl(made.get(), F_ADD_SEALS, kSeals) != 0) {
    return base::errno_error(errno, "cannot seal a file in memory");
  }
  return made;
}

Result<Bytes> sealed_memory_size(int descriptor) {
  const int seals = ::fcntl(descriptor, F_GET_SEALS);
  struct stat state{};
  if (seals < 0 || (seals & kSeals) != kSeals || ::fstat(descriptor, &state) != 0) {
    return Error{"the descriptor is not of sealed memory", EINVAL};
  }
  return static_cast<Bytes>(state.st_size);
}

}  // namespace amasia::os
