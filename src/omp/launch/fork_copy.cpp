// SPDX-License-Identifier: Apache-2.0
#include "omp/launch/fork_copy.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "os/os.hpp"

namespace amasia::omp {
namespace {

constexpr std::uint64_t kPresent = std::uint64_t{1} << 63;  // Documentation/admin-guide/mm/pagemap
constexpr std::size_t kEntries = 512;                       // read at a time
constexpr std::size_t kMaxRuns = 100'000;  // 1.6 MB, of the 4 MiB that a message may have
constexpr PageCount kGap = 8;

void* pointer(std::uintptr_t address) { return reinterpret_cast<void*>(address); }

// Joins runs in one segment with at most `gap` pages between them.
void join(std::vector<dsm::PageRun>& runs, PageCount gap, const dsm::AddressSpace& space) {
  std::vector<dsm::PageRun> joined;
  for (const dsm::PageRun& run : runs) {
    if (!joined.empty()) {
      dsm::PageRun& last = joined.back();
      const dsm::PageRun both{last.first, run.first.value + run.count - last.first.value};
      if (both.count - last.count - run.count <= gap && space.is_valid(both)) {
        last = both;
        continue;
      }
    }
    joined.push_back(run);
  }
  runs = std::move(joined);
}

bool replace(dsm::AddressRange range) {
  return mmap(pointer(range.begin), range.size(), PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED;
}

}  // namespace

std::vector<dsm::PageRun> touched_runs(const dsm::AddressSpace& space) {
  std::vector<dsm::PageRun> runs;
  const auto add = [&](dsm::AddressRange range) {
    const PageIndex first = *space.page_of(range.begin);
    const auto begin = static_cast<off_t>(first.value * base::kPageSize);
    const off_t end = begin + static_cast<off_t>(range.size());
    const int file = space.file_descriptor();
    for (off_t at = lseek(file, begin, SEEK_DATA); at >= 0 && at < end;) {
      const off_t stop = std::min(lseek(file, at, SEEK_HOLE), end);
      runs.push_back({PageIndex{static_cast<std::uint64_t>(at) / base::kPageSize},
                      static_cast<PageCount>(stop - at) / base::kPageSize});
      at = lseek(file, stop, SEEK_DATA);
    }
  };
  for (std::size_t i = 0; i < space.global_range_count(); ++i) add(space.global_range(i));
  for (std::uint16_t node = 0; node < space.node_count(); ++node) add(space.arena(NodeId{node}));
  for (PageCount gap = kGap; runs.size() > kMaxRuns; gap *= 2) join(runs, gap, space);
  return runs;
}

Result<ForkCopy> ForkCopy::prepare(const dsm::AddressSpace& space) {
  ForkCopy copy(space);
  for (std::size_t i = 0; i < space.global_range_count(); ++i) {
    if (const Status added = copy.add_segment(space.global_range(i)); !added.ok()) {
      return added.error();
    }
  }
  for (std::uint16_t node = 0; node < space.node_count(); ++node) {
    if (const Status added = copy.add_segment(space.arena(NodeId{node})); !added.ok()) {
      return added.error();
    }
  }
  return copy;
}

Status ForkCopy::add_segment(dsm::AddressRange range) {
  const os::Descriptor pagemap(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
  if (!pagemap.valid()) return base::errno_error(errno, "cannot open /proc/self/pagemap");
  const PageIndex first = *space_->page_of(range.begin);
  const auto begin = static_cast<off_t>(first.value * base::kPageSize);
  const off_t end = begin + static_cast<off_t>(range.size());
  const int file = space_->file_descriptor();
  const std::size_t of_others = runs_.size();
  // Extents that the file has content for; all else was never touched.
  for (off_t at = lseek(file, begin, SEEK_DATA); at >= 0 && at < end;) {
    const off_t stop = std::min(lseek(file, at, SEEK_HOLE), end);
    while (at < stop) {
      std::array<std::uint64_t, kEntries> entries;
      const auto wanted =
          std::min<std::size_t>(kEntries, static_cast<std::size_t>(stop - at) / base::kPageSize);
      const std::uintptr_t address = range.begin + static_cast<std::uintptr_t>(at - begin);
      const ssize_t got = pread(pagemap.get(), entries.data(), wanted * sizeof(std::uint64_t),
                                static_cast<off_t>(address / base::kPageSize * 8));
      if (got <= 0) return base::errno_error(errno, "cannot read /proc/self/pagemap");
      for (std::size_t i = 0; i < static_cast<std::size_t>(got) / 8; ++i) {
        const bool held = (entries[i] & kPresent) != 0;
        const PageIndex page{static_cast<std::uint64_t>(at) / base::kPageSize};
        // Pages that follow each other in the file need not do so in the view.
        if (runs_.size() > of_others && runs_.back().held == held &&
            runs_.back().pages.first.value + runs_.back().pages.count == page.value) {
          ++runs_.back().pages.count;
        } else {
          runs_.push_back({{page, 1}, held});
        }
        at += base::kPageSize;
      }
    }
    at = lseek(file, stop, SEEK_DATA);
  }
  return base::ok();
}

std::vector<dsm::PageRun> ForkCopy::missing() const {
  std::vector<dsm::PageRun> runs;
  for (const Run& run : runs_) {
    if (!run.held) runs.push_back(run.pages);
  }
  return runs;
}

bool ForkCopy::carry_out() const {
  for (std::size_t i = 0; i < space_->global_range_count(); ++i) {
    if (!replace(space_->global_range(i))) return false;
  }
  for (std::uint16_t node = 0; node < space_->node_count(); ++node) {
    if (!replace(space_->arena(NodeId{node}))) return false;
  }
  for (const Run& run : runs_) {
    std::byte* const view = space_->address_of(run.pages.first);
    const Bytes length = run.pages.count * base::kPageSize;
    if (run.held) {
      std::memcpy(view, space_->alias_of(run.pages.first), length);
    } else if (mprotect(view, length, PROT_NONE) != 0) {
      return false;
    }
  }
  return true;
}

}  // namespace amasia::omp
