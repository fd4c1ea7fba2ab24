// SPDX-License-Identifier: Apache-2.0
// The program's kmpc runtime (libomp) as the team uses it.
#include "omp/abi/callees.hpp"
#include "omp/abi/kmpc.hpp"
#include "omp/abi/openmp_runtime.hpp"

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

class KmpcRuntime final : public OpenMpRuntime {
 public:
  Abi abi() const override { return Abi::kKmpc; }
  bool available() const override { return real_fork.find() != nullptr; }

  std::string_view source_of(const void* location) const override {
    const auto* const place = static_cast<const ident_t*>(location);
    return place != nullptr && place->psource != nullptr ? place->psource : "";
  }

  RegionCode code_of(const void* function) const override {
    return {reentry_of(function, callee_of), {}};
  }
  std::optional<IdleThread> idle_thread_of(const Outlined&) const override { return {}; }

  void fork(const void* location, std::uint32_t threads, std::int32_t proc_bind,
            LocalBody& body) override {
    const auto* const place = static_cast<const ident_t*>(location);
    const std::int32_t gtid = real_gtid(place);
    real_push_threads(place, gtid, static_cast<std::int32_t>(threads));
    if (proc_bind != 0) real_push_bind(place, gtid, proc_bind);
    thread_context.in_fork = true;  // the caller's PlaceScope puts it back
    using Fork = void (*)(const ident_t*, std::int32_t, Microtask, ...);
    reinterpret_cast<Fork>(real_fork.get())(place, 1, reinterpret_cast<Microtask>(enter_team),
                                            &body);
  }

  void invoke(ThreadFrame& frame, const Outlined& outlined) override {
    // Where the function finds them wherever it goes on.
    std::int32_t gtid = gtid_of(frame), bound_id = *static_cast<std::int32_t*>(frame.abi[1]);
    frame.numbers = {&gtid, &bound_id};
    amasia_call_outlined(outlined.function, &gtid, &bound_id,
                         static_cast<std::int64_t>(outlined.words.size()), outlined.words.data(),
                         &frame.entry);
  }

  bool gather(ThreadFrame& frame) override { return real_gather(nullptr, gtid_of(frame)) != 0; }
  void release(ThreadFrame& frame) override { real_release(nullptr, gtid_of(frame)); }

 private:
  // What libomp calls on each thread of a node team.
  static void enter_team(std::int32_t* gtid, std::int32_t* bound_id, LocalBody* body) {
    thread_context.frame = nullptr;  // a worker's is that of its last region
    thread_context.in_fork = false;
    body->run(static_cast<std::uint32_t>(*bound_id), team_size(), gtid, bound_id);
  }

  static std::int32_t gtid_of(const ThreadFrame& frame) {
    return *static_cast<std::int32_t*>(frame.abi[0]);
  }
};

constinit KmpcRuntime the_runtime;

}  // namespace

LocalRuntime& local_runtime() { return the_runtime; }

}  // namespace amasia::omp::kmpc
