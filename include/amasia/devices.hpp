// SPDX-License-Identifier: Apache-2.0
// Accelerators of a node from C++20: a thin layer over amasia/mcl.h, of headers only. A program
// submits kernels and never names a device (docs/devices.md).
//
//   amasia::devices::session session(4);             // connects; four threads run tasks
//   session.load("saxpy.cl");
//   auto done = amasia::devices::submit("saxpy", {n}, in(x), inout(y), 2.0F);
//   done.get();                                      // waits; throws where the task failed
//
// Words, blocking and thread rules are those of mcl.h. Memory that a task uses (spans, buffers) is
// the caller's and has to live until the task has ended; the destructor of the last copy of a
// future waits for that. Link with pkg-config amasia-devices.
#pragma once

#include <amasia/mcl.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace amasia::devices {

// What went wrong, as a sentence; code() is MCL_ERR_*, positive.
class error : public std::runtime_error {
 public:
  error(int code, const std::string& what) : std::runtime_error(what), code_(code) {}
  int code() const noexcept { return code_; }

 private:
  int code_;
};

namespace detail {

[[noreturn]] inline void fail(int code, const char* reason) {
  const int positive = code < 0 ? -code : code;
  const std::string known = reason == nullptr ? "" : reason;
  throw error(positive, known.empty() ? mcl_strerror(positive) : known);
}
inline int checked(int result) {
  if (result < 0) fail(result, mcl_reason());
  return result;
}

// An argument as mcl_task_set_arg_buffer takes it; `part`: of a buffer that was registered.
struct argument {
  void* address = nullptr;
  std::size_t size = 0;
  std::size_t offset = 0;
  std::uint64_t flags = 0;
  bool part = false;
};

template <typename T>
argument buffer_argument(std::span<T> memory, std::uint64_t flags) {
  using Value = std::remove_const_t<T>;
  static_assert(std::is_trivially_copyable_v<Value>, "devices get the bytes of what they work on");
  return {const_cast<Value*>(memory.data()), memory.size_bytes(), 0, MCL_ARG_BUFFER | flags};
}

}  // namespace detail

// ---- start and end ----

// The program's connection to the daemon, which is started where none runs. One at a time.
class session {
 public:
  // `workers` threads run tasks, at least 1; `bind`: each on a core of its own. Throws error.
  explicit session(std::uint64_t workers = 1, bool bind = false) {
    if (detail::checked(mcl_init(workers, bind ? MCL_SET_BIND_WORKERS : 0)) == 1) {
      throw error(MCL_ERR_INVARG, "this process has a session already");
    }
  }
  // Waits for all tasks.
  ~session() { mcl_finit(); }
  session(const session&) = delete;
  session& operator=(const session&) = delete;

  // Programs, once each; `kind` is MCL_PRG_*. The error holds the compiler's log. Waits.
  void load(const std::string& path, unsigned long kind = MCL_PRG_SRC,
            const std::string& options = "") {
    std::string file = path, compiler = options;
    detail::checked(mcl_prg_load(file.data(), compiler.data(), kind));
  }
  // A function that runs on the host's cores (mcl.h, mcl_host_kernel).
  void add_host_kernel(const std::string& name, mcl_host_kernel function) {
    detail::checked(mcl_prg_add_host(name.c_str(), function));
  }
  // Until this process has no task under way. Failures are told by futures.
  void wait_all() { detail::checked(mcl_wait_all()); }
};

struct device {
  std::uint32_t id = 0;
  std::string name, vendor;
  std::uint64_t type = 0, status = 0;  // MCL_TASK_CPU …; MCL_DEV_*
  std::uint64_t memory = 0;            // bytes
  std::uint64_t elements = 0;
};
// What there is; load and status are of the moment.
inline std::vector<device> all_devices() {
  std::vector<device> out;
  const std::uint32_t count = mcl_get_ndev();
  for (std::uint32_t i = 0; i < count; ++i) {
    mcl_device_info info = {};
    detail::checked(mcl_get_dev(i, &info));
    out.push_back({i, info.name, info.vendor, info.type, info.status, info.mem_size, info.pes});
    std::free(info.wisize);
  }
  return out;
}

