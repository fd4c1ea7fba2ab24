// SPDX-License-Identifier: Apache-2.0
// A driver of CUDA that is made for tests: two GPUs whose memory is the host's, streams that a
// thread works off in any order among each other, and failures at will. Addresses on a GPU have a
// mark in their upper bits, so that whoever reads one as the host's crashes.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "devices/backends/cuda/cuda_driver.hpp"

namespace amasia::devices::cuda::planted {

namespace d = cuda;
using Address = d::CUdeviceptr;

inline constexpr int kGpus = 2, kLaunchFailed = 719, kNoContext = 201;
inline constexpr int kMarkBit = 56;

struct Stream {
  int gpu = 0;
  std::deque<std::function<void()>> commands;
};
struct Event {
  std::atomic<bool> reached{true};
  int gpu = 0;
  bool has_time = false;
};
struct Node {
  d::CUfunction function;
  std::size_t items;
  std::vector<std::uint64_t> values;
};
struct Graph {
  std::vector<std::unique_ptr<Node>> nodes;
};
struct Runnable {
  std::vector<const Node*> names;  // of the nodes that it was made of
  std::vector<Node> nodes;
};
struct Kernel {
  const char* name;
  std::size_t parameters;  // of 8 bytes each
};
inline constexpr Kernel kKernels[] = {{"add", 3}, {"count", 1}, {"crash", 0}};

class Gpus {
 public:
  Gpus() : thread_([this] { serve(); }) { now() = this; }
  ~Gpus() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    thread_.join();
    now() = nullptr;
  }
  static d::Driver driver();

  // Commands wait, or are worked off again.
  void hold(bool holds) {
    {
      const std::lock_guard lock(mutex_);
      holds_ = holds;
    }
    wake_.notify_all();
  }
  std::atomic<bool> fails[kGpus] = {};  // a GPU that has crashed
  std::atomic<std::size_t> memory_left{SIZE_MAX};
  std::atomic<long> allocated{0}, pinned{0}, contexts{0}, modules{0}, peer_copies{0};
  std::atomic<long> timed_events{0};  // recorded
  std::atomic<long> launches{0}, row_launches{0}, graphs{0}, nodes_set{0};
  std::atomic<bool> refuses_rows{false};
  std::atomic<long> queries[kGpus] = {};  // of events

 private:
  friend struct Calls;
  static Gpus*& now() {
    static Gpus* one = nullptr;
    return one;
  }
  void enqueue(Stream* stream, std::function<void()> command) {
    {
      const std::lock_guard lock(mutex_);
      stream->commands.push_back(std::move(command));
    }
    wake_.notify_all();
  }
  // Any stream that has something, of a GPU that works.
  Stream* any_ready() {
    std::vector<Stream*> ready;
    for (Stream* const one : streams_) {
      if (!one->commands.empty() && !fails[one->gpu]) ready.push_back(one);
    }
    return ready.empty() || holds_ ? nullptr : ready[random_() % ready.size()];
  }
  void serve() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      Stream* const stream = any_ready();
      if (stream == nullptr) {
        idle_.notify_all();
        wake_.wait(lock);
        continue;
      }
      auto command = std::move(stream->commands.front());
      busy_ = stream;
      lock.unlock();
      command();
      lock.lock();
      busy_ = nullptr;
      stream->commands.pop_front();
      idle_.notify_all();
    }
  }
  void synchronize(Stream* stream) {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [&] {
      return busy_ != stream && (stream->commands.empty() || fails[stream->gpu]);
    });
  }

  std::mutex mutex_;
  std::condition_variable wake_, idle_;
  std::vector<Stream*> streams_;
  Stream* busy_ = nullptr;
  bool holds_ = false, stopping_ = false;
  std::mt19937 random_{5};
  std::thread thread_;
};

// The driver's functions.
struct Calls {
  static Gpus& all() { return *Gpus::now(); }
  static std::vector<int>& contexts() {
    thread_local std::vector<int> of_thread;  // GPUs + 1
    return of_thread;
  }
  static int gpu() { return contexts().empty() ? -1 : contexts().back() - 1; }
  static char* host_of(Address address) {
    return reinterpret_cast<char*>(address & ((Address{1} << kMarkBit) - 1));
  }
  static int gpu_of(Address address) { return static_cast<int>(address >> kMarkBit) - 1; }
  static Stream* of(d::CUstream stream) { return reinterpret_cast<Stream*>(stream); }

