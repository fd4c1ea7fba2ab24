// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>

#include "fabric/test_cluster.hpp"
#include "os/os.hpp"

namespace amasia::fabric {
namespace {

// A node that hangs is killed after this, so that a test fails instead of hanging.
constexpr unsigned kNodeLifetimeSeconds = 60;

struct Child {
  int pid = -1;
  int status = -1;        // once it is reaped
  os::Descriptor report;  // the failure, as text, then end of file
};

Child start(NodeId self, int socket, const std::vector<int>& others, const NodeMain& main,
            const ProcessCluster& cluster) {
  int ends[2];
  AMASIA_CHECK(::pipe(ends) == 0, "a test needs a pipe");
  std::fflush(nullptr);
  const int pid = ::fork();
  AMASIA_CHECK(pid >= 0, "a test needs a process");
  if (pid != 0) {
    ::close(ends[1]);
    return {pid, -1, os::Descriptor(ends[0])};
  }
  ::alarm(kNodeLifetimeSeconds);
  ::close(ends[0]);
  for (const int other : others) {
    if (other != socket) ::close(other);
  }
  std::string failure = cluster.prepare ? cluster.prepare(self) : "";
  if (failure.empty()) {
    auto bootstrap = connect_bootstrap(socket);
    failure = bootstrap.ok() ? main(*bootstrap.value()) : bootstrap.error().message;
  }
  [[maybe_unused]] const auto written = ::write(ends[1], failure.data(), failure.size());
  ::_exit(failure.empty() ? 0 : 1);
}

// At once, like the launcher: to its peers a process that nobody has reaped looks alive.
void reap(std::vector<Child>& children, int options) {
  for (Child& child : children) {
    if (child.status == -1) ::waitpid(child.pid, &child.status, options);
  }
}

void serve_until_all_left(BootstrapService& service, std::vector<Child>& children) {
  for (;;) {
    std::vector<pollfd> polled;
    for (const int descriptor : service.descriptors()) polled.push_back({descriptor, POLLIN, 0});
    if (polled.empty()) return;
    ::poll(polled.data(), polled.size(), 50);
    reap(children, WNOHANG);
    for (const pollfd& entry : polled) {
      if (entry.revents == 0) continue;
      const auto served = service.serve(entry.fd);
      if (!served.ok()) std::fprintf(stderr, "%s\n", served.error().message.c_str());
    }
  }
}

std::string finish(const Child& child) {
  std::string text;
  char chunk[512];
  for (;;) {
    const auto got = ::read(child.report.get(), chunk, sizeof chunk);
    if (got <= 0) break;
    text.append(chunk, static_cast<std::size_t>(got));
  }
  const int status = child.status;
  if (text.empty() && WIFSIGNALED(status)) {
    return fmt::format("ended by signal {}", WTERMSIG(status));
  }
  if (text.empty() && status != 0) return fmt::format("ended with status {}", status);
  return text;
}

}  // namespace

std::vector<std::string> run_in_processes(std::uint32_t nodes, const NodeMain& main,
                                          const ProcessCluster& cluster) {
  std::vector<int> server_ends;
  std::vector<int> client_ends;
  for (std::uint32_t node = 0; node < nodes; ++node) {
    auto pair = os::make_socket_pair();
    AMASIA_CHECK(pair.ok(), "a test needs sockets");
    server_ends.push_back(pair.value().first.release());
    client_ends.push_back(pair.value().second.release());
  }
  std::vector<int> all = server_ends;
  all.insert(all.end(), client_ends.begin(), client_ends.end());
  std::vector<Child> children;
  std::vector<int> pids;
  for (std::uint16_t node = 0; node < nodes; ++node) {
    children.push_back(start(NodeId(node), client_ends[node], all, main, cluster));
    pids.push_back(children.back().pid);
  }
  for (const int end : client_ends) ::close(end);
  const auto service = serve_bootstrap(make_job_secret(), server_ends);
  if (cluster.disturb) cluster.disturb(pids);
  serve_until_all_left(*service, children);
  reap(children, 0);
  std::vector<std::string> failures;
  for (std::uint16_t node = 0; node < nodes; ++node) {
    const std::string failure = finish(children[node]);
    const auto& expendable = cluster.expendable;
    const bool counts =
        std::find(expendable.begin(), expendable.end(), NodeId(node)) == expendable.end();
    if (counts && !failure.empty()) failures.push_back(fmt::format("node {}: {}", node, failure));
  }
  return failures;
}

std::vector<std::string> run_on_ucx(std::uint32_t nodes, const UcxSettings& settings,
                                    const MakeScenario& make, const ProcessCluster& cluster,
                                    const base::LinkSpeed& speed) {
  return run_in_processes(
      nodes,
      [&](Bootstrap& bootstrap) -> std::string {
        auto fabric = connect_ucx(bootstrap, settings);
        if (!fabric.ok()) return fabric.error().message;
        if (speed.is_slowed()) {
          fabric = make_slow_link(std::move(fabric).value(), speed);
          if (!fabric.ok()) return fabric.error().message;
        }
        const auto scenario = make(bootstrap.self(), bootstrap.node_count());
        play(*fabric.value(), *scenario);
        return scenario->failure();
      },
      cluster);
}

}  // namespace amasia::fabric
