// SPDX-License-Identifier: Apache-2.0
// What occupies the devices: tasks in flight, processing elements, memory, resident buffers. A
// value that only the Scheduler changes; orders, placements and evictions ask it.
//
// For every device, always:
//   pinned   = temporaries of the tasks in flight + bytes of the copies with pins > 0
//   used     = temporaries of the tasks in flight + bytes of all copies  (pinned <= used <= memory)
//   elements = sum of the elements of the tasks in flight
//   ahead    = sum of what the brief ones of them are expected to take  (brief <= in_flight)
// Tasks that are set aside, since their program was stopped, are in flight for the first two only.
// A task fits when `pinned` with all it uses would be at most the memory: what is not pinned can
// go.
// A *guest* is a brief task of a client that has nothing in flight; where it may run on CPUs alone,
// also one that is long. It need not wait for those of others: the system shares a CPU's cores, and
// a GPU goes from one program to the next by itself. Where another device has room it is no guest.
#pragma once

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "devices/policy/terms.hpp"

namespace amasia::devices::policy {

struct BufferKeyHash {
  std::size_t operator()(const BufferKey& key) const noexcept {
    return key.buffer * 0x9e3779b97f4a7c15U ^ key.client.value;
  }
};
struct TaskKeyHash {
  std::size_t operator()(const TaskKey& key) const noexcept {
    return key.task * 0x9e3779b97f4a7c15U ^ key.client.value;
  }
};

// A resident buffer's memory on a device.
struct Copy {
  Bytes bytes = 0;
  std::uint32_t pins = 0;     // tasks in flight that use it
  bool valid = false;         // has the newest content
  bool dirty = false;         // a kernel wrote it: leaving, it has to be copied back
  bool doomed = false;        // dropped: goes with the last pin
  bool there = false;         // a task that brings it was granted; before, it is only booked
  std::uint64_t used_at = 0;  // a step of the ledger, which grows with every start
  double credit = 0;          // for the eviction policy
};
using Copies = std::unordered_map<BufferKey, Copy, BufferKeyHash>;

struct DeviceUse {
  DeviceTerms terms;
  std::uint32_t in_flight = 0;
  std::uint64_t elements = 0;
  std::uint32_t brief = 0;
  Nanos ahead = 0;
  std::uint32_t aside = 0;
  // So many may be in flight beyond the bounds: they came back from aside, or came as guests.
  std::uint32_t over = 0;
  Bytes used = 0, pinned = 0;
  double evicted_credit = 0;  // for the eviction policy: the credit of what went last
  Copies copies;
};

struct ClientUse {
  ClientTerms terms;
  std::uint32_t in_flight = 0, aside = 0;
  std::vector<Bytes> used, pinned;  // for each device: of its tasks and its buffers
  std::vector<Bytes> limit;         // for each device: what its driver gives it there
  Bytes most(DeviceId device) const { return std::min(terms.bytes_max, limit[device.value]); }
};

class Ledger {
 public:
  // Devices are added in the order of their numbers, which begin at 0.
  void add_device(const DeviceTerms& terms);
  // All of it where nothing is there, else only more memory.
  void change_device(DeviceId device, const DeviceTerms& terms);
  void limit_memory(ClientId client, DeviceId device, Bytes most) {
    client_use(client).limit[device.value] = most;
  }
  void set_client(ClientId client, const ClientTerms& terms) { client_use(client).terms = terms; }
  // Its tasks are finished; what copies it still has go.
  void remove_client(ClientId client);

  std::size_t devices() const { return devices_.size(); }
  DeviceSet all_devices() const { return all_; }
  const DeviceUse& device(DeviceId id) const { return devices_[id.value]; }
  const ClientUse* client(ClientId id) const;  // nullptr: not known

  // Devices with room for one more task of one element, or a brief one, whatever its memory; for
  // whom has nothing in flight, also those that take a guest.
  DeviceSet open() const { return open_; }
  DeviceSet open_to(ClientId client) const { return has_none(client) ? open_ | hosts_ : open_; }
  // On which devices the task could ever run: alone on the device, within its client's quota. The
  // other questions are asked of these devices only.
  DeviceSet possible(const TaskDescription& task) const;
  // Whether it can start now. Evictions may have to make room. `expected`: what its kernel takes
  // there, 0: not known; it matters where takes_brief().
  bool fits(const TaskDescription& task, DeviceId device, Nanos expected = 0) const;
  // The same, beyond what the device otherwise takes.
  bool fits_as_guest(const TaskDescription& task, DeviceId device, Nanos expected) const;
  // All that is in flight there is brief, and is not too much yet.
  bool takes_brief(DeviceId device) const;
  // Whether the client may have one more task in flight.
  bool within_quota(ClientId client) const;
  // What has to be copied there before the task can run; what of its input is there.
  Bytes missing(const TaskDescription& task, DeviceId device) const;
  Bytes present(const TaskDescription& task, DeviceId device) const;
  // How much has to go so that the task can start: of any copies, and of its client's own.
  struct Need {
    Bytes of_any = 0;
    Bytes of_client = 0;
  };
  Need need(const TaskDescription& task, DeviceId device) const;
  // Whether the task takes memory there that is not in use already.
  bool takes_memory(const TaskDescription& task, DeviceId device) const;

  // The task must fit, as a guest or not, and what it needs be free. The end is told with the same
  // `expected`.
  void start(const TaskDescription& task, DeviceId device, Nanos expected = 0);
  // It was granted: its buffers are there.
  void bring(const TaskDescription& task, DeviceId device);
  void finish(const TaskDescription& task, DeviceId device, Nanos expected = 0);
  // It was started and not granted: what only it would have brought is not there.
  void withdraw(const TaskDescription& task, DeviceId device, Nanos expected = 0);
  // A task in flight keeps its memory, and leaves the rest to others; and the way back, whether it
  // fits or not.
  void set_aside(const TaskDescription& task, DeviceId device, Nanos expected);
  void take_back(const TaskDescription& task, DeviceId device, Nanos expected);
  // A copy that came to be without a task, or is known already.
  void place(BufferKey buffer, DeviceId device, Bytes size);
  // The copy goes, at once or with its last pin. One that is not there is no fault.
  void drop(BufferKey buffer, DeviceId device);

  // For the eviction policy, which keeps its figures with the copies.
  DeviceUse& device_for_eviction(DeviceId id) { return devices_[id.value]; }
  // The equations at the top of this file.
  bool is_valid() const;

 private:
  void occupy(const TaskDescription& task, DeviceId device, Nanos expected);
  void vacate(const TaskDescription& task, DeviceId device, Nanos expected);
  ClientUse& client_use(ClientId id);
  void update_open(DeviceId device);
  bool has_none(ClientId client) const;
  bool has_room(const TaskDescription& task, DeviceId device, Nanos expected) const;
  bool has_memory(const TaskDescription& task, DeviceId device) const;
  Copy& book(BufferKey buffer, DeviceId device, Bytes size);
  void erase(std::size_t device, Copies::iterator copy);
  Bytes unpinned_of(const TaskDescription& task, const DeviceUse& device) const;
  void write(BufferKey buffer, DeviceId device);

  std::vector<DeviceUse> devices_;
  std::unordered_map<ClientId, ClientUse> clients_;
  DeviceSet open_ = 0, hosts_ = 0, cpus_ = 0, all_ = 0;
  std::uint64_t step_ = 0;
};

}  // namespace amasia::devices::policy
