// SPDX-License-Identifier: Apache-2.0
// include/amasia/mcl.h: states and errors, transfers, buffers, what processes share.
#include <algorithm>
#include <cstring>

#include "devices/client/c_api.hpp"

using namespace amasia::devices;
using namespace amasia::devices::c_api;

AMASIA_MCL_API int mcl_task_state(mcl_handle* hdl) {
  Session* const now = session();
  if (now == nullptr) return -MCL_ERR_NOINIT;
  const std::shared_ptr<Task> task = task_of(*now, hdl);
  if (task == nullptr) return -MCL_ERR_INVREQ;
  switch (now->client->state_of(*task)) {
    case TaskState::kCreated:
      return MCL_STATE_CREATED;
    case TaskState::kWaiting:
    case TaskState::kPut:
      return MCL_STATE_RUNNABLE;
    case TaskState::kGranted:
    case TaskState::kRunning:
      return MCL_STATE_EXECUTING;
    case TaskState::kEnded:
      break;
  }
  return task->failure ? MCL_STATE_FAILED : MCL_STATE_TERMINATED;
}

AMASIA_MCL_API int mcl_task_error(mcl_handle* hdl) {
  Session* const now = session();
  if (now == nullptr) return -MCL_ERR_NOINIT;
  const std::shared_ptr<Task> task = task_of(*now, hdl);
  if (task == nullptr) return -MCL_ERR_INVREQ;
  return now->client->state_of(*task) == TaskState::kEnded ? -task->failure.code : 0;
}

AMASIA_MCL_API int mcl_task_device(mcl_handle* hdl) {
  Session* const now = session();
  if (now == nullptr) return -MCL_ERR_NOINIT;
  const std::shared_ptr<Task> task = task_of(*now, hdl);
  if (task == nullptr) return -MCL_ERR_INVREQ;
  // The device is written before the state.
  const TaskState state = now->client->state_of(*task);
  if (state < TaskState::kGranted || task->device < 0) {
    return answer(fault(MCL_ERR_INVTSK, "the task has no device yet"));
  }
  return now->client->number_of(*task);
}

AMASIA_MCL_API const char* mcl_task_reason(mcl_handle* hdl) {
  Session* const now = session();
  if (now == nullptr) return "";
  const std::shared_ptr<Task> task = task_of(*now, hdl);
  if (task == nullptr || now->client->state_of(*task) != TaskState::kEnded) return "";
  return task->failure.reason.c_str();  // as long as the handle holds the task
}

AMASIA_MCL_API const char* mcl_strerror(int error) {
  static constexpr const char* kSentences[] = {
      "success",
      "an argument of the call is not allowed",
      "the host has no memory left",
      "no such handle: it was freed, or submitted already, or never created",
      "a work size is 0, or the local one does not divide the global one",
      "the task has no kernel, or no program that is loaded has that kernel",
      "no device of the classes asked for can run the task",
      "there is no daemon, or it ended while the task was in its hands",
      "the task cannot do this now",
      "a copy to or from a device failed",
      "the kernel could not be started, or failed",
      "the program cannot be read, or does not build",
      "not a buffer that is registered, or it is in use",
      "the time is over; the task goes on",
      "a task that this one depends on failed",
      "more or fewer arguments are set than the kernel has",
      "an argument's size is not what the kernel takes",
      "more memory than any device that is allowed has",
      "the daemon is of another version",
      "the daemon's socket: its path is too long, or it is not this user's",
      "shared memory is full or refused",
      "mcl_init was not called, or failed, or mcl_finit was called",
      "more than the daemon grants to one program",
  };
  static_assert(std::size(kSentences) == MCL_ERR_LAST + 1);
  const long number = error < 0 ? -static_cast<long>(error) : error;
  return number <= MCL_ERR_LAST ? kSentences[number] : "an unknown error";
}

namespace {

// The public part comes first, so that its address is the whole's.
struct Transfer {
  mcl_transfer open{};
  std::vector<void*> addresses;
  std::vector<std::uint64_t> sizes, offsets, flags;
  std::vector<mcl_handle*> handles;
  bool submitted = false;
};
Transfer* whole(mcl_transfer* open) { return reinterpret_cast<Transfer*>(open); }

}  // namespace

