// SPDX-License-Identifier: Apache-2.0
#include "tools/calibrate_command.hpp"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string_view>

#include "fabric/fabric.hpp"
#include "machine/machine.hpp"
#include "os/os.hpp"
#include "tools/calibration_report.hpp"
#include "tools/gnuplot.hpp"
#include "tools/program.hpp"
#include "tools/supervisor.hpp"

namespace amasia::tools {
namespace {

using base::LogLevel;
using base::Options;

constexpr const char* kProgram = "amasia-calibration-program";

int refuse(const std::string& sentence) {
  base::log_line(LogLevel::kError, "{}", sentence);
  return kExitUsage;
}

// What the user has set for programs is not for this one, whose team spans all cores of all nodes.
bool is_for_programs(std::string_view entry) {
  constexpr std::array<std::string_view, 7> kNames = {
      "AMASIA_SHARE=",     "OMP_NUM_THREADS=",  "OMP_THREAD_LIMIT=",
      "OMP_DYNAMIC=",      "OMP_CANCELLATION=",      "OMP_MAX_ACTIVE_LEVELS=",
      "OMP_SCHEDULE="};
  return std::any_of(kNames.begin(), kNames.end(),
                     [&](std::string_view name) { return entry.starts_with(name); });
}

std::vector<std::string> environment_of_program() {
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!is_for_programs(*entry)) out.emplace_back(*entry);
  }
  // All nodes are to take part, whether that pays or not.
  out.emplace_back("AMASIA_SHARE=always");
  return out;
}

// What --csr is to be, "" where it need not be said. Each core of each node is measured with one
// thread, whereas gcc's teams have several on cores that are told to be fast.
std::string like_speeds(const Options& options) {
  auto told = base::parse_shares(options.emulate);
  if (options.emulate.empty()) {
    told = base::parse_numbers(options.core_speeds, 0, std::numeric_limits<double>::max());
  }
  if (!told) return "";
  std::string out = "1";
  for (std::size_t node = 1; node < told->size(); ++node) out += ",1";
  return out;
}

Result<std::string> folder_of_this_command() {
  char self[PATH_MAX];
  const ssize_t length = ::readlink("/proc/self/exe", self, sizeof self);
  if (length <= 0) return base::errno_error(errno, "cannot tell where this command lies");
  const std::string path(self, static_cast<std::size_t>(length));
  return path.substr(0, path.rfind('/'));
}

struct Ended {
  std::string output;
  int code = 0;
};

std::string read_all(int descriptor) {
  std::string out;
  char part[16384];
  for (;;) {
    const ssize_t length = ::read(descriptor, part, sizeof part);
    if (length < 0 && errno == EINTR) continue;
    if (length <= 0) return out;
    out.append(part, static_cast<std::size_t>(length));
  }
}

