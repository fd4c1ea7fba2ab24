// SPDX-License-Identifier: Apache-2.0
// A child of fork(). Managed memory is shared mappings, which a child would share with its parent;
// it gets private copies of the pages that this node holds instead. So all memory is fetched before
// the fork (NodeProcess::fetch_memory). A page that another node takes back in between cannot be
// copied: a child that touches it dies of SIGSEGV, as there is nobody to ask for it.
#pragma once

#include <vector>

#include "base/base.hpp"
#include "dsm/dsm.hpp"

namespace amasia::omp {

// The runs of pages that this node's managed file has content for, old or new, and few pages
// between them; each in one segment. Bounded to what a message carries. Any thread.
std::vector<dsm::PageRun> touched_runs(const dsm::AddressSpace& space);

// Which pages of managed memory this node holds: taken in the parent, used in the child.
class ForkCopy {
 public:
  // In the parent, before fork. Reads the process's page table entries of all pages that the
  // managed file has; some 10 ns a page. Runtime section.
  static Result<ForkCopy> prepare(const dsm::AddressSpace& space);

  // The pages among them that this node did not hold then.
  std::vector<dsm::PageRun> missing() const;

  // In the child: replaces all managed memory by private memory with the same content. The parent's
  // forking thread must wait meanwhile. Runtime section. Allocates nothing.
  bool carry_out() const;

 private:
  struct Run {
    dsm::PageRun pages;
    bool held = false;  // false: the file has old content, another node has the page
  };
  explicit ForkCopy(const dsm::AddressSpace& space) : space_(&space) {}
  Status add_segment(dsm::AddressRange range);

  const dsm::AddressSpace* space_;
  std::vector<Run> runs_;
};

}  // namespace amasia::omp
