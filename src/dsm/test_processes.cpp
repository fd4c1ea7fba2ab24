// SPDX-License-Identifier: Apache-2.0
#include "dsm/test_processes.hpp"

#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <new>
#include <vector>

#include "os/os.hpp"

namespace amasia::dsm {
namespace {

std::string run_node(int socket, SharedBoard& board, const ProcessSettings& settings,
                     const std::function<void(const ProcessNode&)>& body) {
  auto bootstrap = fabric::connect_bootstrap(socket);
  if (!bootstrap.ok()) return bootstrap.error().message;
  fabric::Bootstrap& peers = *bootstrap.value();
  if (settings.pin_to_cores) {
    const int core = peers.self().value % static_cast<int>(os::allowed_core_count());
    const Status pinned = os::pin_to_core(core);
    if (!pinned.ok()) return pinned.error().message;
  }
  AddressSpace space;
  // The whole span needs address randomisation off, which a test does not ask of its caller.
  const EarlyOutcome mapped = space.map({.self = peers.self(),
                                         .node_count = peers.node_count(),
                                         .span = peers.node_count() * 4 * base::kGiB});
  if (!mapped.ok()) return fmt::format("cannot {}: {}", mapped.failed_step, mapped.errno_value);
  if (settings.globals.size() > 0) {
    const EarlyOutcome added = space.add_globals(settings.globals);
    if (!added.ok()) return fmt::format("cannot {}: {}", added.failed_step, added.errno_value);
  }
  fabric::UcxSettings ucx;
  ucx.transports = settings.transports;
  auto fabric = fabric::connect_ucx(peers, ucx);
  if (!fabric.ok()) return fabric.error().message;
  auto engine = Engine::make(space, *fabric.value(), settings.engine);
  if (!engine.ok()) return engine.error().message;
  if (settings.before_start) settings.before_start(*fabric.value());
  const Status started = engine.value()->start();
  if (!started.ok()) return started.error().message;
  const ProcessNode node{space, *fabric.value(), *engine.value(), board};
  node.meet();
  body(node);
  node.meet();
  engine.value()->shutdown();
  return "";
}

void serve(fabric::BootstrapService& service) {
  for (;;) {
    std::vector<pollfd> polled;
    for (const int descriptor : service.descriptors()) polled.push_back({descriptor, POLLIN, 0});
    if (polled.empty()) return;
    ::poll(polled.data(), polled.size(), 1000);
    for (const pollfd& entry : polled) {
      if (entry.revents != 0) static_cast<void>(service.serve(entry.fd));
    }
  }
}

std::string wait_for(const std::vector<int>& children) {
  std::string failures;
  for (std::size_t node = 0; node < children.size(); ++node) {
    int status = 0;
    ::waitpid(children[node], &status, 0);
    if (status != 0) failures += fmt::format("node {} ended with status {:#x}; ", node, status);
  }
  return failures;
}

}  // namespace

void ProcessNode::meet() const {
  const std::uint64_t ticket = board.arrived.fetch_add(1);
  const std::uint64_t all = (ticket / count() + 1) * count();
  while (board.arrived.load() < all) ::sched_yield();
}

std::string run_processes(std::uint32_t count, const ProcessSettings& settings,
                          const std::function<void(const ProcessNode&)>& body,
                          const std::function<void(SharedBoard&)>& after) {
  void* const memory = ::mmap(nullptr, sizeof(SharedBoard), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  AMASIA_CHECK(memory != MAP_FAILED, "a test needs shared memory");
  auto* const board = new (memory) SharedBoard;
  std::vector<int> servers;
  std::vector<int> clients;
  for (std::uint32_t k = 0; k < count; ++k) {
    auto pair = os::make_socket_pair();
    AMASIA_CHECK(pair.ok(), "a test needs sockets");
    servers.push_back(pair.value().first.release());
    clients.push_back(pair.value().second.release());
  }
  std::vector<int> children;
  for (std::uint32_t k = 0; k < count; ++k) {
    const int child = ::fork();
    AMASIA_CHECK(child >= 0, "a test needs processes");
    if (child == 0) {
      ::alarm(settings.lifetime_seconds);
      for (const int end : servers) ::close(end);
      for (const int end : clients) {
        if (end != clients[k]) ::close(end);
      }
      const std::string failure = run_node(clients[k], *board, settings, body);
      if (!failure.empty()) base::log_line(base::LogLevel::kError, "node {}: {}", k, failure);
      ::_exit(failure.empty() ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const int end : clients) ::close(end);
  serve(*fabric::serve_bootstrap(fabric::make_job_secret(), servers));
  const std::string failures = wait_for(children);
  if (after && failures.empty()) after(*board);
  ::munmap(memory, sizeof(SharedBoard));
  return failures;
}

}  // namespace amasia::dsm
