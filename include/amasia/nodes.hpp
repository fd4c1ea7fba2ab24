// SPDX-License-Identifier: Apache-2.0
// Tasks on the other nodes of a job. Link amasia-tasks-nodes; start with `amasia run -n N program`,
// or `mpirun -np N amasia run program`. docs/nodes.md has a complete example.
//
// Every node runs the program's main() up to the first library::run(). From there on the origin,
// node 0, goes on alone: the others do what tasks send them, until the origin's library object
// ends; then they end, too. Started plainly, a program is a job of one node, and all of this works.
//
// A callable for another node travels as its bytes, and so does its result: both are trivially
// copyable. What it captures by reference, or as a pointer, is the sender's memory and means
// nothing on another node. Its code is the same program there. Globals are each node's own: they
// have what main() put there before run(), and what tasks have put there since.
//
//   async_at, async_future_at     on the named node
//   async_any, async_future_any   here, unless a node that has nothing to do takes it: asyncAny of
//                                 Fohry and Posner; idle nodes look for such tasks by themselves,
//                                 by lifelines (Saraswat et al., PPoPP 2011, sections 2 and 3)
//
// A finish waits for tasks wherever they run, and for all that they create (X10's finish; HiPER,
// IPDPSW 2017, section II). What they throw leaves the finish, or the future, as remote_error.
// A stop token is not asked on other nodes. When a node dies the job ends, and a sentence names it.
//
// All functions but library's own members: in tasks of library::run() or of other nodes, else
// std::logic_error. None waits.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "amasia/module.h"

namespace amasia::nodes {

template <typename T>
using future = tasks::future<T>;

// What a task threw on another node, as text.
class AMASIA_TASKS_API remote_error : public std::runtime_error {
 public:
  remote_error(unsigned node, const std::string& text);
  unsigned node() const noexcept { return node_; }  // where it was thrown

 private:
  unsigned node_;
};

// Of this node, since its library object was made. A task is counted where it is sent and where it
// arrives.
struct statistics {
  std::uint64_t sent = 0;       // by async_at and async_future_at, to other nodes
  std::uint64_t received = 0;   // of those, from other nodes
  std::uint64_t given = 0;      // async_any tasks that other nodes took from here
  std::uint64_t stolen = 0;     // that this node took from others
  std::uint64_t requests = 0;   // for tasks, that this node made
  std::uint64_t lifelines = 0;  // that it left with other nodes
};

namespace detail {
class Node;

// Both together fit into a message.
inline constexpr std::size_t kMostBytes = std::size_t{1} << 20;

// A callable as bytes, with the function that knows what they are.
struct Parcel {
  // Calls the callable at `body`, and makes its result at `result`. May throw.
  void (*perform)(void* body, void* result);
  const void* body;
  std::uint32_t bytes;
  std::uint32_t result_bytes;  // 0: none
};

// Where a result goes, once. Each function destroys the sink.
struct Sink {
  void (*put)(Sink* self, void* value) noexcept;
  void (*fail)(Sink* self, std::exception_ptr error) noexcept;
};
template <typename T>
struct PromiseSink : Sink {
  PromiseSink() {
    put = [](Sink* sink, void* value) noexcept {
      const std::unique_ptr<PromiseSink> self(static_cast<PromiseSink*>(sink));
      if constexpr (std::is_void_v<T>) {
        self->promise.put();
      } else {
        self->promise.put(*static_cast<T*>(value));
      }
    };
    fail = [](Sink* sink, std::exception_ptr error) noexcept {
      const std::unique_ptr<PromiseSink> self(static_cast<PromiseSink*>(sink));
      self->promise.fail(std::move(error));
    };
  }
  tasks::promise<T> promise;
};

template <typename Body>
void perform(void* body, void* result) {
  using T = std::invoke_result_t<Body&>;
  Body& callable = *std::launder(static_cast<Body*>(body));
  if constexpr (std::is_void_v<T>) {
    callable();
  } else {
    ::new (result) T(callable());
  }
}

template <typename Body>
Parcel parcel_of(const Body& body) {
  static_assert(std::is_trivially_copyable_v<Body>,
                "a callable that other nodes may run travels as bytes: it must be trivially "
                "copyable. Capture numbers and plain structs by value; no strings, vectors, "
                "futures or smart pointers");
  static_assert(!std::is_pointer_v<Body>,
                "a pointer to a function means nothing on another node: pass a lambda that calls "
                "the function");
  static_assert(sizeof(Body) <= kMostBytes,
                "a callable that other nodes may run has 1 MiB at most");
  static_assert(alignof(Body) <= 16,
                "a callable that other nodes may run is aligned to 16 at most");
  using T = std::invoke_result_t<Body&>;
  std::uint32_t result_bytes = 0;
  if constexpr (!std::is_void_v<T>) {
    static_assert(std::is_trivially_copyable_v<T>,
                  "the result of a callable that other nodes may run travels as bytes: it must be "
                  "trivially copyable, and no reference");
    static_assert(sizeof(T) <= kMostBytes, "a result from another node has 1 MiB at most");
    static_assert(alignof(T) <= 16, "a result from another node is aligned to 16 at most");
    result_bytes = sizeof(T);
  }
  return {&perform<Body>, &body, sizeof(Body), result_bytes};
}

// The node that the place is; std::logic_error if it is no node of the caller's job.
AMASIA_TASKS_API unsigned number_of(tasks::place at);
AMASIA_TASKS_API unsigned self();
AMASIA_TASKS_API bool is_alone();
// Take the sink over, which may be nullptr. They copy the callable.
AMASIA_TASKS_API void send(unsigned to, const Parcel& parcel, Sink* sink);
AMASIA_TASKS_API void offer(const Parcel& parcel, Sink* sink);
}  // namespace detail

// A process is one node: one object of it in a program's life, else std::logic_error.
class AMASIA_TASKS_API library : public tasks::module {
 public:
  // Attaches itself to the runtime, and joins the job, if there is one: waits until all nodes have
  // come. Adds places "node0", "node1", ... of type node. Where the nodes' programs differ, or one
  // does not come, the job ends with a sentence and exit code 2. On the thread that calls run(),
  // before the runtime's first run() and before the program starts threads.
  explicit library(tasks::runtime& workers);
  // On the origin: the other nodes end; with exit code 0, having run the program's exit handlers.
  ~library() override;
  const char* name() const noexcept override { return "nodes"; }

