// SPDX-License-Identifier: Apache-2.0
// Places: what tasks and data can be at. Included by <amasia/tasks.hpp>.
//
// A runtime has a graph of places: memories, caches, GPUs, the interconnect, storage. Each worker
// has a pop path and a steal path, lists of places. It looks for tasks that it created itself along
// its pop path, then for those of others along its steal path (HiPER, IPDPSW 2017, section II-B).
// So who may run a task is a matter of where the task is: where only worker 0 has the interconnect
// on its paths, all calls of a library that knows one thread only go there.
//
// The graph is that of the platform file, if one is given (docs/platform.md); else it has "memory",
// on the paths of all workers, and "interconnect" and "storage", on those of worker 0. Worker 0 is
// the thread that calls run().
//
// A task that was created without a place belongs to whoever makes it runnable, and goes to the
// home of that worker. One that was created at a place stays there: after a wait, too, it goes on
// with a worker that has the place on its paths.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "amasia/tasks.hpp"

namespace amasia::tasks {

enum class place_type : std::uint8_t {
  memory,        // of the whole machine
  numa_node,     // the part of it that is near some cores
  cache,         // of one core or several
  gpu,           // a GPU's own memory
  interconnect,  // the network, for libraries such as MPI
  storage,       // files
  node,          // another node of the job
  other,
};
inline constexpr std::size_t place_type_count = 8;
// As the platform file says it: memory, numa, cache, gpu, interconnect, storage, node or other.
AMASIA_TASKS_API const char* name_of(place_type type) noexcept;

namespace detail {
struct PlaceRecord;
}

// One place of one runtime; a pointer, to be copied freely. Valid as long as the runtime lives.
// Every function but valid() wants a valid one. Any thread.
class AMASIA_TASKS_API place {
 public:
  place() = default;
  explicit place(const detail::PlaceRecord* record) noexcept : record_(record) {}
  bool valid() const noexcept { return record_ != nullptr; }

  const std::string& name() const noexcept;
  place_type type() const noexcept;
  // Which of its kind it is, as the system counts: a NUMA node's or a GPU's number; -1: none.
  int number() const noexcept;
  // How much fits; 0: not known.
  std::uint64_t bytes() const noexcept;
  // Those that the graph has an edge to.
  std::vector<place> neighbours() const;
  // Numbers of the workers that have it on a path: those that may run its tasks.
  std::vector<unsigned> workers() const;

  friend bool operator==(place, place) = default;
  const detail::PlaceRecord* record() const noexcept { return record_; }

