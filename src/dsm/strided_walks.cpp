// SPDX-License-Identifier: Apache-2.0
#include "dsm/strided_walks.hpp"

#include <algorithm>
#include <cmath>

namespace amasia::dsm {
namespace {

// The next three: of 2000 walks by random steps, 500 steps each (AWalkOfAnyStepIsFollowed), with
// these 17 steps had to wait and 642 pages were asked for, and with others tried up to 679.
//
// How far from a page's end the place of a step may be reckoned, for both pages to be asked for;
// and from where it was reckoned another step may be found.
constexpr double kNearEnd = 0.1;
constexpr double kMostError = 0.6;

// How much the place of a step may be off that is still asked for, in pages, if the worst is made
// of all that was seen. The longer the line, the further ahead it holds.
constexpr double kMostDrift = 0.5;

// Faults before a walk's steps are looked for more than one ahead.
constexpr std::uint32_t kSure = 5;

}  // namespace

double StridedWalks::Walk::place_of(std::int64_t at_step) const {
  return offset + static_cast<double>(at_step) * step();
}

double StridedWalks::Walk::drift_to(std::int64_t at_step) const {
  return static_cast<double>(at_step - at) * (step_high - step_low) / 2;
}

bool StridedWalks::Walk::note(Seen one) {
  const std::size_t known = std::min<std::size_t>(length, seen.size());
  double low = step_low, high = step_high;
  for (std::size_t i = 0; i < known; ++i) {
    const auto steps = static_cast<double>(one.step - seen[i].step);
    const auto pages = static_cast<double>(one.page - seen[i].page);
    low = std::max(low, (pages - 1) / steps);
    high = std::min(high, (pages + 1) / steps);
  }
  at = one.step;
  if (low >= high) return false;
  step_low = low;
  step_high = high;
  // The first fault stays, as the step is known the better the longer the line is.
  seen[length == 0 ? 0 : 1 + (length - 1) % (seen.size() - 1)] = one;
  ++length;
  low = -1e300;
  high = 1e300;
  for (std::size_t i = 0; i < std::min<std::size_t>(length, seen.size()); ++i) {
    const double rest =
        static_cast<double>(seen[i].page) - static_cast<double>(seen[i].step) * step();
    low = std::max(low, rest);
    high = std::min(high, rest + 1);
  }
  offset = (low + high) / 2;
  slack = std::max(0.0, (high - low) / 2);
  return true;
}

std::int64_t StridedWalks::Walk::find_step(std::int64_t page) const {
  const std::int64_t apart = page - latest().page;
  if ((apart < 0) != (step() < 0)) return -1;
  if (length < kSure) {
    const auto distance = static_cast<double>(apart);
    return distance > step_low - 1 && distance < step_high + 1 ? at + 1 : -1;
  }
  const double middle = static_cast<double>(page) + 0.5;
  const std::int64_t next = std::llround((middle - offset) / step());
  if (next <= at || next > std::max(at, asked_end) + kMostSkipped) return -1;
  const double error = std::min(slack + drift_to(next), kMostError);
  return std::abs(place_of(next) - middle) <= 0.5 + error ? next : -1;
}

// The rest of a step that lies on two pages, or the same page in another way.
bool StridedWalks::Walk::is_beside(std::int64_t page) const {
  return std::abs(page - latest().page) <= 1 && std::abs(step()) >= 3;
}

StridedWalks::Walk* StridedWalks::find(PageIndex page, bool write, std::int64_t* step) {
  Walk* found = nullptr;
  for (Walk& walk : walks_) {
    // What is left out of the view is met in either way.
    const bool may_be = walk.write == write || walk.trigger == page.value;
    if (walk.length == 0 || !may_be) continue;
    const std::int64_t one = walk.find_step(walk.page_of(page));
    if (one < 0 || (found != nullptr && std::abs(found->step()) < std::abs(walk.step()))) continue;
    found = &walk;
    *step = one;
  }
  if (found != nullptr) return found;
  for (Walk& walk : walks_) {
    const bool is_known = walk.length >= kSure && walk.write == write;
    if (is_known && walk.is_beside(walk.page_of(page))) return &walk;
  }
  return nullptr;
}

StridedWalks::Walk& StridedWalks::place_for_another() {
  Walk& walk = *std::min_element(walks_.begin(), walks_.end(), [](const Walk& a, const Walk& b) {
    return a.last_use < b.last_use;
  });
  if (walk.window != 0) {
    faults_before_ = walk.pays ? std::max(kFaultsBefore, faults_before_ - 1)
                               : std::min(kFaultsAtMost, faults_before_ * 2);
  }
  return walk;
}

// With two of the recent ones in line with it, the newest ones first.
bool StridedWalks::begin(PageIndex page, bool write, double below) {
  const auto distance = [](std::uint64_t to, std::uint64_t from) {
    return static_cast<std::int64_t>(to - from);
  };
  const auto at = [&](std::size_t age) -> const Recent& {
    return recent_[(newest_ + kRecent - age) % kRecent];
  };
  for (std::size_t second = 0; second < kRecent; ++second) {
    const Recent& middle = at(second);
    const std::int64_t last = distance(page.value, middle.page);
    const bool may_be = middle.page != 0 && middle.write == write;
    if (!may_be || std::abs(last) < 2 || static_cast<double>(std::abs(last)) > below) continue;
    for (std::size_t third = second + 1; third < kRecent; ++third) {
      const Recent& first = at(third);
      if (first.page == 0 || first.write != write) continue;
      const std::int64_t before = distance(middle.page, first.page);
      if (std::abs(last - before) > 1 || std::abs(before) < 2) continue;
      if (!write && std::abs(last) < kShortestReading) return false;
      Walk& walk = place_for_another();
      walk = Walk{.write = write,
                  .last_use = uses_,
                  .first = first.page,
                  .step_low = static_cast<double>(-2 * kLongestStep),
                  .step_high = static_cast<double>(2 * kLongestStep)};
      walk.note({0, 0});
      walk.note({1, before});
      walk.note({2, before + last});
      walk.asked_end = walk.at + 1;
      return true;
    }
  }
  return false;
}

void StridedWalks::open_window(Walk& walk, std::int64_t from, bool at_trigger, Plan* plan) {
  walk.window = std::min(walk.window == 0 ? kFirstWindow : walk.window * 2, kLargestWindow);
  std::int64_t step = from;
  for (; step < from + walk.window; ++step) {
    const double drift = walk.drift_to(step);
    if (drift > kMostDrift) break;
    const double error = std::min((walk.slack + drift) / 2, kNearEnd);
    const double place = walk.place_of(step);
    const auto low = static_cast<std::int64_t>(std::floor(place - error));
    const auto high = static_cast<std::int64_t>(std::floor(place + error));
    if (static_cast<std::int64_t>(walk.first) + low <= 0) break;
    for (std::int64_t page = low; page <= high; ++page) {
      plan->pages[plan->count++] = PageIndex{walk.first + static_cast<std::uint64_t>(page)};
    }
  }
  walk.asked_end = step;
  walk.trigger = 0;
  if (step == from) return;
  const std::int64_t wakes = at_trigger ? from : from + (step - from) / 2;
  const double place = walk.place_of(wakes);
  walk.trigger = walk.first + static_cast<std::uint64_t>(static_cast<std::int64_t>(
                                  std::floor(place)));
}

StridedWalks::Plan StridedWalks::on_fault(PageIndex page, bool write, bool on_its_way) {
  Plan plan;
  if (!is_on_) return plan;
  ++uses_;
  std::int64_t step = -1;
  Walk* const walk = find(page, write, &step);
  const bool at_trigger = walk != nullptr && page.value == walk->trigger && step < walk->asked_end;
  forget_trigger(page);
  // The same pages may be walked by longer steps at other times: the shortest line counts.
  const double longest = walk == nullptr ? kLongestStep : std::abs(walk->step()) / 2;
  const bool has_begun = begin(page, write, longest);
  newest_ = (newest_ + 1) % kRecent;
  recent_[newest_] = {page.value, write};
  if (has_begun || walk == nullptr) return plan;
  walk->last_use = uses_;
  plan.write = walk->write;
  if (step < 0) return plan;
  // A step that is longer than a byte may begin on a page that is here, and fault on the next one.
  walk->misfits = walk->note({step, walk->page_of(page)}) ? 0 : walk->misfits + 1;
  if (walk->misfits == kMisfits) {
    walk->length = 0;
    walk->last_use = 0;
    return plan;
  }
  if (walk->window != 0) walk->pays = true;
  if (walk->length < faults_before_) {
    walk->asked_end = step + 1;
    return plan;
  }
  if (at_trigger) {
    open_window(*walk, walk->asked_end, true, &plan);
  } else if (!on_its_way) {  // beyond what was asked for, or beside it
    open_window(*walk, step + 1, false, &plan);
  }
  return plan;
}

// Of walks that are over, too: else the page would be left out each time that it comes.
void StridedWalks::forget_trigger(PageIndex page) {
  for (Walk& walk : walks_) {
    if (walk.trigger == page.value) walk.trigger = 0;
  }
}

bool StridedWalks::is_trigger(PageIndex page) const {
  return std::any_of(walks_.begin(), walks_.end(), [&](const Walk& walk) {
    return walk.length != 0 && walk.trigger == page.value && walk.trigger != 0;
  });
}

bool StridedWalks::find_trigger(PageRun run, PageIndex* trigger) const {
  bool found = false;
  for (const Walk& walk : walks_) {
    if (walk.length == 0 || walk.trigger == 0) continue;
    if (walk.trigger - run.first.value >= run.count) continue;
    if (!found || walk.trigger < trigger->value) *trigger = PageIndex{walk.trigger};
    found = true;
  }
  return found;
}

}  // namespace amasia::dsm
