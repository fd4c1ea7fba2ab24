// SPDX-License-Identifier: Apache-2.0
// The program's GOMP runtime (libgomp) as the team uses it.
#include <cstring>

#include "omp/abi/gomp.hpp"

namespace amasia::omp::gomp {
namespace {

constinit Real<void(Outline, void*, unsigned, unsigned)> real_parallel{"GOMP_parallel"};
constinit Real<void()> real_barrier{"GOMP_barrier"};
constinit Real<std::int32_t()> real_thread{"omp_get_thread_num"};
constinit Real<std::int32_t()> real_team_size{"omp_get_num_threads"};
constinit Real<std::int32_t()> real_max_threads{"omp_get_max_threads"};
constinit Real<void(std::int32_t)> real_set_threads{"omp_set_num_threads"};
constinit Real<void(std::int32_t*, std::int32_t*)> real_get_schedule{"omp_get_schedule"};
constinit Real<void(std::int32_t, std::int32_t)> real_set_schedule{"omp_set_schedule"};
constinit Real<std::int32_t()> real_get_levels{"omp_get_max_active_levels"};
constinit Real<void(std::int32_t)> real_set_levels{"omp_set_max_active_levels"};
constinit Real<std::int32_t()> real_get_dynamic{"omp_get_dynamic"};
constinit Real<void(std::int32_t)> real_set_dynamic{"omp_set_dynamic"};
constinit Real<std::int32_t()> real_cancellation{"omp_get_cancellation"};
constinit Real<std::int32_t()> real_thread_limit{"omp_get_thread_limit"};
constinit Real<std::int32_t()> real_active_level{"omp_get_active_level"};
constinit Real<std::int32_t()> real_get_device{"omp_get_default_device"};
constinit Real<void(std::int32_t)> real_set_device{"omp_set_default_device"};

// omp_sched_t, whose highest bit is the monotonic modifier.
enum RuntimeSchedule : std::uint32_t { kStatic = 1, kDynamic = 2, kGuided = 3, kAuto = 4 };
constexpr std::uint32_t kMonotonic = 0x80000000u;

// What libgomp calls on each thread of a node team.
void team_entry(void* body) {
  thread_context.frame = nullptr;  // a worker's is that of its last region
  static_cast<LocalBody*>(body)->run(static_cast<std::uint32_t>(real_thread()),
                                     static_cast<std::uint32_t>(real_team_size()), nullptr,
                                     nullptr);
}

class GompRuntime final : public LocalRuntime {
 public:
  bool available() const override { return real_parallel.find() != nullptr; }

  Icvs icvs() override {
    Icvs icvs;
    real_get_schedule(&icvs.schedule_kind, &icvs.schedule_chunk);
    icvs.max_active_levels = real_get_levels();
    icvs.nested_threads = real_max_threads();
    icvs.dynamic = real_get_dynamic();
    icvs.default_device = real_get_device();
    return icvs;
  }
  void set_icvs(const Icvs& icvs) override {
    real_set_schedule(icvs.schedule_kind, icvs.schedule_chunk);
    real_set_levels(icvs.max_active_levels);
    real_set_threads(icvs.nested_threads);
    real_set_dynamic(icvs.dynamic);
    real_set_device(icvs.default_device);
  }
  void set_threads(std::uint32_t threads) override {
    real_set_threads(static_cast<std::int32_t>(threads));
  }
  bool cancellation() override { return real_cancellation() != 0; }
  std::uint32_t thread_limit() override { return static_cast<std::uint32_t>(real_thread_limit()); }
  std::uint32_t active_level() override { return static_cast<std::uint32_t>(real_active_level()); }
  void set_dynamic(bool on) override { real_set_dynamic(on ? 1 : 0); }

  std::string_view source_of(const void*) const override { return {}; }

  void fork(const void*, std::uint32_t threads, std::int32_t proc_bind, LocalBody& body) override {
    real_parallel(team_entry, &body, threads, static_cast<unsigned>(proc_bind));
  }

  void invoke(ThreadFrame& frame, const Outlined& outlined) override {
    const std::span<const std::byte> extra = frame.team->extra();
    if (!extra.empty()) {
      Combined combined;
      AMASIA_CHECK(extra.size() == sizeof combined, "the origin sends a whole construct");
      std::memcpy(&combined, extra.data(), sizeof combined);
      enter_combined(frame, combined);
    }
    reinterpret_cast<Outline>(outlined.function)(outlined.words[0]);
  }

  // libgomp has no barrier in two halves: two whole ones stand for them. Tasks are complete after
  // the first, and nobody creates any before the second.
  bool gather(ThreadFrame& frame) override {
    real_barrier();
    if (frame.local_id == 0) return true;
    real_barrier();
    return false;
  }
  void release(ThreadFrame&) override { real_barrier(); }
};

constinit GompRuntime the_runtime;

}  // namespace

loops::ScheduleRequest runtime_schedule() {
  std::int32_t kind = 0, chunk = 0;
  real_get_schedule(&kind, &chunk);
  const std::uint64_t size = chunk > 0 ? static_cast<std::uint64_t>(chunk) : 0;
  switch (static_cast<std::uint32_t>(kind) & ~kMonotonic) {
    case kDynamic: return {loops::ScheduleKind::kDynamic, size};
    case kGuided: return {loops::ScheduleKind::kGuided, size};
    case kAuto: return {loops::ScheduleKind::kAuto, 0};
    default: return {loops::ScheduleKind::kStatic, size};
  }
}

LocalRuntime& local_runtime() { return the_runtime; }

}  // namespace amasia::omp::gomp
