// SPDX-License-Identifier: Apache-2.0
#include "tools/report_command.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>

#include "tools/device_trace.hpp"
#include "tools/gnuplot.hpp"

namespace amasia::tools {
namespace {

struct ReportArguments {
  std::string trace, png, html;
};

int refuse(const std::string& sentence) {
  base::log_line(base::LogLevel::kError, "{}", sentence);
  return 2;
}
int fail(const std::string& sentence) {
  refuse(sentence);
  return 1;
}

Result<ReportArguments> read_arguments(std::span<const char* const> arguments) {
  ReportArguments out;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    if (argument == "--png" || argument == "--html") {
      if (i + 1 == arguments.size()) {
        return Error{fmt::format("{}: it takes the name of a file", argument), 0};
      }
      (argument == "--png" ? out.png : out.html) = arguments[++i];
    } else if (argument.starts_with("-")) {
      return Error{
          fmt::format("'{}' is not an option of report; it takes --png and --html", argument), 0};
    } else if (!out.trace.empty()) {
      return Error{fmt::format("report takes one trace, not '{}' and '{}'", out.trace, argument),
                   0};
    } else {
      out.trace = argument;
    }
  }
  if (out.trace.empty()) {
    return Error{"report takes a trace, written by 'amasia-deviced --trace FILE'", 0};
  }
  return out;
}

Result<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream out;
  if (file) out << file.rdbuf();
  if (!file) return base::errno_error(errno, fmt::format("cannot read '{}'", path));
  return out.str();
}

Status write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) return base::errno_error(errno, fmt::format("cannot write '{}'", path));
  return base::ok();
}

std::string without_suffix(const std::string& path) {
  return path.ends_with(".json") ? path.substr(0, path.size() - 5) : path;
}

}  // namespace

int report_command(std::span<const char* const> given) {
  auto arguments = read_arguments(given);
  if (!arguments.ok()) return refuse(arguments.error().message);
  ReportArguments& paths = arguments.value();
  if (paths.png.empty()) paths.png = without_suffix(paths.trace) + ".png";
  if (paths.html.empty()) paths.html = without_suffix(paths.trace) + ".html";
  const auto text = read_file(paths.trace);
  if (!text.ok()) return refuse(text.error().message);
  const auto trace = parse_device_trace(text.value());
  if (!trace.ok()) {
    return refuse(fmt::format("'{}' cannot be read: {}", paths.trace, trace.error().message));
  }
  std::fputs(device_report_text(trace.value()).c_str(), stdout);
  std::fflush(stdout);
  const std::string partial = paths.png + ".partial";
  const Status drawn =
      draw(utilisation_script(trace.value(), partial), partial, paths.png, "report");
  const auto png = drawn.ok() ? read_file(paths.png) : Result<std::string>(drawn.error());
  const Status written =
      write_file(paths.html, device_report_html(trace.value(), png.ok() ? png.value() : "",
                                                "Devices: " + without_suffix(paths.trace)));
  if (!png.ok()) return fail(png.error().message);
  if (!written.ok()) return fail(written.error().message);
  std::printf("\ndrawn in '%s', and with the tables in '%s'\n", paths.png.c_str(),
              paths.html.c_str());
  return 0;
}

}  // namespace amasia::tools
