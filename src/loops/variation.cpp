// SPDX-License-Identifier: Apache-2.0
#include "loops/variation.hpp"

#include <algorithm>

namespace amasia::loops {

double Variation::mean(double before, double latest, double most) const {
  if (runs_ == 1) return latest;
  const double weight = 1.0 / std::min(runs_, kRemembered);
  return before + weight * (std::min(latest, most * before) - before);
}

void Variation::note(std::span<const Part> parts, double elapsed) {
  AMASIA_CHECK(parts.size() <= base::kMaxNodes, "a job has at most kMaxNodes nodes");
  ++runs_;
  const double most = since_long_ < kRemembered ? kMostAtOnce : kMostOnce;
  const bool is_long = runs_ > 1 && elapsed > kMostOnce * elapsed_;
  since_long_ = is_long ? 0 : std::min(since_long_ + 1, kRemembered);
  elapsed_ = mean(elapsed_, elapsed, most);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    work_[i] = parts[i].work;
    time_[i] = mean(time_[i], parts[i].time, most);
  }
  if (runs_ >= kEnough) expect();
}

void Variation::expect() {
  double rates = 0, work = 0, slowest = 0;
  for (std::size_t i = 0; i < time_.size(); ++i) {
    if (work_[i] <= 0 || time_[i] <= 0) continue;
    rates += work_[i] / time_[i];
    work += work_[i];
    slowest = std::max(slowest, time_[i]);
  }
  if (rates > 0) expected_ = work / rates + std::max(0.0, elapsed_ - slowest);
}

}  // namespace amasia::loops
