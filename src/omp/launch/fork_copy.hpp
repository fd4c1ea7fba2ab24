// SPDX-License-Identifier: Apache-2.0
// A child of fork(). Managed memory is shared mappings, which a child would share with its parent;
// it gets private copies of the pages that this node holds instead. Pages that other nodes hold
// cannot be copied: a child that touches one dies of SIGSEGV, as there is nobody to ask for it.
#pragma once

#include <vector>

#include "base/base.hpp"
#include "dsm/dsm.hpp"

namespace amasia::omp {

// Which pages of managed memory this node holds: taken in the parent, used in the child.
class ForkCopy {
 public:
  // In the parent, before fork. Reads the process's page table entries of all pages that the
  // managed file has; some 10 ns a page. Runtime section.
  static Result<ForkCopy> prepare(const dsm::AddressSpace& space);

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