  static int count(int* out) { return *out = kGpus, 0; }
  static int device(int* out, int ordinal) { return *out = ordinal, 0; }
  static int name(char* out, int size, int) { return std::snprintf(out, size, "planted"), 0; }
  static int uuid(d::CUuuid* out, int which) {
    *out = {};
    return out->bytes[0] = static_cast<char>(which), 0;
  }
  static int total(std::size_t* out, int) { return *out = std::size_t{1} << 30, 0; }
  static int attribute(int* out, int, int) { return *out = 1024, 0; }
  static int version(int* out) { return *out = 13000, 0; }
  static int flags(int, unsigned) { return 0; }
  static int retain(d::CUcontext* out, int which) {
    ++all().contexts;
    *out = reinterpret_cast<d::CUcontext>(static_cast<std::uintptr_t>(which) + 1);
    return 0;
  }
  static int release(int) { return --all().contexts, 0; }
  static int push(d::CUcontext context) {
    contexts().push_back(static_cast<int>(reinterpret_cast<std::uintptr_t>(context)));
    return 0;
  }
  static int pop(d::CUcontext*) { return contexts().pop_back(), 0; }

  static int load(d::CUmodule* out, const void* image) {
    if (std::strncmp(static_cast<const char*>(image), "planted", 7) != 0) return d::kInvalidImage;
    ++all().modules;
    *out = reinterpret_cast<d::CUmodule>(&all());
    return gpu() < 0 ? kNoContext : 0;
  }
  static int unload(d::CUmodule) { return --all().modules, 0; }
  static int function(d::CUfunction* out, d::CUmodule, const char* name) {
    for (const Kernel& one : kKernels) {
      if (std::strcmp(one.name, name) != 0) continue;
      *out = reinterpret_cast<d::CUfunction>(const_cast<Kernel*>(&one));
      return 0;
    }
    return d::kNotFound;
  }
  static int function_attribute(int* out, int, d::CUfunction) { return *out = 1024, 0; }
  static int parameter(d::CUfunction of_what, std::size_t which, std::size_t* offset,
                       std::size_t* size) {
    if (which >= reinterpret_cast<const Kernel*>(of_what)->parameters) return d::kInvalidValue;
    *offset = 8 * which;
    return *size = 8, 0;
  }
  static int allocate(Address* out, std::size_t size) {
    if (gpu() < 0) return kNoContext;
    if (size > all().memory_left) return d::kOutOfMemory;
    ++all().allocated;
    *out = reinterpret_cast<Address>(std::malloc(size)) |
           static_cast<Address>(gpu() + 1) << kMarkBit;
    return 0;
  }
  static int free_memory(Address address) {
    --all().allocated;
    return std::free(host_of(address)), 0;
  }
  static int allocate_pinned(void** out, std::size_t size, unsigned) {
    ++all().pinned;
    return *out = std::malloc(size), 0;
  }
  static int free_pinned(void* block) { return --all().pinned, std::free(block), 0; }