 private:
  const detail::PlaceRecord* record_ = nullptr;
};

// In a task, else std::logic_error: of the runtime that the caller belongs to.
// The place that the caller was created at, or its worker's home where it was created at none.
AMASIA_TASKS_API place here();
AMASIA_TASKS_API std::vector<place> places();
AMASIA_TASKS_API std::vector<place> places(place_type type);
// std::out_of_range with the names that there are, if there is none of that name.
AMASIA_TASKS_API place find_place(std::string_view name);

// What a module adds to the graph of a runtime: runtime::add_place.
struct place_description {
  std::string name;
  place_type type = place_type::other;
  int number = -1;
  std::uint64_t bytes = 0;
  std::vector<std::string> next_to = {"memory"};  // has edges to these, as far as they are there
  // On worker 0's paths only, at their ends; else on those of all workers.
  bool first_worker_only = true;
  // On nobody's: tasks are not created there but by functions of the module.
  bool without_workers = false;
};

// How bytes get from places of one type to places of another; of a module (runtime::copies_by).
// Called in a task; does not block; the future is ready when the bytes are there, or has the error.
using copy_function = std::function<future<void>(void* to, place to_place, const void* from,
                                                 place from_place, std::size_t bytes)>;
// Memory of places of one type; of a module (runtime::memory_by). allocate() is called in a task.
// release() in any thread, perhaps when no task runs: it must not wait for one.
struct memory_functions {
  std::function<future<void*>(place at, std::size_t bytes)> allocate;
  std::function<future<void>(place at, void* block, std::size_t bytes)> release;
};

namespace detail {
// As spawn() and spawn_awaiting(), at a place: std::logic_error if it is another runtime's, or on
// nobody's path. The task is destroyed then.
AMASIA_TASKS_API void spawn_at(Task* task, place at);
AMASIA_TASKS_API void spawn_awaiting_at(AwaitingTask* task, place at);
AMASIA_TASKS_API void spawn_background_at(Task* task, place at);
AMASIA_TASKS_API void must_take_tasks(place at);

template <typename TaskType>
void spawn_after_at(TaskType* task, place at) {
  task->kind = Kind::kAwaiting;
  task->awaited = task->body.states.data();
  task->count = static_cast<std::uint32_t>(task->body.states.size());
  task->body_type = where::current().function_name();  // which names TaskType
  spawn_awaiting_at(task, at);
}
}  // namespace detail

// async(), async_future(), async_await() and async_await_future() at a place. Throws
// std::logic_error if no worker has the place on a path.
template <typename Body>
void async_at(place at, Body&& body) {
  detail::must_take_tasks(at);
  detail::spawn_at(detail::ClosureTask<std::decay_t<Body>>::make(std::forward<Body>(body)), at);
}
template <typename Body>
auto async_future_at(place at, Body&& body) {
  using T = std::invoke_result_t<std::decay_t<Body>&>;
  detail::must_take_tasks(at);
  auto* const state = new detail::ValueState<T>;
  future<T> result(state);
  auto* const task =
      detail::ResultTask<T, std::decay_t<Body>>::make(std::forward<Body>(body), state);
  state->references.store(2, std::memory_order_relaxed);  // not yet seen by others
  detail::spawn_at(task, at);
  return result;
}
template <typename Body, typename... Futures>
void async_await_at(place at, Body&& body, const Futures&... futures) {
  using Waiting = detail::AwaitingBody<sizeof...(Futures), std::decay_t<Body>>;
  detail::must_take_tasks(at);
  detail::spawn_after_at(detail::ClosureTask<Waiting, detail::AwaitingTask>::make(
                             Waiting(std::forward<Body>(body), futures...)),
                         at);
}
template <typename Body, typename... Futures>
auto async_await_future_at(place at, Body&& body, const Futures&... futures) {
  using T = std::invoke_result_t<std::decay_t<Body>&>;
  using Waiting = detail::AwaitingBody<sizeof...(Futures), std::decay_t<Body>>;
  detail::must_take_tasks(at);
  auto* const state = new detail::ValueState<T>;
  future<T> result(state);
  auto* const task = detail::ResultTask<T, Waiting, detail::AwaitingTask>::make(
      Waiting(std::forward<Body>(body), futures...), state);
  state->references.store(2, std::memory_order_relaxed);
  detail::spawn_after_at(task, at);
  return result;
}

// A task of run() itself: no finish scope of the caller waits for it, run() does. For what serves
// several tasks, such as one that polls for all: as a task of the finish that it was created in it
// would keep that from ending. What it throws leaves run().
template <typename Body>
void async_background_at(place at, Body&& body) {
  detail::must_take_tasks(at);
  detail::spawn_background_at(
      detail::ClosureTask<std::decay_t<Body>>::make(std::forward<Body>(body)), at);
}

// Copies bytes from one place to another; ready when they are there. The enclosing finish waits for
// it, too; both ranges stay valid until then. Between places that the cores can read and write
// (memory, numa_node, cache) tasks do it; all else belongs to modules: std::logic_error if none has
// said that it copies between these types.
AMASIA_TASKS_API future<void> async_copy(void* to, place to_place, const void* from,
                                         place from_place, std::size_t bytes);
// The same, begun when the futures are ready. An exception in one of them does not keep it from
// being done.
template <typename... Futures>
future<void> async_copy_await(void* to, place to_place, const void* from, place from_place,
                              std::size_t bytes, const Futures&... futures) {
  return async_await_future(
      [=] { async_copy(to, to_place, from, from_place, bytes).get(); }, futures...);
}

// Memory at a place, at least 64 bytes aligned; std::bad_alloc, or what the module throws, in the
// future. Of a NUMA node: pages of that node. Returned by free_at() with the same place and size.
AMASIA_TASKS_API future<void*> allocate_at(place at, std::size_t bytes);
AMASIA_TASKS_API future<void> free_at(place at, void* block, std::size_t bytes);

// Memory at a place that is returned when the buffer ends; moved, not copied.
class AMASIA_TASKS_API buffer {
 public:
  buffer() = default;
  // In a task, which waits for the memory; throws what allocate_at() has in its future.
  buffer(place at, std::size_t bytes) : place_(at), bytes_(bytes) {
    data_ = allocate_at(at, bytes).get();
  }
  buffer(buffer&& other) noexcept
      : place_(other.place_),
        bytes_(std::exchange(other.bytes_, 0)),
        data_(std::exchange(other.data_, nullptr)) {}
  buffer& operator=(buffer other) noexcept {
    std::swap(place_, other.place_);
    std::swap(bytes_, other.bytes_);
    std::swap(data_, other.data_);
    return *this;
  }
  // Any thread, while the runtime lives; does not wait. No copy from or to it may be under way.
  ~buffer();

  void* data() const noexcept { return data_; }
  template <typename T>
  T* as() const noexcept {
    return static_cast<T*>(data_);
  }
  std::size_t bytes() const noexcept { return bytes_; }
  place at() const noexcept { return place_; }

 private:
  place place_;
  std::size_t bytes_ = 0;
  void* data_ = nullptr;
};

}  // namespace amasia::tasks
