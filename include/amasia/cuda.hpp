// SPDX-License-Identifier: Apache-2.0
// NVIDIA's GPUs in tasks: kernels and copies are futures, and no worker waits for a GPU. Link
// amasia-tasks-cuda. docs/modules.md has the rules that hold for all modules.
//
//   cuda::library cuda(workers);                      // a place "gpu0" ... for each GPU
//   const tasks::place gpu = cuda.gpus().at(0);
//   tasks::buffer x(gpu, n * sizeof(float));          // x.as<float>() is an address on the GPU
//   tasks::async_copy(x.data(), gpu, from, tasks::here(), n * sizeof(float)).get();
//   const cuda::kernel twice = cuda.load(gpu, source, "twice").get();
//   cuda.launch(cuda::work(twice, {.items = {n}}, x.as<float>(), n)).get();
//
// The driver is found at run time (libcuda.so.1; libnvrtc.so for source): it compiles everywhere.
// Ends are found by a thread of each GPU, so that no worker looks for them. Without a stream,
// operations are ordered by futures alone. All functions but the constructor and gpus(): in tasks
// only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "amasia/module.h"

namespace amasia::cuda {

template <typename T>
using future = tasks::future<T>;

// What the driver said, with what was done; or the compiler's log.
class AMASIA_TASKS_API error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Gpus;
class LoadedKernel;

// A kernel on one GPU. Copies are of the same; valid also after the library's end.
class AMASIA_TASKS_API kernel {
 public:
  kernel() = default;
  explicit kernel(std::shared_ptr<const LoadedKernel> loaded) : loaded_(std::move(loaded)) {}
  bool valid() const noexcept { return loaded_ != nullptr; }
  const LoadedKernel* loaded() const noexcept { return loaded_.get(); }

 private:
  std::shared_ptr<const LoadedKernel> loaded_;
};

// What is begun in one stream of a GPU runs in the order in which it was begun.
struct stream {
  tasks::place gpu;
  int number = -1;  // -1: any that has little to do
};

struct shape {
  std::array<std::uint64_t, 3> items = {1, 1, 1};  // threads in all; 0 counts as 1
  std::array<std::uint64_t, 3> group = {0, 0, 0};  // of a block; 0: the largest that divides items
  std::size_t shared_bytes = 0;                    // of its extern __shared__ array
};

// A launch that is being prepared. Arguments are the kernel's parameters, by value: numbers,
// structures, addresses of memory on the GPU.
class work {
 public:
  template <typename... Arguments>
  work(kernel what, shape over, const Arguments&... arguments) : kernel_(std::move(what)),
                                                                 shape_(over) {
    (add(arguments), ...);
  }
  work& in(const stream& order) {
    stream_ = order;
    return *this;
  }

 private:
  friend class library;
  template <typename T>
  void add(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>, "parameters of kernels are copied as bytes");
    auto& bytes = arguments_.emplace_back(sizeof(T));
    std::memcpy(bytes.data(), &value, sizeof(T));
  }
  kernel kernel_;
  shape shape_;
  stream stream_;
  std::vector<std::vector<std::byte>> arguments_;
};

enum class code_kind {
  source,  // CUDA C++; kernels are extern "C". Compiled by NVRTC, and kept on disk
  binary,  // cubin, fatbin or PTX
};

class AMASIA_TASKS_API library : public tasks::module {
 public:
  // Opens all GPUs that the driver shows. error: there is no driver, or no GPU.
  explicit library(tasks::runtime& workers);
  // GPUs that were opened elsewhere; for tests.
  library(tasks::runtime& workers, std::shared_ptr<Gpus> gpus);
  ~library() override;

  // Their places: "gpu0" and so on, with edges to "memory"; any worker runs tasks that are at one.
  const std::vector<tasks::place>& gpus() const;
  // All of a GPU's.
  std::vector<stream> streams(tasks::place gpu) const;

  // Compiles or loads on a thread of the module's; what was compiled once is found again. `name` is
  // a kernel of the code.
  future<kernel> load(tasks::place gpu, std::string code, std::string name,
                      code_kind kind = code_kind::source, std::string options = "");

  // One execution; the caller's finish waits for it.
  future<void> launch(work launched);
  // The same, begun when all of the futures are ready. If one of them has an exception, nothing is
  // launched, and the result has that exception.
  template <typename... Futures>
  future<void> launch_await(work launched, const Futures&... awaited) {
    tasks::promise<void> result;
    auto done = result.get_future();
    tasks::async_await(
        [this, launched = std::move(launched), result = std::move(result), awaited...]() mutable {
          try {
            (static_cast<void>(awaited.get()), ...);
          } catch (...) {
            return result.fail(std::current_exception());
          }
          launch_into(std::move(launched), std::move(result));
        },
        awaited...);
    return done;
  }

  // tasks::async_copy() in a stream: of the GPU that is written, or else read. Memory of a GPU is
  // what allocate_at() or tasks::buffer gave there, or a part of it; else the future has an error.
  future<void> copy(const stream& order, void* to, tasks::place to_place, const void* from,
                    tasks::place from_place, std::size_t bytes);

  // Of the runtime, on the thread of run().
  const char* name() const noexcept override { return "cuda"; }
  void initialise(tasks::module_host& host) override;
  void finalise() noexcept override;

 private:
  void launch_into(work launched, tasks::promise<void> result);

  struct State;
  class Compiler;
  tasks::runtime& workers_;
  const std::shared_ptr<State> state_;
  std::unique_ptr<Compiler> compiler_;
};

}  // namespace amasia::cuda
