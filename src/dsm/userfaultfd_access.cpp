// SPDX-License-Identifier: Apache-2.0
#include "dsm/userfaultfd_access.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

namespace amasia::dsm {
namespace {

Bytes bytes(PageRun run) { return run.count * base::kPageSize; }

}  // namespace

Result<std::unique_ptr<UserfaultfdAccess>> UserfaultfdAccess::make(AddressSpace& space) {
  auto opened = os::Userfaultfd::open();
  if (!opened.ok()) return opened.error();
  std::unique_ptr<UserfaultfdAccess> access(
      new UserfaultfdAccess(space, std::move(opened).value()));
  if (space.node_count() == 1) return access;  // nobody else can ever hold a page
  const auto of_home = [&](NodeId home) {
    return home == space.self() ? os::Registration::kPresent : os::Registration::kAll;
  };
  Status status = base::ok();
  const auto add = [&](AddressRange range, os::Registration registration) {
    if (status.ok()) status = access->register_segment(range, registration);
  };
  for (std::size_t i = 0; i < space.global_range_count(); ++i) {
    add(space.global_range(i), of_home(base::kOrigin));
  }
  // Stripes are registered alike on every node: registered each as its home wants it, they would be
  // more mappings than the kernel allows. So a hole of one is filled here, not by the kernel.
  const AddressRange spread = space.spread(), first = space.arena(base::kOrigin);
  add({first.begin, spread.begin}, of_home(base::kOrigin));
  add(spread, os::Registration::kAll);
  add({spread.end, first.end}, of_home(base::kOrigin));
  for (std::uint32_t k = 1; k < space.node_count(); ++k) {
    const NodeId node{static_cast<NodeId::representation>(k)};
    add(space.arena(node), of_home(node));
  }
  if (!status.ok()) return status.error();
  return access;
}

Status UserfaultfdAccess::register_segment(AddressRange range, os::Registration registration) {
  return userfaultfd_.register_range(range.begin, range.size(), registration);
}

std::size_t UserfaultfdAccess::next_faults(std::span<Fault> faults) {
  std::array<os::PageFault, 32> reported;
  const std::size_t room = std::min(faults.size(), reported.size());
  const std::size_t count = userfaultfd_.read_faults({reported.data(), room});
  for (std::size_t i = 0; i < count; ++i) {
    const auto page = space_.page_of(reported[i].address);
    AMASIA_CHECK(page.has_value(), "only managed memory is registered");
    faults[i] = Fault{*page, reported[i].thread_id, reported[i].write};
  }
  return count;
}

// Memory at its home is registered without missing faults, so that untouched pages cost nothing:
// the kernel fills a hole without a word. Before rights to such a page are taken from the program
// it must be a page of the file, or a thread could get it back unseen right after the zap.
void UserfaultfdAccess::fill_holes(PageRun run) const {
  if (space_.home_of(run.first) != space_.self()) return;
  for (PageCount i = 0; i < run.count; ++i) {
    const auto* const byte = reinterpret_cast<const volatile std::byte*>(
        space_.alias_of(PageIndex{run.first.value + i}));
    static_cast<void>(*byte);
  }
}

int UserfaultfdAccess::protect(PageRun run) {
  fill_holes(run);
  return userfaultfd_.protect(begin(run), bytes(run));
}

int UserfaultfdAccess::unmap(PageRun run) {
  fill_holes(run);
  return os::drop_pages(begin(run), bytes(run));
}

int UserfaultfdAccess::install(PageRun run, Install access, bool* woke) {
  const auto mapping =
      access == Install::kWritable ? os::Mapping::kWritable : os::Mapping::kReadOnly;
  const std::uintptr_t first = begin(run);
  const Bytes size = bytes(run);
  if (space_.is_spread(run.first) && space_.home_of(run.first) == space_.self()) {
    os::populate_pages(space_.alias_of(run.first), size);
  }
  *woke = true;
  // Stacks have guard pages, so that a run may lie in several mappings of the kernel, which it
  // answers with ENOENT: page by page then.
  Bytes step = size;
  for (Bytes done = 0; done < size;) {
    Bytes mapped = 0;
    const int reason =
        userfaultfd_.map(first + done, std::min(step, size - done), mapping, &mapped);
    done += mapped;
    if (reason == 0) continue;
    if (reason == ENOENT && step > base::kPageSize) {
      step = base::kPageSize;
      continue;
    }
    if (reason != EEXIST) return reason;
    // Mapped already: an upgrade, or a fault that the kernel reported late. Nobody was woken.
    if (access == Install::kWritable) {
      const int failed = userfaultfd_.unprotect(first + done, base::kPageSize);
      if (failed != 0) return failed;
    } else {
      *woke = false;
    }
    done += base::kPageSize;
  }
  return 0;
}

int UserfaultfdAccess::wake(PageRun run) { return userfaultfd_.wake(begin(run), bytes(run)); }

}  // namespace amasia::dsm
