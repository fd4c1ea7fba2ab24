// SPDX-License-Identifier: Apache-2.0
#include "tools/machine_command.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <string_view>

#include "machine/machine.hpp"
#include "tools/hwloc_topology.hpp"

namespace amasia::tools {
namespace {

constexpr std::string_view kDraw = "--draw";

Status write_file(const std::string& path, const std::string& text) {
  std::FILE* const file = std::fopen(path.c_str(), "we");
  if (file == nullptr) return base::errno_error(errno, "cannot write '" + path + "'");
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const int why = errno;
  if (std::fclose(file) == 0 && written) return base::ok();
  return base::errno_error(written ? errno : why, "cannot write '" + path + "'");
}

Result<machine::Platform> chosen_platform(const std::string& file) {
  if (!file.empty()) return machine::load_platform(file);
  const auto topology = local_topology();
  if (!topology.ok()) return topology.error();
  return machine::platform_of(topology.value());
}

}  // namespace

Result<MachineArguments> take_machine_arguments(std::span<const char* const> arguments) {
  MachineArguments out;
  for (std::size_t index = 0; index < arguments.size(); ++index) {
    const std::string_view word(arguments[index]);
    if (word.starts_with("--draw=")) {
      out.drawing = word.substr(kDraw.size() + 1);
    } else if (word == kDraw && index + 1 < arguments.size()) {
      out.drawing = arguments[++index];
    } else if (word.starts_with("-") || !out.file.empty()) {
      return Error{fmt::format("'{}' is not allowed: machine takes a platform file, if any, and "
                               "--draw PICTURE.svg",
                               word),
                   0};
    } else {
      out.file = word;
    }
    if (out.drawing.empty() && word.starts_with(kDraw)) {
      return Error{"--draw takes the name of a file for the picture", 0};
    }
  }
  return out;
}

int machine_command(std::span<const char* const> arguments) {
  const auto fail = [](const std::string& sentence, int code) {
    base::log_line(base::LogLevel::kError, "{}", sentence);
    return code;
  };
  const auto taken = take_machine_arguments(arguments);
  if (!taken.ok()) return fail(taken.error().message, 2);
  const auto platform = chosen_platform(taken.value().file);
  if (!platform.ok()) return fail(platform.error().message, taken.value().file.empty() ? 1 : 2);
  const std::string& drawing = taken.value().drawing;
  if (drawing.empty()) {
    std::fputs(machine::to_json(platform.value()).c_str(), stdout);
    return 0;
  }
  const Status drawn = write_file(drawing, machine::drawing_of(platform.value()));
  return drawn.ok() ? 0 : fail(drawn.error().message, 1);
}

}  // namespace amasia::tools
