// SPDX-License-Identifier: Apache-2.0
// A file descriptor with one owner.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "base/base.hpp"

namespace amasia::os {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      close();
      number_ = std::exchange(other.number_, -1);
    }
    return *this;
  }
  ~Descriptor() { close(); }

  int get() const { return number_; }
  bool valid() const { return number_ >= 0; }
  int release() { return std::exchange(number_, -1); }
  void close() noexcept;

 private:
  int number_ = -1;
};

// What is left of the file, at most `most` bytes of it: if there are more, EFBIG. Blocks as read(2)
// does; an interrupted read goes on. Errors carry errno and no name: the caller knows the file's.
Result<std::string> read_to_end(const Descriptor& file, std::size_t most);

// Copies what is in a pipe now to another descriptor, and waits for its writers no longer. Waits up
// to a second at a time for the other one to take something; what it does not take then is lost.
void pass_on(int pipe, int to) noexcept;

}  // namespace amasia::os
