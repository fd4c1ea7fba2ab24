// SPDX-License-Identifier: Apache-2.0
// What lies at a place to be run: a deque for each worker, of what that worker made runnable, and a
// line for what is to wait its turn, or comes from threads that are no workers.
//
//   field      written by                              read by
//   deques     the worker, when it first pushes there  all; nullptr: nothing was ever pushed
//   line       any, under its lock                     any; its length without
//   the rest   before workers start                    all
//
//   of what lies in      may be taken by
//   deque of worker w    w, if the place is on its pop path; who has it on the steal path
//   the line             who has it on either path
//
// The record number 0 stands for no place: what lies in its line may be taken by all, and it has no
// deques, as what has no place goes to its worker's home.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "amasia/tasks.hpp"
#include "os/os.hpp"
#include "tasks/deque.hpp"
#include "tasks/idle_workers.hpp"

namespace amasia::tasks::detail {

// First in, first out; any thread.
class Line {
 public:
  void put(Task* task) {
    const os::MutexLock lock(mutex_);
    task->next = nullptr;
    (last_ == nullptr ? first_ : last_->next) = task;
    last_ = task;
    length_.fetch_add(1, std::memory_order_relaxed);
  }
  Task* take() {
    if (empty()) return nullptr;
    const os::MutexLock lock(mutex_);
    Task* const task = first_;
    if (task == nullptr) return nullptr;
    first_ = task->next;
    if (first_ == nullptr) last_ = nullptr;
    length_.fetch_sub(1, std::memory_order_relaxed);
    return task;
  }
  bool empty() const { return length_.load(std::memory_order_relaxed) == 0; }

 private:
  os::Mutex mutex_;
  Task* first_ AMASIA_GUARDED_BY(mutex_) = nullptr;
  Task* last_ AMASIA_GUARDED_BY(mutex_) = nullptr;
  std::atomic<std::uint64_t> length_{0};
};

struct PlaceRecord {
  Scheduler* scheduler = nullptr;
  std::uint32_t index = 0;  // Task::place
  std::string name;
  place_type type = place_type::other;
  int number = -1;
  std::uint64_t bytes = 0;
  std::vector<std::uint32_t> neighbours;  // indices

  std::unique_ptr<std::atomic<Deque<Task>*>[]> deques;  // by worker
  std::uint32_t workers = 0;
  Line line;
  WorkerSet owners;     // have it on the pop path
  WorkerSet thieves;    // on the steal path
  WorkerSet takers;     // on either
  bool has_thieves = false;
  bool narrow = false;  // not all are takers: they are told of work before they run out of other

  bool has_deque_work() const {
    for (std::uint32_t worker = 0; worker < workers; ++worker) {
      if (deque_has_work(worker)) return true;
    }
    return false;
  }
  bool deque_has_work(std::uint32_t worker) const {
    const Deque<Task>* const deque = deques[worker].load(std::memory_order_acquire);
    return deque != nullptr && !deque->empty();
  }
};

inline bool contains(const WorkerSet& set, std::uint32_t worker) {
  return (set[worker / 64] >> (worker % 64) & 1) != 0;
}
inline void insert(WorkerSet& set, std::uint32_t worker) {
  set[worker / 64] |= std::uint64_t{1} << (worker % 64);
}

}  // namespace amasia::tasks::detail
