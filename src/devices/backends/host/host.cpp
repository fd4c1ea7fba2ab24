// SPDX-License-Identifier: Apache-2.0
#include "devices/backends/host/host.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <utility>

#include "amasia/mcl.h"
#include "os/os.hpp"

namespace amasia::devices {
namespace {

// Kernels that took longer the last time are not run by a caller with a deadline of its own.
constexpr Nanos kShort = 200 * base::kMicrosecond;
// Parts of a work for each thread: small enough that threads end together.
constexpr std::uint64_t kPartsOfThread = 4;

class HostKernel final : public LoadedKernel {
 public:
  HostKernel(mcl_host_kernel its_function, void* library)
      : function(its_function), library_(library) {}
  ~HostKernel() override {
    if (library_ != nullptr) ::dlclose(library_);
  }
  const mcl_host_kernel function;
  std::atomic<Nanos> last_time{-1};  // -1: not known yet

 private:
  void* library_;
};

class HostBuffer final : public DeviceBuffer {
 public:
  HostBuffer(std::byte* host, std::unique_ptr<std::byte[]> own)
      : memory(host != nullptr ? host : own.get()), own_(std::move(own)) {}
  std::byte* const memory;

 private:
  std::unique_ptr<std::byte[]> own_;
};

// A work between submit() and its end.
struct Run {
  HostKernel* kernel = nullptr;
  Completion* completion = nullptr;
  mcl_host_range whole{};
  std::vector<std::vector<std::byte>> values;  // of scalars
  std::vector<void*> arguments;
  std::vector<std::size_t> local_sizes;  // of arguments; 0: not LOCAL
  bool has_local = false;
  std::vector<Copy> to_host;
  std::uint64_t groups[3] = {1, 1, 1};  // of each dimension
  std::uint64_t group[3] = {1, 1, 1};   // work items of one
  std::uint64_t parts = 1, groups_of_part = 1;
  Nanos began = 0, run_began = 0;
  // Any thread that works on it.
  std::atomic<std::uint64_t> next_part{0}, done_parts{0};
  std::atomic<int> failed{0};  // what a part returned
};

// The groups first … end - 1 of the run, in rows along the first dimension.
void run_groups(Run& run, std::uint64_t first, std::uint64_t end) {
  std::vector<std::vector<std::byte>> locals;
  std::vector<void*> arguments = run.arguments;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (run.local_sizes[i] == 0) continue;
    locals.emplace_back(run.local_sizes[i]);
    arguments[i] = locals.back().data();
  }
  while (first < end && run.failed.load(std::memory_order_relaxed) == 0) {
    const std::uint64_t x = first % run.groups[0];
    const std::uint64_t y = first / run.groups[0] % run.groups[1];
    const std::uint64_t z = first / run.groups[0] / run.groups[1];
    const std::uint64_t row = run.has_local ? 1 : std::min(end - first, run.groups[0] - x);
    mcl_host_range range = run.whole;
    const std::uint64_t at[3] = {x, y, z}, count[3] = {row, 1, 1};
    for (int d = 0; d < 3; ++d) {
      range.begin[d] = run.whole.offset[d] + at[d] * run.group[d];
      range.end[d] = std::min(run.whole.offset[d] + (at[d] + count[d]) * run.group[d],
                              run.whole.offset[d] + run.whole.global[d]);
    }
    const int result = run.kernel->function(&range, arguments.data(), arguments.size());
    if (result != 0) run.failed.store(result, std::memory_order_relaxed);
    first += row;
  }
}

void finish(Run& run) {
  Outcome outcome;
  outcome.copy_began = run.began;
  outcome.run_began = run.run_began;
  outcome.run_ended = os::monotonic_now();
  if (run.kernel != nullptr) {
    run.kernel->last_time.store(outcome.run_ended - run.run_began, std::memory_order_relaxed);
  }
  if (const int result = run.failed.load(); result != 0) {
    outcome.failure = Failure::kDevice;
    outcome.message = fmt::format("the kernel's function returned {}", result);
  } else {
    for (const Copy& copy : run.to_host) {
      const std::byte* from = static_cast<HostBuffer*>(copy.buffer)->memory + copy.offset;
      if (from != copy.host) std::memcpy(copy.host, from, copy.size);
    }
  }
  outcome.copy_ended = os::monotonic_now();
  run.completion->finished(std::move(outcome));
}

class HostBackend final : public Backend {
 public:
  explicit HostBackend(unsigned threads)
      : threads_wanted_(threads != 0 ? threads : std::max(1U, os::allowed_core_count())) {
    DeviceDescription device;
    device.identity = "host";
    device.name = fmt::format("host ({} threads)", threads_wanted_);
    device.vendor = "Amasia";
    device.platform = "host";
    device.backend = "host";
    device.device_class = DeviceClass::kCpu;
    device.compute_units = threads_wanted_;
    device.max_work_group = 1U << 20;
    std::fill(std::begin(device.max_work_sizes), std::end(device.max_work_sizes), 1U << 20);
    const long pages = ::sysconf(_SC_PHYS_PAGES);
    device.memory = pages > 0 ? static_cast<Bytes>(pages) * base::kPageSize : 0;
    device.max_allocation = device.memory;
    device.shares_host_memory = true;
    device.queue_depth = threads_wanted_ + 1;
    devices_.push_back(std::move(device));
  }
  ~HostBackend() override {
    {
      os::MutexLock lock(lock_);
      stopping_ = true;
    }
    posts_.fetch_add(1, std::memory_order_seq_cst);
    os::futex_wake(posts_, 1 << 20);
    for (os::Thread& thread : threads_) thread.join();
  }

