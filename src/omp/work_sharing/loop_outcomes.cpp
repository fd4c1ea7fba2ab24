// SPDX-License-Identifier: Apache-2.0
#include "omp/work_sharing/loop_outcomes.hpp"

namespace amasia::omp {

void LoopOutcomes::add(const void* function, const void* code, LoopRunOutcome run) {
  const std::pair place(function, code);
  auto found = loops_.find(place);
  if (found == loops_.end()) {
    if (loops_.size() >= kMostLoops) return;
    found = loops_.try_emplace(place).first;
  }
  LoopOutcome& loop = found->second;
  ++loop.runs;
  loop.elapsed_ns += run.elapsed;
  if (run.expected > 0) {
    ++loop.expected_runs;
    loop.expected_ns += run.expected;
    loop.measured_ns += run.elapsed;
  }
  loop.last = std::move(run);
}

const LoopOutcome* LoopOutcomes::find(const void* function, const void* code) const {
  const auto found = loops_.find({function, code});
  return found == loops_.end() ? nullptr : &found->second;
}

}  // namespace amasia::omp
