// SPDX-License-Identifier: Apache-2.0
// The framework's own chooser: tasks stand in lanes, one for each client and set of possible
// devices, sorted by the order; a client's turn comes by the fairness; the placement has the last
// word.
//
// Where a device is kept by one client for a while (DeviceTerms::turn), that is by the clock: how
// long kernels take says little where those of others run between them. The client is charged for
// all of its turn, since the device was nobody else's. One that had nothing queued, and has had no
// more than its part, is next, and need only wait for the first quarter of a turn.
//
// A lane none of whose devices has room is passed over as a whole, so that a long queue for a full
// GPU costs nothing while the CPU takes tasks. One call looks at no more than kScanMax tasks.
#pragma once

#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "devices/policy/chooser.hpp"
#include "devices/policy/fairness.hpp"
#include "devices/policy/order.hpp"

namespace amasia::devices::policy {

struct LineSettings {
  Nanos ageing = 100 * base::kMillisecond;  // of waiting that weighs as much as a step of priority
  std::uint32_t overtakes_max = 64;
};

class Line final : public Chooser {
 public:
  static constexpr std::size_t kScanMax = 256;

  Line(const Order& order, const Placement& placement, const Fairness& fairness,
       LineSettings settings)
      : order_(order), fairness_(fairness), settings_(settings), placement_(placement.make()) {}

  void set_weight(ClientId client, double weight) override;
  void remove_client(ClientId client) override;
  void add_device(DeviceId, const DeviceDescription&) override {}
  void put(const TaskDescription& task, DeviceSet possible) override;
  void remove(TaskKey task) override;
  std::optional<Choice> next(const Sight& sight) override;
  void started(const TaskDescription& task, DeviceId device) override;
  void ended(const TaskDescription& task, const TaskEnd& end) override;
  void ran(const TaskDescription& task, const TaskEnd& end, const DeviceTerms& terms) override;
  Nanos ask_again_at() const override { return ask_at_; }

 private:
  struct Rank {
    Nanos key;
    std::uint64_t sequence;
    auto operator<=>(const Rank&) const = default;
  };
  struct Waiting {
    TaskDescription task;
    Nanos waits_since = -1;
    std::uint32_t overtaken = 0;
    std::optional<DeviceId> reserved;
  };
  using Lane = std::map<Rank, Waiting>;
  struct Group {
    double weight = 1;
    double time = 0;  // virtual
    bool is_urgent = false;  // nothing of it was queued; until a task of it starts
    std::map<DeviceSet, Lane> lanes;
    std::size_t waiting = 0;
  };
  struct Place {
    ClientId group;
    DeviceSet lane = 0;
    Rank rank;
  };
  struct Round;
  // Of a device that clients keep for a while: whose it is, or is next.
  struct Turn {
    ClientId holder;
    bool begun = false;  // a task of it has been given the device
    Nanos since = 0, until = 0;
    Nanos until_at_least = 0;  // where one that is urgent wants it
    double charged = 0;  // to the holder since then
  };

  ClientId group_of(ClientId client) const {
    return fairness_.charge == nullptr ? ClientId(0) : client;
  }
  double charge(const TaskDescription& task, double ran, const DeviceTerms& terms) const;
  bool scan_group(ClientId id, Group& group, Round& round);
  bool wants(ClientId id, DeviceId device, const Ledger& ledger) const;
  static Turn turn_of(ClientId id, bool begun, Nanos length, Nanos now);
  void shorten_turns_of_others(ClientId id, DeviceSet wanted);
  std::optional<ClientId> next_for(DeviceId device, const Ledger& ledger) const;
  void pass_turns(const Sight& sight);
  void take_turn(ClientId id, const TaskDescription& task, DeviceId device, const Sight& sight);
  DeviceSet kept_from(ClientId id, Nanos* until) const;
  void add_to_turn(ClientId id, DeviceId device, double charged);
  bool consider(ClientId id, Waiting& waiting, DeviceSet possible, Round& round);
  void note_overtakes(Round& round);
  void reserve(Waiting& waiting, DeviceSet possible, const Ledger& ledger);

  const Order& order_;
  const Fairness& fairness_;
  LineSettings settings_;
  std::unique_ptr<PlacementPolicy> placement_;
  std::unordered_map<ClientId, Group> groups_;
  std::unordered_map<TaskKey, Place, TaskKeyHash> places_;
  struct Charged {
    double amount = 0;
    DeviceTerms terms;
  };
  std::unordered_map<TaskKey, Charged, TaskKeyHash> charged_;  // in flight
  DeviceSet reserved_ = 0;                                     // devices kept for one task each
  std::map<DeviceId, Turn> turns_;
  double time_ = 0;     // virtual, of the last client whose turn it was
  double typical_ = 0;  // nanoseconds that a task ran, on average: for kernels not known
  std::uint64_t sequence_ = 0;
  Nanos ask_at_ = -1;
  std::optional<std::pair<TaskKey, Charged>> chosen_;
};

}  // namespace amasia::devices::policy
