// SPDX-License-Identifier: Apache-2.0
// What both ABIs ask of the program's runtime by the omp_* calls, which libomp and libgomp share.
#pragma once

#include "omp/local_runtime.hpp"

namespace amasia::omp {

class OpenMpRuntime : public LocalRuntime {
 public:
  Icvs icvs() final;
  std::int32_t max_active_levels() final;
  std::uint32_t nested_threads() final;
  bool dynamic() final;
  void set_icvs(const Icvs& icvs) final;
  void set_affinity_format(const std::string& format) final;
  void show_affinity() final;
  void set_threads(std::uint32_t threads) final;
  bool cancellation() final;
  std::uint32_t thread_limit() final;
  std::uint32_t active_level() final;
  void set_dynamic(bool on) final;
  ReachedCode reached_code_of(const void* function, const RegionCode& code) const final;

  // The calling thread's in its node team.
  static std::uint32_t thread_number();

 protected:
  static std::uint32_t team_size();
};

}  // namespace amasia::omp
