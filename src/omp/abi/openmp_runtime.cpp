// SPDX-License-Identifier: Apache-2.0
#include "omp/abi/openmp_runtime.hpp"

#include "omp/abi/callees.hpp"
#include "omp/abi/omp_api.hpp"
#include "omp/real.hpp"

namespace amasia::omp {
namespace {

using Query = Real<std::int32_t()>;
using Setting = Real<void(std::int32_t)>;

constinit Query real_thread{"omp_get_thread_num"};
constinit Query real_team_size{"omp_get_num_threads"};
constinit Query real_max_threads{"omp_get_max_threads"};
constinit Setting real_set_threads{"omp_set_num_threads"};
constinit Real<void(std::int32_t*, std::int32_t*)> real_get_schedule{"omp_get_schedule"};
constinit Real<void(std::int32_t, std::int32_t)> real_set_schedule{"omp_set_schedule"};
constinit Query real_get_levels{"omp_get_max_active_levels"};
constinit Setting real_set_levels{"omp_set_max_active_levels"};
constinit Query real_get_dynamic{"omp_get_dynamic"};
constinit Setting real_set_dynamic{"omp_set_dynamic"};
constinit Query real_cancellation{"omp_get_cancellation"};
constinit Query real_thread_limit{"omp_get_thread_limit"};
constinit Query real_active_level{"omp_get_active_level"};
constinit Query real_get_device{"omp_get_default_device"};
constinit Setting real_set_device{"omp_set_default_device"};

}  // namespace

Icvs OpenMpRuntime::icvs() {
  Icvs icvs;
  real_get_schedule(&icvs.schedule_kind, &icvs.schedule_chunk);
  icvs.max_active_levels = real_get_levels();
  icvs.nested_threads = real_max_threads();
  icvs.dynamic = real_get_dynamic();
  icvs.default_device = real_get_device();
  return icvs;
}

std::int32_t OpenMpRuntime::max_active_levels() { return real_get_levels(); }

std::uint32_t OpenMpRuntime::nested_threads() {
  return static_cast<std::uint32_t>(real_max_threads());
}

bool OpenMpRuntime::dynamic() { return real_get_dynamic() != 0; }

void OpenMpRuntime::set_icvs(const Icvs& icvs) {
  real_set_schedule(icvs.schedule_kind, icvs.schedule_chunk);
  real_set_levels(icvs.max_active_levels);
  real_set_threads(icvs.nested_threads);
  real_set_dynamic(icvs.dynamic);
  real_set_device(icvs.default_device);
}

void OpenMpRuntime::set_affinity_format(const std::string& format) {
  set_real_affinity_format(format.c_str());
}

void OpenMpRuntime::show_affinity() { omp::show_affinity(); }

void OpenMpRuntime::set_threads(std::uint32_t threads) {
  real_set_threads(static_cast<std::int32_t>(threads));
}

bool OpenMpRuntime::cancellation() { return real_cancellation() != 0; }

std::uint32_t OpenMpRuntime::thread_limit() {
  return static_cast<std::uint32_t>(real_thread_limit());
}

std::uint32_t OpenMpRuntime::active_level() {
  return static_cast<std::uint32_t>(real_active_level());
}

void OpenMpRuntime::set_dynamic(bool on) { real_set_dynamic(on ? 1 : 0); }

ReachedCode OpenMpRuntime::reached_code_of(const void* function, const RegionCode& code) const {
  return omp::reached_code_of(function, code.numbered.extent, callee_of);
}

std::uint32_t OpenMpRuntime::thread_number() { return static_cast<std::uint32_t>(real_thread()); }

std::uint32_t OpenMpRuntime::team_size() { return static_cast<std::uint32_t>(real_team_size()); }

}  // namespace amasia::omp