// ---- arguments ----

// Memory that tasks read, write, or both, copied as needed. Only while the task runs.
template <typename T>
detail::argument in(std::span<T> memory) {
  return detail::buffer_argument(memory, MCL_ARG_INPUT);
}
template <typename T>
detail::argument out(std::span<T> memory) {
  static_assert(!std::is_const_v<T>, "a task writes it");
  return detail::buffer_argument(memory, MCL_ARG_OUTPUT);
}
template <typename T>
detail::argument inout(std::span<T> memory) {
  static_assert(!std::is_const_v<T>, "a task reads and writes it");
  return detail::buffer_argument(memory, MCL_ARG_INPUT | MCL_ARG_OUTPUT);
}
template <typename Range>
auto in(const Range& range) -> decltype(in(std::span(range))) {
  return in(std::span(range));
}
template <typename Range>
auto out(Range& range) -> decltype(out(std::span(range))) {
  return out(std::span(range));
}
template <typename Range>
auto inout(Range& range) -> decltype(inout(std::span(range))) {
  return inout(std::span(range));
}
// Memory of a work group, of so many bytes.
inline detail::argument local(std::size_t bytes) { return {nullptr, bytes, 0, MCL_ARG_LOCAL}; }

// Memory whose copies on devices stay between tasks. The memory is the caller's, and outlives this.
template <typename T>
class resident {
 public:
  // `written`: kernels write it, and its newest copy moves between devices.
  explicit resident(std::span<T> memory, bool written = !std::is_const_v<T>)
      : memory_(memory),
        flags_(MCL_ARG_BUFFER | MCL_ARG_RESIDENT | (written ? MCL_ARG_DYNAMIC : 0UL)) {
    detail::checked(mcl_register_buffer(address(), memory.size_bytes(), flags_));
  }
  // No task may use it any more.
  ~resident() {
    if (!memory_.empty()) mcl_unregister_buffer(address());
  }
  resident(resident&& other) noexcept
      : memory_(std::exchange(other.memory_, {})), flags_(other.flags_) {}
  resident(const resident&) = delete;
  resident& operator=(const resident&) = delete;
  resident& operator=(resident&&) = delete;

  std::span<T> memory() const { return memory_; }
  // The host's bytes are newer: copies on devices are void.
  void invalidate() { detail::checked(mcl_invalidate_buffer(address())); }

  // All of it, or `count` elements from `first`. What `out` and `inout` write comes back to the
  // host with the task; what `changed` writes stays on the device, for tasks that follow.
  detail::argument in(std::size_t first = 0, std::size_t count = kRest) const {
    return argument(first, count, MCL_ARG_INPUT);
  }
  detail::argument out(std::size_t first = 0, std::size_t count = kRest) const {
    return argument(first, count, MCL_ARG_OUTPUT);
  }
  detail::argument inout(std::size_t first = 0, std::size_t count = kRest) const {
    return argument(first, count, MCL_ARG_INPUT | MCL_ARG_OUTPUT);
  }
  detail::argument changed(std::size_t first = 0, std::size_t count = kRest) const {
    return argument(first, count, MCL_ARG_INPUT);
  }

 private:
  static constexpr std::size_t kRest = std::numeric_limits<std::size_t>::max();
  void* address() const { return const_cast<std::remove_const_t<T>*>(memory_.data()); }
  detail::argument argument(std::size_t first, std::size_t count, std::uint64_t flags) const {
    if (first > memory_.size()) {
      throw error(MCL_ERR_INVARG, "a part begins behind its buffer's end");
    }
    const std::size_t rest = memory_.size() - first;
    if (count != kRest && count > rest) {
      throw error(MCL_ERR_INVARG, "a part ends behind its buffer's end");
    }
    const std::size_t elements = count == kRest ? rest : count;
    return {address(), elements * sizeof(T), first * sizeof(T), flags_ | flags, true};
  }

