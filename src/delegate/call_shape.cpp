// SPDX-License-Identifier: Apache-2.0
#include "delegate/call_shape.hpp"

#include <asm/termbits.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include <cerrno>

namespace amasia::delegate {
namespace {

using enum ShapeKind;

constexpr CallShape values(int number, const char* name) { return {number, name, kValues}; }
constexpr CallShape path(int number, const char* name, std::uint8_t at = 0) {
  return {number, name, kPath, at};
}
constexpr CallShape two_paths(int number, const char* name, std::uint8_t one, std::uint8_t other) {
  return {number, name, kTwoPaths, one, 0, other};
}
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
    CallShape{SYS_readlinkat, "readlinkat", kPathBytes, 1, 3, 2},
    path(SYS_openat, "openat", 1),
    path(SYS_faccessat, "faccessat", 1),
    path(SYS_faccessat2, "faccessat2", 1),
    path(SYS_mkdirat, "mkdirat", 1),
    path(SYS_mknodat, "mknodat", 1),
    path(SYS_unlinkat, "unlinkat", 1),
    path(SYS_fchmodat, "fchmodat", 1),
    path(SYS_fchownat, "fchownat", 1),
    values(SYS_close, "close"),
    values(SYS_lseek, "lseek"),
    values(SYS_ftruncate, "ftruncate"),
    values(SYS_fsync, "fsync"),
    values(SYS_fdatasync, "fdatasync"),
    values(SYS_fadvise64, "fadvise64"),
    values(SYS_fallocate, "fallocate"),
    values(SYS_flock, "flock"),
    values(SYS_fchdir, "fchdir"),
    values(SYS_fchmod, "fchmod"),
    values(SYS_fchown, "fchown"),
    values(SYS_dup, "dup"),
    values(SYS_fcntl, "fcntl"),
    refused(SYS_ioctl, "ioctl", ENOTTY),
    refused(SYS_mmap, "mmap", ENODEV),
    refused(SYS_dup2, "dup2", EBADF),
    refused(SYS_dup3, "dup3", EBADF),
    refused(SYS_utimensat, "utimensat", EPERM),
    refused(SYS_sendfile, "sendfile", EINVAL),
};

constexpr std::array kPathCalls{
    path(SYS_open, "open"),
    path(SYS_creat, "creat"),
    path(SYS_access, "access"),
    path(SYS_chdir, "chdir"),
    path(SYS_mkdir, "mkdir"),
    path(SYS_mknod, "mknod"),
    path(SYS_rmdir, "rmdir"),
    path(SYS_unlink, "unlink"),
    path(SYS_chmod, "chmod"),
    path(SYS_chown, "chown"),
    path(SYS_lchown, "lchown"),
    path(SYS_truncate, "truncate"),
    two_paths(SYS_rename, "rename", 0, 1),
    two_paths(SYS_renameat, "renameat", 1, 3),
    two_paths(SYS_renameat2, "renameat2", 1, 3),
    two_paths(SYS_link, "link", 0, 1),
    two_paths(SYS_linkat, "linkat", 1, 3),
    two_paths(SYS_symlink, "symlink", 0, 1),
    two_paths(SYS_symlinkat, "symlinkat", 0, 2),
    CallShape{SYS_readlink, "readlink", kPathBytes, 0, 2, 1},
    CallShape{SYS_stat, "stat", kPathOut, 0, 0, 1, sizeof(struct stat)},
    CallShape{SYS_lstat, "lstat", kPathOut, 0, 0, 1, sizeof(struct stat)},
    CallShape{SYS_statfs, "statfs", kPathOut, 0, 0, 1, sizeof(struct statfs)},
    CallShape{SYS_getcwd, "getcwd", kBytesOut, 0, 1},
    values(SYS_umask, "umask"),
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
    refused(SYS_vfork, "vfork", EPERM),
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
std::span<const CallShape> path_call_shapes() { return kPathCalls; }

const CallShape* shape_of(int number, const std::array<std::uint64_t, 6>& arguments) {
  const auto command = static_cast<unsigned>(arguments[1]);
  if (number == SYS_ioctl && command == TCGETS) return &kTerminalQuery;
  if (number == SYS_ioctl && command == FIONREAD) return &kPendingQuery;
  if (number == SYS_fcntl && command == F_GETLK) return &kLockQuery;
  if (number == SYS_fcntl && (command == F_SETLK || command == F_SETLKW)) return &kLockCommand;
  const CallShape* shape = find(kDescriptorCalls, number);
  return shape != nullptr ? shape : find(kPathCalls, number);
}

}  // namespace amasia::delegate
