// SPDX-License-Identifier: Apache-2.0
// include/amasia/mcl.h: start and end, devices, programs, tasks.
#include "devices/client/c_api.hpp"

#include <errno.h>
#include <pthread.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <sstream>

#include "devices/backends/registry.hpp"

namespace amasia::devices::c_api {
namespace {

std::mutex start_and_end;
std::atomic<Session*> the_session{nullptr};
std::atomic<std::uint64_t> the_timeout{MCL_TIMEOUT};
thread_local std::string the_reason;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Fault settings_from(std::uint64_t workers, std::uint64_t flags, ClientSettings* settings) {
  constexpr std::uint64_t kMostWorkers = 1024;
  if (workers == 0 || workers > kMostWorkers || (flags & ~std::uint64_t{3}) != 0) {
    return fault(MCL_ERR_INVARG,
                 "mcl_init with {} workers, flags {:#x} (allowed: 1 … {} workers, flags 0 … 3)",
                 workers, flags, kMostWorkers);
  }
  settings->workers = static_cast<unsigned>(workers);
  settings->pin_workers = (flags & MCL_SET_BIND_WORKERS) != 0;
  settings->link.program = program_invocation_short_name;
  settings->link.connect.start_daemon = variable("AMASIA_DEVICES_START") != "0";
  if (const std::string weight = variable("AMASIA_DEVICES_WEIGHT"); !weight.empty()) {
    char* end = nullptr;
    const double value = std::strtod(weight.c_str(), &end);
    if (*end != '\0' || !(value >= 0.001 && value <= 1000)) {
      return fault(MCL_ERR_INVARG, "AMASIA_DEVICES_WEIGHT is '{}' (allowed: 0.001 … 1000)", weight);
    }
    settings->link.weight_milli = static_cast<std::uint32_t>(value * 1000);
  }
  return no_fault();
}

Fault read_program(const char* path, const char* options, unsigned long flags,
                   ProgramCode* code) {
  if (path == nullptr || *path == '\0') return fault(MCL_ERR_INVARG, "a program without a path");
  switch (flags & MCL_PRG_MASK) {
    case MCL_PRG_SRC:
    case MCL_PRG_SRC | MCL_PRG_NONE:
    case 0:
      code->kind = ProgramKind::kSource;
      break;
    case MCL_PRG_IR:
      code->kind = ProgramKind::kSpirv;
      break;
    case MCL_PRG_BIN:
      code->kind = ProgramKind::kBinary;
      break;
    case MCL_PRG_GRAPH:
      code->kind = ProgramKind::kGraph;
      break;
    case MCL_PRG_BUILTIN:
      code->kind = ProgramKind::kBuiltIn;
      break;
    case MCL_PRG_CUDA:
      code->kind = ProgramKind::kCudaSource;
      break;
    case MCL_PRG_HOST:
      code->kind = ProgramKind::kHostLibrary;
      break;
    default:
      return fault(MCL_ERR_INVARG, "program '{}' has flags {:#x} (allowed: one of MCL_PRG_*)",
                   path, flags);
  }
  code->path = path;
  code->options = options == nullptr ? "" : options;
  if (code->kind == ProgramKind::kBuiltIn) {
    code->code = path;
    return no_fault();
  }
  if (code->kind == ProgramKind::kHostLibrary) return no_fault();  // the loader reads it
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  if (!file || content.str().empty()) {
    return fault(MCL_ERR_INVPRG, "program '{}' cannot be read, or is empty: {}", path,
                 file ? "no bytes" : std::strerror(errno));
  }
  code->code = content.str();
  return no_fault();
}

Fault sizes_from(Task& task, const std::uint64_t* global, const std::uint64_t* local,
                 const std::uint64_t* offset) {
  if (global == nullptr) return fault(MCL_ERR_INVARG, "no global work sizes are given");
  const bool has_local =
      local != nullptr && std::any_of(local, local + MCL_DEV_DIMS, [](auto size) { return size; });
  for (int d = 0; d < MCL_DEV_DIMS; ++d) {
    task.global[d] = global[d];
    task.local[d] = has_local ? local[d] : 0;
    task.offset[d] = offset != nullptr ? offset[d] : 0;
    if (global[d] == 0 || (has_local && (local[d] == 0 || global[d] % local[d] != 0))) {
      return fault(MCL_ERR_INVPES,
                   "dimension {} has {} work items in groups of {} (allowed: at least 1, and whole "
                   "groups)",
                   d, global[d], has_local ? local[d] : 0);
    }
  }
  return no_fault();
}

int submit(mcl_handle* handle, bool null, const std::uint64_t* global, const std::uint64_t* local,
           const std::uint64_t* offset, std::uint64_t flags, std::uint64_t count,
           mcl_handle** dependencies) {
  Session* const now = session();
  if (now == nullptr) return -MCL_ERR_NOINIT;
  const std::shared_ptr<Task> task = task_of(*now, handle);
  if (task == nullptr) return -MCL_ERR_INVREQ;
  if (now->client->state_of(*task) != TaskState::kCreated) {
    return answer(fault(MCL_ERR_INVREQ, "the task was submitted already"));
  }
  // Sizes come before the kernel, as in the original.
  if (!null) {
    if (Fault wrong = sizes_from(*task, global, local, offset)) return answer(std::move(wrong));
  }
  if (!null && task->kernel.empty()) {
    return answer(fault(MCL_ERR_INVKER, "the task has no kernel"));
  }
  if (count > 0 && dependencies == nullptr) {
    return answer(fault(MCL_ERR_INVARG, "{} dependencies at address 0", count));
  }
  std::vector<std::shared_ptr<Task>> after;
  for (std::uint64_t i = 0; i < count; ++i) {
    after.push_back(task_of(*now, dependencies[i]));
    if (after.back() == nullptr) return -MCL_ERR_INVREQ;
  }
  task->flags = flags;
  task->is_null = null;
  return answer(now->client->submit(task, after));
}

}  // namespace

Session* session() {
  Session* now = the_session.load(std::memory_order_acquire);
  if (now != nullptr) return now;
  the_reason = "mcl_init has not been called in this process";
  return nullptr;
}

int answer(Fault fault) {
  the_reason = std::move(fault.reason);
  return -fault.code;
}

std::uint64_t timeout() { return the_timeout.load(); }

Nanos deadline_of(std::uint64_t timeout_ns) {
  const Nanos now = os::monotonic_now();
  if (timeout_ns > static_cast<std::uint64_t>(INT64_MAX - now)) return INT64_MAX;
  return now + static_cast<Nanos>(timeout_ns);
}

std::shared_ptr<Task> task_of(Session& session, const mcl_handle* handle) {
  os::MutexLock lock(session.lock);
  const auto found = session.handles.find(handle);
  if (found != session.handles.end()) return found->second->task;
  the_reason = fmt::format("{} is no handle of a task, or it was freed",
                           static_cast<const void*>(handle));
  return nullptr;
}

// With what a shared pointer needs; larger ones would come from the heap, by its locks.
static_assert(sizeof(Task) + 4 * sizeof(void*) <= os::kBlockSizes.back());

mcl_handle* make_handle(Session& session, std::uint64_t properties) {
  if ((properties & ~std::uint64_t{MCL_HDL_SHARED}) != 0) {
    answer(fault(MCL_ERR_INVARG, "a task with properties {:#x} (allowed: 0 or MCL_HDL_SHARED)",
                 properties));
    return nullptr;
  }
  auto made = std::make_unique<Handle>();
  made->task = std::allocate_shared<Task>(os::BlockAllocator<Task>(), session.client.get());
  made->task->handle = &made->open;
  made->open.status = MCL_REQ_ALLOCATED;
  made->open.ret = MCL_RET_UNDEFINED;
  made->open.flags = properties;
  if ((properties & MCL_HDL_SHARED) != 0) {
    if (Fault wrong = session.client->publish(*made->task)) {
      answer(std::move(wrong));
      return nullptr;
    }
  }
  mcl_handle* const handle = &made->open;
  os::MutexLock lock(session.lock);
  made->open.rid = ++session.last_handle;
  session.handles.emplace(handle, std::move(made));
  return handle;
}

int free_handle(Session& session, mcl_handle* handle) {
  const std::shared_ptr<Task> task = task_of(session, handle);
  if (task == nullptr) return -MCL_ERR_INVREQ;
  // One that has ended does not write its handle any more, and whom it tells has been told.
  if (task->ended.load(std::memory_order_acquire) == 0) {
    if (session.client->state_of(*task) != TaskState::kCreated) {
      session.client->wait(*task, INT64_MAX);
    }
    session.client->forget_handle(*task);
  }
  os::MutexLock lock(session.lock);
  return session.handles.erase(handle) != 0 ? 0 : -MCL_ERR_INVREQ;
}

Fault set_argument(Session& session, Task& task, std::uint64_t index, void* address,
                   std::size_t size, std::uint64_t offset, std::uint64_t flags) {
  constexpr std::uint64_t kKinds = MCL_ARG_SCALAR | MCL_ARG_BUFFER | MCL_ARG_LOCAL;
  const std::uint64_t kind = flags & kKinds;
  if (session.client->state_of(task) != TaskState::kCreated) {
    return fault(MCL_ERR_INVREQ, "argument {} of a task that was submitted already", index);
  }
  if (index >= task.arguments.size()) {
    return fault(MCL_ERR_INVARG, "argument {} of a task with {} arguments", index,
                 task.arguments.size());
  }
  const bool one_kind = kind == MCL_ARG_SCALAR || kind == MCL_ARG_BUFFER || kind == MCL_ARG_LOCAL;
  if (!one_kind || size == 0 || (kind != MCL_ARG_LOCAL && address == nullptr)) {
    return fault(MCL_ERR_INVARG,
                 "argument {}: {} bytes at {}, flags {:#x} (allowed: one of MCL_ARG_SCALAR, "
                 "BUFFER, LOCAL; at least a byte; an address, but for LOCAL)",
                 index, size, address, flags);
  }
  Argument argument;
  argument.set = true;
  argument.flags = flags;
  argument.address = address;
  argument.size = size;
  argument.offset = offset;
  if (kind == MCL_ARG_SCALAR) {
    const auto* bytes = static_cast<const std::byte*>(address);
    argument.value.assign(bytes, bytes + size);
  }
  if (Fault wrong = session.client->bind(argument)) return wrong;
  task.arguments[index] = std::move(argument);
  return no_fault();
}

int wait_for_task(Session& session, Task& task, Nanos deadline) {
  if (session.client->state_of(task) == TaskState::kCreated) {
    return answer(fault(MCL_ERR_INVTSK, "the task was not submitted"));
  }
  if (!session.client->wait(task, deadline)) {
    return answer(fault(MCL_ERR_TIMEOUT, "the task has not ended within the time"));
  }
  return answer(task.failure);
}

}  // namespace amasia::devices::c_api

