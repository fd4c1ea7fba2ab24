// SPDX-License-Identifier: Apache-2.0
#include "loops/schedule.hpp"

namespace amasia::loops {
namespace {
constexpr std::array<const Schedule*, kScheduleKinds> kSchedules = {
    &kStaticSchedule, &kDynamicSchedule, &kGuidedSchedule,   &kAutoSchedule,      &kFac2Schedule,
    &kWfSchedule,     &kAwfSchedule,     &kHetProbeSchedule, &kHetProbeISchedule,
};
}  // namespace

const Schedule& schedule_of(ScheduleKind kind) {
  const auto index = static_cast<std::size_t>(kind);
  AMASIA_CHECK(index < kSchedules.size(), "every kind of schedule has a registry line");
  AMASIA_CHECK(kSchedules[index]->kind == kind, "registry lines are in the order of the kinds");
  return *kSchedules[index];
}

const Schedule* schedule_named(std::string_view name) {
  for (const Schedule* schedule : kSchedules) {
    if (schedule->name == name) return schedule;
  }
  return nullptr;
}

}  // namespace amasia::loops