AMASIA_MCL_API mcl_transfer* mcl_transfer_create(uint64_t nargs, uint64_t ncopies, uint64_t) {
  Session* const now = session();
  if (now == nullptr) return nullptr;
  constexpr std::uint64_t kMost = 4096;
  if (nargs == 0 || nargs > kMost || ncopies == 0 || ncopies > kMaxDevices) {
    answer(fault(MCL_ERR_INVARG, "a transfer of {} buffers to {} devices (allowed: 1 … {}, 1 … {})",
                 nargs, ncopies, kMost, kMaxDevices));
    return nullptr;
  }
  auto made = std::make_unique<Transfer>();
  made->addresses.resize(nargs);
  made->sizes.resize(nargs);
  made->offsets.resize(nargs);
  made->flags.resize(nargs);
  for (std::uint64_t i = 0; i < ncopies; ++i) {
    mcl_handle* const handle = make_handle(*now, 0);
    if (handle == nullptr) return nullptr;
    task_of(*now, handle)->arguments.resize(nargs);
    made->handles.push_back(handle);
  }
  made->open = {nargs,
                made->addresses.data(),
                made->sizes.data(),
                made->offsets.data(),
                made->flags.data(),
                ncopies,
                made->handles.data()};
  return &made.release()->open;
}

AMASIA_MCL_API int mcl_transfer_set_arg(mcl_transfer* t_hdl, uint64_t idx, void* addr, size_t size,
                                        off_t offset, uint64_t flags) {
  Session* const now = session();
  if (now == nullptr) return -MCL_ERR_NOINIT;
  if (t_hdl == nullptr || idx >= t_hdl->nargs || offset < 0) {
    return answer(fault(MCL_ERR_INVARG, "buffer {} at offset {} of a transfer", idx, offset));
  }
  Transfer& transfer = *whole(t_hdl);
  const std::uint64_t all = flags | MCL_ARG_BUFFER | MCL_ARG_RESIDENT;
  transfer.addresses[idx] = addr;
  transfer.sizes[idx] = size;
  transfer.offsets[idx] = static_cast<std::uint64_t>(offset);
  transfer.flags[idx] = all;
  for (mcl_handle* handle : transfer.handles) {
    const std::shared_ptr<Task> task = task_of(*now, handle);
    if (Fault wrong = set_argument(*now, *task, idx, addr, size, transfer.offsets[idx], all)) {
      return answer(std::move(wrong));
    }
  }
  return 0;
}

AMASIA_MCL_API int mcl_transfer_exec(mcl_transfer* t_hdl, uint64_t flags) {
  Session* const now = session();
  if (now == nullptr) return -MCL_ERR_NOINIT;
  if (t_hdl == nullptr || whole(t_hdl)->submitted) {
    return answer(fault(MCL_ERR_INVREQ, "no transfer, or it was submitted already"));
  }
  for (mcl_handle* handle : whole(t_hdl)->handles) {
    const std::shared_ptr<Task> task = task_of(*now, handle);
    task->flags = flags;
    if (Fault wrong = now->client->submit(task, {})) return answer(std::move(wrong));
  }
  whole(t_hdl)->submitted = true;
  return 0;
}

AMASIA_MCL_API int mcl_transfer_wait(mcl_transfer* t_hdl) {
  Session* const now = session();
  if (now == nullptr) return -MCL_ERR_NOINIT;
  if (t_hdl == nullptr) return answer(fault(MCL_ERR_INVREQ, "no transfer"));
  const amasia::Nanos deadline = deadline_of(timeout());
  int result = 0;
  for (mcl_handle* handle : whole(t_hdl)->handles) {
    const int one = wait_for_task(*now, *task_of(*now, handle), deadline);
    if (result == 0) result = one;
  }
  return result;
}

