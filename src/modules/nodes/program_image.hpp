// SPDX-License-Identifier: Apache-2.0
// Where the code of a callable is, told in a way that means the same on every node: nodes are of
// one program, whose executable and libraries may lie at different addresses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/base.hpp"

namespace amasia::nodes {

// A function as the number of its object, in the loader's order, and its offset in that.
struct CodePosition {
  std::uint64_t offset = 0;
  std::uint64_t object = 0;
};

// The executable and the libraries that are loaded when it is made; any thread afterwards.
class ProgramImage {
 public:
  // Reads what the loader knows.
  static ProgramImage of_this_process();

  // nullopt: it is in no code of these objects, such as that of a library that was opened later.
  std::optional<CodePosition> position_of(const void* function) const;
  // nullptr: there is no code there.
  const void* function_at(CodePosition position) const;
  // One line for each object: file name, build id (or "" and the size of its code).
  const std::string& description() const { return description_; }

 private:
  struct Code {
    std::uintptr_t begin, end;
  };
  struct Object {
    std::uintptr_t load_address = 0;
    std::vector<Code> code;
  };
  std::vector<Object> objects_;
  std::string description_;
};

// Whether two nodes' descriptions are of one program. The error is a sentence that names the file
// that differs, and how.
Status compare_images(std::string_view mine, NodeId me, std::string_view theirs, NodeId them);

}  // namespace amasia::nodes
