// SPDX-License-Identifier: Apache-2.0
// amasia-deviced. Started by hand, by systemd with a socket (LISTEN_FDS), or by the first program
// that needs it (--inherited --detach).
#include <grp.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "devices/client/locate.hpp"
#include "devices/daemon/settings.hpp"
#include "devices/daemon/trace_file.hpp"
#include "devices/policy/plugin_file.hpp"

namespace amasia::devices {
namespace {

constexpr int kUsage = 2, kFailed = 1;

int complain(int code, const std::string& sentence) {
  std::fprintf(stderr, "amasia-deviced: %s\n", sentence.c_str());
  return code;
}

class Signals final : public Server::StopSource {
 public:
  explicit Signals(os::SignalQueue queue) : queue_(std::move(queue)) {}
  int descriptor() const override { return queue_.descriptor(); }
  void consume() override { queue_.next(); }

 private:
  os::SignalQueue queue_;
};

// systemd's protocol: descriptor 3, if it is meant for this process.
bool given_by_systemd() {
  const char* process = std::getenv("LISTEN_PID");
  const char* count = std::getenv("LISTEN_FDS");
  return process != nullptr && count != nullptr && std::atol(process) == ::getpid() &&
         std::atol(count) == 1;
}

Result<os::Descriptor> listen_here(DaemonSettings& settings) {
  const std::string path = settings.socket.empty() ? default_socket_path() : settings.socket;
  const std::string directory = std::filesystem::path(path).parent_path();
  const bool group = settings.server.group.has_value();
  const auto lock = os::lock_private_directory(directory, group ? 0750 : 0700);
  if (!lock.ok()) return lock.error();
  // Nothing is left of a daemon that does not start. It fails where something else is in it.
  const auto give_up = [&](Error why) {
    ::rmdir(directory.c_str());
    return why;
  };
  const auto other = os::connect_to_path(path);
  if (other.ok() || other.error().code == EAGAIN) {  // it may be stopped, with a full queue
    return Error{fmt::format("a daemon listens at '{}' already", path), EADDRINUSE};
  }
  if (auto done = os::remove_left_socket(path); !done.ok()) return done.error();
  auto listening = os::listen_at_path(path, group ? 0660 : 0600);
  if (!listening.ok()) return give_up(listening.error());
  if (group && (::chown(path.c_str(), static_cast<uid_t>(-1), *settings.server.group) != 0 ||
                ::chown(directory.c_str(), static_cast<uid_t>(-1), *settings.server.group) != 0)) {
    const int reason = errno;
    ::unlink(path.c_str());
    return give_up(base::errno_error(reason, fmt::format("cannot give '{}' to group '{}'", path,
                                                         settings.group)));
  }
  settings.server.own_path = path;
  return listening;
}

Result<os::Descriptor> listening_socket(DaemonSettings& settings) {
  if (settings.inherited) {
    const auto path = os::path_of_socket(STDIN_FILENO);
    if (!path.ok()) {
      return Error{fmt::format("--inherited: the standard input does not listen: {}",
                               path.error().message)};
    }
    settings.server.own_path = path.value();
    return os::Descriptor(STDIN_FILENO);
  }
  if (given_by_systemd()) return os::Descriptor(3);  // its path is systemd's
  return listen_here(settings);
}

// nullptr where none is wanted. Opened once it is certain that no other daemon writes it.
Result<std::unique_ptr<TraceFile>> open_trace(const DaemonSettings& settings) {
  if (settings.trace.empty()) return std::unique_ptr<TraceFile>();
  auto trace = TraceFile::open(settings.trace, os::monotonic_now());
  if (!trace.ok() && !settings.server.own_path.empty()) {
    const std::filesystem::path path = settings.server.own_path;
    ::unlink(path.c_str());
    ::rmdir(path.parent_path().c_str());
  }
  return trace;
}

int run(std::span<const char* const> arguments) {
  auto parsed = parse_daemon_arguments(arguments);
  if (!parsed.ok()) return complain(kUsage, parsed.error().message);
  DaemonSettings settings = std::move(parsed).value();
  if (settings.help) {
    std::fputs(daemon_usage().c_str(), stdout);
    return 0;
  }
  if (!settings.group.empty()) {
    const group* found = ::getgrnam(settings.group.c_str());
    if (found == nullptr) {
      return complain(kUsage, fmt::format("--group: there is no group '{}'", settings.group));
    }
    settings.server.group = found->gr_gid;
  }
  auto policy = policy_of(settings.policy, settings.policy_settings);
  if (!policy.ok()) return complain(kUsage, fmt::format("--policy: {}", policy.error().message));
  // Before there is a socket: what ends the daemon from then on removes it.
  auto queue = os::SignalQueue::open({SIGTERM, SIGINT});
  if (!queue.ok()) return complain(kFailed, queue.error().message);
  auto listening = listening_socket(settings);
  if (!listening.ok()) return complain(kFailed, listening.error().message);
  auto trace = open_trace(settings);
  if (!trace.ok()) return complain(kUsage, fmt::format("--trace: {}", trace.error().message));
  if (settings.detach) {
    const pid_t child = ::fork();
    if (child < 0) return complain(kFailed, "cannot go on in the background");
    if (child > 0) ::_exit(0);
    ::setsid();
  }
  os::set_process_name("amasia-deviced");
  os::raise_file_limit();  // each program takes some
  Signals signals(std::move(queue).value());
  Server server(settings.server, std::move(listening).value(), std::move(policy).value(),
                trace.value().get());
  if (auto done = server.run(signals); !done.ok()) return complain(kFailed, done.error().message);
  return 0;
}

}  // namespace
}  // namespace amasia::devices

int main(int argc, char** argv) {
  return amasia::devices::run(
      std::span<const char* const>(argv + 1, static_cast<std::size_t>(argc - 1)));
}
