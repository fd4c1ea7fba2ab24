// SPDX-License-Identifier: Apache-2.0
// The scheduling framework (paper 2.3) behind the seam policy.hpp: a chooser says what runs next
// and where; this keeps what occupies the devices, makes room, learns from what ended, and holds
// choosers to the rules.
//
// A task is *queued*, then *preparing* where copies have to leave its device first, then granted,
// and *in flight* from the choice on. Memory is booked with the choice: what is to leave counts as
// gone. A task that takes new memory on a device where copies are leaving is granted when they are
// gone.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "devices/policy/chooser.hpp"
#include "devices/policy/eviction.hpp"
#include "devices/policy/policy.hpp"

namespace amasia::devices::policy {

class Scheduler final : public Policy {
 public:
  struct Parts {
    std::string name;
    std::unique_ptr<Chooser> chooser;
    const EvictionPolicy* eviction = nullptr;
    ClientTerms quota;  // of every client; the weight is given with the client
    std::optional<Nanos> ahead, turn;  // of every device; none: by its class
    bool counts_tasks = false;  // the fairness reckons with numbers of tasks
    // Takes over from a chooser that breaks the rules; may be null for one of our own.
    std::unique_ptr<Chooser> reserve;
  };
  explicit Scheduler(Parts parts) : parts_(std::move(parts)) {}

  std::string_view name() const override { return parts_.name; }
  void add_client(ClientId client, double weight) override;
  void remove_client(ClientId client) override;
  void add_device(DeviceId device, const DeviceDescription& description) override;
  void change_device(DeviceId device, const DeviceDescription& description) override;
  void limit_memory(ClientId client, DeviceId device, Bytes most) override {
    ledger_.limit_memory(client, device, most);
  }
  Status can_run(const TaskDescription& task) const override;
  void put(TaskDescription task) override;
  Decision next(Nanos now) override;
  void finish(const TaskEnd& end) override;
  void ran(const TaskDescription& task, const TaskEnd& end) override;
  void cancel(TaskKey task) override;
  void place(BufferKey buffer, DeviceId device, Bytes size) override;
  void drop(BufferKey buffer, DeviceId device) override;
  std::uint32_t run_most() const override;
  void suspend(ClientId client) override;
  void resume(ClientId client) override;
  Nanos ask_again_at() const override { return parts_.chooser->ask_again_at(); }
  std::string complaint() const override { return complaint_; }

  // For what looks on, and for tests.
  const Ledger& ledger() const { return ledger_; }
  const Estimates& estimates() const { return estimates_; }
  std::size_t queued() const { return queued_.size(); }
  std::size_t in_flight() const { return flights_.size(); }

 private:
  struct Flight {
    TaskDescription task;
    DeviceId device;
    Bytes missing = 0;
    Nanos busy = 0;  // what it added to its device
    Nanos expected = 0;  // what it was thought to keep its device for; 0: not known
    std::uint32_t abreast = 1;  // so many were in flight there with its start
    bool granted = false;
    std::size_t waits_for = 0;  // copies that leave its device
  };
  struct Leaving {
    BufferKey buffer;
    std::vector<TaskKey> waiting;
  };

  DeviceTerms terms_for(const DeviceDescription& description) const;
  Decision start(const Choice& choice, Nanos now);
  Nanos expected(const TaskDescription& task, DeviceId device) const;
  Grant grant(Flight& flight);
  // For how much of its run_time it kept its device from others, of whom there were so many.
  Nanos kept(std::uint32_t abreast, const TaskEnd& end);
  void land(std::unordered_map<TaskKey, Flight, TaskKeyHash>::iterator flight, const TaskEnd& end);
  void gone(DeviceId device, std::vector<Leaving>::iterator leaving);
  bool allowed(const Choice& choice) const;
  void dismiss_chooser(std::string why);
  struct Queued {
    TaskDescription task;
    std::uint64_t place = 0;  // in the line of all tasks, counted from 1
  };
  // Hands them to the chooser in the order in which they came.
  void offer(std::vector<const Queued*> tasks);
  void want(const Queued& queued);
  void want_no_more(const Queued& queued);
  static std::uint64_t next_use(const void* self, BufferKey buffer);

  Parts parts_;
  Ledger ledger_;
  Estimates estimates_;
  BusyUntil busy_{};
  std::unordered_map<TaskKey, Queued, TaskKeyHash> queued_;
  std::uint64_t places_ = 0;
  std::unordered_map<TaskKey, Flight, TaskKeyHash> flights_;
  // Places of the queued tasks that read a buffer.
  std::unordered_map<BufferKey, std::set<std::uint64_t>, BufferKeyHash> wanted_;
  std::vector<std::vector<Leaving>> leaving_;  // for each device
  std::vector<Nanos> last_ended_;              // for each device: the kernel that ended last
  std::deque<TaskKey> ready_;                  // to be granted
  std::vector<DeviceDescription> devices_;
  std::unordered_map<ClientId, double> weights_;
  // The chooser does not know their queued tasks, and the ledger has set aside what is in flight.
  std::set<ClientId> suspended_;
  std::string complaint_;
};

}  // namespace amasia::devices::policy
