// SPDX-License-Identifier: Apache-2.0
// OpenSHMEM in tasks: operations are futures, and tasks run when a remote put makes a condition
// true. Link amasia-tasks-openshmem. docs/modules.md has the rules that hold for all modules.
//
// OpenSHMEM is called by one thread, that of run(). A task's operations reach it in the order in
// which the task started them. Addresses of the other side are symmetric, as OpenSHMEM wants them.
// Operations on words are for int, long, long long and their unsigned forms, else the program does
// not link. All but pe(), pes(), allocate(), release() and the constructor: in tasks only. A PE
// that there is not throws std::out_of_range; other mistakes end the job, as OpenSHMEM does.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "amasia/module.h"

namespace amasia::openshmem {

template <typename T>
using future = tasks::future<T>;

enum class compare { equal, not_equal, greater, less_or_equal, less, greater_or_equal };
enum class reduction { sum, least, greatest };

struct State;

class AMASIA_TASKS_API library : public tasks::module {
 public:
  // shmem_init_thread on this thread; the end of the object is shmem_finalize, once for a process.
  // std::runtime_error where OpenSHMEM gives less than SHMEM_THREAD_FUNNELED.
  explicit library(tasks::runtime& workers);
  ~library() override;

  int pe() const noexcept { return pe_; }
  int pes() const noexcept { return pes_; }
  // Symmetric memory, zeroed: by all PEs, in the same order, on the thread of run() outside of it.
  // std::bad_alloc when there is no more (SHMEM_SYMMETRIC_SIZE).
  void* allocate(std::size_t bytes);
  void release(void* block);
  template <typename T>
  T* allocate_array(std::size_t count) {
    return static_cast<T*>(allocate(count * sizeof(T)));
  }

  // Ready when `from` may be written again. When the bytes are there: quiet(), or a word after
  // fence(), or a collective.
  future<void> put(void* to, const void* from, std::size_t bytes, int pe);
  // Ready when the bytes are here.
  future<void> get(void* to, const void* from, std::size_t bytes, int pe);
  // All puts that were started before are done.
  future<void> quiet();
  // Puts to one PE that come later are seen by it later.
  future<void> fence();

  // Atomic, on a PE's word. What they return is the value before.
  template <typename T>
  future<T> fetch(const T* word, int pe);
  template <typename T>
  future<T> fetch_add(T* word, T more, int pe);
  template <typename T>
  future<T> swap(T* word, T value, int pe);
  template <typename T>
  future<T> compare_swap(T* word, T expected, T value, int pe);
  template <typename T>
  future<void> add(T* word, T more, int pe);
  template <typename T>
  future<void> set(T* word, T value, int pe);

  // Ready when the word, of this PE, compares so with the value: after a put or an atomic operation
  // of any PE. What was put before the word, with a fence in between, is there then.
  template <typename T>
  future<void> wait_until(const T* word, compare how, T value);
  // shmem_async_when of HiPER (IPDPSW 2017, II-C2): a task of the caller's finish scope that
  // runs then.
  template <typename T, typename Body>
  void async_when(const T* word, compare how, T value, Body&& body) {
    tasks::async_await(std::forward<Body>(body), wait_until(word, how, value));
  }

  // Collectives of all PEs: one task of each at a time, in the same order. No worker waits in the
  // library for PEs that have not come yet. `to` and `from` are symmetric and do not overlap.
  future<void> barrier();  // with quiet()
  // Also to the root's own `to`.
  future<void> broadcast(void* to, const void* from, std::size_t bytes, int root);
  future<void> collect(void* to, const void* from, std::size_t bytes_of_each);
  future<void> alltoall(void* to, const void* from, std::size_t bytes_of_each);
  // T: int, long, long long, float or double.
  template <typename T>
  future<void> reduce(reduction how, T* to, const T* from, std::size_t count);

  // Of the runtime, on the thread of run().
  const char* name() const noexcept override { return "openshmem"; }
  void initialise(tasks::module_host& host) override;
  void finalise() noexcept override;
  tasks::poll_result poll() noexcept override;

 private:
  void must_be_pe(int pe) const;
  template <typename T, typename Body>
  future<T> call(Body body);
  template <typename Body>
  future<void> collective(Body body);

  tasks::runtime& workers_;
  tasks::module_host* host_ = nullptr;
  int pe_ = 0;
  int pes_ = 0;
  std::unique_ptr<State> state_;
};

}  // namespace amasia::openshmem