using namespace amasia::devices;
using namespace amasia::devices::c_api;

AMASIA_MCL_API int mcl_init(uint64_t num_workers, uint64_t flags) {
  // What a parent had before fork stays untouched in the child: its threads are not there.
  static const int forks = ::pthread_atfork(nullptr, nullptr, [] { the_session.store(nullptr); });
  const std::lock_guard lock(start_and_end);
  if (forks != 0) return answer(fault(MCL_ERR_MEMALLOC, "no memory to be told of forks"));
  if (the_session.load() != nullptr) return 1;
  ClientSettings settings;
  if (Fault wrong = settings_from(num_workers, flags, &settings)) return answer(std::move(wrong));
  auto client = Client::start(settings, make_backends(variable("AMASIA_DEVICES_BACKENDS")));
  if (!client.ok()) return answer(fault(client.error().code, "{}", client.error().message));
  auto made = std::make_unique<Session>();
  made->client = std::move(client).value();
  the_session.store(made.release());
  return 0;
}

AMASIA_MCL_API int mcl_finit(void) {
  const std::lock_guard lock(start_and_end);
  if (session() == nullptr) return -MCL_ERR_NOINIT;
  Session* now = the_session.exchange(nullptr);
  now->client.reset();  // waits for all tasks
  delete now;
  return 0;
}

