// SPDX-License-Identifier: Apache-2.0
// The one table of options. It parses the command line of `amasia run`, parses the environment (in
// the launcher and in every node, so both see the same values), prints itself (`amasia options`)
// and generates docs/OPTIONS.md. A new option is a member of Options and a row in options.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "base/openmp_environment.hpp"
#include "base/result.hpp"
#include "base/units.hpp"

namespace amasia::base {

enum class Transport { kAuto, kTcp, kShared };
enum class BootstrapKind { kAuto, kFork, kPmix };
enum class SharePolicy { kAuto, kAlways, kNever, kThreshold };
enum class LoopSchedule {
  kAuto,
  kStatic,
  kDynamic,
  kGuided,
  kFac2,
  kWf,
  kAwf,
  kHetProbe,
  kHetProbeI
};

// The values. Members that the command line and the environment leave alone keep these defaults.
struct Options {
  int nodes = 1;
  int threads = 0;  // 0: as many as the node has cores
  bool bind = true;
  bool netns = false;
  std::string stats;  // "": none; "-": a table on standard error; else a file for JSON
  BootstrapKind bootstrap = BootstrapKind::kAuto;
  Transport transport = Transport::kAuto;
  int start_timeout_s = 30;
  int watchdog_s = 0;  // 0: off
  int spin_us = 50;
  int read_ahead_pages = 128;
  std::int64_t memory = 0;  // bytes; 0: what the host gives
  SharePolicy share = SharePolicy::kAuto;
  std::string core_speeds;  // "": measured; else as parse_numbers takes it, one for each node
  std::string emulate;      // "": nodes are as fast as their cores; else as parse_shares takes it
  std::string link;         // "": links are as they are; else as parse_link takes it
  LoopSchedule schedule = LoopSchedule::kAuto;
  int probe_percent = 10;
  int reprobe_percent = 10;
  LogLevel log_level = LogLevel::kWarning;
  std::string library;  // "": the one that was installed with the tool
  std::string calibration;  // "": the user's own file; "off": neither read nor measured
  std::string profile;      // "": none; what --stats=FILE wrote in an earlier run

  // Of libamasia-tasks; "": none.
  std::string tasks_platform, tasks_trace, tasks_statistics;

  // OMP_SCHEDULE, where it is one of ours: not in the table, as the variable is not ours alone.
  std::optional<RuntimeSchedule> runtime_schedule;

  // True for the option if the command line or the environment set it.
  bool is_set(std::string_view flag) const;

  std::uint64_t set_rows = 0;  // a bit for each row of the table
};

// Parses leading options from `arguments` into `options` and stops at the first argument that is
// not one, or after "--". Returns how many arguments it used. The error is a sentence for the user
// that names the flag, the value seen and the values allowed; the caller exits with 2.
Result<std::size_t> parse_arguments(std::span<const char* const> arguments, Options& options);

// Sets what AMASIA_… variables say, and OpenMP's that are ours (openmp_environment.hpp); an empty
// variable counts as not set. What the command line has
// set before stays. Same errors, naming the variable. Does not look at variables that no row has.
Status parse_environment(const char* const* environment, Options& options);

// Variables beginning with AMASIA_ that no row has and that are not our own: likely misspelt.
std::vector<std::string> unknown_variables(const char* const* environment);

// All options that differ from their defaults, as variable and value: parse_environment of these
// gives the same Options. How the launcher passes them to the nodes.
std::vector<std::pair<std::string, std::string>> to_environment(const Options& options);

// The table for people, with the values in force and where they differ from the default.
std::string options_text(const Options& options);
// docs/OPTIONS.md, as a whole.
std::string options_markdown();

}  // namespace amasia::base
