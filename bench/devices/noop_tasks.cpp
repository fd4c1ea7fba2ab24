// SPDX-License-Identifier: Apache-2.0
// How many tasks that do nothing can be run in a second, and how long does one take that is waited
// for? One argument, a resident buffer; nothing is copied.
//
// Expected: a launch costs PoCL 0.5 µs on its basic device, which runs it in the caller, and 4 µs
// in a row or 25 to 60 µs one by one on its pthread device. A task of ours is a record to the
// daemon and one back, 5 to 10 µs one by one and less in a row: more tasks a second than of a
// straightforward program on the pthread device, and fewer than of any on the basic one.
// Held against: OpenCL, or CUDA, on the same device, waiting for each launch, and with 64 in the
// queue.
//   noop_tasks [devices: pthread] [tasks: 2000] [workers: 2] [rounds: 15]
#include "../tasks/harness.hpp"
#include "peer.hpp"

namespace {

void run_tasks(int* x, int tasks, bool wait_for_each) {
  std::uint64_t one[3] = {1, 1, 1};
  std::vector<mcl_handle*> handles;
  for (int i = 0; i < tasks; ++i) {
    mcl_handle* const handle = bench::Amasia::task("noop", 1);
    bench::must(mcl_task_set_arg(handle, 0, x, sizeof *x,
                                 MCL_ARG_BUFFER | MCL_ARG_INPUT | MCL_ARG_RESIDENT),
                "mcl_task_set_arg");
    bench::must(mcl_exec(handle, one, nullptr, 0), "mcl_exec");
    if (wait_for_each) {
      bench::must(mcl_wait(handle), "mcl_wait");
      bench::Amasia::end(handle);
    } else {
      handles.push_back(handle);
    }
  }
  bench::must(mcl_wait_all(), "mcl_wait_all");
  for (mcl_handle* const handle : handles) bench::Amasia::end(handle);
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Devices devices = bench::choose_devices(argc > 1 ? argv[1] : "pthread");
  const int tasks = argc > 2 ? std::atoi(argv[2]) : 2000;
  const unsigned workers = argc > 3 ? static_cast<unsigned>(std::atoi(argv[3])) : 2;
  const int rounds = argc > 4 ? std::atoi(argv[4]) : 15;
  const bench::Amasia amasia(devices, workers);
  const auto peer = bench::make_peer(devices);
  alignas(4096) static int x = 7;

  bench::compare(std::string("no-op ") + devices.name, workers, tasks, "task",
                 {{"amasia", [&] { run_tasks(&x, tasks, false); }},
                  {"waits", [&] { peer->run_noops(tasks, 1); }},
                  {"queue64", [&] { peer->run_noops(tasks, 64); }}},
                 rounds);
  bench::compare(std::string("no-op, waited ") + devices.name, workers, tasks, "task",
                 {{"amasia", [&] { run_tasks(&x, tasks, true); }},
                  {"waits", [&] { peer->run_noops(tasks, 1); }}},
                 rounds);
  return 0;
}
