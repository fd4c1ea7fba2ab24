// SPDX-License-Identifier: Apache-2.0
// The program's own runtime as the team uses it: forks a node's part, and meets inside the node.
// One implementation per ABI (abi/kmpc_*, abi/gomp_*).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "omp/frame.hpp"
#include "omp/code/idle_thread.hpp"
#include "omp/code/reached_code.hpp"
#include "omp/region/region.hpp"
#include "omp/code/region_code.hpp"

namespace amasia::omp {

// What each thread of a node team does. `run` sets the thread's frame and calls back invoke().
class LocalBody {
 public:
  virtual ~LocalBody() = default;
  virtual void run(std::uint32_t local_id, std::uint32_t local_size, void* abi0, void* abi1) = 0;
};

// The internal control variables that the origin's forking thread has and every node must have.
struct Icvs {
  std::int32_t schedule_kind = 0;  // omp_sched_t
  std::int32_t schedule_chunk = 0;
  std::int32_t max_active_levels = 1;
  std::int32_t nested_threads = 0;  // omp_get_max_threads()
  std::int32_t dynamic = 0;
  std::int32_t default_device = 0;
};

class LocalRuntime {
 public:
  virtual ~LocalRuntime() = default;

  virtual Abi abi() const = 0;
  // Whether the next runtime is there at all.
  virtual bool available() const = 0;
  // Of the calling thread; no frame is set.
  virtual Icvs icvs() = 0;
  // One of them: each is a call into the next runtime, and a region of microseconds feels six.
  virtual std::int32_t max_active_levels() = 0;
  virtual std::uint32_t nested_threads() = 0;
  virtual bool dynamic() = 0;
  virtual void set_icvs(const Icvs& icvs) = 0;
  // omp_set_num_threads of the next runtime.
  virtual void set_threads(std::uint32_t threads) = 0;
  // omp_set_affinity_format of the next runtime.
  virtual void set_affinity_format(const std::string& format) = 0;
  // omp_display_affinity(NULL), with the calling thread's numbers in the team of all nodes.
  virtual void show_affinity() = 0;
  // Whether OMP_CANCELLATION is on.
  virtual bool cancellation() = 0;
  virtual std::uint32_t thread_limit() = 0;
  virtual std::uint32_t active_level() = 0;
  // dyn-var of the current task.
  virtual void set_dynamic(bool on) = 0;

  // What the compiler says of a place in the program: kmpc's ";file;function;line;column;;", or "".
  virtual std::string_view source_of(const void* location) const = 0;

  // Whether its threads may enter a region's function again for further iterations. On a native
  // stack; looks at its code.
  virtual RegionCode code_of(const void* function) const = 0;
  // What they may do in it, of which `code` is known; the same.
  virtual ReachedCode reached_code_of(const void* function, const RegionCode& code) const = 0;
  // Of a region whose code is kNumbered, before it is executed; on a native stack.
  virtual std::optional<IdleThread> idle_thread_of(const Outlined& outlined) const = 0;

  // Forks exactly `threads` threads, the caller among them, each of which calls body.run. Returns
  // when all have returned and joined. On the native stack of the calling thread.
  virtual void fork(const void* location, std::uint32_t threads, std::int32_t proc_bind,
                    LocalBody& body) = 0;
  // Calls the outlined function for the thread of `frame`; on its managed stack.
  virtual void invoke(ThreadFrame& frame, const Outlined& outlined) = 0;

  // One barrier of the node team in two halves. gather() returns true on the leader (local id 0)
  // when all have come and their tasks are complete, on the others false after the leader called
  // release(). Tasks may run inside.
  virtual bool gather(ThreadFrame& frame) = 0;
  virtual void release(ThreadFrame& frame) = 0;
};

}  // namespace amasia::omp
