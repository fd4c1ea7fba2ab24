// SPDX-License-Identifier: Apache-2.0
#include "devices/backends/cuda/cuda_launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "devices/backends/outcomes.hpp"
#include "devices/backends/work_group.hpp"

namespace amasia::devices::cuda {
namespace {

constexpr std::uint64_t kMostBlocks[3] = {(1ULL << 31) - 1, 65535, 65535};

}  // namespace

Result<Shape> shape_of(const Work& work, unsigned most_threads, const std::uint64_t* most_in) {
  Shape shape;
  std::uint64_t threads = 1;
  std::uint64_t chosen[3];
  if (work.local[0] == 0) {
    choose_group(work, {most_threads, {most_in[0], most_in[1], most_in[2]}}, chosen);
  }
  for (unsigned d = 0; d < work.dimensions; ++d) {
    if (work.offset[d] != 0) {
      return Error{fmt::format("a global offset of {}: kernels of CUDA have none", work.offset[d])};
    }
    const std::uint64_t global = work.global[d];
    const std::uint64_t block = work.local[0] == 0 ? chosen[d] : work.local[d];
    if (block == 0 || global == 0 || global % block != 0) {
      return Error{fmt::format("a local size of {} for {} work items in dimension {}: it must "
                               "divide them", block, global, d)};
    }
    threads *= block;
    if (block > most_in[d] || threads > most_threads) {
      return Error{fmt::format("a local size of {} in dimension {}, {} threads a block so far: at "
                               "most {} and {}", block, d, threads, most_in[d], most_threads)};
    }
    if (global / block > kMostBlocks[d]) {
      return Error{fmt::format("{} blocks in dimension {}: at most {}", global / block, d,
                               kMostBlocks[d])};
    }
    shape.block[d] = static_cast<unsigned>(block);
    shape.grid[d] = static_cast<unsigned>(global / block);
  }
  return shape;
}

void Parameters::add_value(const void* bytes, std::size_t size) {
  const std::size_t begin = words_.size();
  words_.resize(begin + base::round_up(size, 8) / 8);
  if (size != 0) std::memcpy(&words_[begin], bytes, size);
  sizes_.push_back(size);
}

void** Parameters::pointers() {
  pointers_.clear();
  std::uint64_t* at = words_.data();
  for (const std::size_t size : sizes_) {
    pointers_.push_back(at);
    at += base::round_up(size, 8) / 8;
  }
  return pointers_.data();
}

std::vector<std::size_t> parameter_sizes(std::span<const ArgumentShape> shapes) {
  std::vector<std::size_t> sizes;
  for (const ArgumentShape& shape : shapes) {
    if (shape.kind == ArgumentKind::kLocal) continue;
    sizes.push_back(shape.kind == ArgumentKind::kBuffer ? sizeof(std::uint64_t) : shape.size);
  }
  return sizes;
}

Outcome wrong_parameters(const std::string& kernel, std::span<const std::size_t> wanted,
                         std::span<const std::size_t> given) {
  if (given.size() != wanted.size()) {
    return failed(Failure::kArguments, fmt::format("the kernel '{}' takes {} arguments, not {}",
                                                   kernel, wanted.size(), given.size()));
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (given[i] == wanted[i]) continue;
    return failed(Failure::kArguments,
                  fmt::format("parameter {} of the kernel '{}' takes {} bytes, not {}", i, kernel,
                              wanted[i], given[i]));
  }
  return {};
}

std::vector<std::string> split_options(const std::string& options) {
  std::vector<std::string> words;
  std::string word;
  bool begun = false;
  char quote = 0;
  for (const char c : options) {
    if (quote != 0) {
      if (c == quote) quote = 0;
      else word += c;
    } else if (c == '"' || c == '\'') {
      quote = c;
      begun = true;
    } else if (c == ' ' || c == '\t' || c == '\n') {
      if (begun) words.push_back(std::move(word));
      word.clear();
      begun = false;
    } else {
      word += c;
      begun = true;
    }
  }
  if (begun) words.push_back(std::move(word));
  return words;
}

std::optional<Target> target_for(int device, std::span<const int> supported) {
  int best = 0;
  for (const int one : supported) {
    if (one <= device) best = std::max(best, one);
  }
  if (best == 0) return {};
  const bool is_ptx = best != device;
  return Target{fmt::format("--gpu-architecture={}_{}", is_ptx ? "compute" : "sm", best), is_ptx};
}

Bytes rounded_size(Bytes size) {
  constexpr Bytes kStep = 64 * base::kKiB;
  if (size > kStep) return base::round_up(size, kStep);
  Bytes rounded = 256;
  while (rounded < size) rounded *= 2;
  return rounded;
}

}  // namespace amasia::devices::cuda
