// SPDX-License-Identifier: Apache-2.0
// How the arguments of a system call on a descriptor travel to the origin and back: pure.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/base.hpp"

namespace amasia::delegate {

enum class ShapeKind : std::uint8_t {
  kValues,     // no pointer among the arguments
  kBytesIn,    // argument `pointer` points to as many bytes as argument `length` says, read by it
  kBytesOut,   // the same, written by it
  kPath,       // argument `pointer` is a path
  kTwoPaths,   // arguments `pointer` and `out_pointer` are paths
  kPathBytes,  // `pointer` is a path; as many bytes as `length` says are written to `out_pointer`
  kPathOut,    // `pointer` is a path; `out_size` bytes are written to argument `out_pointer`
  kFixedOut,   // `out_size` bytes are written to argument `out_pointer`
  kVectorIn,   // argument 1 is an array of argument 2 iovecs, read by it
  kVectorOut,  // the same, written by it
  kRefused,    // cannot be carried: fails with `refusal`
};

struct CallShape {
  int number;
  const char* name;
  ShapeKind kind;
  std::uint8_t pointer = 0;
  std::uint8_t length = 0;
  std::uint8_t out_pointer = 0;
  std::uint16_t out_size = 0;
  int refusal = 0;  // an errno
};

// Every call that is delegated or refused when a node other than the origin makes it on one of the
// program's descriptors.
std::span<const CallShape> descriptor_call_shapes();
// Calls that have no descriptor, or one that is not their first argument. What paths mean is the
// origin's, and so are working directory and file mode mask. Some make a descriptor out of nothing
// but a path, others are refused since they would make one elsewhere.
std::span<const CallShape> path_call_shapes();

// The shape of one call as it was made: fcntl and ioctl depend on their command. nullptr: unknown.
const CallShape* shape_of(int number, const std::array<std::uint64_t, 6>& arguments);

}  // namespace amasia::delegate
