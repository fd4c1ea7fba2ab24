// SPDX-License-Identifier: Apache-2.0
// Eight programs share the device, some with large products of matrices and the others with small
// ones, in all proportions: when have all of them ended (the paper's figure 8)? A program with
// large ones has as many fewer of them as they take more operations.
//
// Expected: the device has the same to do each time, so what differs is what sharing costs. Under
// the daemon few tasks are in flight at a time, and each program's threads sleep meanwhile; eight
// programs that each fill the device's queues have sixteen threads and more on its cores.
// Held against: the same eight programs with OpenCL itself, or CUDA, with 16 products in each one's
// queue, and waiting for each.
//   programs_mix [devices: pthread] [small: 64] [large: 256] [small ones: 512] [rounds: 5]
//                [only with so many large: all] [only way: all]
#include <signal.h>
#include <sys/wait.h>

#include "../tasks/harness.hpp"
#include "peer.hpp"

namespace {

using bench::Devices;

constexpr int kPrograms = 8;

struct Sizes {
  std::size_t small = 64, large = 256;
  int small_tasks = 512;
  int large_tasks() const {
    const double ratio = static_cast<double>(small) / static_cast<double>(large);
    return std::max(1, static_cast<int>(small_tasks * ratio * ratio * ratio));
  }
};

// A program of its own, which runs what it is told to by a byte, and answers with one.
class Program {
 public:
  using Body = std::function<void(int commands, int answers)>;
  explicit Program(const Body& body) {
    int down[2], up[2];
    if (::pipe(down) != 0 || ::pipe(up) != 0) bench::stop("a pipe", "cannot be made");
    child_ = ::fork();
    if (child_ < 0) bench::stop("a program", "cannot be started");
    if (child_ == 0) {
      ::close(down[1]);
      ::close(up[0]);
      body(down[0], up[1]);
      std::exit(0);
    }
    ::close(down[0]);
    ::close(up[1]);
    commands_ = down[1];
    answers_ = up[0];
  }
  ~Program() {
    begin('Q');  // others may have the pipe's end too
    ::close(commands_);
    ::close(answers_);
    ::waitpid(child_, nullptr, 0);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  void begin(char what) {
    if (::write(commands_, &what, 1) != 1) bench::stop("a program", "has ended");
  }
  void end() {
    char done = 0;
    if (::read(answers_, &done, 1) != 1) bench::stop("a program", "has ended");
  }

 private:
  pid_t child_ = -1;
  int commands_ = -1, answers_ = -1;
};

template <typename Run>
void obey(int commands, int answers, const Sizes& sizes, Run run) {
  bench::Products small(sizes.small, sizes.small_tasks), large(sizes.large, sizes.large_tasks());
  for (char what = 0; ::read(commands, &what, 1) == 1 && what != 'Q';) {
    run(what == 'L' ? large : small, what == 'L');
    if (::write(answers, &what, 1) != 1) return;
  }
}

void with_tasks(const Devices& devices, const Sizes& sizes, int commands, int answers) {
  const bench::Amasia amasia(devices, 2);
  obey(commands, answers, sizes,
       [&](bench::Products& all, bool) { bench::run_tasks(devices, all); });
}

void by_driver(const Devices& devices, const Sizes& sizes, int in_queue, int commands,
               int answers) {
  const auto peer = bench::make_peer(devices);
  const auto small = peer->products(sizes.small, in_queue);
  const auto large = peer->products(sizes.large, in_queue);
  obey(commands, answers, sizes, [&](bench::Products& all, bool is_large) {
    (is_large ? large : small)->run(all);
  });
}

// All programs of one way.
class Programs {
 public:
  explicit Programs(const Program::Body& body) {
    for (int i = 0; i < kPrograms; ++i) all_.push_back(std::make_unique<Program>(body));
  }
  void run(int large) {
    for (int i = 0; i < kPrograms; ++i) {
      all_[static_cast<std::size_t>(i)]->begin(i < large ? 'L' : 'S');
    }
    for (auto& program : all_) program->end();
  }

 private:
  std::vector<std::unique_ptr<Program>> all_;
};

}  // namespace

int main(int argc, char** argv) {
  const Devices devices = bench::choose_devices(argc > 1 ? argv[1] : "pthread");
  Sizes sizes;
  if (argc > 2) sizes.small = static_cast<std::size_t>(std::atoi(argv[2]));
  if (argc > 3) sizes.large = static_cast<std::size_t>(std::atoi(argv[3]));
  if (argc > 4) sizes.small_tasks = std::atoi(argv[4]);
  const int rounds = argc > 5 ? std::atoi(argv[5]) : 5;
  ::signal(SIGPIPE, SIG_IGN);
  // Each in processes of its own, made before this one has any thread.
  const int only = argc > 6 ? std::atoi(argv[6]) : -1;
  const std::string only_way = argc > 7 ? argv[7] : "";
  std::vector<std::pair<std::string, std::unique_ptr<Programs>>> all;
  const auto add = [&](const char* name, const Program::Body& body) {
    if (!only_way.empty() && only_way != name) return;
    all.emplace_back(name, std::make_unique<Programs>(body));
  };
  add("amasia", [&](int in, int out) { with_tasks(devices, sizes, in, out); });
  add("waits", [&](int in, int out) { by_driver(devices, sizes, 1, in, out); });
  add("queue16", [&](int in, int out) { by_driver(devices, sizes, 16, in, out); });
  if (all.empty()) bench::stop(only_way.c_str(), "is none of amasia, waits and queue16");
  for (int large = 0; large <= kPrograms; ++large) {
    if (only >= 0 && large != only) continue;
    std::vector<bench::Way> ways;
    for (auto& [name, programs] : all) {
      ways.push_back({name, [&programs = *programs, large] { programs.run(large); }});
    }
    bench::compare(std::to_string(large) + " large of 8", 2, 1, "mix", std::move(ways), rounds);
  }
  return 0;
}
