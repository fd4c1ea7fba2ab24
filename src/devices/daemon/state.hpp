// SPDX-License-Identifier: Apache-2.0
// All that the daemon knows and decides, without I/O, clock or threads: step(event) -> effects.
// Clients are not trusted: what a record says is checked against what its client may say now, and
// a client that breaks the protocol gets a Close with a sentence. docs/protocols/devices.md has the
// table of states and records.
//
// Invariants (checked by is_valid): a task is queued in the policy or granted on one device; a
// granted task's resident arguments have copies on its device; the counts of devices, clients and
// buffers are those of the tasks; nothing refers to a client that has left.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "devices/ids.hpp"
#include "devices/policy/policy.hpp"
#include "devices/wire/records.hpp"

namespace amasia::devices {

// What happens.
struct Joined {
  ClientId client;
  std::int32_t process = 0;
  std::string program;
  double weight = 1;
  std::vector<DeviceDescription> devices;  // at most kMaxDevices; by the client's own numbers
};
struct Left {
  ClientId client;
};
struct Received {
  ClientId client;
  Record record;
};
struct DrainBegins {};
// The client's process was seen stopped; was seen to run again. A record from it tells so, too.
struct Stopped {
  ClientId client;
};
struct Continued {
  ClientId client;
};
using Event = std::variant<Joined, Left, Received, DrainBegins, Stopped, Continued>;

// What to do, in order.
struct Send {
  ClientId client;
  Record record;
};
// To disconnect a client; its Left has been done already.
struct Close {
  ClientId client;
  std::string sentence;
};
// For the trace and the statistics: a task that was granted has ended. Times are CLOCK_MONOTONIC
// of the node, 0 where not known; what the client said is brought into order (put <= granted <=
// copy_began <= … <= finished).
struct TaskEnded {
  TaskKey task;
  DeviceId device;
  std::uint64_t kernel = 0;
  std::uint64_t work_items = 0;
  bool succeeded = false;
  std::uint32_t count = 1, failed = 0;  // of a run: how many, and how many of them failed
  Nanos put_at = 0, granted_at = 0, copy_began = 0, run_began = 0, run_ended = 0, copy_ended = 0,
        finished_at = 0;
  Bytes copied = 0;
};
// For the trace: what people call a kernel. The same name for one identity, whoever says so.
struct KernelNamed {
  std::uint64_t kernel = 0;
  std::string name;
};
using Effect = std::variant<Send, Close, TaskEnded, KernelNamed>;

struct DeviceState {
  DeviceDescription description;
  std::uint32_t clients = 0;    // that have it
  std::uint32_t granted = 0;    // tasks on it now
  std::uint64_t finished = 0;   // tasks
  Bytes resident = 0;
  Nanos busy = 0;               // of kernels, as clients say
};

inline constexpr DeviceId kNoDevice{0xffff};

struct ClientState {
  std::int32_t process = 0;
  std::string program;
  // By the client's own numbers; one that it reaches in two ways stands there twice. kNoDevice:
  // there were kMaxDevices others.
  std::vector<DeviceId> devices;
  DeviceSet device_set = 0;
  std::uint32_t queued = 0, granted = 0;
  bool suspended = false;  // stopped while others waited: its tasks hold memory only
  std::uint64_t finished = 0, failed = 0;
  Bytes resident = 0;
  // Devices on which it may run brief tasks without asking; whether there ever was one; until when
  // what it ran so has taken.
  DeviceSet leased = 0;
  bool was_leased = false;
  Nanos ran_until = 0;
  Nanos last_put = -1;

