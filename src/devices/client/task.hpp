// SPDX-License-Identifier: Apache-2.0
// A task and a resident buffer, as the client keeps them.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "devices/client/fault.hpp"
#include "devices/client/residency.hpp"
#include "devices/ids.hpp"
#include "os/os.hpp"

namespace amasia::devices {

class Client;
class Task;
struct Run;

// Memory of the user's whose copies stay on devices. All fields: the client's lock.
struct ResidentBuffer {
  ResidentBuffer(std::uint64_t its_number, void* its_address, Bytes size)
      : number(its_number), address(static_cast<std::byte*>(its_address)), where(size) {}
  std::uint64_t number;
  std::byte* address;
  Residency where;
  std::map<OwnDevice, std::shared_ptr<DeviceBuffer>> copies;
  std::uint32_t tasks = 0;                       // submitted, not ended
  std::map<OwnDevice, std::uint32_t> running;    // of them, granted on the device
  // While a task, or an eviction, moves bytes of it, others that use it wait here.
  bool moving = false;
  std::vector<std::shared_ptr<Task>> parked;
  bool is_registered = false;  // by the program, as a whole
  bool is_shared = false;  // with other processes: a shared buffer's mapping
  DeviceSet to_evict = 0;  // copies that the daemon wants gone as soon as nobody uses them
};

struct Argument {
  bool set = false;
  std::uint64_t flags = 0;  // MCL_ARG_*
  void* address = nullptr;
  std::size_t size = 0;
  Bytes offset = 0;
  os::BlockVector<std::byte> value;          // SCALAR
  std::shared_ptr<ResidentBuffer> resident;  // RESIDENT, or part of a registered buffer

  bool is_buffer() const { return (flags & MCL_ARG_BUFFER) != 0; }
  Range range() const { return {offset, offset + size}; }
  bool kernel_reads() const { return (flags & (MCL_ARG_INPUT | MCL_ARG_DYNAMIC)) != 0; }
  bool kernel_writes() const {
    return (flags & MCL_ARG_RDONLY) == 0 && (flags & (MCL_ARG_OUTPUT | MCL_ARG_DYNAMIC)) != 0;
  }
};

enum class TaskState : std::uint8_t {
  kCreated,
  kWaiting,  // for other tasks, or for room in the daemon's hands
  kPut,      // in the daemon's hands
  kGranted,  // has a device; is being prepared
  kRunning,
  kEnded,
};

// Fields: set up by one thread before submit(); from then on the client's lock, but for those that
// say otherwise.
class Task final : public Completion {
 public:
  explicit Task(Client* owner) : client(owner) {}
  std::uint64_t items() const { return global[0] * global[1] * global[2]; }

  Client* client;
  std::uint64_t number = 0;  // from submit() on
  std::string kernel;        // "": only moves bytes, or nothing
  bool is_null = false;
  os::BlockVector<Argument> arguments;
  std::uint64_t global[3] = {1, 1, 1}, local[3] = {0, 0, 0}, offset[3] = {0, 0, 0};
  std::uint64_t flags = 0;  // MCL_TASK_*, MCL_FAV_*
  std::int32_t priority = 0;
  mcl_handle* handle = nullptr;  // the user's; its status and ret are kept up to date
  std::int64_t sharing = -1;     // its number between processes
  mcl_end_function on_end = nullptr;  // told of the end, under the client's lock
  void* on_end_context = nullptr;

  std::atomic<TaskState> state{TaskState::kCreated};  // written under the lock, read by any thread
  DeviceSet allowed = 0, preferred = 0;  // the client's own devices
  std::uint64_t identity = 0;  // its kernel's, for the daemon; 0: it has none
  std::shared_ptr<Run> run;    // that it was put in, until it ends; nullptr: it was put alone
  int device = -1;
  Fault failure;  // does not change once the state is kEnded
  std::uint64_t link = 0;  // the connection that it was put over
  Nanos begun_at = 0;      // without having been put, on a leased device; 0: it was put
  Nanos weighed_at = 0;    // submitted, and told LeaseHabit when it ends; 0: it is not
  // Any thread: 0, then 1 for good, after all else that the end tells; who sleeps for it counts
  // itself first.
  std::atomic<std::uint32_t> ended{0};
  std::atomic<std::uint32_t> sleepers{0};

  // While it runs: only the thread that prepares it, then finished().
  os::BlockVector<KernelArgument> kernel_arguments;
  std::vector<Copy> to_device, to_host;
  os::BlockVector<std::shared_ptr<DeviceBuffer>> held;  // copies and temporaries that it uses
  std::vector<std::shared_ptr<ResidentBuffer>> moved;  // buffers that wait for it (moving)
  Bytes copied = 0;
  std::shared_ptr<Task> self;  // as long as the back end has it, or it is in Client::arrived_
  Outcome outcome;
  Task* arrived_before = nullptr;

  void finished(Outcome&& told) noexcept override;
  void finished_with_others(Outcome&& told) noexcept override;
};

}  // namespace amasia::devices
