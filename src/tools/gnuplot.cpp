// SPDX-License-Identifier: Apache-2.0
#include "tools/gnuplot.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "os/os.hpp"
#include "tools/program.hpp"

namespace amasia::tools {
namespace {

bool ended_well(pid_t process) {
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

Status draw(const std::string& script, const std::string& partial, const std::string& path,
            const std::string& option) {
  auto gnuplot = find_program("gnuplot", std::getenv("PATH"));
  if (!gnuplot.ok()) {
    return Error{option + ": gnuplot is not installed (apt install gnuplot-nox), so '" + path +
                     "' is not drawn; the table has the same figures",
                 0};
  }
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return base::errno_error(errno, "cannot make a pipe");
  os::Descriptor reading(ends[0]), writing(ends[1]);
  os::SpawnRequest request;
  request.executable = gnuplot.value().path;
  request.arguments = {"gnuplot"};
  for (char** entry = environ; *entry != nullptr; ++entry) request.environment.push_back(*entry);
  request.standard_input = reading.get();
  const auto started = os::spawn(request);
  if (!started.ok()) return started.error();
  reading.close();
  ::signal(SIGPIPE, SIG_IGN);  // one that ends early is told of below
  std::string_view rest(script);
  while (!rest.empty()) {
    const ssize_t written = ::write(writing.get(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  writing.close();
  const bool drawn = ended_well(started.value()) && rest.empty();
  if (!drawn || ::rename(partial.c_str(), path.c_str()) != 0) {
    ::unlink(partial.c_str());
    return Error{option + ": gnuplot could not draw '" + path + "'; what it said stands above", 0};
  }
  return base::ok();
}

}  // namespace amasia::tools