  std::string_view name() const override { return "host"; }
  const std::vector<DeviceDescription>& devices() const override { return devices_; }
  ProgramKinds takes(LocalDevice) const override {
    return set_of(ProgramKind::kHostFunction) | set_of(ProgramKind::kHostLibrary);
  }

  std::unique_ptr<LoadedKernel> load(LocalDevice, const ProgramCode& code,
                                     const std::string& kernel, std::size_t,
                                     Outcome* outcome) override {
    if (code.kind == ProgramKind::kHostFunction) {
      return std::make_unique<HostKernel>(reinterpret_cast<mcl_host_kernel>(code.function),
                                          nullptr);
    }
    void* library = ::dlopen(code.path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      const char* why = ::dlerror();
      outcome->failure = Failure::kBuild;
      outcome->message = why != nullptr ? why : fmt::format("'{}' cannot be loaded", code.path);
      return nullptr;
    }
    void* function = ::dlsym(library, kernel.c_str());
    if (function == nullptr) {
      ::dlclose(library);
      outcome->failure = Failure::kNoKernel;
      outcome->message = fmt::format("'{}' has no function '{}'", code.path, kernel);
      return nullptr;
    }
    return std::make_unique<HostKernel>(reinterpret_cast<mcl_host_kernel>(function), library);
  }

  std::unique_ptr<DeviceBuffer> allocate(LocalDevice, Bytes size, void* host,
                                         Outcome* outcome) override {
    std::unique_ptr<std::byte[]> own;
    if (host == nullptr) {
      own.reset(new (std::nothrow) std::byte[size]);
      if (own == nullptr) {
        outcome->failure = Failure::kDeviceMemory;
        outcome->message = fmt::format("the host has no {} bytes", size);
        return nullptr;
      }
    }
    return std::make_unique<HostBuffer>(static_cast<std::byte*>(host), std::move(own));
  }

  void submit(const Work& work, Completion& completion) override;
  void wait_for(Completion& completion, Nanos deadline) override;

 private:
  static void serve(void* backend) { static_cast<HostBackend*>(backend)->serve_loop(); }
  void serve_loop();
  // Works on parts until there is none left to take. Whoever ends the last part ends the run.
  void help(const std::shared_ptr<Run>& run);
  void post(const std::shared_ptr<Run>& run);
  bool start_threads() AMASIA_REQUIRES(lock_);