AMASIA_MCL_API uint32_t mcl_get_ndev(void) {
  Session* const now = session();
  return now == nullptr ? 0 : static_cast<uint32_t>(now->client->device_count());
}

AMASIA_MCL_API int mcl_get_dev(uint32_t devid, mcl_dev_info* devinfo) {
  Session* const now = session();
  if (now == nullptr) return -MCL_ERR_NOINIT;
  if (devinfo == nullptr) return answer(fault(MCL_ERR_INVARG, "no place for the description"));
  const std::size_t count = now->client->device_count();
  if (devid >= count) return answer(fault(MCL_ERR_INVDEV, "device {} of {}", devid, count));
  const DeviceDescription& device = now->client->device(devid);
  std::memset(devinfo, 0, sizeof *devinfo);
  devinfo->id = devid;
  device.name.copy(devinfo->name, sizeof devinfo->name - 1);
  device.vendor.copy(devinfo->vendor, sizeof devinfo->vendor - 1);
  devinfo->type = device.device_class == DeviceClass::kCpu   ? MCL_TASK_CPU
                  : device.device_class == DeviceClass::kGpu ? MCL_TASK_GPU
                                                             : MCL_TASK_FPGA;
  const std::size_t running = now->client->running_on(devid);
  devinfo->status = running == 0                    ? MCL_DEV_READY
                    : running < device.queue_depth ? MCL_DEV_ALLOCATED
                                                    : MCL_DEV_FULL;
  devinfo->mem_size = device.memory;
  devinfo->pes = device.compute_units;
  devinfo->ndims = device.max_dimensions;
  devinfo->wgsize = device.max_work_group;
  devinfo->wisize = static_cast<size_t*>(std::malloc(MCL_DEV_DIMS * sizeof(size_t)));
  if (devinfo->wisize == nullptr) return answer(fault(MCL_ERR_MEMALLOC, "no memory"));
  std::copy_n(device.max_work_sizes, MCL_DEV_DIMS, devinfo->wisize);
  return 0;
}

