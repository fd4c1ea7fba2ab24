// SPDX-License-Identifier: Apache-2.0
// What the engine needs of the machine to control access to the view: the seam between tiers
// (full userfaultfd, user-mode-only, SIGSEGV with mprotect).
//
// A page's access in the view is one of: none, read, read and write. The engine never asks what it
// is; the protocol knows. A tier owes these:
//   T1  After unmap() returns, every access to the page raises a fault, and every earlier store is
//       in the file. Also for a page that nobody ever touched.
//   T2  After protect() returns, every store raises a fault and every earlier store is in the file;
//       loads raise one at most if the page was not mapped.
//   T3  A fault is reported at least once for each thread that waits, until it is woken; a fault
//       may be reported although the access would be allowed by now.
//   T4  At start, pages whose home is this node have full access, all others none.
#pragma once

#include <cstddef>
#include <span>

#include "dsm/address_space.hpp"

namespace amasia::dsm {

struct Fault {
  PageIndex page{};
  int thread_id = 0;
  bool write = false;
};

enum class Install { kReadOnly, kWritable };

// One thread at a time (the engine's lock). Each call takes a run within one segment and returns 0
// or errno; an error means that the page's threads cannot go on.
class PageAccess {
 public:
  virtual ~PageAccess() = default;

  // Readable when next_faults() has something.
  virtual int event_descriptor() const = 0;
  // Without blocking; how many faults were stored.
  virtual std::size_t next_faults(std::span<Fault> faults) = 0;

  virtual int protect(PageRun run) = 0;
  virtual int unmap(PageRun run) = 0;
  // Gives the view this access to pages whose content is in the file. Raises the access of mapped
  // pages too. `*woke` is set if all threads that wait for the run have been woken by it.
  virtual int install(PageRun run, Install access, bool* woke) = 0;
  virtual int wake(PageRun run) = 0;
};

}  // namespace amasia::dsm
