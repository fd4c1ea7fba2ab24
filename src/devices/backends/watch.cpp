// SPDX-License-Identifier: Apache-2.0
#include "devices/backends/watch.hpp"

#include <algorithm>
#include <utility>

namespace amasia::devices {
namespace {

// What this thread has sent last, and is about to wait for; perhaps.
struct Awaited {
  Watch* watch = nullptr;
  Line* line = nullptr;
  Nanos perhaps_at = 0;
};
thread_local Awaited awaited;
// Whether it waited soon after the last work that it might not have waited for.
thread_local bool is_used_to_wait = false;

constexpr Nanos kKeepsCore = 15 * base::kMicrosecond;

}  // namespace

Status Watch::start(const char* thread_name) {
  name_ = thread_name;
  auto thread = os::Thread::start(&Watch::serve, this);
  if (!thread) return thread.error();
  thread_ = std::move(thread).value();
  return base::ok();
}

Watch::~Watch() {
  ending_.store(true, std::memory_order_seq_cst);
  call_thread();
  thread_.join();
  while (inside_.load(std::memory_order_seq_cst) != 0) os::yield_core();
}

void Watch::send(Line& line, Watched& watched, CallerWaits caller_waits) {
  Watch::forget_sent();
  awaited = {this, &line, 0};
  // Whoever does not, but asks now and then, or waits for all, has the thread look at once.
  const bool will_wait = caller_waits == CallerWaits::kPerhaps && is_used_to_wait;
  if (caller_waits == CallerWaits::kPerhaps) awaited.perhaps_at = os::monotonic_now();
  if (will_wait) {
    line.left_until.store(awaited.perhaps_at + kLeftToCaller, std::memory_order_relaxed);
    perhaps_sent_.store(awaited.perhaps_at, std::memory_order_relaxed);
  }
  {
    const os::MutexLock lock(line.mutex);
    line.watched.push_back(&watched);
  }
  if (caller_waits == CallerWaits::kAtOnce) return;
  // Partner: look_until_end(). Where it looked at the line before this work came, the line's mutex
  // makes what it said before that seen here.
  if (will_wait && timed_.load(std::memory_order_acquire)) return;
  call_thread();
  // To wake a thread takes as long as a task, which says nothing of who waits afterwards.
  if (awaited.perhaps_at != 0) awaited.perhaps_at = os::monotonic_now();
}

void Watch::call_thread() {
  sends_.fetch_add(1, std::memory_order_seq_cst);
  if (sleeps_.load(std::memory_order_seq_cst) && sleeps_.exchange(false)) {
    os::futex_wake(sends_, 1);
  }
}

// Takes what has ended off the line and lands it, what is wanted last: the lines may be gone after
// that. Not for ever, where as much comes as ends.
Watch::Seen Watch::look(Line& line, const Completion* wanted) {
  constexpr int kAtATime = 16;
  Seen seen;
  Watched* its = nullptr;
  for (int i = 0; i < kAtATime; ++i) {
    Watched* ended = nullptr;
    {
      const os::MutexLock lock(line.mutex);
      if (!line.watched.empty() && line.watched.front()->has_ended()) {
        ended = line.watched.front();
        line.watched.pop_front();
      }
      seen.left = !line.watched.empty();
      seen.it = wanted != nullptr && std::none_of(line.watched.begin(), line.watched.end(),
                                                  [&](const Watched* one) {
                                                    return one->will_tell(*wanted);
                                                  });
    }
    if (ended == nullptr) break;
    seen.some = true;
    if (wanted != nullptr && ended->will_tell(*wanted)) {
      its = ended;
    } else {
      ended->land();
    }
  }
  if (seen.it) leave(line);
  if (its != nullptr) its->land();
  return seen;
}

void Watch::wait_sent(const Completion& completion, Nanos deadline) {
  const Awaited sent = std::exchange(awaited, {});
  if (sent.perhaps_at != 0) {
    is_used_to_wait = os::monotonic_now() - sent.perhaps_at < kLeftToCaller;
  }
  if (sent.watch != nullptr) sent.watch->wait_for(*sent.line, completion, deadline);
}

void Watch::forget_sent() {
  if (awaited.perhaps_at != 0) is_used_to_wait = false;
  awaited = {};
}

// From now on the line may be gone.
void Watch::leave(Line& line) {
  line.attended.fetch_sub(1, std::memory_order_relaxed);
  inside_.fetch_sub(1, std::memory_order_seq_cst);
}

void Watch::wait_for(Line& line, const Completion& completion, Nanos deadline) {
  inside_.fetch_add(1, std::memory_order_seq_cst);  // partner: look(), or the end below
  line.attended.fetch_add(1, std::memory_order_relaxed);
  const Nanos began = os::monotonic_now();
  while (!look(line, &completion).it) {
    const Nanos now = os::monotonic_now();
    if (pause_before_look(now - began) != 0 || now >= deadline) {
      call_thread();
      return leave(line);
    }
    // Who waits for long lets others have the core.
    if (now - began < kKeepsCore) {
      os::pause_core();
    } else {
      os::yield_core();
    }
  }
}

void Watch::serve(void* watch) {
  Watch& self = *static_cast<Watch*>(watch);
  os::set_thread_name(self.name_);
  os::use_precise_timers();
  self.look_until_end();
}

Watch::Seen Watch::look_at_all(Nanos now, bool* waits) {
  Seen all;
  for (Line* const line : lines_) {
    if (line->attended.load(std::memory_order_relaxed) != 0 ||
        line->left_until.load(std::memory_order_relaxed) > now) {
      all.left = true;
      continue;
    }
    const Seen seen = look(*line, nullptr);
    all.some |= seen.some;
    all.left |= seen.left;
    *waits |= seen.left;
  }
  return all;
}

void Watch::look_until_end() {
  std::uint32_t known = sends_.load(std::memory_order_seq_cst);
  bool was_timed = false;
  Nanos looked = 0;
  for (Nanos changed = os::monotonic_now();;) {
    const bool ends = ending_.load(std::memory_order_seq_cst);
    const std::uint32_t sends = sends_.load(std::memory_order_seq_cst);
    const Nanos began = os::monotonic_now();
    if (submitting_.load(std::memory_order_relaxed) != 0 && began - looked < while_submitting_) {
      os::yield_core();
      continue;
    }
    looked = began;
    bool waits = false;
    const Seen seen = look_at_all(began, &waits);
    if (ends && !seen.left) return;
    const Nanos now = os::monotonic_now();
    if (seen.some || sends != known || (was_timed && waits)) changed = now;
    known = sends;
    was_timed = false;
    Nanos pause = pause_before_look(now - changed);
    if (pause == 0) {
      do os::yield_core();
      while (os::monotonic_now() - now < kBetweenLooks);
      continue;
    }
    if (!waits) {
      was_timed = now - perhaps_sent_.load(std::memory_order_relaxed) < kUncalledFor;
      timed_.store(was_timed, std::memory_order_release);
      if (was_timed) {
        pause = kUncalled;
      } else if (!seen.left) {
        // Partner: send(), which may have relied on what was said before.
        if (look_at_all(now, &waits).left) {
          changed = now;
          continue;
        }
        pause = -1;
      }
    }
    sleeps_.store(true, std::memory_order_seq_cst);
    os::futex_wait(sends_, sends, pause);
    sleeps_.store(false, std::memory_order_relaxed);
  }
}

}  // namespace amasia::devices
