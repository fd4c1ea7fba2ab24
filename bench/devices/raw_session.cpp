// SPDX-License-Identifier: Apache-2.0
// The requests of minos_session.c, answered by the driver itself on its first device.
//   raw_session KERNELS [devices: those of POCL_DEVICES]    writes the kernels to that file first
// `noop` and `gemm` keep 64 and 16 in the queue; `waited`, and `gemmwaited`, wait for each.
#include <iostream>

#include "../tasks/harness.hpp"
#include "peer.hpp"

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    bench::stop("raw_session", "takes the name of a file for the kernels, and devices");
  }
  const bench::Devices devices(argc == 3 ? argv[2] : "");
  std::FILE* const file = std::fopen(argv[1], "w");
  if (file == nullptr) bench::stop(argv[1], "cannot be written");
  std::fputs(devices.source(), file);
  std::fclose(file);
  const auto peer = bench::make_peer(devices);
  std::cout << "ready" << std::endl;
  std::string kind;
  int tasks = 0;
  while (std::cin >> kind >> tasks) {
    std::size_t size = 0;
    if (kind.starts_with("gemm")) std::cin >> size;
    const double seconds = [&] {
      if (size == 0) {
        return bench::seconds_of([&] { peer->run_noops(tasks, kind == "waited" ? 1 : 64); });
      }
      const auto pipeline = peer->products(size, kind == "gemm" ? 16 : 1);
      return bench::seconds_of([&] {
        bench::Products all(size, tasks);
        pipeline->run(all);
      });
    }();
    std::cout << static_cast<long long>(seconds * 1e9) << std::endl;
  }
  return 0;
}
