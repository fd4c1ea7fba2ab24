// SPDX-License-Identifier: Apache-2.0
// From the client library's word that a task has ended to a promise.
//
// The word comes on a thread of the client library that holds its locks, so nothing is freed there:
// an ending that is over goes into a line, which the next submission and the module's end empty.
// Freeing a handle returns after the word was given: when all that was in the line is freed, no
// call of tell() is under way (L1).
#pragma once

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "amasia/device_tasks.hpp"
#include "os/os.hpp"

namespace amasia::device_tasks {

class Ending;

// Endings that are over. Any thread.
class Line {
 public:
  void add(Ending* ending) {
    const os::MutexLock lock(mutex_);
    over_.push_back(ending);
  }
  // Frees them, and their handles.
  void empty();

 private:
  os::Mutex mutex_;
  std::vector<Ending*> over_ AMASIA_GUARDED_BY(mutex_);
};

// One task of the client library, on its way. It is over when it was told of its end and its
// submitter is done with it, whichever comes last.
class Ending {
 public:
  // What keeps the handle; destroyed with the ending, outside of tell().
  struct Handle {
    virtual ~Handle() = default;
  };
  // mcl_end_function, with the Ending as its context.
  static void tell(void* ending, int code, const char* reason) noexcept;

  // Submits: submit() is to have `tell` called with the ending as context, which it gets, and
  // returns what keeps the handle. What it throws is in the future.
  template <typename Submit>
  static void begin(std::shared_ptr<Line> line, tasks::promise<void> result, tasks::hold held,
                    Submit submit) {
    line->empty();
    auto* const ending = new Ending(std::move(line), std::move(result), std::move(held));
    try {
      ending->handle_ = submit(ending);
    } catch (...) {
      const std::unique_ptr<Ending> over(ending);
      over->result_.fail(std::current_exception());
      return;
    }
    ending->let_go();
  }

 private:
  Ending(std::shared_ptr<Line> line, tasks::promise<void> result, tasks::hold held)
      : line_(std::move(line)), result_(std::move(result)), held_(std::move(held)) {}
  friend class Line;
  friend struct std::default_delete<Ending>;
  ~Ending() = default;
  void let_go() {
    // Acquire and release: the second of both sees what the first has written.
    if (parties_.fetch_sub(1, std::memory_order_acq_rel) == 1) line_->add(this);
  }

  std::shared_ptr<Line> line_;
  tasks::promise<void> result_;
  tasks::hold held_;
  std::unique_ptr<Handle> handle_;
  std::atomic<int> parties_{2};
};

}  // namespace amasia::device_tasks