AMASIA_MCL_API int mcl_prg_load(char* prg_path, char* copts, unsigned long flags) {
  Session* const now = session();
  if (now == nullptr) return -MCL_ERR_NOINIT;
  ProgramCode code;
  if (Fault wrong = read_program(prg_path, copts, flags, &code)) return answer(std::move(wrong));
  return answer(now->client->programs().add(code, ""));
}

AMASIA_MCL_API int mcl_prg_add_host(const char* name, mcl_host_kernel function) {
  Session* const now = session();
  if (now == nullptr) return -MCL_ERR_NOINIT;
  if (name == nullptr || *name == '\0' || function == nullptr) {
    return answer(fault(MCL_ERR_INVARG, "a function of the host needs a name and an address"));
  }
  ProgramCode code;
  code.kind = ProgramKind::kHostFunction;
  code.path = name;
  code.function = reinterpret_cast<void*>(function);
  return answer(now->client->programs().add(code, name));
}

AMASIA_MCL_API mcl_handle* mcl_task_create_with_props(uint64_t props) {
  Session* const now = session();
  return now == nullptr ? nullptr : make_handle(*now, props);
}
AMASIA_MCL_API mcl_handle* mcl_task_create(void) { return mcl_task_create_with_props(0); }

AMASIA_MCL_API int mcl_task_set_kernel(mcl_handle* hdl, char* kname, uint64_t nargs) {
  Session* const now = session();
  if (now == nullptr) return -MCL_ERR_NOINIT;
  const std::shared_ptr<Task> task = task_of(*now, hdl);
  if (task == nullptr) return -MCL_ERR_INVREQ;
  constexpr std::uint64_t kMostArguments = 4096;
  if (kname == nullptr || *kname == '\0' || nargs > kMostArguments) {
    return answer(fault(MCL_ERR_INVARG, "a kernel without name, or with {} arguments (at most {})",
                        nargs, kMostArguments));
  }
  if (now->client->state_of(*task) != TaskState::kCreated) {
    return answer(fault(MCL_ERR_INVREQ, "the task was submitted already"));
  }
  if (Fault wrong = now->client->programs().check(kname, nargs)) return answer(std::move(wrong));
  task->kernel = kname;
  task->arguments.assign(nargs, Argument{});
  return answer(no_fault());
}

AMASIA_MCL_API mcl_handle* mcl_task_init(char* prg_path, char* kname, uint64_t nargs, char* copts,
                                         unsigned long flags) {
  if (mcl_prg_load(prg_path, copts, flags) != 0) return nullptr;
  mcl_handle* handle = mcl_task_create();
  if (handle == nullptr) return nullptr;
  if (mcl_task_set_kernel(handle, kname, nargs) == 0) return handle;
  std::string why = mcl_reason();
  mcl_hdl_free(handle);
  answer({MCL_ERR_INVKER, std::move(why)});
  return nullptr;
}

AMASIA_MCL_API int mcl_task_set_arg_buffer(mcl_handle* hdl, uint64_t argid, void* addr,
                                           size_t size, off_t offset, uint64_t flags) {
  Session* const now = session();
  if (now == nullptr) return -MCL_ERR_NOINIT;
  const std::shared_ptr<Task> task = task_of(*now, hdl);
  if (task == nullptr) return -MCL_ERR_INVREQ;
  if (offset < 0) return answer(fault(MCL_ERR_INVARG, "argument {} at offset {}", argid, offset));
  return answer(set_argument(*now, *task, argid, addr, size, static_cast<uint64_t>(offset), flags));
}
AMASIA_MCL_API int mcl_task_set_arg(mcl_handle* hdl, uint64_t argid, void* addr, size_t size,
                                    uint64_t flags) {
  return mcl_task_set_arg_buffer(hdl, argid, addr, size, 0, flags);
}