  struct Task {
    bool granted = false;
    DeviceId device;
    std::uint64_t own_allowed = 0;  // the client's own numbers
    Nanos granted_at = 0;
    TaskDescription description;
  };
  std::unordered_map<std::uint64_t, Task> tasks;
  struct Buffer {
    Bytes size = 0;
    DeviceSet copies = 0;
    DeviceSet leaving = 0;      // part of copies: the client has been told to give them up
    std::uint32_t users = 0;    // tasks that are queued or granted
    std::vector<DeviceId> used_on;  // one entry for each granted task that uses it
  };
  std::unordered_map<std::uint64_t, Buffer> buffers;
  // A kPut whose kArguments have not all come yet.
  std::optional<PutRecord> incoming;
  std::vector<TaskArgument> incoming_arguments;
};

// What one client may have at a time; beyond that it is disconnected.
inline constexpr std::size_t kMaxTasks = 16384;
inline constexpr std::size_t kMaxBuffers = 1U << 20;

class DaemonState {
 public:
  explicit DaemonState(std::unique_ptr<Policy> policy) : policy_(std::move(policy)) {}

  // Appends to `effects`. `now` never goes back.
  void step(const Event& event, Nanos now, std::vector<Effect>& effects);
  // Grants what can be granted: once after a batch of events.
  void schedule(Nanos now, std::vector<Effect>& effects);
  // When schedule() should be called again although nothing has happened; negative: never.
  Nanos ask_again_at() const { return policy_->ask_again_at(); }

  bool draining() const { return draining_; }
  bool has_tasks() const;
  // Of clients that are not suspended.
  bool has_queued() const;
  bool has_granted() const;
  bool has_suspended() const;
  // Clients that hold tasks granted before `then` while others' are queued, and those suspended:
  // of them it matters whether they are stopped.
  std::vector<ClientId> holding_up(Nanos then) const;
  // What the daemon is to be woken for by the client, at least: while it drains, any end; while
  // others wait for room, what they cannot wait for; else what the client itself cannot.
  Urgency least_urgency(ClientId client) const;
  const std::map<ClientId, ClientState>& clients() const { return clients_; }
  const std::vector<DeviceState>& devices() const { return devices_; }
  const Policy& policy() const { return *policy_; }
  bool is_valid() const;

 private:
  using Client = std::pair<const ClientId, ClientState>;
  using Complaint = std::optional<std::string>;

  bool keeps_others(ClientId client) const;  // that have tasks queued
  void suspend(ClientId id);
  void resume(ClientId id);
  void join(const Joined& event);
  void leave(ClientId id, Nanos now);
  Complaint receive(Client& client, const Record& record, Nanos now,
                    std::vector<Effect>& effects);
  Complaint receive_put(Client& client, const PutRecord& put, Nanos now,
                        std::vector<Effect>& effects);
  Complaint receive_arguments(Client& client, const ArgumentsRecord& record, Nanos now,
                              std::vector<Effect>& effects);
  void put(Client& client, Nanos now, std::vector<Effect>& effects);
  Complaint receive_finished(Client& client, const FinishedRecord& record, Nanos now,
                             std::vector<Effect>& effects);
  Complaint receive_ran(Client& client, const RanRecord& record, Nanos now,
                        std::vector<Effect>& effects);
  void receive_cancel(Client& client, std::uint64_t task);
  // Whether the client may have the device, which it is granted, without asking until others want
  // something.
  bool may_lease(ClientId client, Nanos now) const;
  void revoke_leases(std::vector<Effect>& effects);
  Complaint receive_dropped(Client& client, const ShortRecord& record);
  void place_copy(Client& client, std::uint64_t number, ClientState::Buffer& buffer,
                  DeviceId device);
  void drop_copy(Client& client, std::uint64_t number, ClientState::Buffer& buffer,
                 DeviceId device);
  void release_buffers(Client& client, const ClientState::Task& task);
  void end_granted(Client& client, const ClientState::Task& task, bool succeeded,
                   const FinishedRecord* said, Nanos now);
  void grant(const Grant& decided, Nanos now, std::vector<Effect>& effects);
  void evict(const Eviction& decided, std::vector<Effect>& effects);
  DeviceId device_of(const DeviceDescription& said);
  void describe(std::size_t device, const DeviceDescription& said);

  std::unique_ptr<Policy> policy_;
  std::map<ClientId, ClientState> clients_;
  std::vector<DeviceState> devices_;
  bool draining_ = false;
};

}  // namespace amasia::devices
