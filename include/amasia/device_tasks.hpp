// SPDX-License-Identifier: Apache-2.0
// Accelerators in tasks: kernels and copies are futures, and no worker waits for a device. Link
// amasia-tasks-devices. docs/modules.md has the rules that hold for all modules, docs/devices.md
// what kernels and devices are; <amasia/devices.hpp> describes a kernel and its arguments.
//
//   device_tasks::library devices(workers);
//   devices.load("saxpy.cl").get();
//   auto done = devices.submit(devices::task("saxpy", in(x), inout(y), 2.0F), {n});
//
// Nothing is polled: the client library's threads tell of ends. Tasks of any number of runtimes of
// a process share its one connection to the daemon. All functions but the constructor: in tasks
// only. Memory that a kernel uses stays until its future is ready.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "amasia/devices.hpp"
#include "amasia/module.h"

namespace amasia::device_tasks {

template <typename T>
using future = tasks::future<T>;
// What futures throw: a sentence, or the compiler's log; code() is one of MCL_ERR_*.
using error = devices::error;

struct settings {
  // Threads of the client library, which prepare what is granted: mcl_init. At least 1. Counts for
  // the first library of a process.
  std::uint64_t threads = 1;
  // Where copies go that no kernel has asked for yet: MCL_TASK_CPU, MCL_TASK_GPU, ...
  std::uint64_t classes = MCL_TASK_ANY;
};

// Elements of memory at the place devices(), as arguments of kernels. The newest bytes stay on the
// device that a kernel wrote them on; async_copy brings them back.
template <typename T>
class part {
 public:
  // `count` elements from `first` on; error where they are not within the buffer.
  part(const tasks::buffer& of, std::size_t first, std::size_t count)
      : base_(of.data()), first_(first), count_(count) {
    const std::size_t all = of.bytes() / sizeof(T);
    if (first > all || count > all - first || count == 0) {
      throw error(MCL_ERR_INVARG, "elements " + std::to_string(first) + " to " +
                                      std::to_string(first + count) + " of a buffer of " +
                                      std::to_string(all) + " (at least one, within it)");
    }
  }
  explicit part(const tasks::buffer& of) : part(of, 0, of.bytes() / sizeof(T)) {}

  // Read only: kernels that read the same elements may run at once, and on several devices.
  devices::detail::argument in() const { return argument(MCL_ARG_INPUT | MCL_ARG_RDONLY); }
  // Read and written, or written.
  devices::detail::argument inout() const { return argument(MCL_ARG_INPUT | MCL_ARG_DYNAMIC); }

 private:
  devices::detail::argument argument(std::uint64_t flags) const {
    return {base_, count_ * sizeof(T), first_ * sizeof(T),
            MCL_ARG_BUFFER | MCL_ARG_RESIDENT | flags, true};
  }
  void* base_;
  std::size_t first_, count_;
};

class Line;
class Memory;
class Loader;

class AMASIA_TASKS_API library : public tasks::module {
 public:
  // Connects to the daemon, which is started where none runs. Throws error. A connection that the
  // program made by itself (devices::session) before is used, and outlives this.
  explicit library(tasks::runtime& workers, settings chosen = {});
  ~library() override;

  // The place of memory that kernels work on: buffer(devices(), bytes), async_copy() between it and
  // the host. It is on whichever device the daemon chooses, so a pointer to it is no address for
  // the program; a part of a buffer is copied as &bytes[from]. Of the type `other`.
  tasks::place devices() const { return place_; }

  // mcl_prg_load, on a thread of its own; `kind` is MCL_PRG_*.
  future<void> load(std::string path, unsigned long kind = MCL_PRG_SRC, std::string options = "");
  // mcl_prg_add_host: a function that runs on the host's cores. Does not wait.
  void add_host_kernel(const std::string& name, mcl_host_kernel function);

  // One execution of a kernel; the caller's finish waits for it. What cannot be submitted is in
  // the future, too.
  future<void> submit(devices::task work, devices::range over);
  // The same, begun when all of the futures are ready. If one of them has an exception, nothing is
  // submitted, and the result has that exception.
  template <typename... Futures>
  future<void> submit_await(devices::task work, devices::range over, const Futures&... awaited) {
    tasks::promise<void> result;
    auto done = result.get_future();
    tasks::async_await(
        [this, work = std::move(work), over, result = std::move(result), awaited...]() mutable {
          try {
            (static_cast<void>(awaited.get()), ...);
          } catch (...) {
            return result.fail(std::current_exception());
          }
          submit_into(std::move(work), over, std::move(result));
        },
        awaited...);
    return done;
  }
  // submit(devices::task(kernel, arguments...), over). Where no program has the kernel, the error
  // is thrown at once, as by devices::task.
  template <typename... Arguments>
  future<void> run(const std::string& kernel, devices::range over, const Arguments&... arguments) {
    return submit(devices::task(kernel, arguments...), over);
  }

  // Of the runtime, on the thread of run().
  const char* name() const noexcept override { return "devices"; }
  void initialise(tasks::module_host& host) override;
  void finalise() noexcept override;

 private:
  void submit_into(devices::task work, devices::range over, tasks::promise<void> result);

  tasks::runtime& workers_;
  const settings settings_;
  tasks::module_host* host_ = nullptr;
  tasks::place place_;
  const std::shared_ptr<Line> line_;
  const std::shared_ptr<Memory> memory_;
  std::unique_ptr<Loader> loader_;
};

}  // namespace amasia::device_tasks
