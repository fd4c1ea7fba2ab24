// SPDX-License-Identifier: Apache-2.0
// What a thread gives to the others at the end of a single construct with copyprivate.
//
// The compiler's call has the addresses of the variables and a function that copies from one list
// of addresses to another, but no sizes. Private variables are on managed stacks, where every node
// can read them. Threadprivate ones are thread-local: another node has memory of a thread of its
// own at that address. So the giver copies the part of its thread-local block that they lie in to
// managed memory, whatever their sizes, and gives other nodes a list that points there.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/base.hpp"
#include "omp/services.hpp"

namespace amasia::omp {

// The variables as the compiler passes them: the addresses of `count` ones in `data`; count 0: the
// address of the only one is `data` itself.
struct PrivateList {
  void* data = nullptr;
  std::size_t count = 0;
};

// Made by the giver, and read by threads of other nodes until it ends; the object itself only by
// take(), for which it must lie on the giver's managed stack.
//
// An object may point into itself (std::string): such words point into the image, too. A pointer
// that a program copies as a value, and that leads to a thread-local variable, has no meaning on
// another node: take() finds it in the taker's copy, and the job ends with a sentence.
class GivenCopies {
 public:
  // On the giver. Ends the job if a variable is neither managed nor in a thread-local block.
  GivenCopies(Services& services, PrivateList list);
  // The same for gcc, whose call has a struct on the giver's stack: values of scalars and addresses
  // of the other variables, as its own code knows. `window` begins with the struct and ends
  // wherever. Words in it that point into thread-local memory point to the image in list().
  GivenCopies(Services& services, std::span<void* const> window);
  ~GivenCopies();
  GivenCopies(const GivenCopies&) = delete;
  GivenCopies& operator=(const GivenCopies&) = delete;

  // What is there for other nodes: the list or window itself if it has no thread-local addresses.
  void* list() const { return data_; }

  // On the giver: remembers what it gives; and whether others have left it as it was.
  void keep();
  bool kept() const;

  // On a thread of another node: copies to its variables by copy(to, from).
  void take(Services& services, PrivateList to, void (*copy)(void* to, void* from)) const;

 private:
  // A block of thread-local memory and where its bytes from `begin` on are for other nodes.
  struct Image {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    std::uintptr_t shared = 0;
  };
  static constexpr std::size_t kMaxImages = 16;  // modules whose variables one construct copies

  void cover(void* address, std::span<std::byte> block);
  void share(std::span<void* const> list);
  void fill(const Image& image) const;
  void* translate(void* address) const;

  Services& services_;  // the giver's; of no use to others
  void* data_;
  Image images_[kMaxImages];
  std::size_t image_count_ = 0;
  void** list_ = nullptr;  // shared, when there are images and a list
  std::vector<std::vector<std::byte>> kept_;  // of each image
};

}  // namespace amasia::omp
