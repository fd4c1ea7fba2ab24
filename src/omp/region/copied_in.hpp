// SPDX-License-Identifier: Apache-2.0
// Thread-local variables of the forking thread that a region copies in.
//
// At their addresses other nodes have memory of threads of their own. So the part of the thread's
// block that they lie in is copied to managed memory, and the words that lead there are changed to
// lead to that image, for the time of the region. The forking thread itself does not copy: gcc's
// code asks for its number, clang's compares the address, so it must have its own.
#pragma once

#include <span>
#include <vector>

#include "base/base.hpp"
#include "omp/services.hpp"
#include "omp/team/copy_private.hpp"

namespace amasia::omp {

class CopiedIn {
 public:
  // On the forking thread. Each of `places` holds the address of a thread-local variable of it, and
  // that of the image until this object ends.
  CopiedIn(Services& services, std::span<void** const> places);
  // Ends the job if the region has written to the image: then it was a variable that its threads
  // share, and what they wrote would be lost.
  ~CopiedIn();
  CopiedIn(const CopiedIn&) = delete;
  CopiedIn& operator=(const CopiedIn&) = delete;

 private:
  struct Place {
    void** word;
    void* own;
    void* image;
  };
  Services& services_;
  std::vector<Place> places_;
  std::vector<void*> addresses_;
  GivenCopies copies_;
};

}  // namespace amasia::omp
