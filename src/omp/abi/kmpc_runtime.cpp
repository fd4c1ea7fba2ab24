// SPDX-License-Identifier: Apache-2.0
// The program's kmpc runtime (libomp) as the team uses it.
#include "omp/abi/kmpc.hpp"

namespace amasia::omp::kmpc {
namespace {

constinit Real<void()> real_fork{"__kmpc_fork_call"};
constinit Real<std::int32_t(const ident_t*)> real_gtid{"__kmpc_global_thread_num"};
constinit Real<void(const ident_t*, std::int32_t, std::int32_t)> real_push_threads{
    "__kmpc_push_num_threads"};
constinit Real<void(const ident_t*, std::int32_t, std::int32_t)> real_push_bind{
    "__kmpc_push_proc_bind"};
constinit Real<std::int32_t(const ident_t*, std::int32_t)> real_gather{"__kmpc_barrier_master"};
constinit Real<void(const ident_t*, std::int32_t)> real_release{"__kmpc_end_barrier_master"};
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

// What libomp calls on each thread of a node team.
void team_entry(std::int32_t* gtid, std::int32_t* bound_id, LocalBody* body) {
  thread_context.frame = nullptr;  // a worker's is that of its last region
  const auto size = static_cast<std::uint32_t>(real_team_size());
  body->run(static_cast<std::uint32_t>(*bound_id), size, gtid, bound_id);
}

class KmpcRuntime final : public LocalRuntime {
 public:
  bool available() const override { return real_fork.find() != nullptr; }

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

  std::string_view source_of(const void* location) const override {
    const auto* const place = static_cast<const ident_t*>(location);
    return place != nullptr && place->psource != nullptr ? place->psource : "";
  }

  void fork(const void* location, std::uint32_t threads, std::int32_t proc_bind,
            LocalBody& body) override {
    const auto* const place = static_cast<const ident_t*>(location);
    const std::int32_t gtid = real_gtid(place);
    real_push_threads(place, gtid, static_cast<std::int32_t>(threads));
    if (proc_bind != 0) real_push_bind(place, gtid, proc_bind);
    using Fork = void (*)(const ident_t*, std::int32_t, Microtask, ...);
    reinterpret_cast<Fork>(real_fork.get())(place, 1, reinterpret_cast<Microtask>(team_entry),
                                            &body);
  }

  void invoke(ThreadFrame& frame, const Outlined& outlined) override {
    amasia_call_outlined(outlined.function, static_cast<std::int32_t*>(frame.abi[0]),
                         static_cast<std::int32_t*>(frame.abi[1]),
                         static_cast<std::int64_t>(outlined.words.size()), outlined.words.data());
  }

  bool gather(ThreadFrame& frame) override { return real_gather(nullptr, gtid_of(frame)) != 0; }
  void release(ThreadFrame& frame) override { real_release(nullptr, gtid_of(frame)); }

 private:
  static std::int32_t gtid_of(const ThreadFrame& frame) {
    return *static_cast<std::int32_t*>(frame.abi[0]);
  }
};

constinit KmpcRuntime the_runtime;

}  // namespace

LocalRuntime& local_runtime() { return the_runtime; }

}  // namespace amasia::omp::kmpc
