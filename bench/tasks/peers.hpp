// SPDX-License-Identifier: Apache-2.0
// The libraries that tasks are held against, each with workers of its own that are kept for all
// rounds.
#pragma once

#include <omp.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include "amasia/tasks.hpp"

namespace bench {

struct Peers {
  explicit Peers(unsigned count)
      : workers(count),
        amasia({.workers = count}),
        limit(tbb::global_control::max_allowed_parallelism, count),
        arena(static_cast<int>(count)) {}
  unsigned workers;
  amasia::tasks::runtime amasia;
  tbb::global_control limit;
  tbb::task_arena arena;

  template <typename Body>
  void in_tbb(Body body) {
    arena.execute(body);
  }
  template <typename Body>
  void in_openmp(Body body) {
#pragma omp parallel num_threads(workers)
#pragma omp single
    body();
  }
};

}  // namespace bench
