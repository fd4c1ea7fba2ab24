// SPDX-License-Identifier: Apache-2.0
// Stands in for libamasia.so in the launcher's tests: joins, meets the other nodes by the
// bootstrap, and then does what TEST_NODE says to the node that it names:
//   "1:late"    joins, but never becomes ready    "1:refuse"  says that it cannot
//   "1:exit3"   leaves while the program runs     "1:crash"   SIGSEGV in a region
//   "1:hang"    runs, but never leaves            "all:refuse" each node says that it cannot
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "fabric/bootstrap.hpp"
#include "launch/launch.hpp"

namespace {

using amasia::base::kSecond;

// Never destroyed: they are used by an exit handler that may run after destructors.
amasia::launch::Membership* membership;
amasia::fabric::Bootstrap* bootstrap;

std::string task_of(unsigned node) {
  const char* tasks = std::getenv("TEST_NODE");
  const std::string prefix = std::to_string(node) + ":";
  const std::string task = tasks == nullptr ? "" : tasks;
  if (task.starts_with("all:")) return task.substr(4);
  return task.starts_with(prefix) ? task.substr(prefix.size()) : "";
}

[[noreturn]] void give_up(const std::string& sentence) {
  membership->failed(sentence);
  ::_exit(2);
}

void meet() {
  const auto met = bootstrap->fence(60 * kSecond);
  if (!met.ok()) give_up(met.error().message);
}

void leave_as_origin() {
  membership->finishing();
  meet();
}

[[noreturn]] void serve(const std::string& task) {
  membership->slot().enter_region("program.c:12");
  if (task == "exit3") ::_exit(3);
  if (task == "crash") {
    membership->slot().waits_for.set("barrier of node 0");
    ::raise(SIGSEGV);
  }
  while (task == "hang") ::pause();
  meet();
  membership->finishing();
  ::_exit(0);
}

// As libomp does, which removes it only if its destructors run.
void leave_segment() {
  if (std::getenv("TEST_SEGMENTS") == nullptr) return;
  const std::string name =
      "/__KMP_REGISTERED_LIB_" + std::to_string(::getpid()) + "_" + std::to_string(::getuid());
  ::close(::shm_open(name.c_str(), O_CREAT | O_RDWR, 0600));
  std::fprintf(stderr, "segment %s\n", name.c_str() + 1);
}

void report_where() {
  if (std::getenv("TEST_REPORT") == nullptr) return;
  char folder[1000] = "";
  static_cast<void>(::getcwd(folder, sizeof folder) != nullptr);
  std::fprintf(stderr, "node %u of %u in %s pid %d\n", unsigned{membership->self().value},
               membership->node_count(), folder, ::getpid());
}

// A process does not know its number before it joins: all but the first one to come stay away.
bool is_absent() {
  const char* first = std::getenv("TEST_ONLY_FIRST_JOINS");
  return first != nullptr && ::open(first, O_CREAT | O_EXCL | O_CLOEXEC, 0600) < 0;
}

__attribute__((constructor)) void begin() {
  if (!amasia::launch::below_launcher()) return;
  if (amasia::launch::loaded_openmp_runtime() == amasia::launch::OpenMpRuntime::kNone) return;
  if (is_absent()) {
    while (true) ::pause();
  }
  auto joined = amasia::launch::join();
  if (!joined.ok()) {
    std::fprintf(stderr, "cannot join: %s\n", joined.error().message.c_str());
    return;
  }
  if (!joined.value()) return;
  membership = new amasia::launch::Membership(std::move(*joined.value()));
  report_where();
  leave_segment();
  auto connected = amasia::fabric::connect_bootstrap(membership->take_bootstrap());
  if (!connected.ok()) give_up(connected.error().message);
  bootstrap = std::move(connected).value().release();
  const std::string task = task_of(membership->self().value);
  while (task == "late") ::pause();
  if (task == "refuse") give_up("its files differ from the origin's");
  meet();
  membership->ready();
  if (!membership->is_origin()) serve(task);
  std::atexit(leave_as_origin);
}

}  // namespace
