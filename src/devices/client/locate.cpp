// SPDX-License-Identifier: Apache-2.0
#include "devices/client/locate.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

namespace amasia::devices {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool is_program(const std::filesystem::path& path) {
  return ::access(path.c_str(), X_OK) == 0 && !std::filesystem::is_directory(path);
}

// The daemon with the listening socket as its standard input. It leaves this process's family at
// once (--detach), so that nobody has to wait for it later.
Status start(const std::string& executable, int listening) {
  os::Descriptor nowhere(::open("/dev/null", O_RDWR | O_CLOEXEC));
  os::SpawnRequest request;
  request.executable = executable;
  request.arguments = {executable, "--inherited", "--detach"};
  for (char** entry = environ; *entry != nullptr; ++entry) request.environment.emplace_back(*entry);
  request.working_directory = std::string("/");
  request.standard_input = listening;
  request.standard_output = nowhere.get();
  request.standard_error = nowhere.get();
  request.own_process_group = true;
  request.killed_with_parent = false;
  const auto started = os::spawn(request);
  if (!started.ok()) {
    return Error{fmt::format("cannot start the daemon '{}': {}", executable,
                             started.error().message),
                 started.error().code};
  }
  int status = 0;
  pid_t ended;
  do {
    ended = ::waitpid(started.value(), &status, 0);
  } while (ended < 0 && errno == EINTR);
  // ECHILD: the program itself has waited for all its children.
  if (ended == started.value() && status != 0) {
    return Error{fmt::format("the daemon '{}' could not start (status {:#x})", executable, status),
                 ECONNREFUSED};
  }
  return base::ok();
}

bool nobody_listens(const Error& error) {
  return error.code == ENOENT || error.code == ECONNREFUSED;
}

Result<os::Descriptor> connect_or_start(const ConnectSettings& settings,
                                        const std::string& path) {
  auto connected = os::connect_to_path(path);
  if (connected.ok() || !nobody_listens(connected.error())) return connected;
  if (!settings.start_daemon) {
    return Error{fmt::format("no daemon listens at '{}', and this program may not start one", path),
                 ECONNREFUSED};
  }
  const std::string directory = std::filesystem::path(path).parent_path();
  const auto lock = os::lock_private_directory(directory, 0700);
  if (!lock.ok()) return lock.error();
  connected = os::connect_to_path(path);
  if (connected.ok() || !nobody_listens(connected.error())) return connected;
  if (auto done = os::remove_left_socket(path); !done.ok()) return done.error();
  auto listening = os::listen_at_path(path, 0600);
  if (!listening.ok()) return listening.error();
  connected = os::connect_to_path(path);
  if (!connected.ok()) return connected;
  const std::string executable =
      settings.executable.empty() ? daemon_executable() : settings.executable;
  if (auto done = start(executable, listening.value().get()); !done.ok()) {
    ::unlink(path.c_str());
    ::rmdir(directory.c_str());  // fails where something else is in it
    return done.error();
  }
  return connected;
}

}  // namespace

std::string default_socket_path() {
  if (std::string path = variable("AMASIA_DEVICES_SOCKET"); !path.empty()) return path;
  const std::string runtime = variable("XDG_RUNTIME_DIR");
  if (!runtime.empty() && ::access(runtime.c_str(), W_OK) == 0) {
    return fmt::format("{}/amasia/devices.sock", runtime);
  }
  return fmt::format("/tmp/amasia-{}/devices.sock", ::geteuid());
}

std::string daemon_executable() {
  if (std::string path = variable("AMASIA_DEVICED"); !path.empty()) return path;
  Dl_info where{};
  if (::dladdr(reinterpret_cast<void*>(&daemon_executable), &where) != 0 &&
      where.dli_fname != nullptr) {
    std::error_code ignored;
    const auto folder = std::filesystem::weakly_canonical(where.dli_fname, ignored).parent_path();
    // <prefix>/lib, <prefix>/lib/<architecture>, or the folder of a program with the code in it.
    for (const char* from : {"../bin", "../../bin", "."}) {
      const auto path = (folder / from / "amasia-deviced").lexically_normal();
      if (is_program(path)) return path;
    }
  }
  const std::string path = variable("PATH");
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    const auto program =
        std::filesystem::path(path.substr(begin, end - begin)) / "amasia-deviced";
    if (is_program(program)) return program;
    begin = end + 1;
  }
  return "amasia-deviced";
}

Result<os::Descriptor> connect_to_daemon(const ConnectSettings& settings) {
  const std::string path = settings.path.empty() ? default_socket_path() : settings.path;
  if (path.size() > os::kMaxSocketPath) return os::connect_to_path(path);  // says so
  constexpr int kAttempts = 100;
  for (int attempt = 1;; ++attempt) {
    auto connected = connect_or_start(settings, path);
    // EAGAIN: its queue is full; EADDRINUSE: someone who does not lock has made it.
    if (connected.ok() || attempt == kAttempts ||
        (connected.error().code != EAGAIN && connected.error().code != EADDRINUSE)) {
      return connected;
    }
    os::wait_readable(nullptr, 0, base::kMillisecond);
  }
}

}  // namespace amasia::devices