AMASIA_MCL_API int mcl_transfer_test(mcl_transfer* t_hdl) {
  Session* const now = session();
  if (now == nullptr) return -MCL_ERR_NOINIT;
  if (t_hdl == nullptr) return answer(fault(MCL_ERR_INVREQ, "no transfer"));
  for (mcl_handle* handle : whole(t_hdl)->handles) {
    if (task_of(*now, handle)->ended.load(std::memory_order_acquire) == 0) {
      return MCL_REQ_INPROGRESS;
    }
  }
  return MCL_REQ_COMPLETED;
}

AMASIA_MCL_API int mcl_transfer_free(mcl_transfer* t_hdl) {
  Session* const now = session();
  if (now == nullptr) return -MCL_ERR_NOINIT;
  if (t_hdl == nullptr) return answer(fault(MCL_ERR_INVREQ, "no transfer"));
  const std::unique_ptr<Transfer> transfer(whole(t_hdl));
  for (mcl_handle* handle : transfer->handles) free_handle(*now, handle);
  return 0;
}

AMASIA_MCL_API int mcl_register_buffer(void* buffer, size_t size, uint64_t) {
  Session* const now = session();
  if (now == nullptr) return -MCL_ERR_NOINIT;
  return answer(now->client->register_buffer(buffer, size));
}
AMASIA_MCL_API int mcl_unregister_buffer(void* buffer) {
  Session* const now = session();
  if (now == nullptr) return -MCL_ERR_NOINIT;
  return answer(now->client->unregister_buffer(buffer));
}
AMASIA_MCL_API int mcl_invalidate_buffer(void* buffer) {
  Session* const now = session();
  if (now == nullptr) return -MCL_ERR_NOINIT;
  return answer(now->client->invalidate_buffer(buffer));
}

AMASIA_MCL_API uint32_t mcl_task_get_sharing_id(mcl_handle* hdl) {
  Session* const now = session();
  if (now == nullptr) return UINT32_MAX;
  const std::shared_ptr<Task> task = task_of(*now, hdl);
  return task == nullptr || task->sharing < 0 ? UINT32_MAX : static_cast<uint32_t>(task->sharing);
}

AMASIA_MCL_API int mcl_test_shared_hdl(pid_t pid, uint32_t hdl_id) {
  Session* const now = session();
  if (now == nullptr) return -MCL_ERR_NOINIT;
  bool ended = false;
  int error = 0;
  if (Fault wrong = now->client->watch(pid, hdl_id, 0, &ended, &error)) {
    return answer(std::move(wrong));
  }
  return ended ? MCL_REQ_COMPLETED : MCL_REQ_INPROGRESS;
}
AMASIA_MCL_API int mcl_wait_shared_hdl(pid_t pid, uint32_t hdl_id) {
  Session* const now = session();
  if (now == nullptr) return -MCL_ERR_NOINIT;
  bool ended = false;
  int error = 0;
  if (Fault wrong =
          now->client->watch(pid, hdl_id, deadline_of(timeout()), &ended, &error)) {
    return answer(std::move(wrong));
  }
  if (!ended) return answer(fault(MCL_ERR_TIMEOUT, "the task has not ended within the time"));
  return error == 0 ? 0
                    : answer(fault(error, "task {} of process {} failed: {}", hdl_id, pid,
                                   mcl_strerror(error)));
}

AMASIA_MCL_API void* mcl_get_shared_buffer(const char* name, size_t size, int flags) {
  Session* const now = session();
  if (now == nullptr) return nullptr;
  void* address = nullptr;
  const auto all = static_cast<unsigned>(flags);
  const bool replace = (all & MCL_SHARED_MEM_DEL_OLD) != 0;
  if (Fault wrong = now->client->open_shared(name == nullptr ? "" : name, size,
                                             replace || (all & MCL_SHARED_MEM_NEW) != 0, replace,
                                             &address)) {
    answer(std::move(wrong));
    return nullptr;
  }
  return address;
}
AMASIA_MCL_API void mcl_free_shared_buffer(void* address) {
  Session* const now = session();
  if (now != nullptr && !now->client->close_shared(address)) {
    answer(fault(MCL_ERR_RESDATA, "no shared buffer is mapped at {}", address));
  }
}
