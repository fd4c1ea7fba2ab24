// SPDX-License-Identifier: Apache-2.0
#include "tasks/errands.hpp"

#include "os/os.hpp"

namespace amasia::tasks::detail {

bool Errands::make_calls() {
  if (!has_calls()) return false;
  calling_ = true;
  while (has_calls()) {
    for (Call* call = calls_.take_all(); call != nullptr;) {
      Call* const next = call->next;
      call->execute(call);
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
  for (std::size_t n = 0; n < polled_.size();) {
    const poll_result result = polled_[n]->poll();
    if (result != poll_result::none_completed) completed = true;
    if (result == poll_result::nothing_left) {
      polled_.erase(polled_.begin() + static_cast<std::ptrdiff_t>(n));
    } else {
      ++n;
    }
  }
  calling_ = false;
  const Nanos ended = os::monotonic_now();
  completed ? pace_.progressed(ended) : pace_.found_nothing(began, ended);
  return done || completed;
}

Nanos Errands::rest() { return pace_.rest(os::monotonic_now()); }

void Errands::poll(module* of) {
  pace_.progressed(os::monotonic_now());
  if (!polls(of)) polled_.push_back(of);
}

bool Errands::polls(const module* of) const {
  return std::find(polled_.begin(), polled_.end(), of) != polled_.end();
}

}  // namespace amasia::tasks::detail