  std::span<T> memory_;
  std::uint64_t flags_;
};

// ---- tasks ----

struct range {
  // Work items in up to three dimensions.
  range(std::initializer_list<std::uint64_t> global) : work(filled(global, 1)) {}
  range& in_groups_of(std::initializer_list<std::uint64_t> local) {
    group = filled(local, 1);
    grouped = true;
    return *this;
  }
  range& from(std::initializer_list<std::uint64_t> first) {
    offset = filled(first, 0);
    return *this;
  }

  using sizes = std::array<std::uint64_t, MCL_DEV_DIMS>;
  sizes work, group = {1, 1, 1}, offset = {0, 0, 0};
  bool grouped = false;

 private:
  static sizes filled(std::initializer_list<std::uint64_t> given, std::uint64_t rest) {
    if (given.size() > MCL_DEV_DIMS) throw error(MCL_ERR_INVARG, "a range has three dimensions");
    sizes out = {rest, rest, rest};
    std::size_t i = 0;
    for (const std::uint64_t size : given) out[i++] = size;
    return out;
  }
};

enum class state {
  created = MCL_STATE_CREATED,
  runnable = MCL_STATE_RUNNABLE,
  executing = MCL_STATE_EXECUTING,
  terminated = MCL_STATE_TERMINATED,
  failed = MCL_STATE_FAILED
};

// A task that was submitted. Copies are of the same task; any thread may wait.
class future {
 public:
  future() = default;
  bool valid() const noexcept { return handle_ != nullptr; }
  devices::state state() const {
    return static_cast<devices::state>(detail::checked(mcl_task_state(handle_.get())));
  }
  bool ready() const {
    return detail::checked(mcl_test(handle_.get())) == static_cast<int>(MCL_REQ_COMPLETED);
  }
  // False: the task goes on.
  template <typename Rep, typename Period>
  bool wait_for(std::chrono::duration<Rep, Period> time) const {
    const auto nanos = std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
    return wait_at_most(nanos < 0 ? 0 : static_cast<std::uint64_t>(nanos));
  }
  void wait() const { wait_at_most(UINT64_MAX); }
  // Waits, and throws error where the task failed.
  void get() const {
    wait();
    if (const int code = mcl_task_error(handle_.get()); code != 0) {
      detail::fail(code, mcl_task_reason(handle_.get()));
    }
  }
  // Where it ran, or runs.
  std::uint32_t device() const {
    return static_cast<std::uint32_t>(detail::checked(mcl_task_device(handle_.get())));
  }
  mcl_handle* handle() const noexcept { return handle_.get(); }

 private:
  friend class task;
  explicit future(std::shared_ptr<mcl_handle> handle) : handle_(std::move(handle)) {}
  bool wait_at_most(std::uint64_t nanos) const {
    const int result = mcl_wait_for(handle_.get(), nanos);
    if (result == -MCL_ERR_TIMEOUT) return false;
    // The task's own failure is get()'s to tell.
    if (result < 0 && mcl_task_error(handle_.get()) == 0) detail::checked(result);
    return true;
  }

  std::shared_ptr<mcl_handle> handle_;  // freed with its last copy, which waits
};

