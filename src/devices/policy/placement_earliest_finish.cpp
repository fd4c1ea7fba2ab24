// SPDX-License-Identifier: Apache-2.0
// Where the task would end first, by measured times (HEFT's second half; Topcuoglu et al., TPDS
// 2002): what is ahead of it there, the copies it needs, its kernel's time on that device. It waits
// for a busy device where that ends sooner than an idle one would. A kernel that never ran on a
// device is tried there once, unless other kernels say that it is far too slow.
#include <bit>
#include <unordered_map>

#include "devices/policy/placement.hpp"

namespace amasia::devices::policy {
namespace {

// A first try may end at most so many times later than what is known to be best.
constexpr double kTryMax = 8;

class EarliestFinish final : public PlacementPolicy {
 public:
  PlacementAnswer choose(PlacementQuestion question) override {
    const TaskDescription& task = question.task;
    std::optional<DeviceId> best, untried;
    Nanos best_end = 0, untried_end = 0;
    for (DeviceSet rest = question.eligible; rest != 0; rest &= rest - 1) {
      const DeviceId id(static_cast<std::uint16_t>(std::countr_zero(rest)));
      const auto measured = question.estimates.run(task, id);
      const Nanos end = end_on(question, id, measured);
      if (!measured && contains(question.fitting, id) && tries_[key(task, id)] == 0 &&
          (!untried || end < untried_end)) {
        untried = id;
        untried_end = end;
      }
      if (measured && (!best || end < best_end)) {
        best = id;
        best_end = end;
      }
    }
    if (untried && (!best || static_cast<double>(untried_end - question.now) <=
                                 kTryMax * static_cast<double>(best_end - question.now))) {
      return {untried};
    }
    if (!best) return {turns_.choose(question.fitting, question.ledger)};  // tries are under way
    if (contains(question.fitting, *best)) return {best};
    // It waits for that device, and those behind it see so.
    const DeviceTerms& terms = question.ledger.device(*best).terms;
    const double run = static_cast<double>(question.estimates.run(task, *best).value_or(0));
    Nanos& busy = question.busy[best->value];
    busy = std::max(busy, question.now) + static_cast<Nanos>(run * share_of(task, terms));
    return {};
  }

  void started(const TaskDescription& task, DeviceId device) override {
    ++tries_[key(task, device)];
  }
  void ended(const TaskDescription& task, DeviceId device) override {
    const auto found = tries_.find(key(task, device));
    if (found != tries_.end() && --found->second == 0) tries_.erase(found);
  }

 private:
  static std::uint64_t key(const TaskDescription& task, DeviceId device) {
    return task.kernel * kMaxDevices + device.value;
  }
  static Nanos end_on(const PlacementQuestion& question, DeviceId id,
                      std::optional<Nanos> measured) {
    const TaskDescription& task = question.task;
    const Nanos run = measured.value_or(question.estimates.run_anywhere(task, id).value_or(0));
    const Nanos copies = question.estimates.copy(question.ledger.missing(task, id), id);
    return std::max(question.busy[id.value], question.now) + copies + run;
  }

  TwoLevelRoundRobin turns_;
  std::unordered_map<std::uint64_t, std::uint32_t> tries_;  // in flight, by kernel and device
};

}  // namespace

const Placement kEarliestFinishPlacement = {
    .name = "earliest-finish",
    .description = "where the task ends first, by measured times; may wait for a faster device",
    .make = [] { return std::unique_ptr<PlacementPolicy>(std::make_unique<EarliestFinish>()); }};

}  // namespace amasia::devices::policy