int wait_for(pid_t process) {
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Runs the program as the user would, in this process's place in a PMIx job too.
Result<Ended> run_program(const CalibrateArguments& arguments, const Options& options) {
  auto folder = folder_of_this_command();
  if (!folder.ok()) return folder.error();
  const std::string program = folder.value() + "/" + kProgram;
  if (::access(program.c_str(), X_OK) != 0) {
    return base::errno_error(errno, "cannot run '" + program + "', which belongs to this command");
  }
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return base::errno_error(errno, "cannot make a pipe");
  os::Descriptor reading(ends[0]), writing(ends[1]);
  os::SpawnRequest request;
  request.executable = "/proc/self/exe";
  request.arguments = {"amasia", "run"};
  for (const char* const argument : arguments.of_run) request.arguments.emplace_back(argument);
  if (const std::string speeds = like_speeds(options); !speeds.empty()) {
    request.arguments.push_back("--csr=" + speeds);
  }
  // What is about to be measured need not be measured briefly first.
  for (const char* const argument : {"--calibration", "off", "--"}) {
    request.arguments.emplace_back(argument);
  }
  request.arguments.push_back(program);
  request.arguments.emplace_back(arguments.quick ? "quick" : "full");
  request.environment = environment_of_program();
  request.standard_output = writing.get();
  const auto started = os::spawn(request);
  if (!started.ok()) return started.error();
  writing.close();
  Ended out;
  out.output = read_all(reading.get());
  out.code = wait_for(started.value());
  return out;
}

Status check_plot(const std::string& path) {
  if (path.empty()) return base::ok();
  const std::string partial = path + ".partial";
  const os::Descriptor file(::open(partial.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
  if (!file.valid()) return base::errno_error(errno, "--plot: cannot write '" + path + "'");
  ::unlink(partial.c_str());
  return base::ok();
}

// The options as `run` will take them, so that what is wrong is told before anything runs.
Result<Options> read_options(const CalibrateArguments& arguments) {
  Options options;
  const auto used = base::parse_arguments(arguments.of_run, options);
  if (!used.ok()) return used.error();
  if (used.value() != arguments.of_run.size()) {
    return Error{fmt::format("'{}' is too much: calibrate takes options, and runs a program of its "
                             "own",
                             arguments.of_run[used.value()]),
                 0};
  }
  if (const Status parsed = base::parse_environment(environ, options); !parsed.ok()) {
    return parsed.error();
  }
  if (options.calibration == "off") {
    return Error{"--calibration: 'off' is not allowed here; it takes the name of a file", 0};
  }
  base::set_log_level(options.log_level);
  return options;
}

int report(const CalibrateArguments& arguments, const Options& options, Measurements measured,
           const std::string& path) {
  if (!measured.identity) {  // one node: the program ran by itself
    machine::Identity alone;
    alone.nodes.push_back(machine::identify_node(measured.nodes[0].threads));
    alone.settings = machine::settings_that_matter(base::to_environment(options), "");
    measured.identity = std::move(alone);
  }
  const machine::Identity& identity = *measured.identity;
  std::fputs(table_of(measured, identity).c_str(), stdout);
  if (measured.nodes.size() == 1) {
    std::puts("\none node has no link: only the speed of its cores was measured (-n, --nodes)");
  }
  const auto method = arguments.quick ? machine::Method::kQuick : machine::Method::kFull;
  const std::int64_t now = os::realtime_now() / base::kSecond;
  const Status stored = machine::store_calibration(path, calibration_of(measured, method, now));
  if (!stored.ok()) return refuse(stored.error().message);
  std::printf("\nkept in '%s'\n", path.c_str());
  if (arguments.plot.empty()) return 0;
  const std::string partial = arguments.plot + ".partial";
  const Status drawn =
      draw(plot_script(measured, identity, partial), partial, arguments.plot, "--plot");
  if (drawn.ok()) {
    std::printf("drawn in '%s'\n", arguments.plot.c_str());
    return 0;
  }
  std::fflush(stdout);
  base::log_line(LogLevel::kError, "{}", drawn.error().message);
  return 1;
}

}  // namespace

Result<CalibrateArguments> take_calibrate_arguments(std::span<const char* const> arguments) {
  CalibrateArguments out;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view text(arguments[i]);
    if (text == "--quick") {
      out.quick = true;
    } else if (text == "--plot" || text.starts_with("--plot=")) {
      if (text != "--plot") {
        out.plot = text.substr(7);
      } else if (i + 1 < arguments.size()) {
        out.plot = arguments[++i];
      }
      if (out.plot.empty()) {
        return Error{"--plot: the value is missing; it takes the name of a PNG file", 0};
      }
    } else {
      out.of_run.push_back(arguments[i]);
    }
  }
  return out;
}

int calibrate_command(std::span<const char* const> arguments) {
  auto taken = take_calibrate_arguments(arguments);
  if (!taken.ok()) return refuse(taken.error().message);
  const auto options = read_options(taken.value());
  if (!options.ok()) return refuse(options.error().message);
  const std::string path = machine::calibration_path(options.value().calibration);
  if (const Status plot = check_plot(taken.value().plot); !plot.ok()) {
    return refuse(plot.error().message);
  }
  if (const Status place = machine::check_can_store(path); !place.ok()) {
    return refuse(place.error().message);
  }
  auto ended = run_program(taken.value(), options.value());
  if (!ended.ok()) return refuse(ended.error().message);
  if (ended.value().code != 0) return ended.value().code;  // told by the one that failed
  // Another rank of a PMIx job than the one that runs the program.
  if (ended.value().output.empty() && fabric::started_by_pmix()) return 0;
  auto measured = parse_measurements(ended.value().output);
  if (!measured.ok()) {
    base::log_line(LogLevel::kError, "{}", measured.error().message);
    return 1;
  }
  return report(taken.value(), options.value(), std::move(measured).value(), path);
}

}  // namespace amasia::tools
