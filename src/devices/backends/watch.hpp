// SPDX-License-Identifier: Apache-2.0
// Finds out that works have ended by looking, for drivers that tell of it late: those of GPUs call
// back 20 to 250 us after the end (docs/decisions/device_backends.md).
//
// Works stand in lines, where they end in order (a stream, a queue), so that only the first of each
// is looked at. A thread of the watch looks while there are any, and sleeps otherwise; a thread
// that waits for one work looks itself. Where it is used to do so its sends do not call the watch's
// thread, which then looks every millisecond, for the case that it does not wait this time: to wake
// that thread, or to have it look beside, costs as much as is won.
//
// Who guards what
//   a line           its mutex
//   sends_, sleeps_  the thread sleeps on sends_, which each send counts up before it looks whether
//                    the thread sleeps; it says so before it sleeps
//   timed_           a work stands in its line before its sender looks whether it need call; the
//                    thread takes it back before it looks at all lines, and sleeps for ever
#pragma once

#include <algorithm>
#include <atomic>
#include <deque>
#include <vector>

#include "devices/backends/backend.hpp"
#include "os/os.hpp"

namespace amasia::devices {

// How long to wait before the next look, when something was sent or ended so long ago: not at all
// at first, as most works are brief or come in rows, then by a sixteenth of it. So an end is
// noticed late by a sixteenth of its work's time at most, and long works cost next to no CPU time.
constexpr Nanos pause_before_look(Nanos since) {
  constexpr Nanos kWithoutPause = 100 * base::kMicrosecond;
  return since < kWithoutPause ? 0 : std::min<Nanos>(since / 16, base::kMillisecond);
}

// How long a line is left to a thread that may be about to wait: two that look hold each other up.
inline constexpr Nanos kLeftToCaller = 20 * base::kMicrosecond;
// How often a watch looks that is not called, and how long after the last such send it goes on so.
inline constexpr Nanos kUncalled = base::kMillisecond, kUncalledFor = 10 * base::kMillisecond;

// Between two looks in any case: drivers have locks, which who submits needs too.
inline constexpr Nanos kBetweenLooks = 4 * base::kMicrosecond;

class Watched {
 public:
  // Whether it is over; a failure is an end, too. Quick; not by two threads at once.
  virtual bool has_ended() noexcept = 0;
  // Once, after that, when it stands in no line any more. It may be gone afterwards.
  virtual void land() noexcept = 0;
  // Whether that completion will be told of its end by land().
  virtual bool will_tell(const Completion& completion) const noexcept = 0;

 protected:
  ~Watched() = default;
};

struct Line {
  std::atomic<std::uint32_t> works{0};  // relaxed: a hint for choosing one
  std::atomic<std::uint32_t> attended{0};  // threads in wait_for(), which look themselves
  std::atomic<Nanos> left_until{0};        // one may come; relaxed, CLOCK_MONOTONIC
  os::Mutex mutex;
  std::deque<Watched*> watched AMASIA_GUARDED_BY(mutex);
};

class Watch {
 public:
  // `lines` live as long as this. `while_submitting`: between two looks at least, while some thread
  // submits, for drivers whose locks keep the two apart.
  explicit Watch(std::vector<Line*> lines, Nanos while_submitting = 0)
      : lines_(std::move(lines)), while_submitting_(while_submitting) {}
  // Returns when nothing stands in a line any more.
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  Status start(const char* thread_name);  // a literal; before anything else

  // A thread submits to the driver, as long as it has this.
  class Submitting {
   public:
    explicit Submitting(Watch& watch) : watch_(watch) {
      watch_.submitting_.fetch_add(1, std::memory_order_relaxed);
    }
    ~Submitting() { watch_.submitting_.fetch_sub(1, std::memory_order_relaxed); }
    Submitting(const Submitting&) = delete;
    Submitting& operator=(const Submitting&) = delete;

   private:
    Watch& watch_;
  };
  // It has begun, and ends after what stands in the line. Any thread, which may call wait_sent()
  // then.
  void send(Line& line, Watched& watched, CallerWaits caller_waits);
  // As Backend::wait_for: looks itself for some 100 us, where this thread has sent the work last.
  static void wait_sent(const Completion& completion, Nanos deadline);
  // Before a thread submits: what it sent before, and did not wait for, may be gone by now.
  static void forget_sent();

 private:
  static void serve(void* watch);
  void look_until_end();
  void wait_for(Line& line, const Completion& completion, Nanos deadline);
  void leave(Line& line);
  void call_thread();
  struct Seen {
    bool some = false;  // has landed
    bool left = false;  // stands there still
    bool it = false;    // what was wanted has landed, or is not there
  };
  Seen look(Line& line, const Completion* wanted);
  // Of all lines that are not left to others. *waits: some have none that attends to them.
  Seen look_at_all(Nanos now, bool* waits);

  const std::vector<Line*> lines_;
  const Nanos while_submitting_;
  const char* name_ = "";
  std::atomic<std::uint32_t> sends_{0};
  std::atomic<bool> sleeps_{false}, ending_{false}, timed_{false};
  alignas(64) std::atomic<Nanos> perhaps_sent_{-kUncalledFor};  // the last such; relaxed
  std::atomic<std::uint32_t> submitting_{0};  // a hint
  std::atomic<std::uint32_t> inside_{0};  // calls of wait_for that may use a line still
  os::Thread thread_;
};

}  // namespace amasia::devices