  const unsigned threads_wanted_;
  std::vector<DeviceDescription> devices_;
  os::Mutex lock_;
  std::deque<std::shared_ptr<Run>> runs_ AMASIA_GUARDED_BY(lock_);  // with parts to take
  std::vector<std::shared_ptr<Run>> kept_ AMASIA_GUARDED_BY(lock_);  // for their callers
  std::vector<os::Thread> threads_;
  bool stopping_ AMASIA_GUARDED_BY(lock_) = false;
  std::atomic<std::uint32_t> posts_{0};  // threads sleep on it
};

std::shared_ptr<Run> make_run(const Work& work, Completion& completion) {
  auto run = std::make_shared<Run>();
  run->began = os::monotonic_now();
  run->kernel = static_cast<HostKernel*>(work.kernel);
  run->completion = &completion;
  run->to_host.assign(work.to_host.begin(), work.to_host.end());
  run->values.reserve(work.arguments.size());
  for (const KernelArgument& argument : work.arguments) {
    run->local_sizes.push_back(0);
    if (argument.kind == KernelArgument::Kind::kBuffer) {
      run->arguments.push_back(static_cast<HostBuffer*>(argument.buffer)->memory +
                               argument.offset);
    } else if (argument.kind == KernelArgument::Kind::kLocal) {
      run->local_sizes.back() = argument.size;
      run->has_local |= argument.size != 0;
      run->arguments.push_back(nullptr);
    } else {
      const auto* bytes = static_cast<const std::byte*>(argument.value);
      run->values.emplace_back(bytes, bytes + argument.size);
      run->arguments.push_back(run->values.back().data());
    }
  }
  for (int d = 0; d < 3; ++d) {
    run->whole.global[d] = work.global[d];
    run->whole.local[d] = work.local[d];
    run->whole.offset[d] = work.offset[d];
    run->whole.begin[d] = work.offset[d];
    run->whole.end[d] = work.offset[d] + work.global[d];
    run->group[d] = std::max<std::uint64_t>(work.local[d], 1);
    run->groups[d] = (work.global[d] + run->group[d] - 1) / run->group[d];
  }
  return run;
}

void HostBackend::submit(const Work& work, Completion& completion) {
  const std::shared_ptr<Run> run = make_run(work, completion);
  for (const Copy& copy : work.to_device) {
    std::byte* to = static_cast<HostBuffer*>(copy.buffer)->memory + copy.offset;
    if (to != copy.host) std::memcpy(to, copy.host, copy.size);
  }
  run->run_began = os::monotonic_now();
  if (run->kernel == nullptr) return finish(*run);
  const std::uint64_t groups = run->groups[0] * run->groups[1] * run->groups[2];
  const std::uint64_t parts = std::min<std::uint64_t>(groups, kPartsOfThread * threads_wanted_);
  run->groups_of_part = (groups + parts - 1) / parts;
  const Nanos last = run->kernel->last_time.load(std::memory_order_relaxed);
  const bool brief = last >= 0 && last <= kShort;
  if (brief) run->groups_of_part = groups;  // not worth a second thread
  run->parts = (groups + run->groups_of_part - 1) / run->groups_of_part;
  if (work.caller_waits == CallerWaits::kAtOnce && brief) {
    os::MutexLock lock(lock_);
    kept_.push_back(run);
    return;
  }
  post(run);
}

void HostBackend::post(const std::shared_ptr<Run>& run) {
  bool threads = true;
  {
    os::MutexLock lock(lock_);
    threads = start_threads();
    if (threads) runs_.push_back(run);
  }
  if (!threads) return help(run);
  posts_.fetch_add(1, std::memory_order_seq_cst);
  os::futex_wake(posts_, static_cast<int>(std::min<std::uint64_t>(run->parts, threads_wanted_)));
}

bool HostBackend::start_threads() {
  while (threads_.size() < threads_wanted_) {
    auto thread = os::Thread::start(&HostBackend::serve, this);
    if (!thread.ok()) break;  // fewer do it too
    threads_.push_back(std::move(thread).value());
  }
  return !threads_.empty();
}

void HostBackend::wait_for(Completion& completion, Nanos) {
  std::shared_ptr<Run> run;
  {
    os::MutexLock lock(lock_);
    const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const auto& one) {
      return one->completion == &completion;
    });
    if (found == kept_.end()) return;
    run = std::move(*found);
    kept_.erase(found);
  }
  help(run);
}

void HostBackend::help(const std::shared_ptr<Run>& run) {
  const std::uint64_t groups = run->groups[0] * run->groups[1] * run->groups[2];
  for (;;) {
    const std::uint64_t part = run->next_part.fetch_add(1, std::memory_order_relaxed);
    if (part >= run->parts) return;
    const std::uint64_t first = part * run->groups_of_part;
    run_groups(*run, first, std::min(groups, first + run->groups_of_part));
    // What the parts wrote is seen by whoever ends the run.
    if (run->done_parts.fetch_add(1, std::memory_order_acq_rel) + 1 == run->parts) {
      return finish(*run);
    }
  }
}

void HostBackend::serve_loop() {
  os::set_thread_name("amasia-host");
  for (;;) {
    const std::uint32_t seen = posts_.load(std::memory_order_seq_cst);
    std::shared_ptr<Run> run;
    {
      os::MutexLock lock(lock_);
      while (!runs_.empty() &&
             runs_.front()->next_part.load(std::memory_order_relaxed) >= runs_.front()->parts) {
        runs_.pop_front();
      }
      if (!runs_.empty()) run = runs_.front();
      if (run == nullptr && stopping_) return;
    }
    if (run != nullptr) {
      help(run);
      continue;
    }
    os::futex_wait(posts_, seen, -1);
  }
}

}  // namespace

std::unique_ptr<Backend> make_host_backend(unsigned threads) {
  return std::make_unique<HostBackend>(threads);
}

}  // namespace amasia::devices
