// SPDX-License-Identifier: Apache-2.0
// The `amasia` command: hands each subcommand its arguments.
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <span>
#include <string_view>

#include "base/base.hpp"
#include "fabric/fabric.hpp"
#include "tools/tools.hpp"

namespace {

using Arguments = std::span<const char* const>;

constexpr const char* kUsage =
    "usage: amasia run [options] program [arguments]   run an OpenMP program across nodes\n"
    "       amasia calibrate [options of run] [--quick] [--plot FILE.png]\n"
    "                                                  measure nodes and links, for later runs\n"
    "       amasia explain STATS.json                  say why regions ran where they did\n"
    "       amasia doctor [program]                    say what would keep it from running here\n"
    "       amasia machine [FILE] [--draw PICTURE.svg]\n"
    "                                                  write or draw places and paths for tasks\n"
    "       amasia devices [policies]                  list accelerators, or scheduling policies\n"
    "       amasia top [--once]                        show what programs do on accelerators\n"
    "       amasia report TRACE.json                   draw a trace of amasia-deviced\n"
    "       amasia options [--markdown]                list the options and their values in force\n"
    "       amasia version\n"
    "       amasia help\n"
    "\n"
    "example: amasia run -n 2 --stats ./program\n";

constexpr const char* kCommands =
    "run, explain, calibrate, doctor, machine, devices, top, report, options, version or help";

int refuse(const std::string& sentence) {
  amasia::base::log_line(amasia::base::LogLevel::kError, "{}", sentence);
  return 2;
}

int options_command(Arguments arguments) {
  amasia::base::Options options;
  if (arguments.size() == 1 && std::string_view(arguments[0]) == "--markdown") {
    std::fputs(amasia::base::options_markdown().c_str(), stdout);
    return 0;
  }
  const auto used = amasia::base::parse_arguments(arguments, options);
  if (!used.ok()) return refuse(used.error().message);
  if (used.value() != arguments.size()) {
    return refuse(fmt::format("'{}' is not an option", arguments[used.value()]));
  }
  const auto parsed = amasia::base::parse_environment(environ, options);
  if (!parsed.ok()) return refuse(parsed.error().message);
  std::fputs(amasia::base::options_text(options).c_str(), stdout);
  return 0;
}

int version_command() {
  std::printf("amasia %s (UCX %s)\n", AMASIA_VERSION, amasia::fabric::ucx_version().c_str());
  return 0;
}

int dispatch(Arguments arguments) {
  if (arguments.empty())
    return refuse(fmt::format("which command? {}", kCommands));
  const std::string_view command(arguments[0]);
  const Arguments rest = arguments.subspan(1);
  if (command == "run") return amasia::tools::run_command(rest);
  if (command == "calibrate") return amasia::tools::calibrate_command(rest);
  if (command == "explain") return amasia::tools::explain_command(rest);
  if (command == "doctor") return amasia::tools::doctor_command(rest);
  if (command == "machine") return amasia::tools::machine_command(rest);
  if (command == "devices") return amasia::tools::devices_command(rest);
  if (command == "top") return amasia::tools::top_command(rest);
  if (command == "report") return amasia::tools::report_command(rest);
  if (command == "options") return options_command(rest);
  if (command == "version" || command == "--version") return version_command();
  if (command == "help" || command == "--help" || command == "-h") {
    std::fputs(kUsage, stdout);
    return 0;
  }
  return refuse(fmt::format("'{}' is not a command; it takes {}", command, kCommands));
}

}  // namespace

int main(int argument_count, char** argument_values) {
  try {
    const Arguments all(argument_values, static_cast<std::size_t>(argument_count));
    return dispatch(all.subspan(argument_count > 0 ? 1 : 0));
  } catch (const std::exception& failure) {  // out of memory, mostly
    return refuse(failure.what());
  }
}