AMASIA_MCL_API int mcl_task_set_priority(mcl_handle* hdl, int priority) {
  Session* const now = session();
  if (now == nullptr) return -MCL_ERR_NOINIT;
  const std::shared_ptr<Task> task = task_of(*now, hdl);
  if (task == nullptr) return -MCL_ERR_INVREQ;
  if (now->client->state_of(*task) != TaskState::kCreated) {
    return answer(fault(MCL_ERR_INVREQ, "the task was submitted already"));
  }
  task->priority = priority;
  return 0;
}

AMASIA_MCL_API int mcl_task_on_end(mcl_handle* hdl, mcl_end_function function, void* context) {
  Session* const now = session();
  if (now == nullptr) return -MCL_ERR_NOINIT;
  const std::shared_ptr<Task> task = task_of(*now, hdl);
  if (task == nullptr) return -MCL_ERR_INVREQ;
  if (now->client->state_of(*task) != TaskState::kCreated) {
    return answer(fault(MCL_ERR_INVREQ, "the task was submitted already"));
  }
  task->on_end = function;
  task->on_end_context = context;
  return 0;
}

AMASIA_MCL_API int mcl_exec2_with_dependencies(mcl_handle* hdl, uint64_t* global_work_dims,
                                               uint64_t* local_work_dims, uint64_t* offsets,
                                               uint64_t flags, uint64_t ndependencies,
                                               mcl_handle** dep_list) {
  return submit(hdl, false, global_work_dims, local_work_dims, offsets, flags, ndependencies,
                dep_list);
}
AMASIA_MCL_API int mcl_exec_with_dependencies(mcl_handle* hdl, uint64_t* global_work_dims,
                                              uint64_t* local_work_dims, uint64_t flags,
                                              uint64_t ndependencies, mcl_handle** dep_list) {
  return submit(hdl, false, global_work_dims, local_work_dims, nullptr, flags, ndependencies,
                dep_list);
}
AMASIA_MCL_API int mcl_exec2(mcl_handle* hdl, uint64_t* global_work_dims,
                             uint64_t* local_work_dims, uint64_t* offset, uint64_t flags) {
  return submit(hdl, false, global_work_dims, local_work_dims, offset, flags, 0, nullptr);
}
AMASIA_MCL_API int mcl_exec(mcl_handle* hdl, uint64_t* global_work_dims,
                            uint64_t* local_work_dims, uint64_t flags) {
  return submit(hdl, false, global_work_dims, local_work_dims, nullptr, flags, 0, nullptr);
}
AMASIA_MCL_API int mcl_null(mcl_handle* hdl) {
  return submit(hdl, true, nullptr, nullptr, nullptr, 0, 0, nullptr);
}

AMASIA_MCL_API int mcl_wait_for(mcl_handle* hdl, uint64_t timeout_ns) {
  Session* const now = session();
  if (now == nullptr) return -MCL_ERR_NOINIT;
  const std::shared_ptr<Task> task = task_of(*now, hdl);
  if (task == nullptr) return -MCL_ERR_INVREQ;
  return wait_for_task(*now, *task, deadline_of(timeout_ns));
}
AMASIA_MCL_API int mcl_wait(mcl_handle* hdl) { return mcl_wait_for(hdl, timeout()); }

AMASIA_MCL_API int mcl_set_timeout(uint64_t timeout_ns) {
  the_timeout.store(timeout_ns);
  return 0;
}

AMASIA_MCL_API int mcl_wait_all(void) {
  Session* const now = session();
  if (now == nullptr) return -MCL_ERR_NOINIT;
  now->client->wait_all();
  return 0;
}

AMASIA_MCL_API int mcl_test(mcl_handle* hdl) {
  Session* const now = session();
  if (now == nullptr) return -MCL_ERR_NOINIT;
  if (task_of(*now, hdl) == nullptr) return -MCL_ERR_INVREQ;
  return static_cast<int>(__atomic_load_n(&hdl->status, __ATOMIC_ACQUIRE));
}
AMASIA_MCL_API int mcl_test_all(void) {
  Session* const now = session();
  return now == nullptr ? -MCL_ERR_NOINIT : static_cast<int>(now->client->unfinished());
}

AMASIA_MCL_API int mcl_hdl_free(mcl_handle* hdl) {
  Session* const now = session();
  return now == nullptr ? -MCL_ERR_NOINIT : free_handle(*now, hdl);
}

AMASIA_MCL_API const char* mcl_reason(void) { return the_reason.c_str(); }