  static int command(d::CUstream stream, std::function<void()> what) {
    if (gpu() != of(stream)->gpu) return kNoContext;
    if (all().fails[gpu()]) return kLaunchFailed;
    all().enqueue(of(stream), std::move(what));
    return 0;
  }
  static int copy_in(Address to, const void* from, std::size_t size, d::CUstream stream) {
    if (gpu_of(to) != gpu()) return d::kInvalidValue;
    return command(stream, [=] { std::memcpy(host_of(to), from, size); });
  }
  static int copy_out(void* to, Address from, std::size_t size, d::CUstream stream) {
    if (gpu_of(from) != gpu()) return d::kInvalidValue;
    return command(stream, [=] { std::memcpy(to, host_of(from), size); });
  }
  static int copy_within(Address to, Address from, std::size_t size, d::CUstream stream) {
    if (gpu_of(to) != gpu() || gpu_of(from) != gpu()) return d::kInvalidValue;
    return command(stream, [=] { std::memcpy(host_of(to), host_of(from), size); });
  }
  static int copy_peer(Address to, d::CUcontext, Address from, d::CUcontext of_from,
                       std::size_t size, d::CUstream stream) {
    const int other = static_cast<int>(reinterpret_cast<std::uintptr_t>(of_from)) - 1;
    if (gpu_of(to) != gpu() || gpu_of(from) != other) return d::kInvalidValue;
    ++all().peer_copies;
    return command(stream, [=] { std::memcpy(host_of(to), host_of(from), size); });
  }
  static int make_stream(d::CUstream* out, unsigned) {
    auto* const made = new Stream{gpu(), {}};
    const std::lock_guard lock(all().mutex_);
    all().streams_.push_back(made);
    *out = reinterpret_cast<d::CUstream>(made);
    return 0;
  }
  static int end_stream(d::CUstream stream) {
    const std::lock_guard lock(all().mutex_);
    std::erase(all().streams_, of(stream));
    return delete of(stream), 0;
  }
  static int synchronize(d::CUstream stream) { return all().synchronize(of(stream)), 0; }
  static Event* of(d::CUevent event) { return reinterpret_cast<Event*>(event); }
  static int make_event(d::CUevent* out, unsigned flags) {
    auto* const made = new Event;
    made->has_time = flags == d::kEventDefault;
    return *out = reinterpret_cast<d::CUevent>(made), 0;
  }
  static int end_event(d::CUevent event) { return delete of(event), 0; }
  static int record(d::CUevent event, d::CUstream stream) {
    if (of(event)->has_time) ++all().timed_events;
    of(event)->gpu = of(stream)->gpu;
    of(event)->reached = false;
    return command(stream, [=] { of(event)->reached = true; });
  }
  static int ask(d::CUevent event) {
    ++all().queries[of(event)->gpu];
    if (all().fails[of(event)->gpu]) return kLaunchFailed;
    return of(event)->reached ? 0 : d::kNotReady;
  }
  static int elapsed(float* out, d::CUevent from, d::CUevent to) {
    if (!of(from)->has_time || !of(to)->has_time) return d::kInvalidValue;
    return *out = 0.001F, 0;
  }
  static int launch(d::CUfunction which, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                    unsigned by, unsigned bz, unsigned, d::CUstream stream, void** parameters,
                    void**) {
    const std::size_t items = std::size_t{gx} * gy * gz * bx * by * bz;
    ++all().launches;
    return run({which, items, values_of(which, parameters)}, stream);
  }
  static std::vector<std::uint64_t> values_of(d::CUfunction which, void** parameters) {
    std::vector<std::uint64_t> values(reinterpret_cast<const Kernel*>(which)->parameters);
    for (std::size_t n = 0; n < values.size(); ++n) std::memcpy(&values[n], parameters[n], 8);
    return values;
  }
  static int run(const Node& node, d::CUstream stream) {
    const auto& kernel = *reinterpret_cast<const Kernel*>(node.function);
    return command(stream, [=, values = node.values, items = node.items,
                            name = std::string(kernel.name), on = gpu()] {
      if (name == "crash") {
        all().fails[on] = true;
      } else if (name == "count") {
        *reinterpret_cast<long*>(host_of(values[0])) += static_cast<long>(items);
      } else {  // add: to[i] += from[i] + what
        auto* const to = reinterpret_cast<long*>(host_of(values[0]));
        const auto* const from = reinterpret_cast<const long*>(host_of(values[1]));
        for (std::size_t i = 0; i < items; ++i) to[i] += from[i] + static_cast<long>(values[2]);
      }
    });
  }
  static int make_graph(d::CUgraph* out, unsigned) {
    ++all().graphs;
    return *out = reinterpret_cast<d::CUgraph>(new Graph), 0;
  }
  static int end_graph(d::CUgraph graph) {
    --all().graphs;
    return delete reinterpret_cast<Graph*>(graph), 0;
  }
  static Node node_of(const d::KernelNode& from) {
    std::size_t items = 1;
    for (int i = 0; i < 3; ++i) items *= std::size_t{from.grid[i]} * from.block[i];
    return {from.function, items, values_of(from.function, from.parameters)};
  }
  static int add_node(d::CUgraphNode* out, d::CUgraph graph, const d::CUgraphNode* before,
                      std::size_t count, const d::KernelNode* node) {
    auto& nodes = reinterpret_cast<Graph*>(graph)->nodes;
    const bool follows = nodes.empty() ? count == 0
                                       : count == 1 && reinterpret_cast<Node*>(*before) ==
                                                           nodes.back().get();
    if (!follows || all().refuses_rows) return d::kInvalidValue;
    nodes.push_back(std::make_unique<Node>(node_of(*node)));
    return *out = reinterpret_cast<d::CUgraphNode>(nodes.back().get()), 0;
  }
  static int instantiate(d::CUgraphExec* out, d::CUgraph graph, unsigned long long) {
    auto* const made = new Runnable;
    for (const auto& node : reinterpret_cast<Graph*>(graph)->nodes) {
      made->names.push_back(node.get());
      made->nodes.push_back(*node);
    }
    ++all().graphs;
    return *out = reinterpret_cast<d::CUgraphExec>(made), 0;
  }
  static int set_node(d::CUgraphExec of_what, d::CUgraphNode which, const d::KernelNode* node) {
    auto& runnable = *reinterpret_cast<Runnable*>(of_what);
    ++all().nodes_set;
    for (std::size_t i = 0; i < runnable.names.size(); ++i) {
      if (runnable.names[i] != reinterpret_cast<Node*>(which)) continue;
      return runnable.nodes[i] = node_of(*node), 0;
    }
    return d::kInvalidValue;
  }
  static int launch_graph(d::CUgraphExec which, d::CUstream stream) {
    if (gpu() != of(stream)->gpu) return kNoContext;
    ++all().row_launches;
    for (const Node& node : reinterpret_cast<Runnable*>(which)->nodes) {
      if (const int error = run(node, stream); error != 0) return error;
    }
    return 0;
  }
  static int end_runnable(d::CUgraphExec which) {
    --all().graphs;
    return delete reinterpret_cast<Runnable*>(which), 0;
  }
  static int error_name(int error, const char** out) {
    *out = error == kLaunchFailed     ? "PLANTED_CRASH"
           : error == d::kOutOfMemory ? "PLANTED_FULL"
                                      : "PLANTED_OTHER";
    return 0;
  }
  static int error_text(int, const char** out) { return *out = "by the test", 0; }
};

