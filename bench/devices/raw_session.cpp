// SPDX-License-Identifier: Apache-2.0
// The requests of minos_session.c, answered by OpenCL itself on its first device.
//   raw_session KERNELS    writes the kernels to that file first
// `noop` and `gemm` keep 64 and 16 in the queue; `waited`, and `gemmwaited`, wait for each.
#include <iostream>

#include "noop_raw.hpp"
#include "products.hpp"

int main(int argc, char** argv) {
  if (argc != 2) bench::stop("raw_session", "takes the name of a file for the kernels");
  std::FILE* const file = std::fopen(argv[1], "w");
  if (file == nullptr) bench::stop(argv[1], "cannot be written");
  std::fputs(bench::kSource, file);
  std::fclose(file);
  const bench::Raw raw;
  const bench::RawNoop noop(raw);
  std::cout << "ready" << std::endl;
  std::string kind;
  int tasks = 0;
  while (std::cin >> kind >> tasks) {
    std::size_t size = 0;
    if (kind.starts_with("gemm")) std::cin >> size;
    const double seconds = [&] {
      if (size == 0) {
        return bench::seconds_of([&] { noop.run(tasks, kind == "waited" ? 1 : 64); });
      }
      const bench::Slots slots = bench::slots_of(raw, size, kind == "gemm" ? 16 : 1);
      return bench::seconds_of([&] {
        bench::Products all(size, tasks);
        bench::run_raw(raw, all, slots);
      });
    }();
    std::cout << static_cast<long long>(seconds * 1e9) << std::endl;
  }
  return 0;
}
