// SPDX-License-Identifier: Apache-2.0
// What a launch is made of, as functions of values: block and grid, parameters, options of the
// compiler, sizes of memory. Nothing here calls CUDA.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "devices/backends/backend.hpp"
#include "os/os.hpp"

namespace amasia::devices::cuda {

// Threads of a block and blocks of the grid. CUDA has no work sizes that a block does not divide.
struct Shape {
  unsigned block[3] = {1, 1, 1};
  unsigned grid[3] = {1, 1, 1};
};
// Where the user gave no local size choose_group() does.
// The error names the size that is not allowed.
Result<Shape> shape_of(const Work& work, unsigned most_threads, const std::uint64_t* most_in);

// The parameters as cuLaunchKernel takes them. A kLocal argument is no parameter: its size is added
// to the block's dynamic shared memory, which the kernel knows as one extern __shared__ array.
class Parameters {
 public:
  void add_value(const void* bytes, std::size_t size);
  void add_pointer(std::uint64_t address) { add_value(&address, sizeof address); }
  void add_local(std::size_t size) { shared_ += base::round_up(size, 16); }

  std::span<const std::size_t> sizes() const { return sizes_; }
  std::size_t shared_bytes() const { return shared_; }
  // All values, each from a word on, with zeroes behind it.
  std::span<const std::uint64_t> words() const { return words_; }
  // Valid until the next add.
  void** pointers();

 private:
  os::BlockVector<std::uint64_t> words_;
  os::BlockVector<std::size_t> sizes_;
  os::BlockVector<void*> pointers_;
  std::size_t shared_ = 0;
};

// The sizes of the parameters that such arguments become.
std::vector<std::size_t> parameter_sizes(std::span<const ArgumentShape> shapes);
// What is wrong with parameters of the sizes `given` for a kernel that takes `wanted`.
Outcome wrong_parameters(const std::string& kernel, std::span<const std::size_t> wanted,
                         std::span<const std::size_t> given);

// A compiler's command line as words: blanks separate, quotes of both kinds keep together.
std::vector<std::string> split_options(const std::string& options);

// What to compile for on a device of compute capability `device` (90 for 9.0) with a compiler that
// knows `supported`: its own code where it is known, else PTX for the newest that it can run.
struct Target {
  std::string option;   // "--gpu-architecture=sm_90"
  bool is_ptx = false;  // the driver compiles it further
};
std::optional<Target> target_for(int device, std::span<const int> supported);

// Sizes that are freed and asked for again should be the same: at least 256 bytes, powers of two up
// to 64 KiB, then multiples of that. At least `size`; wastes less than half.
Bytes rounded_size(Bytes size);

}  // namespace amasia::devices::cuda
