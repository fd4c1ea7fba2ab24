// SPDX-License-Identifier: Apache-2.0
// Products of matrices, each of which brings its inputs and takes its result back, by tasks.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "amasia_tasks.hpp"

namespace bench {

struct Products {
  Products(std::size_t matrix_size, int tasks) : n(matrix_size), a(n * n), b(n * n) {
    for (std::size_t i = 0; i < n * n; ++i) {
      a[i] = 0.5F + static_cast<float>(i % 97) / 97;
      b[i] = 0.5F + static_cast<float>(i % 89) / 89;
    }
    c.assign(static_cast<std::size_t>(tasks), std::vector<float>(n * n));
  }
  // A few elements of each result, computed here.
  void check() {
    for (auto& result : c) {
      for (const std::size_t at : {std::size_t{0}, n * n / 2 + 1, n * n - 1}) {
        double sum = 0;
        for (std::size_t k = 0; k < n; ++k) sum += double(a[at / n * n + k]) * b[k * n + at % n];
        if (!(std::abs(result[at] - sum) <= 1e-4 * sum)) stop("a product", "is wrong");
      }
      std::fill(result.begin(), result.end(), 0.0F);
    }
  }
  std::size_t n;
  std::vector<float> a, b;
  std::vector<std::vector<float>> c;
};

inline void run_tasks(const Devices& devices, Products& all) {
  const std::size_t bytes = all.n * all.n * sizeof(float);
  int n = static_cast<int>(all.n);
  std::uint64_t sizes[3] = {all.n, all.n, 1}, group[3] = {devices.group(), devices.group(), 1};
  std::vector<mcl_handle*> handles;
  for (auto& result : all.c) {
    mcl_handle* const handle = Amasia::task("gemm", 4);
    const auto set = [&](unsigned index, void* at, std::size_t size, std::uint64_t flags) {
      must(mcl_task_set_arg(handle, index, at, size, flags), "mcl_task_set_arg");
    };
    set(0, all.a.data(), bytes, MCL_ARG_BUFFER | MCL_ARG_INPUT);
    set(1, all.b.data(), bytes, MCL_ARG_BUFFER | MCL_ARG_INPUT);
    set(2, &n, sizeof n, MCL_ARG_SCALAR | MCL_ARG_INPUT);
    set(3, result.data(), bytes, MCL_ARG_BUFFER | MCL_ARG_OUTPUT);
    must(mcl_exec(handle, sizes, group[0] == 0 ? nullptr : group, 0), "mcl_exec");
    handles.push_back(handle);
  }
  must(mcl_wait_all(), "mcl_wait_all");
  for (mcl_handle* const handle : handles) Amasia::end(handle);
  all.check();
}

}  // namespace bench
