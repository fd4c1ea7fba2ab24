// SPDX-License-Identifier: Apache-2.0
#include "os/network_namespace.hpp"

#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

namespace amasia::os {
namespace {

Result<Descriptor> open_own_namespace() {
  const int opened = ::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
  if (opened >= 0) return Descriptor(opened);
  const int reason = errno;
  return base::errno_error(reason, "cannot open this thread's network namespace");
}

// Runs `ip` with a list of words in the calling thread's namespace, in silence.
Status run_ip(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  std::string command = "ip";
  arguments.push_back(command.data());
  std::string line = "ip";
  for (const auto& word : words) {
    arguments.push_back(const_cast<char*>(word.c_str()));
    line += " " + word;
  }
  arguments.push_back(nullptr);
  // Neither the job's preload nor its variables concern this helper.
  std::string path = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";
  char* environment[] = {path.data(), nullptr};
  pid_t child = -1;
  int failed = ::posix_spawnp(&child, "ip", nullptr, nullptr, arguments.data(), environment);
  if (failed != 0)
    failed = ::posix_spawn(&child, "/usr/sbin/ip", nullptr, nullptr, arguments.data(), environment);
  if (failed != 0) {
    return base::errno_error(failed, "cannot run 'ip' (it is in the package iproute2)");
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return base::errno_error(errno, "cannot wait for 'ip'");
  }
  if (status != 0) return Error{fmt::format("'{}' failed", line), 0};
  return base::ok();
}

// Runs in a thread of its own, whose namespace it changes; fills `spaces`.
Status build(unsigned count, std::vector<Descriptor>* spaces) {
  // The namespace with the bridge is held by the ends of the pairs in the others: it goes last.
  if (::unshare(CLONE_NEWNET) != 0) {
    const int reason = errno;
    return base::errno_error(reason, "cannot make a network namespace (it takes root)");
  }
  auto hub = open_own_namespace();
  if (!hub.ok()) return hub.error();
  Status done = run_ip({"link", "add", "hub", "type", "bridge"});
  if (done.ok()) done = run_ip({"link", "set", "hub", "up"});
  for (unsigned index = 0; done.ok() && index < count; ++index) {
    if (::unshare(CLONE_NEWNET) != 0) {
      const int reason = errno;
      return base::errno_error(reason, "cannot make a network namespace");
    }
    auto space = open_own_namespace();
    if (!space.ok()) return space.error();
    const std::string port = fmt::format("port{}", index);
    const std::string hub_path = fmt::format("/proc/{}/fd/{}", ::getpid(), hub.value().get());
    const std::string path = fmt::format("/proc/{}/fd/{}", ::getpid(), space.value().get());
    const char* const device = NetworkNamespaces::kDevice;
    const auto address = NetworkNamespaces::address(index) + "/24";
    done = run_ip({"link", "set", "lo", "up"});
    if (done.ok()) {
      done =
          run_ip({"link", "add", device, "type", "veth", "peer", "name", port, "netns", hub_path});
    }
    if (done.ok()) done = run_ip({"address", "add", address, "dev", device});
    if (done.ok()) done = run_ip({"link", "set", device, "up"});
    if (done.ok() && ::setns(hub.value().get(), CLONE_NEWNET) != 0) {
      const int reason = errno;
      return base::errno_error(reason, "cannot enter a network namespace");
    }
    if (done.ok()) done = run_ip({"link", "set", port, "master", "hub", "up"});
    spaces->push_back(std::move(space).value());
  }
  if (!done.ok()) return done;
  // Last, so that indexes of the others count from 0; kept, as nothing else keeps the bridge.
  spaces->push_back(std::move(hub).value());
  return base::ok();
}

}  // namespace

Result<NetworkNamespaces> NetworkNamespaces::make(unsigned count) {
  AMASIA_CHECK(count >= 1 && count <= base::kMaxNodes, "1 to 64 namespaces");
  NetworkNamespaces made;
  Status status = base::ok();
  // A thread, because namespaces belong to threads and the caller's shall stay.
  std::thread([&] { status = build(count, &made.spaces_); }).join();
  if (!status.ok()) return status.error();
  made.hub_ = std::move(made.spaces_.back());
  made.spaces_.pop_back();
  return made;
}

Status NetworkNamespaces::enter(unsigned index) const {
  AMASIA_CHECK(index < spaces_.size(), "no such namespace");
  if (::setns(spaces_[index].get(), CLONE_NEWNET) == 0) return base::ok();
  const int reason = errno;
  return base::errno_error(reason, fmt::format("cannot enter network namespace {}", index));
}

std::string NetworkNamespaces::address(unsigned index) {
  return fmt::format("10.96.0.{}", index + 1);
}

}  // namespace amasia::os
