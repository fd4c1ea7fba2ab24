// SPDX-License-Identifier: Apache-2.0
#include "tasks/errands.hpp"

#include <algorithm>
#include <utility>

#include "os/os.hpp"

namespace amasia::tasks::detail {

bool Errands::make_calls() {
  if (!has_calls()) return false;
  calling_ = true;
  Nanos began = times_calls_ ? os::monotonic_now() : 0;
  while (has_calls()) {
    for (Call* call = calls_.take_all(); call != nullptr;) {
      Call* const next = call->next;
      ModuleCounts& counts = *call->counts;
      call->execute(call);
      counts.calls.add(1);
      if (times_calls_) {
        const Nanos ended = os::monotonic_now();
        counts.calls_ns.add(ended - std::exchange(began, ended));
      }
      call = next;
    }
  }
  calling_ = false;
  return true;
}

bool Errands::begin_call() {
  if (calling_) return false;
  make_calls();  // E1
  calling_ = true;
  return true;
}

bool Errands::attend(bool eagerly) {
  if (calling_) return false;  // a call does not lead here, but a module's code might
  bool done = make_calls();
  if (polled_.empty()) return done;
  const Nanos began = os::monotonic_now();
  if (!eagerly && !pace_.is_due(began)) return done;
  calling_ = true;
  bool completed = false;
  Nanos ended = began;
  for (std::size_t n = 0; n < polled_.size();) {
    const Polled one = polled_[n];
    const poll_result result = one.what->poll();
    const Nanos now = os::monotonic_now();
    one.counts->polls.add(1);
    one.counts->polls_ns.add(now - std::exchange(ended, now));
    if (result != poll_result::none_completed) completed = true;
    if (result == poll_result::nothing_left) {
      polled_.erase(polled_.begin() + static_cast<std::ptrdiff_t>(n));
    } else {
      ++n;
    }
  }
  calling_ = false;
  note_polled();
  completed ? pace_.progressed(ended) : pace_.found_nothing(began, ended);
  return done || completed;
}

Nanos Errands::rest() { return pace_.rest(os::monotonic_now()); }

void Errands::poll(module* of, ModuleCounts& counts) {
  if (!polls(of)) polled_.push_back({of, &counts});
  note_polled();
  pace_.began_more();
}

bool Errands::polls(const module* of) const {
  return std::any_of(polled_.begin(), polled_.end(),
                     [&](const Polled& one) { return one.what == of; });
}

}  // namespace amasia::tasks::detail
