// SPDX-License-Identifier: Apache-2.0
// What the daemon asks a scheduling policy (paper section 2.3), as pure values. A policy is a file
// in this folder, or a shared object. It owns the queue of tasks that were put and not granted yet.
//
// operation      called by the daemon's state when                       effect
// add_device     a client announces a device not known yet               may be chosen from now on
// change_device  another client says something else of it                as told, from now on
// can_run        before put: an error goes to the client, the task fails  none
// put            a task is ready; all of `allowed` is known already       queued
// next           after puts and finishes, again until it says nothing    one task leaves the queue
// finish         a granted task has ended, or its client has gone        its share is free again
// ran            a task that was never put has run, and has ended, on  its time counts
//                a device that nobody else wanted anything of
// cancel         a queued task's client has withdrawn it, or has gone    it leaves the queue
// place, drop    a buffer's copy came to be on a device; went            bytes resident
// suspend        a client was stopped and others wait                    its tasks in flight hold
//                                                                        memory only, and those
//                                                                        queued are not chosen
// resume         it goes on                                              as before suspend
//
// The daemon's state (daemon/state.hpp) keeps who exists and what is granted; it checks what a
// policy answers (a task that is queued, a device of its `allowed`) and stops with a check if not.
// A policy has no clock, does no I/O, starts no thread: `now` is passed in. Called by one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "devices/ids.hpp"

struct amasia_device_policy;

namespace amasia::devices {

// A buffer argument that stays on devices between tasks, or the part of it that the task uses.
struct TaskArgument {
  std::uint64_t buffer = 0;  // the client's number, never 0
  Bytes size = 0;            // of the whole buffer: what a copy of it takes on a device
  Access access = Access::kRead;
};

struct TaskDescription {
  TaskKey key;
  DeviceSet allowed = 0;         // devices that its client has, of the classes that it may run on
  DeviceSet preferred = 0;       // part of `allowed`: favoured class; 0: no preference
  std::int32_t priority = 0;     // larger is sooner
  std::uint64_t kernel = 0;      // equal for tasks of the same kernel code, also of other clients
  std::uint64_t work_items = 0;  // global size
  Bytes temporary = 0;           // bytes of arguments that live on the device for this task only
  std::vector<TaskArgument> resident;
  Nanos put_at = 0;  // CLOCK_MONOTONIC
  // A run of so many tasks that are all as this one says, brief, and carried out one after the
  // other: placed as one, and ended as one.
  std::uint32_t count = 1;
};

// A copy of a resident buffer that has to leave a device before a task is started there.
struct Eviction {
  BufferKey buffer;
  DeviceId device;
};
struct Grant {
  TaskKey task;
  DeviceId device;
};
struct Decision {
  std::optional<Grant> grant;
  // Instead of a grant: copies to give up first, all of one device. `next` is asked again when they
  // are gone (`drop`); the policy may hold the task back for that device until then.
  std::vector<Eviction> evictions;
  bool nothing() const { return !grant.has_value() && evictions.empty(); }
};

// How a granted task ended, as its client says: not to be trusted beyond the client's own share.
struct TaskEnd {
  TaskKey task;
  DeviceId device;
  bool succeeded = true;
  Nanos run_time = 0;  // of the kernel alone, of a run of all of them; 0: not known
  Nanos copy_time = 0;
  Nanos held_time = 0;  // from grant to finish, by the daemon's clock
  Nanos run_ended = 0;  // CLOCK_MONOTONIC; 0: not known
};

class Policy {
 public:
  virtual ~Policy() = default;
  virtual std::string_view name() const = 0;
  virtual void add_client(ClientId client, double weight) = 0;
  virtual void remove_client(ClientId client) = 0;  // its tasks and buffers are gone already
  virtual void add_device(DeviceId device, const DeviceDescription& description) = 0;
  // Where no client has the device the number may stand for another one from now on; else it has
  // more memory than was known.
  virtual void change_device(DeviceId device, const DeviceDescription& description) = 0;
  // How much of the device's memory the client's driver gives it, which may be less than others'.
  virtual void limit_memory(ClientId, DeviceId, Bytes) {}
  // Whether the task could ever start: memory, quotas, devices. An error is a sentence for the
  // user; its code is EDQUOT where only a quota stands against it.
  virtual Status can_run(const TaskDescription&) const { return base::ok(); }
  virtual void put(TaskDescription task) = 0;
  virtual Decision next(Nanos now) = 0;
  virtual void finish(const TaskEnd& end) = 0;
  // Only where tasks may be runs (run_most()).
  virtual void ran(const TaskDescription&, const TaskEnd&) {}
  virtual void cancel(TaskKey task) = 0;
  // `place` is called for each resident argument with the grant of its task, if the buffer has no
  // copy there yet.
  virtual void place(BufferKey buffer, DeviceId device, Bytes size) = 0;
  virtual void drop(BufferKey buffer, DeviceId device) = 0;
  // For a client that is there and not suspended; is. A suspended one may end and put all the same.
  virtual void suspend(ClientId) {}
  virtual void resume(ClientId) {}
  // How many tasks a run may have; 1: it wants to see each.
  virtual std::uint32_t run_most() const { return 1; }
  // When `next` may have another answer although nothing happens meanwhile (delay scheduling,
  // ageing); negative: never.
  virtual Nanos ask_again_at() const { return -1; }
  // What a plug-in did wrong, so that another policy took its place; "" if nothing. For the log.
  virtual std::string complaint() const { return {}; }
};

// `name`: names of parts, an order, a placement, an eviction and a fairness, in any order, with '+'
// or ',' between them; what is not named is the default ("fifo", "priority+earliest-finish+cost").
// `settings`: KEY=VALUE with ',' between them. An error names what is allowed.
// docs/device_policies.md
Result<std::unique_ptr<Policy>> make_policy(std::string_view name, std::string_view settings);

// The same with an order and a placement of a plug-in's (include/amasia/device_policy.h): the table
// that its entry point returned, which outlives the policy. `options` is handed to its init.
Result<std::unique_ptr<Policy>> make_policy_of(const amasia_device_policy& plugin,
                                               std::string_view options, std::string_view name,
                                               std::string_view settings);

// What there is to name, for `amasia devices policies` and documentation.
struct PolicyPart {
  std::string_view kind, name, description;
  bool is_default = false;
};
std::span<const PolicyPart> policy_parts();

}  // namespace amasia::devices
