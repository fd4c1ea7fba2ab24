// SPDX-License-Identifier: Apache-2.0
#include "delegate/call_shape.hpp"

#include <asm/termbits.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>

namespace amasia::delegate {
namespace {

using enum ShapeKind;

constexpr CallShape values(int number, const char* name) { return {number, name, kValues}; }
constexpr CallShape refused(int number, const char* name, int with) {
  return {number, name, kRefused, 0, 0, 0, 0, with};
}

constexpr std::array kDescriptorCalls{
    CallShape{SYS_read, "read", kBytesOut, 1, 2},
    CallShape{SYS_pread64, "pread64", kBytesOut, 1, 2},
    CallShape{SYS_getdents64, "getdents64", kBytesOut, 1, 2},
    CallShape{SYS_write, "write", kBytesIn, 1, 2},
    CallShape{SYS_pwrite64, "pwrite64", kBytesIn, 1, 2},
    CallShape{SYS_readv, "readv", kVectorOut, 1, 2},
    CallShape{SYS_preadv, "preadv", kVectorOut, 1, 2},
    CallShape{SYS_writev, "writev", kVectorIn, 1, 2},
    CallShape{SYS_pwritev, "pwritev", kVectorIn, 1, 2},
    CallShape{SYS_fstat, "fstat", kFixedOut, 0, 0, 1, sizeof(struct stat)},
    CallShape{SYS_newfstatat, "newfstatat", kPathOut, 1, 0, 2, sizeof(struct stat)},
    CallShape{SYS_statx, "statx", kPathOut, 1, 0, 4, sizeof(struct statx)},
    CallShape{SYS_openat, "openat", kPath, 1},
    values(SYS_close, "close"),
    values(SYS_lseek, "lseek"),
    values(SYS_ftruncate, "ftruncate"),
    values(SYS_fsync, "fsync"),
    values(SYS_fdatasync, "fdatasync"),
    values(SYS_fadvise64, "fadvise64"),
    values(SYS_fallocate, "fallocate"),
    values(SYS_flock, "flock"),
    values(SYS_fchmod, "fchmod"),
    values(SYS_fchown, "fchown"),
    values(SYS_dup, "dup"),
    values(SYS_fcntl, "fcntl"),
    refused(SYS_ioctl, "ioctl", ENOTTY),
    refused(SYS_mmap, "mmap", ENODEV),
    refused(SYS_dup2, "dup2", EBADF),
    refused(SYS_dup3, "dup3", EBADF),
    refused(SYS_sendfile, "sendfile", EINVAL),
};

constexpr std::array kOpeningCalls{
    CallShape{SYS_open, "open", kPath, 0},
    CallShape{SYS_creat, "creat", kPath, 0},
    refused(SYS_socket, "socket", EAFNOSUPPORT),
    refused(SYS_socketpair, "socketpair", EAFNOSUPPORT),
    refused(SYS_pipe, "pipe", EMFILE),
    refused(SYS_pipe2, "pipe2", EMFILE),
    refused(SYS_epoll_create1, "epoll_create1", EMFILE),
    refused(SYS_eventfd2, "eventfd2", EMFILE),
    refused(SYS_memfd_create, "memfd_create", EMFILE),
    // What it starts would be caught as well, with nobody to answer.
    refused(SYS_execve, "execve", EPERM),
    refused(SYS_execveat, "execveat", EPERM),
};

constexpr CallShape kLockQuery{SYS_fcntl, "fcntl", kFixedOut, 0, 0, 2, sizeof(struct flock)};
constexpr CallShape kLockCommand = refused(SYS_fcntl, "fcntl(F_SETLK)", ENOLCK);
// The kernel's termios, which is smaller than the C library's.
constexpr CallShape kTerminalQuery{SYS_ioctl, "ioctl", kFixedOut, 0, 0, 2, sizeof(struct termios)};
constexpr CallShape kPendingQuery{SYS_ioctl, "ioctl", kFixedOut, 0, 0, 2, sizeof(int)};

const CallShape* find(std::span<const CallShape> shapes, int number) {
  for (const CallShape& shape : shapes) {
    if (shape.number == number) return &shape;
  }
  return nullptr;
}

}  // namespace

std::span<const CallShape> descriptor_call_shapes() { return kDescriptorCalls; }
std::span<const CallShape> opening_call_shapes() { return kOpeningCalls; }

const CallShape* shape_of(int number, const std::array<std::uint64_t, 6>& arguments) {
  const auto command = static_cast<unsigned>(arguments[1]);
  if (number == SYS_ioctl && command == TCGETS) return &kTerminalQuery;
  if (number == SYS_ioctl && command == FIONREAD) return &kPendingQuery;
  if (number == SYS_fcntl && command == F_GETLK) return &kLockQuery;
  if (number == SYS_fcntl && (command == F_SETLK || command == F_SETLKW)) return &kLockCommand;
  const CallShape* shape = find(kDescriptorCalls, number);
  return shape != nullptr ? shape : find(kOpeningCalls, number);
}

}  // namespace amasia::delegate
