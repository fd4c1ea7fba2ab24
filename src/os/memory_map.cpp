// SPDX-License-Identifier: Apache-2.0
#include "os/memory_map.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace amasia::os {
namespace {

void* as_pointer(std::uintptr_t address) { return reinterpret_cast<void*>(address); }

// Not by the C library's function: UCX patches that one in the running process, to hear of memory
// that its registration cache holds, and takes a lock there.
int advise(std::uintptr_t address, Bytes size, int advice) {
  return ::syscall(SYS_madvise, address, size, advice) == 0 ? 0 : errno;
}

}  // namespace

int create_memory_file(const char* name, Bytes size, int* descriptor) noexcept {
  const int made = ::memfd_create(name, MFD_CLOEXEC);
  if (made < 0) return errno;
  if (::ftruncate(made, static_cast<off_t>(size)) != 0) {
    const int reason = errno;
    ::close(made);
    return reason;
  }
  *descriptor = made;
  return 0;
}

void close_memory_file(int descriptor) noexcept { ::close(descriptor); }

int map_shared(int descriptor, Bytes offset, Bytes size, Placement placement,
               std::uintptr_t* address) noexcept {
  int flags = MAP_SHARED | MAP_NORESERVE;
  if (placement == Placement::kAtFreeAddress) flags |= MAP_FIXED_NOREPLACE;
  if (placement == Placement::kReplace) flags |= MAP_FIXED;
  void* const mapped = ::mmap(as_pointer(*address), size, PROT_READ | PROT_WRITE, flags, descriptor,
                              static_cast<off_t>(offset));
  if (mapped == MAP_FAILED) return errno;
  // A kernel before 4.17 takes MAP_FIXED_NOREPLACE for a hint.
  if (placement != Placement::kAnywhere && mapped != as_pointer(*address)) {
    ::munmap(mapped, size);
    return EEXIST;
  }
  *address = reinterpret_cast<std::uintptr_t>(mapped);
  return 0;
}

int map_zeroes(Bytes size, std::uintptr_t* address) noexcept {
  void* const mapped = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return errno;
  ::madvise(mapped, size, MADV_DONTDUMP);
  *address = reinterpret_cast<std::uintptr_t>(mapped);
  return 0;
}

int unmap(std::uintptr_t address, Bytes size) noexcept {
  return ::munmap(as_pointer(address), size) == 0 ? 0 : errno;
}

int guard_page(void* address) noexcept {
  constexpr int kInstallGuard = 102;  // MADV_GUARD_INSTALL, which older headers lack
  if (advise(reinterpret_cast<std::uintptr_t>(address), base::kPageSize, kInstallGuard) == 0) {
    return 0;
  }
  return ::mprotect(address, base::kPageSize, PROT_NONE) == 0 ? 0 : errno;
}

void populate_pages(void* address, Bytes size) noexcept {
  static_cast<void>(advise(reinterpret_cast<std::uintptr_t>(address), size, MADV_POPULATE_WRITE));
}

int drop_pages(std::uintptr_t address, Bytes size) noexcept {
  return advise(address, size, MADV_DONTNEED);
}

int remove_pages(std::uintptr_t address, Bytes size) noexcept {
  return advise(address, size, MADV_REMOVE);
}

int allocated_bytes(int descriptor, Bytes* bytes) noexcept {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) return errno;
  constexpr Bytes kBlock = 512;  // the unit of st_blocks, whatever the file system's own is
  *bytes = static_cast<Bytes>(status.st_blocks) * kBlock;
  return 0;
}

bool is_mapped(const void* address) noexcept {
  unsigned char is_there = 0;
  const auto page = base::round_down(reinterpret_cast<std::uintptr_t>(address), base::kPageSize);
  return ::mincore(as_pointer(page), base::kPageSize, &is_there) == 0;
}

int exclude_from_dumps(std::uintptr_t address, Bytes size) noexcept {
  return advise(address, size, MADV_DONTDUMP);
}

Result<Reservation> Reservation::make(Bytes size) {
  std::uintptr_t mapped = 0;
  if (const int reason = map_zeroes(size, &mapped); reason != 0) {
    return base::errno_error(reason, fmt::format("cannot reserve {} bytes of addresses", size));
  }
  Reservation made;
  made.address_ = as_pointer(mapped);
  made.size_ = size;
  return made;
}

Status keep_addresses_apart(Bytes size) {
  if (size == 0) return base::ok();
  void* const mapped =
      ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped != MAP_FAILED) return base::ok();
  const int reason = errno;
  return base::errno_error(reason, fmt::format("cannot set {} bytes of addresses aside", size));
}

Reservation::~Reservation() {
  if (address_ != nullptr) ::munmap(address_, size_);
}

}  // namespace amasia::os
