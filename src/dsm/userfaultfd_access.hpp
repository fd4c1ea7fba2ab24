// SPDX-License-Identifier: Apache-2.0
// PageAccess over a full userfaultfd: the kernel's own accesses to absent pages wait too.
#pragma once

#include <memory>

#include "dsm/page_access.hpp"
#include "os/os.hpp"

namespace amasia::dsm {

class UserfaultfdAccess final : public PageAccess {
 public:
  // Registers all segments of `space`, which must outlive the result. Fails with a sentence.
  static Result<std::unique_ptr<UserfaultfdAccess>> make(AddressSpace& space);

  int event_descriptor() const override { return userfaultfd_.descriptor(); }
  std::size_t next_faults(std::span<Fault> faults) override;
  int protect(PageRun run) override;
  int unmap(PageRun run) override;
  int install(PageRun run, Install access, bool* woke) override;
  int wake(PageRun run) override;

 private:
  UserfaultfdAccess(AddressSpace& space, os::Userfaultfd userfaultfd)
      : space_(space), userfaultfd_(std::move(userfaultfd)) {}
  Status register_segment(AddressRange range, os::Registration registration);
  void fill_holes(PageRun run) const;
  std::uintptr_t begin(PageRun run) const {
    return reinterpret_cast<std::uintptr_t>(space_.address_of(run.first));
  }

  AddressSpace& space_;
  os::Userfaultfd userfaultfd_;
};

}  // namespace amasia::dsm