  // On the origin, as often as it wants: runs the body as tasks::runtime::run() does, and other
  // nodes do what its tasks send them. On the others it does not return.
  // A deadlock is reported on the origin, with who waits on which node, when no node can go on
  // (options::detect_deadlock, on all nodes alike; the origin's on_deadlock, on a thread that is no
  // worker).
  template <typename Body>
  auto run(Body&& body, const tasks::where& at = tasks::where::current()) {
    using T = std::invoke_result_t<Body&>;
    serve_unless_origin();
    if constexpr (std::is_void_v<T>) {
      workers_.run(
          [&] {
            const Serving while_it_runs(*this);
            tasks::finish(body, at);
          },
          at);
    } else {
      std::optional<T> result;
      workers_.run(
          [&] {
            const Serving while_it_runs(*this);
            tasks::finish([&] { result.emplace(body()); }, at);
          },
          at);
      return std::move(*result);
    }
  }

  unsigned self() const noexcept;
  unsigned count() const noexcept;
  nodes::statistics statistics() const;

 private:
  struct Serving {
    explicit Serving(library& which) : of(which) { of.begin_serving(); }
    Serving(const Serving&) = delete;
    Serving& operator=(const Serving&) = delete;
    ~Serving() { of.end_serving(); }
    library& of;
  };
  void initialise(tasks::module_host& host) override;
  void finalise() noexcept override;
  void idle() noexcept override;
  void stalled() noexcept override;
  void serve_unless_origin();
  void begin_serving();
  void end_serving() noexcept;

  tasks::runtime& workers_;
  std::unique_ptr<detail::Node> node_;
};

// This node's number, and how many there are. Numbers count from 0, the origin.
AMASIA_TASKS_API unsigned self();
AMASIA_TASKS_API unsigned count();
// The place that stands for a node; std::out_of_range if there is none of that number.
AMASIA_TASKS_API tasks::place at(unsigned node);
AMASIA_TASKS_API nodes::statistics this_node_statistics();

// A task of the caller's finish scope, on the node that the place stands for.
template <typename Body>
void async_at(tasks::place node, Body body) {
  const detail::Parcel parcel = detail::parcel_of(body);
  const unsigned to = detail::number_of(node);
  if (to == detail::self()) return tasks::async(body);
  detail::send(to, parcel, nullptr);
}
// The same with its result, or what it throws, as a future.
template <typename Body>
auto async_future_at(tasks::place node, Body body) {
  using T = std::invoke_result_t<Body&>;
  const detail::Parcel parcel = detail::parcel_of(body);
  const unsigned to = detail::number_of(node);
  if (to == detail::self()) return tasks::async_future(body);
  auto* const sink = new detail::PromiseSink<T>;
  future<T> result = sink->promise.get_future();
  detail::send(to, parcel, sink);
  return result;
}

// A task of the caller's finish scope that any node may do: a worker of this one, or one that has
// nothing else to do. Some 100 ns more than async(); where it is taken, two messages and the waking
// of threads that sleep: worth it for tasks of 100 us and more.
template <typename Body>
void async_any(Body body) {
  const detail::Parcel parcel = detail::parcel_of(body);
  if (detail::is_alone()) return tasks::async(body);
  detail::offer(parcel, nullptr);
}
template <typename Body>
auto async_future_any(Body body) {
  using T = std::invoke_result_t<Body&>;
  const detail::Parcel parcel = detail::parcel_of(body);
  if (detail::is_alone()) return tasks::async_future(body);
  auto* const sink = new detail::PromiseSink<T>;
  future<T> result = sink->promise.get_future();
  detail::offer(parcel, sink);
  return result;
}

}  // namespace amasia::nodes