inline d::Driver Gpus::driver() {
  using C = Calls;
  d::Driver made;
  made.Init = [](unsigned) { return 0; };
  made.DriverGetVersion = C::version;
  made.GetErrorName = C::error_name, made.GetErrorString = C::error_text;
  made.DeviceGetCount = C::count, made.DeviceGet = C::device, made.DeviceGetName = C::name;
  made.DeviceGetUuid = C::uuid, made.DeviceTotalMem = C::total;
  made.DeviceGetAttribute = C::attribute;
  made.PrimaryCtxRetain = C::retain, made.PrimaryCtxRelease = C::release;
  made.PrimaryCtxSetFlags = C::flags, made.CtxPushCurrent = C::push, made.CtxPopCurrent = C::pop;
  made.ModuleLoadData = C::load, made.ModuleUnload = C::unload;
  made.ModuleGetFunction = C::function, made.FuncGetAttribute = C::function_attribute;
  made.FuncGetParamInfo = C::parameter;
  made.MemAlloc = C::allocate, made.MemFree = C::free_memory;
  made.MemHostAlloc = C::allocate_pinned, made.MemFreeHost = C::free_pinned;
  made.MemcpyHtoDAsync = C::copy_in, made.MemcpyDtoHAsync = C::copy_out;
  made.MemcpyDtoDAsync = C::copy_within, made.MemcpyPeerAsync = C::copy_peer;
  made.StreamCreate = C::make_stream, made.StreamDestroy = C::end_stream;
  made.StreamSynchronize = C::synchronize;
  made.EventCreate = C::make_event, made.EventDestroy = C::end_event;
  made.EventRecord = C::record, made.EventQuery = C::ask, made.EventElapsedTime = C::elapsed;
  made.LaunchKernel = C::launch;
  made.GraphCreate = C::make_graph, made.GraphDestroy = C::end_graph;
  made.GraphAddKernelNode = C::add_node, made.GraphInstantiate = C::instantiate;
  made.GraphSetKernelNode = C::set_node, made.GraphLaunch = C::launch_graph;
  made.GraphExecDestroy = C::end_runnable;
  return made;
}

}  // namespace amasia::devices::cuda::planted
