// SPDX-License-Identifier: Apache-2.0
#include "os/userfaultfd.hpp"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace amasia::os {
namespace {

// Newer than Debian 12's headers.
constexpr std::uint64_t kContinueModeWp = 1ULL << 1;
#ifndef USERFAULTFD_IOC_NEW
#define USERFAULTFD_IOC_NEW _IO(0xAA, 0x00)
#endif

constexpr std::uint64_t kFeatures = UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_MISSING_SHMEM |
                                    UFFD_FEATURE_MINOR_SHMEM | UFFD_FEATURE_WP_HUGETLBFS_SHMEM |
                                    UFFD_FEATURE_THREAD_ID;

int open_descriptor(int* reason) {
  const int flags = O_CLOEXEC | O_NONBLOCK;
  const int made = static_cast<int>(::syscall(SYS_userfaultfd, flags));
  if (made >= 0) return made;
  *reason = errno;
  const int device = ::open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
  if (device < 0) return -1;
  const int from_device = ::ioctl(device, USERFAULTFD_IOC_NEW, flags);
  if (from_device < 0) *reason = errno;
  ::close(device);
  return from_device;
}

// ioctl for a range call that reports an error in errno only.
int range_call(int descriptor, unsigned long request, void* argument) {
  for (;;) {
    if (::ioctl(descriptor, request, argument) == 0) return 0;
    // EAGAIN here: the address space is being changed (mmap, fork) by another thread.
    if (errno != EINTR && errno != EAGAIN) return errno;
  }
}

}  // namespace

Result<Userfaultfd> Userfaultfd::open() {
  int reason = 0;
  const int made = open_descriptor(&reason);
  if (made < 0) {
    return base::errno_error(reason,
                             "userfaultfd is refused (run as root, or set sysctl "
                             "vm.unprivileged_userfaultfd=1, or make /dev/userfaultfd readable, "
                             "and allow the call in containers)");
  }
  Userfaultfd opened;
  opened.descriptor_ = Descriptor(made);
  uffdio_api api{};
  api.api = UFFD_API;
  api.features = kFeatures;
  if (::ioctl(made, UFFDIO_API, &api) != 0) {
    const int refused = errno;
    return base::errno_error(refused,
                             "this kernel's userfaultfd lacks write protection or minor faults of "
                             "shared memory (Linux 5.19 has both)");
  }
  return opened;
}

Status Userfaultfd::register_range(std::uintptr_t begin, Bytes size, Registration registration) {
  uffdio_register request{};
  request.range = {begin, size};
  request.mode = UFFDIO_REGISTER_MODE_MINOR | UFFDIO_REGISTER_MODE_WP;
  if (registration == Registration::kAll) request.mode |= UFFDIO_REGISTER_MODE_MISSING;
  if (::ioctl(descriptor_.get(), UFFDIO_REGISTER, &request) != 0) {
    const int reason = errno;
    return base::errno_error(
        reason, fmt::format("cannot register {:#x}+{:#x} with userfaultfd", begin, size));
  }
  return base::ok();
}

Status Userfaultfd::unregister_range(std::uintptr_t begin, Bytes size) {
  uffdio_range range{begin, size};
  if (::ioctl(descriptor_.get(), UFFDIO_UNREGISTER, &range) != 0) {
    const int reason = errno;
    return base::errno_error(reason, fmt::format("cannot unregister {:#x}+{:#x}", begin, size));
  }
  return base::ok();
}

std::size_t Userfaultfd::read_faults(std::span<PageFault> faults) noexcept {
  std::array<uffd_msg, 32> messages;
  const std::size_t room = std::min(faults.size(), messages.size());
  const ssize_t got = ::read(descriptor_.get(), messages.data(), room * sizeof(uffd_msg));
  if (got <= 0) return 0;
  std::size_t count = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(got) / sizeof(uffd_msg); ++i) {
    const uffd_msg& message = messages[i];
    if (message.event != UFFD_EVENT_PAGEFAULT) continue;
    const auto flags = message.arg.pagefault.flags;
    faults[count++] =
        PageFault{.address = base::round_down(message.arg.pagefault.address, base::kPageSize),
                  .thread_id = static_cast<int>(message.arg.pagefault.feat.ptid),
                  .write = (flags & (UFFD_PAGEFAULT_FLAG_WRITE | UFFD_PAGEFAULT_FLAG_WP)) != 0,
                  .protection = (flags & UFFD_PAGEFAULT_FLAG_WP) != 0};
  }
  return count;
}

int Userfaultfd::map(std::uintptr_t begin, Bytes size, Mapping mapping, Bytes* done) noexcept {
  *done = 0;
  while (*done < size) {
    uffdio_continue request{};
    request.range = {begin + *done, size - *done};
    request.mode = mapping == Mapping::kReadOnly ? kContinueModeWp : 0;
    const bool worked = ::ioctl(descriptor_.get(), UFFDIO_CONTINUE, &request) == 0;
    const int reason = worked ? 0 : errno;
    if (request.mapped > 0) *done += static_cast<Bytes>(request.mapped);
    // EAGAIN: some pages are done (the rest says why at the next try), or the address space is
    // being changed by another thread.
    if (!worked && reason != EAGAIN && reason != EINTR) return reason;
  }
  return 0;
}

int Userfaultfd::change_protection(std::uintptr_t begin, Bytes size, std::uint64_t mode) noexcept {
  uffdio_writeprotect request{};
  request.range = {begin, size};
  request.mode = mode;
  return range_call(descriptor_.get(), UFFDIO_WRITEPROTECT, &request);
}

int Userfaultfd::protect(std::uintptr_t begin, Bytes size) noexcept {
  return change_protection(begin, size, UFFDIO_WRITEPROTECT_MODE_WP);
}

int Userfaultfd::unprotect(std::uintptr_t begin, Bytes size) noexcept {
  return change_protection(begin, size, 0);
}

int Userfaultfd::wake(std::uintptr_t begin, Bytes size) noexcept {
  uffdio_range range{begin, size};
  return range_call(descriptor_.get(), UFFDIO_WAKE, &range);
}

}  // namespace amasia::os
