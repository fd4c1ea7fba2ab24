// SPDX-License-Identifier: Apache-2.0
#include "omp/abi/runtimes.hpp"

#include "omp/abi/gomp.hpp"
#include "omp/abi/kmpc.hpp"

namespace amasia::omp {

void set_runtimes(Node& node) {
  node.set_runtime(Abi::kKmpc, kmpc::local_runtime());
  node.set_runtime(Abi::kGomp, gomp::local_runtime());
}

bool is_openmp_program() {
  return find_real("__kmpc_fork_call") != nullptr || find_real("GOMP_parallel") != nullptr;
}

}  // namespace amasia::omp
