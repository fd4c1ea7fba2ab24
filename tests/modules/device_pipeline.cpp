// SPDX-License-Identifier: Apache-2.0
// Blocks of numbers from files to devices and back to files, as a net of futures between the
// modules storage and devices, which do not know of each other: read, copy, kernel, copy, replace.
// The kernel is a function, or OpenCL C or CUDA C++ where AMASIA_DEVICES_BACKENDS is opencl or
// cuda. Prints what is wrong and ends with 1; with 77 where there is no such device.

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "amasia/device_tasks.hpp"
#include "amasia/storage.hpp"
#include "support/temporary_folder.hpp"

namespace device_tasks = amasia::device_tasks;
namespace devices = amasia::devices;
namespace storage = amasia::storage;
namespace tasks = amasia::tasks;

namespace {

constexpr std::size_t kBlocks = 40, kNumbers = 1000, kBytes = kNumbers * sizeof(long);

int square(const mcl_host_range* range, void* const* args, std::uint64_t) {
  auto* const v = static_cast<long*>(args[0]);
  for (auto i = range->begin[0]; i < range->end[0]; ++i) v[i] *= v[i];
  return 0;
}

constexpr const char* kOpencl = R"(__kernel void square(__global long* v) {
  v[get_global_id(0)] *= v[get_global_id(0)];
})";
constexpr const char* kCuda = R"(extern "C" __global__ void square(long long* v) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  v[i] *= v[i];
})";

// Whether there is a device for it.
bool add_square(device_tasks::library& kernels, const std::string& folder) {
  const char* const named = std::getenv("AMASIA_DEVICES_BACKENDS");
  const std::string backend = named != nullptr ? named : "host";
  if (backend == "host") {
    kernels.add_host_kernel("square", square);
    return true;
  }
  if (devices::all_devices().empty()) return false;
  const bool cuda = backend == "cuda";
  const std::string path = folder + (cuda ? "/square.cu" : "/square.cl");
  std::ofstream(path) << (cuda ? kCuda : kOpencl);
  kernels.load(path, cuda ? MCL_PRG_CUDA : MCL_PRG_SRC).get();
  return true;
}

long number(std::size_t block, std::size_t n) { return static_cast<long>(block * kNumbers + n); }

struct Block {
  explicit Block(tasks::place at) : in(kNumbers), out(kNumbers), on_device(at, kBytes) {}
  std::vector<long> in, out;
  tasks::buffer on_device;
};

void send_through(storage::library& files, device_tasks::library& kernels, Block& block,
                  const std::string& file) {
  const tasks::place host = tasks::here(), device = kernels.devices();
  const auto read = files.read(file, block.in.data(), kBytes);
  const auto there =
      tasks::async_copy_await(block.on_device.data(), device, block.in.data(), host, kBytes, read);
  const auto squared = kernels.submit_await(
      devices::task("square", device_tasks::part<long>(block.on_device).inout()), {kNumbers},
      there);
  const auto back = tasks::async_copy_await(block.out.data(), host, block.on_device.data(), device,
                                            kBytes, squared);
  tasks::async_await(
      [&files, &block, file, read, there, squared, back] {
        for (const auto* one : {&read, &there, &squared, &back}) one->get();
        files.replace(file, block.out.data(), kBytes).get();
      },
      back);
}

int work(const std::string& folder) {
  tasks::runtime workers({.workers = 2});
  storage::library files(workers);
  device_tasks::library kernels(workers);
  return workers.run([&] {
    if (!add_square(kernels, folder)) return -1;
    const auto file = [&](std::size_t block) { return folder + "/" + std::to_string(block); };
    std::vector<Block> blocks;
    for (std::size_t n = 0; n < kBlocks; ++n) blocks.emplace_back(kernels.devices());
    for (std::size_t n = 0; n < kBlocks; ++n) {
      std::iota(blocks[n].in.begin(), blocks[n].in.end(), number(n, 0));
      files.write(file(n), blocks[n].in.data(), kBytes).get();
      std::fill(blocks[n].in.begin(), blocks[n].in.end(), -1);
    }
    tasks::finish([&] {
      for (std::size_t n = 0; n < kBlocks; ++n) send_through(files, kernels, blocks[n], file(n));
    });
    int wrong = 0;
    std::vector<long> got(kNumbers);
    for (std::size_t n = 0; n < kBlocks; ++n) {
      files.read(file(n), got.data(), kBytes).get();
      for (std::size_t i = 0; i < kNumbers; ++i) wrong += got[i] != number(n, i) * number(n, i);
    }
    return wrong;
  });
}

}  // namespace

int main() {
  const amasia::tests::TemporaryFolder folder("pipeline");
  int wrong = 1;
  try {
    wrong = work(folder.path());
    if (wrong > 0) std::printf("%d numbers are wrong\n", wrong);
  } catch (const std::exception& failure) {
    std::printf("%s\n", failure.what());
  }
  return wrong < 0 ? 77 : wrong == 0 ? 0 : 1;
}
