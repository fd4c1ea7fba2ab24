// SPDX-License-Identifier: Apache-2.0
#include "loops/move_trial.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace amasia::loops {
namespace {

// So many executions tell, or fewer that took so long: what disturbs them is short.
constexpr std::uint32_t kEnough = 8, kLeast = 2;
constexpr double kLongEnough = 50 * base::kMillisecond;
// Times vary at least by this part, whatever a few of them say.
constexpr double kLeastError = 0.03;
// In errors of the difference: worse, by all regions' time, and so much better that no more need be
// seen.
constexpr double kWorse = 1, kClearlyWorse = 2, kClearlyBetter = -3;
constexpr double kShortestStep = 0.125;
// All of these executions took so much longer: times have changed.
constexpr std::uint32_t kLately = 4;
constexpr double kChange = 1.3;

}  // namespace

void MoveTrial::Sample::add(double elapsed) { values_[count_++ % values_.size()] = elapsed; }

void MoveTrial::Sample::tell(double& mean, double& error) const {
  auto sorted = values_;
  const std::size_t known = std::min<std::size_t>(count_, sorted.size());
  const std::size_t kept = known - known / 8;
  std::sort(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(known));
  double sum = 0, squares = 0;
  for (std::size_t i = 0; i < kept; ++i) sum += sorted[i];
  const auto count = static_cast<double>(kept);
  mean = sum / count;
  for (std::size_t i = 0; i < kept; ++i) squares += (sorted[i] - mean) * (sorted[i] - mean);
  error = std::max(kLeastError * mean, std::sqrt(squares / std::max(1.0, count - 1) / count));
}

bool MoveTrial::Sample::is_enough() const {
  if (count_ >= kEnough) return true;
  double sum = 0;
  for (std::uint32_t i = 0; i < count_; ++i) sum += values_[i];
  return count_ >= kLeast && sum >= kLongEnough;
}

bool MoveTrial::Sample::lately_above(double limit) const {
  if (count_ < kLately) return false;
  for (std::uint32_t i = 1; i <= kLately; ++i) {
    if (values_[(count_ - i) % values_.size()] <= limit) return false;
  }
  return true;
}

void MoveTrial::Sample::keep_latest() {
  Sample latest;
  for (std::uint32_t i = kLately; i > 0; --i) latest.add(values_[(count_ - i) % values_.size()]);
  *this = latest;
}

// How many errors of the difference longer than before.
double MoveTrial::Sample::above(const Sample& before) const {
  double was = 0, was_error = 0, is = 0, is_error = 0;
  before.tell(was, was_error);
  tell(is, is_error);
  return (is - was) / std::hypot(was_error, is_error);
}

MoveTrial::Verdict MoveTrial::judge() const {
  const double own = now_.own.above(before_.own), all = now_.cycle.above(before_.cycle);
  if (now_.own.is_enough()) {
    return own > kWorse || all > kClearlyWorse ? Verdict::kWorse : Verdict::kBetter;
  }
  const bool clear =
      now_.own.count() >= kLeast && own < kClearlyBetter && all < kClearlyBetter;
  return clear ? Verdict::kBetter : Verdict::kOpen;
}

MoveTrial::Verdict MoveTrial::note(double elapsed, double cycle) {
  now_.own.add(elapsed);
  now_.cycle.add(cycle);
  if (!on_trial_) {
    double usual = 0, error = 0;
    now_.own.tell(usual, error);
    if (wary_ && now_.own.lately_above(kChange * usual)) {
      now_.own.keep_latest();
      now_.cycle.keep_latest();
      wary_ = false;
    }
    return Verdict::kNone;
  }
  const Verdict verdict = judge();
  if (verdict == Verdict::kOpen) return verdict;
  on_trial_ = false;
  wary_ = verdict == Verdict::kWorse;
  step_ = wary_ ? std::max(step_ / 2, kShortestStep) : std::min(2 * step_, 1.0);
  if (wary_) now_ = before_;
  return verdict;
}

void MoveTrial::move() {
  before_ = std::exchange(now_, {});
  on_trial_ = before_.own.is_enough();
}

}  // namespace amasia::loops
