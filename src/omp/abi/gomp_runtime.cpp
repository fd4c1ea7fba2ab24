// SPDX-License-Identifier: Apache-2.0
// The program's GOMP runtime (libgomp) as the team uses it.
#include <cstring>
#include <utility>

#include "omp/abi/callees.hpp"
#include "omp/abi/gomp.hpp"
#include "omp/abi/gomp_parts.hpp"
#include "omp/abi/openmp_runtime.hpp"

namespace amasia::omp::gomp {
namespace {

constinit Real<void(Outline, void*, unsigned, unsigned)> real_parallel{"GOMP_parallel"};
constinit Real<void()> real_barrier{"GOMP_barrier"};
constinit Real<void(std::int32_t*, std::int32_t*)> real_get_schedule{"omp_get_schedule"};

// omp_sched_t, whose highest bit is the monotonic modifier.
enum RuntimeSchedule : std::uint32_t { kStatic = 1, kDynamic = 2, kGuided = 3, kAuto = 4 };
constexpr std::uint32_t kMonotonic = 0x80000000u;

class GompRuntime final : public OpenMpRuntime {
 public:
  Abi abi() const override { return Abi::kGomp; }
  bool available() const override { return real_parallel.find() != nullptr; }

  std::string_view source_of(const void*) const override { return {}; }

  RegionCode code_of(const void* function) const override {
    const std::optional<NumberedLoop> loop = numbered_loop_of(function, callee_of);
    return loop ? RegionCode{Reentry::kNumbered, *loop} : RegionCode{};
  }
  std::optional<IdleThread> idle_thread_of(const Outlined& outlined) const override {
    return omp::idle_thread_of(outlined.function, outlined.words[0], callee_of);
  }

  void fork(const void*, std::uint32_t threads, std::int32_t proc_bind, LocalBody& body) override {
    real_parallel(enter_team, &body, threads, static_cast<unsigned>(proc_bind));
  }

  void invoke(ThreadFrame& frame, const Outlined& outlined) override {
    const std::span<const std::byte> extra = frame.team->extra();
    if (!extra.empty()) {
      Combined combined;
      AMASIA_CHECK(extra.size() == sizeof combined, "the origin sends a whole construct");
      std::memcpy(&combined, extra.data(), sizeof combined);
      enter_combined(frame, combined);
    }
    const bool in_parts = frame.team->reentry() == Reentry::kNumbered;
    void* const function =
        in_parts ? reinterpret_cast<void*>(execute_parts) : outlined.function;
    amasia_enter(function, outlined.words[0], nullptr, &frame.entry);
  }

  // libgomp has no barrier in two halves: two whole ones stand for them. Tasks are complete after
  // the first, and nobody creates any before the second. A thread that is its node's only one has
  // just its own tasks to complete; libgomp's barrier would wake nobody by a system call.
  bool gather(ThreadFrame& frame) override {
    if (frame.team->forked() > 1 || std::exchange(frame.may_have_tasks, false)) real_barrier();
    if (frame.local_id == 0) return true;
    real_barrier();
    return false;
  }
  void release(ThreadFrame& frame) override {
    if (frame.team->forked() > 1) real_barrier();
  }

 private:
  // What libgomp calls on each thread of a node team.
  static void enter_team(void* body) {
    thread_context.frame = nullptr;  // a worker's is that of its last region
    static_cast<LocalBody*>(body)->run(thread_number(), team_size(), nullptr, nullptr);
  }
};

constinit GompRuntime the_runtime;

}  // namespace

loops::ScheduleRequest runtime_schedule(bool monotonic) {
  std::int32_t kind = 0, chunk = 0;
  real_get_schedule(&kind, &chunk);
  const std::uint64_t size = chunk > 0 ? static_cast<std::uint64_t>(chunk) : 0;
  const bool rising = monotonic || (static_cast<std::uint32_t>(kind) & kMonotonic) != 0;
  switch (static_cast<std::uint32_t>(kind) & ~kMonotonic) {
    case kDynamic: return {loops::ScheduleKind::kDynamic, size, rising};
    case kGuided: return {loops::ScheduleKind::kGuided, size, rising};
    case kAuto: return named_by_user({loops::ScheduleKind::kAuto, 0, rising});
    // libgomp's static ones always say that they rise.
    default: return named_by_user({loops::ScheduleKind::kStatic, size, monotonic});
  }
}

LocalRuntime& local_runtime() { return the_runtime; }

}  // namespace amasia::omp::gomp
