// SPDX-License-Identifier: Apache-2.0
#include "tools/job_environment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "launch/launch.hpp"

namespace amasia::tools {
namespace {

constexpr std::array<std::string_view, 5> kOtherLaunchers = {"PMIX_", "PMI_", "OMPI_", "PRTE_",
                                                             "HYDRA_"};

std::string_view name_of(std::string_view entry) { return entry.substr(0, entry.find('=')); }

bool is_dropped(std::string_view name, bool joined) {
  if (name == "LD_PRELOAD" || name == "LD_BIND_NOW" || name.starts_with("AMASIA_")) return true;
  if (name == "OMP_HET_PTG") return true;  // among the options by now
  return joined && std::any_of(kOtherLaunchers.begin(), kOtherLaunchers.end(),
                               [&](std::string_view prefix) { return name.starts_with(prefix); });
}

bool says_how_to_wait(const char* const* environment) {
  constexpr std::array<std::string_view, 3> kNames = {"OMP_WAIT_POLICY", "KMP_BLOCKTIME",
                                                      "GOMP_SPINCOUNT"};
  for (const char* const* entry = environment; *entry != nullptr; ++entry) {
    if (std::find(kNames.begin(), kNames.end(), name_of(*entry)) != kNames.end()) return true;
  }
  return false;
}

// The user's list without our library, which is there if this job was started below another one.
std::string preload_list(std::string_view users, const std::string& library) {
  std::string out = library;
  while (!users.empty()) {
    const auto end = users.find_first_of(": ");
    const std::string_view one = users.substr(0, end);
    if (!one.empty() && one != library) {
      out += ':';
      out += one;
    }
    users.remove_prefix(end == std::string_view::npos ? users.size() : end + 1);
  }
  return out;
}

// OMP_NUM_THREADS with the outermost number no larger than `most`; what is no number stays, for the
// runtime to say so.
std::string at_most(std::string_view threads, int most) {
  const auto digits = threads.find_first_not_of("0123456789");
  int number = 0;
  const std::string_view first = threads.substr(0, digits);
  const auto [end, error] = std::from_chars(first.data(), first.data() + first.size(), number);
  if (first.empty() || error != std::errc() || number <= most) return std::string(threads);
  return fmt::format("{}{}", most, threads.substr(first.size()));
}

}  // namespace

std::vector<std::string> plain_environment(const char* const* environment,
                                           const base::Options& options) {
  std::vector<std::string> out;
  bool has_threads = false;
  for (const char* const* entry = environment; *entry != nullptr; ++entry) {
    const std::string_view text(*entry), name = name_of(text);
    if (options.runtime_schedule.has_value() && name == "OMP_SCHEDULE") continue;
    if (options.threads != 0 && name == "OMP_NUM_THREADS") {
      has_threads = true;
      const std::string_view value = text.substr(name.size() + 1);
      out.push_back(fmt::format("{}={}", name, at_most(value, options.threads)));
      continue;
    }
    out.emplace_back(text);
  }
  if (options.runtime_schedule.has_value()) {
    out.push_back(fmt::format("OMP_SCHEDULE={}", base::kScheduleForRuntime));
  }
  if (options.threads != 0 && !has_threads) {
    out.push_back(fmt::format("OMP_NUM_THREADS={}", options.threads));
  }
  return out;
}

std::vector<std::string> job_environment(const char* const* environment,
                                         const base::Options& options, const JobEnvironment& job) {
  std::vector<std::string> out;
  const bool own_schedule = options.runtime_schedule.has_value();
  std::string_view preload;
  for (const char* const* entry = environment; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (name_of(text) == "LD_PRELOAD") preload = text.substr(std::min(text.size(), size_t{11}));
    if (own_schedule && name_of(text) == "OMP_SCHEDULE") {
      const std::string_view value = text.substr(text.find('=') + 1);
      out.push_back(fmt::format("{}={}", base::kOwnScheduleVariable, value));
      out.push_back(fmt::format("OMP_SCHEDULE={}", base::kScheduleForRuntime));
      continue;
    }
    if (!is_dropped(name_of(text), job.joined)) out.emplace_back(text);
  }
  if (!options.emulate.empty() && !says_how_to_wait(environment)) {
    out.emplace_back("OMP_WAIT_POLICY=passive");
  }
  out.push_back("LD_PRELOAD=" + preload_list(preload, job.library));
  out.push_back("LD_BIND_NOW=1");
  for (const auto& [name, value] : base::to_environment(options)) out.push_back(name + "=" + value);
  out.push_back(fmt::format("{}={}", launch::kLauncherVariable, job.launcher));
  return out;
}

}  // namespace amasia::tools
