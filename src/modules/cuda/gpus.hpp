// SPDX-License-Identifier: Apache-2.0
// The GPUs of a driver, as the module `cuda` uses them: what the back end of devices makes of each
// (devices/backends/cuda), memory by address, and ends that become promises.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "amasia/cuda.hpp"
#include "devices/devices.hpp"
#include "os/os.hpp"

namespace amasia::cuda {

// Told of the end of one work by the thread of a GPU: puts the promise, then drops the hold, and is
// gone. Until then it keeps what the work points to.
class Ended final : public devices::Completion {
 public:
  // Calls of finished() that are under way; the module's end waits until there is none.
  using Count = std::shared_ptr<std::atomic<int>>;
  Ended(Count inside, tasks::promise<void> result, tasks::hold held)
      : inside_(std::move(inside)), result_(std::move(result)), held_(std::move(held)) {}
  void finished(devices::Outcome&& outcome) noexcept override;
  void failed(std::exception_ptr why) noexcept;

  std::vector<std::vector<std::byte>> bytes;

 private:
  void end() noexcept;
  Count inside_;
  tasks::promise<void> result_;
  tasks::hold held_;
};

class Gpus : public std::enable_shared_from_this<Gpus> {
 public:
  // All that the driver shows. Throws error.
  static std::shared_ptr<Gpus> open(const devices::cuda::Driver& driver);
  explicit Gpus(std::vector<std::unique_ptr<devices::cuda::Device>> devices)
      : devices_(std::move(devices)) {}

  std::size_t count() const { return devices_.size(); }
  devices::cuda::Device& device(std::size_t number) { return *devices_.at(number); }
  const Ended::Count& inside() const { return inside_; }

  // Any thread; error.
  void* allocate(std::size_t gpu, std::size_t bytes);
  void release(std::size_t gpu, void* block) noexcept;

  // Blocks while it compiles; error.
  kernel load(std::size_t gpu, const devices::ProgramCode& code, const std::string& name);

  // One piece of a copy; a GPU's number, or kHost. On the thread of run(). What is wrong is in
  // the promise that `ended` has.
  static constexpr std::size_t kHost = SIZE_MAX;
  struct Piece {
    void* to;
    std::size_t to_gpu;
    const void* from;
    std::size_t from_gpu;
    std::size_t bytes;
    int stream = devices::cuda::Device::kAnyStream;
    // Whose stream it is.
    std::size_t gpu() const { return to_gpu == kHost ? from_gpu : to_gpu; }
  };
  void copy(const Piece& piece, std::unique_ptr<Ended> ended);
  // error: not within one block of that GPU.
  void must_have(std::size_t gpu, const void* at, std::size_t bytes);

 private:
  devices::Copy part_of(std::size_t gpu, const void* at, void* host, std::size_t bytes);

  // Destroyed from the last to the first.
  std::vector<std::unique_ptr<devices::cuda::Device>> devices_;
  devices::ProgramCache cache_{devices::program_cache_folder()};
  devices::BuiltPrograms<devices::cuda::Program> programs_;
  Ended::Count inside_ = std::make_shared<std::atomic<int>>(0);
  os::Mutex mutex_;
  // By GPU and address.
  struct Block {
    std::unique_ptr<devices::cuda::Memory> memory;
    std::size_t bytes;
  };
  std::map<std::pair<std::size_t, std::uint64_t>, Block> blocks_ AMASIA_GUARDED_BY(mutex_);
};

class LoadedKernel {
 public:
  LoadedKernel(std::shared_ptr<Gpus> keeps, std::size_t gpu_number,
               std::unique_ptr<devices::cuda::Kernel> its_kernel)
      : gpus(std::move(keeps)), gpu(gpu_number), kernel(std::move(its_kernel)) {}
  const std::shared_ptr<Gpus> gpus;  // outlives the kernel
  const std::size_t gpu;
  const std::unique_ptr<devices::cuda::Kernel> kernel;
};

}  // namespace amasia::cuda