// A task that is being prepared; submit() below for the common case.
class task {
 public:
  template <typename... Arguments>
  explicit task(const std::string& kernel, const Arguments&... arguments)
      : handle_(mcl_task_create(), [](mcl_handle* handle) { mcl_hdl_free(handle); }) {
    if (handle_ == nullptr) detail::fail(-MCL_ERR_MEMALLOC, mcl_reason());
    std::string name = kernel;
    detail::checked(mcl_task_set_kernel(handle_.get(), name.data(), sizeof...(arguments)));
    std::uint64_t index = 0;
    (set(index++, arguments), ...);
  }
  // Strict: only devices of these classes, MCL_TASK_*.
  task& on(std::uint64_t classes) {
    classes_ = classes;
    return *this;
  }
  // Soft: better on this class.
  task& favour(std::uint64_t device_class) {
    favoured_ = device_class << 16U & MCL_FAV_MASK;
    return *this;
  }
  task& priority(int priority) {
    detail::checked(mcl_task_set_priority(handle_.get(), priority));
    return *this;
  }
  // Called at its end (mcl_task_on_end); not where submit() throws.
  task& when_ended(mcl_end_function function, void* context) {
    detail::checked(mcl_task_on_end(handle_.get(), function, context));
    return *this;
  }
  // It starts when these have ended, and fails where one of them fails.
  task& after(std::span<const future> earlier) {
    for (const future& one : earlier) after_.push_back(one.handle());
    return *this;
  }
  task& after(std::initializer_list<future> earlier) {
    return after(std::span(earlier.begin(), earlier.size()));
  }
  // Returns at once. A task is submitted once.
  future submit(range over) {
    detail::checked(mcl_exec2_with_dependencies(
        handle_.get(), over.work.data(), over.grouped ? over.group.data() : nullptr,
        over.offset.data(), classes_ | favoured_, after_.size(), after_.data()));
    return future(std::move(handle_));
  }

 private:
  void set(std::uint64_t index, const detail::argument& argument) {
    detail::checked(argument.part
                        ? mcl_task_set_arg_buffer(handle_.get(), index, argument.address,
                                                  argument.size,
                                                  static_cast<off_t>(argument.offset),
                                                  argument.flags)
                        : mcl_task_set_arg(handle_.get(), index, argument.address, argument.size,
                                           argument.flags));
  }
  // Anything else is handed over by value.
  template <typename T>
  void set(std::uint64_t index, const T& value) {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>,
                  "a value, or memory as in(…), out(…), inout(…)");
    T copy = value;
    detail::checked(mcl_task_set_arg(handle_.get(), index, &copy, sizeof copy, MCL_ARG_SCALAR));
  }

  std::shared_ptr<mcl_handle> handle_;
  std::vector<mcl_handle*> after_;
  std::uint64_t classes_ = MCL_TASK_ANY, favoured_ = 0;
};

// One execution of a kernel, on any device. Throws error where it cannot be submitted.
template <typename... Arguments>
future submit(const std::string& kernel, range over, const Arguments&... arguments) {
  return task(kernel, arguments...).submit(over);
}

// ---- memory that processes of one user share ----

// `count` elements that others find by the same name. The last to let go of it removes it.
template <typename T>
class shared_memory {
 public:
  static_assert(std::is_trivially_copyable_v<T>);
  enum class make { open, create };
  shared_memory(const std::string& name, std::size_t count, make how)
      : count_(count),
        address_(mcl_get_shared_buffer(
            name.c_str(), count * sizeof(T),
            MCL_ARG_DYNAMIC | (how == make::create ? MCL_SHARED_MEM_NEW : 0))) {
    if (address_ == nullptr) detail::fail(-MCL_ERR_SHMEM, mcl_reason());
  }
  ~shared_memory() { mcl_free_shared_buffer(address_); }
  shared_memory(const shared_memory&) = delete;
  shared_memory& operator=(const shared_memory&) = delete;
  std::span<T> memory() const { return {static_cast<T*>(address_), count_}; }
  detail::argument in() const { return argument(MCL_ARG_INPUT); }
  detail::argument out() const { return argument(MCL_ARG_OUTPUT); }
  detail::argument inout() const { return argument(MCL_ARG_INPUT | MCL_ARG_OUTPUT); }

 private:
  detail::argument argument(std::uint64_t flags) const {
    return {address_, count_ * sizeof(T), 0,
            MCL_ARG_BUFFER | MCL_ARG_RESIDENT | MCL_ARG_DYNAMIC | MCL_ARG_SHARED | flags};
  }
  std::size_t count_;
  void* address_;
};

}  // namespace amasia::devices
