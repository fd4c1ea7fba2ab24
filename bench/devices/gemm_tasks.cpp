// SPDX-License-Identifier: Apache-2.0
// How many products of matrices can be run in a second, when each brings its inputs and takes its
// result back (the paper's figures 4, 6 and 7)?
//
// Expected: at 64 the copies and the launch are a good part of the time, and tasks overlap them; at
// 256 and more the kernel is all, and both are alike. A second device adds its own rate, where the
// machine has the cores for it.
// Held against: OpenCL, or CUDA, on the first of the same devices, waiting for each task, and with
// 16 tasks in the queue, each with buffers of its own. All three check some of what they got, in
// the time.
//   gemm_tasks [devices: pthread] [size: 64] [tasks: 64] [workers: 2] [rounds: 11] [only: a way]
#include "../tasks/harness.hpp"
#include "peer.hpp"

int main(int argc, char** argv) {
  const bench::Devices devices = bench::choose_devices(argc > 1 ? argv[1] : "pthread");
  const std::size_t size = argc > 2 ? static_cast<std::size_t>(std::atoi(argv[2])) : 64;
  const int tasks = argc > 3 ? std::atoi(argv[3]) : 64;
  const unsigned workers = argc > 4 ? static_cast<unsigned>(std::atoi(argv[4])) : 2;
  const int rounds = argc > 5 ? std::atoi(argv[5]) : 11;
  const std::string only = argc > 6 ? argv[6] : "";
  const bench::Amasia amasia(devices, workers);
  const auto peer = bench::make_peer(devices);
  bench::Products all(size, tasks);
  const auto one = peer->products(size, 1), many = peer->products(size, 16);
  std::vector<bench::Way> ways = {{"amasia", [&] { bench::run_tasks(devices, all); }},
                                  {"waits", [&] { one->run(all); }},
                                  {"queue16", [&] { many->run(all); }}};
  if (!only.empty()) std::erase_if(ways, [&](const bench::Way& way) { return way.name != only; });
  if (ways.empty()) bench::stop(argv[6], "is not a way (allowed: amasia, waits, queue16)");
  bench::compare("gemm " + std::to_string(size) + " " + devices.name, workers, tasks, "task", ways,
                 rounds);
  return 0;
}
