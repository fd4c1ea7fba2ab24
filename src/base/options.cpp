// SPDX-License-Identifier: Apache-2.0
#include "base/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <optional>

#include "base/emulation.hpp"
#include "base/ids.hpp"

namespace amasia::base {
namespace {

enum class Kind {
  kNumber,  // minimum … maximum
  kBytes,   // 0, or minimum … maximum; K, M, G or T may follow the number
  kSwitch,  // --x, --no-x; in the environment 0 or 1
  kChoice,  // one of `choices`; the value is its index
  kFile,    // --x (standard error) or --x=FILE
  kPath,
  kNumbers,  // one for each node, separated by commas, from minimum / 1000 to maximum
  kShares,  // as parse_shares takes it
  kLink,    // as parse_link takes it
};

struct Value {
  std::int64_t number = 0;
  std::string text;
};

struct Row {
  const char* flag;
  char letter;  // 0: none
  const char* variable;
  Kind kind;
  std::int64_t minimum, maximum;
  const char* unit;     // of a number
  const char* choices;  // separated by '|'
  const char* help;
  void (*set)(Options&, const Value&);
  Value (*get)(const Options&);
};

// A row's two functions for a member that is a number, a switch or an enumeration whose values are
// the indices of the choices.
template <auto Member>
void set_number(Options& options, const Value& value) {
  auto& member = options.*Member;
  member = static_cast<std::remove_reference_t<decltype(member)>>(value.number);
}
template <auto Member>
Value get_number(const Options& options) {
  return {.number = static_cast<std::int64_t>(options.*Member), .text = {}};
}
template <auto Member>
void set_text(Options& options, const Value& value) {
  options.*Member = value.text;
}
template <auto Member>
Value get_text(const Options& options) {
  return {.number = 0, .text = options.*Member};
}

#define AMASIA_NUMBER(member) set_number<&Options::member>, get_number<&Options::member>
#define AMASIA_TEXT(member) set_text<&Options::member>, get_text<&Options::member>

constexpr int kDay = 86400;
constexpr std::int64_t kLeastMemory = 16 * std::int64_t{kMiB};
constexpr std::int64_t kMostMemory = 1024 * 1024 * std::int64_t{kGiB};

constexpr std::string_view kByteUnits = "KMGT";

std::optional<std::int64_t> parse_bytes(std::string_view text) {
  std::uint64_t number = 0;
  const auto end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc()) return std::nullopt;
  std::string_view unit(stop, static_cast<std::size_t>(end - stop));
  unsigned shift = 0;
  if (!unit.empty()) {
    const auto power = kByteUnits.find(unit.front());
    if (power == std::string_view::npos) return std::nullopt;
    shift = 10 * static_cast<unsigned>(power + 1);
    unit.remove_prefix(1);
    if (!unit.empty() && unit != "iB" && unit != "B") return std::nullopt;
  }
  if (number > static_cast<std::uint64_t>(kMostMemory) >> shift) return std::nullopt;
  return static_cast<std::int64_t>(number << shift);
}

std::string bytes_text(std::int64_t bytes) {
  std::size_t power = 0;
  while (power < kByteUnits.size() && bytes != 0 && bytes % 1024 == 0) {
    bytes /= 1024;
    ++power;
  }
  std::string text = std::to_string(bytes);
  if (power > 0) text += kByteUnits[power - 1];
  return text;
}

constexpr std::array kRows = {
    Row{"--nodes", 'n', "AMASIA_NODES", Kind::kNumber, 1, kMaxNodes, "nodes", nullptr,
        "How many nodes run the program. With 1 it is simply executed, at its own speed. Under "
        "PMIx (mpirun, srun) the size of that job, unless it is given here.",
        AMASIA_NUMBER(nodes)},
    Row{"--threads", 't', "AMASIA_THREADS", Kind::kNumber, 0, 1024, "threads", nullptr,
        "Threads that each node contributes to a team; 0: one for each of its cores. "
        "OMP_NUM_THREADS, where it is set, bounds the whole team.",
        AMASIA_NUMBER(threads)},
    Row{"--bind", 0, "AMASIA_BIND", Kind::kSwitch, 0, 1, nullptr, nullptr,
        "Share the host's cores among the nodes on it: each gets its own, or nodes take turns on "
        "one where there are fewer cores than nodes.",
        AMASIA_NUMBER(bind)},
    Row{"--netns", 0, "AMASIA_NETNS", Kind::kSwitch, 0, 1, nullptr, nullptr,
        "Put each node into a network namespace of its own, joined by virtual Ethernet: nodes then "
        "reach each other over TCP only, as separate hosts do. Needs root.",
        AMASIA_NUMBER(netns)},
    Row{"--stats", 0, "AMASIA_STATS", Kind::kFile, 0, 0, nullptr, nullptr,
        "Report at exit, per node and per region, where time went: a table on standard error, or "
        "JSON to a file. Loads the runtime on one node too.",
        AMASIA_TEXT(stats)},
    Row{"--bootstrap", 0, "AMASIA_BOOTSTRAP", Kind::kChoice, 0, 0, nullptr, "auto|fork|pmix",
        "How nodes are started: by this command on this host, or as members of the PMIx job that "
        "this command was started in; auto: pmix if there is one.",
        AMASIA_NUMBER(bootstrap)},
    Row{"--transport", 0, "AMASIA_TRANSPORT", Kind::kChoice, 0, 0, nullptr, "auto|tcp|shm",
        "What messages between nodes travel over; auto leaves it to UCX. UCX_TLS, where it is set, "
        "comes before it.",
        AMASIA_NUMBER(transport)},
    Row{"--timeout", 0, "AMASIA_START_TIMEOUT", Kind::kNumber, 1, kDay, "seconds", nullptr,
        "How long nodes may take to start and find each other before the job is given up.",
        AMASIA_NUMBER(start_timeout_s)},
    Row{"--watchdog", 0, "AMASIA_WATCHDOG", Kind::kNumber, 0, kDay, "seconds", nullptr,
        "Print what every node does and waits for, once none has shown progress for so long; "
        "0: off.",
        AMASIA_NUMBER(watchdog_s)},
    Row{"--spin", 0, "AMASIA_SPIN", Kind::kNumber, 0, 10000, "microseconds", nullptr,
        "How long a node's service thread polls for messages before it sleeps; not at all where "
        "nodes on one host share cores.",
        AMASIA_NUMBER(spin_us)},
    Row{"--read-ahead", 0, "AMASIA_READ_AHEAD", Kind::kNumber, 0, 4096, "pages", nullptr,
        "The most pages of 4 KiB fetched ahead of a sequential reader; 0: none.",
        AMASIA_NUMBER(read_ahead_pages)},
    Row{"--memory", 0, "AMASIA_MEMORY", Kind::kBytes, kLeastMemory, kMostMemory, nullptr, nullptr,
        "The most memory that the program's data may take on each node. What a node cannot keep "
        "goes back to the node it belongs to, and large blocks that node 0 has no room for "
        "belong to the others. 0: an even part of the host's memory, or of what its control "
        "group may use.",
        AMASIA_NUMBER(memory)},
    Row{"--share", 0, "AMASIA_SHARE", Kind::kChoice, 0, 0, nullptr, "auto|always|never|threshold",
        "Which regions are carried across nodes: auto: those that this makes faster, as far as "
        "their executions so far tell; always: all that can be; never: none, and teams are for the "
        "cores of node 0; threshold: those whose page faults are further apart than the break-even "
        "that was calibrated.",
        AMASIA_NUMBER(share)},
    Row{"--csr", 0, "AMASIA_CSR", Kind::kNumbers, 1, 1000, nullptr, nullptr,
        "Core speed ratio: how fast a core of each node is, relative to the others', such as "
        "1,0.33. Loops and threads are then shared by these numbers, and not as measured.",
        AMASIA_TEXT(core_speeds)},
    Row{"--emulate", 0, "AMASIA_EMULATE", Kind::kShares, 0, 0, nullptr, nullptr,
        "Start as many nodes on this host as there are numbers, each with one core, slowed to that "
        "part of it by CPU quota: unlike nodes to try things with. One number alone is the single "
        "node that they are held against. Needs root or a delegated control group, unless all are "
        "1 and have a core of their own.",
        AMASIA_TEXT(emulate)},
    Row{"--link", 0, "AMASIA_LINK", Kind::kLink, 0, 0, nullptr, nullptr,
        "Slow the links between nodes: no message arrives earlier than so many microseconds after "
        "it was sent, nor do those from one node to another come faster than so many MB (10^6 "
        "bytes) a second.",
        AMASIA_TEXT(link)},
    Row{"--schedule", 0, "AMASIA_SCHEDULE", Kind::kChoice, 0, 0, nullptr,
        "auto|static|dynamic|guided|fac2|wf|awf|hetprobe|hetprobe-i",
        "How loops that are handed out at run time (dynamic, guided, auto, runtime; not ordered "
        "ones) are shared, whatever the program asks for. auto: as it asks for, with shares by "
        "core speed once that is known; loops that it leaves to the runtime by hetprobe-i.",
        AMASIA_NUMBER(schedule)},
    Row{"--probe", 0, "AMASIA_PROBE", Kind::kNumber, 1, 50, "percent", nullptr,
        "How many of a loop's iterations hetprobe and hetprobe-i measure the nodes by, before they "
        "decide who shares the rest.",
        AMASIA_NUMBER(probe_percent)},
    Row{"--reprobe", 0, "AMASIA_REPROBE", Kind::kNumber, 1, 100, "percent", nullptr,
        "After how many of a loop's iterations hetprobe-i decides again. OMP_HET_PTG, where it is "
        "set, says the same.",
        AMASIA_NUMBER(reprobe_percent)},
    Row{"--log-level", 0, "AMASIA_LOG_LEVEL", Kind::kChoice, 0, 0, nullptr,
        "error|warning|info|debug", "What is worth a line on standard error.",
        AMASIA_NUMBER(log_level)},
    Row{"--library", 0, "AMASIA_LIBRARY", Kind::kPath, 0, 0, nullptr, nullptr,
        "The runtime library to load into the program, instead of the libamasia.so that was "
        "installed with this command.",
        AMASIA_TEXT(library)},
    Row{"--calibration", 0, "AMASIA_CALIBRATION", Kind::kPath, 0, 0, nullptr, nullptr,
        "The file with what 'amasia calibrate' measured of the nodes and their links, instead of "
        "amasia/calibration.json in XDG_CONFIG_HOME or ~/.config. A run over nodes that it does "
        "not know measures briefly, and adds that. off: neither reads nor measures.",
        AMASIA_TEXT(calibration)},
    Row{"--profile", 0, "AMASIA_PROFILE", Kind::kPath, 0, 0, nullptr, nullptr,
        "What --stats=FILE wrote in an earlier run of the program on as many nodes: its regions "
        "begin as they were in the end, alone or by the shares that were found. It may be the file "
        "that --stats names now, and then need not be there yet. --csr comes before its shares.",
        AMASIA_TEXT(profile)},
    Row{"--tasks-platform", 0, "AMASIA_TASKS_PLATFORM", Kind::kPath, 0, 0, nullptr, nullptr,
        "For programs that use libamasia-tasks: the places and workers that they have, as 'amasia "
        "machine' writes them, unless the program names a file itself.",
        AMASIA_TEXT(tasks_platform)},
    Row{"--tasks-trace", 0, "AMASIA_TASKS_TRACE", Kind::kPath, 0, 0, nullptr, nullptr,
        "For programs that use libamasia-tasks: what each worker did when, for Perfetto or "
        "chrome://tracing, unless the program names a file itself. In the name, %p stands for the "
        "process.",
        AMASIA_TEXT(tasks_trace)},
    Row{"--tasks-statistics", 0, "AMASIA_TASKS_STATISTICS", Kind::kPath, 0, 0, nullptr, nullptr,
        "For programs that use libamasia-tasks: what workers, places and modules did, as JSON, "
        "with each task timed, unless the program names a file itself. -: as text to the standard "
        "error. In the name, %p stands for the process.",
        AMASIA_TEXT(tasks_statistics)},
};
static_assert(kRows.size() <= 64, "set_rows has a bit for each row");

// Variables of ours that are no options.
constexpr std::array kOwnVariables = {std::string_view("AMASIA_LAUNCHER"),
                                      std::string_view(kOwnScheduleVariable)};

std::vector<std::string_view> choices_of(const Row& row) {
  std::vector<std::string_view> out;
  std::string_view rest(row.choices);
  while (true) {
    const auto bar = rest.find('|');
    out.push_back(rest.substr(0, bar));
    if (bar == std::string_view::npos) return out;
    rest.remove_prefix(bar + 1);
  }
}

double lowest(const Row& row) { return static_cast<double>(row.minimum) / 1000; }

std::string allowed(const Row& row) {
  switch (row.kind) {
    case Kind::kNumber:
      return fmt::format("a whole number of {} from {} to {}", row.unit, row.minimum, row.maximum);
    case Kind::kBytes:
      return fmt::format("0, or bytes from {} to {} (K, M, G or T may follow the number)",
                         bytes_text(row.minimum), bytes_text(row.maximum));
    case Kind::kSwitch:
      return "0 or 1";
    case Kind::kChoice: {
      std::string out;
      const auto choices = choices_of(row);
      for (std::size_t i = 0; i < choices.size(); ++i) {
        if (i > 0) out += i + 1 == choices.size() ? " or " : ", ";
        out += choices[i];
      }
      return out;
    }
    case Kind::kFile:
      return "the name of a file";
    case Kind::kPath:
      return "the name of a file";
    case Kind::kNumbers:
      return fmt::format("a number from {} to {} for each node, separated by commas",
                         lowest(row), row.maximum);
    case Kind::kShares:
      return fmt::format("a number from {} to 1 for each node, with commas between, for 1 to {} "
                         "nodes",
                         kLeastShare, kMaxNodes);
    case Kind::kLink:
      return fmt::format("a whole number of microseconds from 0 to {}, and after a comma MB/s from "
                         "1 to {}, which may be missing if the first is not 0",
                         kMostLatencyUs, kMostMegabytes);
  }
  return {};
}

Error refuse(const Row& row, std::string_view name, std::string_view text) {
  return Error{fmt::format("{}: '{}' is not allowed; it takes {}", name, text, allowed(row)), 0};
}

std::optional<Value> parse_value(const Row& row, std::string_view text) {
  switch (row.kind) {
    case Kind::kNumber:
    case Kind::kSwitch: {
      std::int64_t number = 0;
      const auto end = text.data() + text.size();
      const auto [stop, error] = std::from_chars(text.data(), end, number);
      if (error != std::errc() || stop != end) return std::nullopt;
      if (number < row.minimum || number > row.maximum) return std::nullopt;
      return Value{.number = number, .text = {}};
    }
    case Kind::kBytes: {
      const auto bytes = parse_bytes(text);
      if (!bytes || *bytes > row.maximum || (*bytes != 0 && *bytes < row.minimum)) {
        return std::nullopt;
      }
      return Value{.number = *bytes, .text = {}};
    }
    case Kind::kChoice: {
      const auto choices = choices_of(row);
      const auto found = std::find(choices.begin(), choices.end(), text);
      if (found == choices.end()) return std::nullopt;
      return Value{.number = found - choices.begin(), .text = {}};
    }
    case Kind::kFile:
    case Kind::kPath:
      if (text.empty()) return std::nullopt;
      return Value{.number = 0, .text = std::string(text)};
    case Kind::kNumbers:
      if (!parse_numbers(text, lowest(row), static_cast<double>(row.maximum))) {
        return std::nullopt;
      }
      return Value{.number = 0, .text = std::string(text)};
    case Kind::kShares:
      if (!parse_shares(text)) return std::nullopt;
      return Value{.number = 0, .text = std::string(text)};
    case Kind::kLink:
      if (text.empty() || !parse_link(text)) return std::nullopt;
      return Value{.number = 0, .text = std::string(text)};
  }
  return std::nullopt;
}

bool is_text(Kind kind) {
  constexpr std::array kTexts = {Kind::kFile, Kind::kPath, Kind::kNumbers, Kind::kShares,
                                 Kind::kLink};
  return std::ranges::find(kTexts, kind) != kTexts.end();
}

std::string value_text(const Row& row, const Options& options) {
  const Value value = row.get(options);
  if (row.kind == Kind::kChoice) {
    return std::string(choices_of(row)[static_cast<std::size_t>(value.number)]);
  }
  if (is_text(row.kind)) return value.text;
  if (row.kind == Kind::kBytes) return bytes_text(value.number);
  return std::to_string(value.number);
}

std::size_t index_of(const Row& row) { return static_cast<std::size_t>(&row - kRows.data()); }

const Row& row_of(std::string_view flag) {
  for (const Row& row : kRows) {
    if (flag == row.flag) return row;
  }
  AMASIA_CHECK(false, "asked about an option that the table does not have");
}

void store(const Row& row, Options& options, const Value& value) {
  row.set(options, value);
  options.set_rows |= std::uint64_t{1} << index_of(row);
}

// An argument taken apart: which row it names, and what it says about the value.
struct Argument {
  const Row* row = nullptr;
  std::string_view name;
  std::optional<std::string_view> value;  // given in the same argument
  bool negated = false;                   // --no-x
};

Result<Argument> dissect(std::string_view text) {
  Argument out;
  if (!text.starts_with("--")) {  // -n2, -n 2, -n=2
    for (const Row& row : kRows) {
      if (row.letter == 0 || row.letter != text[1]) continue;
      out.row = &row;
      out.name = text.substr(0, 2);
      text.remove_prefix(2);
      if (text.starts_with('=')) text.remove_prefix(1);
      if (!text.empty()) out.value = text;
      return out;
    }
    return Error{fmt::format("'{}' is not an option; 'amasia options' lists them", text), 0};
  }
  const auto equals = text.find('=');
  out.name = text.substr(0, equals);
  if (equals != std::string_view::npos) out.value = text.substr(equals + 1);
  for (const Row& row : kRows) {
    if (out.name == row.flag) out.row = &row;
    if (row.kind == Kind::kSwitch && out.name.starts_with("--no-") &&
        out.name.substr(5) == std::string_view(row.flag).substr(2)) {
      out.row = &row;
      out.negated = true;
    }
  }
  if (out.row == nullptr) {
    return Error{fmt::format("'{}' is not an option; 'amasia options' lists them", out.name), 0};
  }
  return out;
}

}  // namespace

bool Options::is_set(std::string_view flag) const {
  return (set_rows >> index_of(row_of(flag)) & 1) != 0;
}

Result<std::size_t> parse_arguments(std::span<const char* const> arguments, Options& options) {
  std::size_t used = 0;
  while (used < arguments.size()) {
    const std::string_view text(arguments[used]);
    if (text == "--") return used + 1;
    if (text.size() < 2 || text[0] != '-') return used;
    auto dissected = dissect(text);
    if (!dissected.ok()) return dissected.error();
    const Argument& argument = dissected.value();
    const Row& row = *argument.row;
    ++used;
    if (row.kind == Kind::kSwitch) {
      if (argument.value) {
        return Error{fmt::format("{}: '{}' is not allowed; it takes no value", argument.name,
                                 *argument.value),
                     0};
      }
      store(row, options, {.number = argument.negated ? 0 : 1, .text = {}});
      continue;
    }
    std::optional<std::string_view> value_given = argument.value;
    if (!value_given && row.kind == Kind::kFile) value_given = "-";
    if (!value_given && used < arguments.size()) value_given = arguments[used++];
    if (!value_given) {
      return Error{
          fmt::format("{}: the value is missing; it takes {}", argument.name, allowed(row)), 0};
    }
    const auto value = parse_value(row, *value_given);
    if (!value) return refuse(row, argument.name, *value_given);
    store(row, options, *value);
  }
  return used;
}

namespace {

// What OpenMP's variables say that are ours.
Status parse_openmp(std::string_view name, std::string_view text, Options& options) {
  if (name == "OMP_SCHEDULE" || name == kOwnScheduleVariable) {
    auto schedule = parse_omp_schedule(name, text);
    if (!schedule.ok()) return schedule.error();
    if (schedule.value().has_value()) options.runtime_schedule = schedule.value();
  } else if (name == "OMP_HET_PTG" && !options.is_set("--reprobe")) {
    const Row& row = row_of("--reprobe");
    const auto value = parse_value(row, text);
    if (!value) return refuse(row, name, text);
    row.set(options, *value);  // not store(): what is set by its own name comes before
  }
  return ok();
}

}  // namespace

Status parse_environment(const char* const* environment, Options& options) {
  const std::uint64_t from_arguments = options.set_rows;
  for (const char* const* entry = environment; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (!text.starts_with("AMASIA_") && !text.starts_with("OMP_")) continue;
    const auto equals = text.find('=');
    if (equals == std::string_view::npos || equals + 1 == text.size()) continue;
    const Status parsed =
        parse_openmp(text.substr(0, equals), text.substr(equals + 1), options);
    if (!parsed.ok()) return parsed;
    for (const Row& row : kRows) {
      if (text.substr(0, equals) != row.variable) continue;
      if ((from_arguments >> index_of(row) & 1) != 0) break;
      const auto value = parse_value(row, text.substr(equals + 1));
      if (!value) return refuse(row, row.variable, text.substr(equals + 1));
      store(row, options, *value);
      break;
    }
  }
  return ok();
}

std::vector<std::string> unknown_variables(const char* const* environment) {
  std::vector<std::string> out;
  for (const char* const* entry = environment; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('='));
    if (!name.starts_with("AMASIA_")) continue;
    const bool known =
        std::find(kOwnVariables.begin(), kOwnVariables.end(), name) != kOwnVariables.end() ||
        std::any_of(kRows.begin(), kRows.end(),
                    [&](const Row& row) { return name == row.variable; });
    if (!known) out.emplace_back(name);
  }
  return out;
}

std::vector<std::pair<std::string, std::string>> to_environment(const Options& options) {
  const Options defaults;
  std::vector<std::pair<std::string, std::string>> out;
  for (const Row& row : kRows) {
    std::string value = value_text(row, options);
    if (value != value_text(row, defaults)) out.emplace_back(row.variable, std::move(value));
  }
  return out;
}

namespace {

std::string usage(const Row& row) {
  std::string out;
  if (row.letter != 0) out += fmt::format("-{}, ", row.letter);
  out += row.flag;
  switch (row.kind) {
    case Kind::kNumber:
      return out + fmt::format(" {}..{}", row.minimum, row.maximum);
    case Kind::kBytes:
      return out + " BYTES";
    case Kind::kSwitch:
      return out + fmt::format(", --no-{}", row.flag + 2);
    case Kind::kChoice:
      return out + " " + row.choices;
    case Kind::kFile:
      return out + "[=FILE]";
    case Kind::kPath:
      return out + " FILE";
    case Kind::kNumbers:
      return out + " X,Y,...";
    case Kind::kShares:
      return out + " SHARE,…";
    case Kind::kLink:
      return out + " LATENCY_US[,MB/s]";
  }
  return out;
}

std::string or_none(std::string text) { return text.empty() ? "none" : text; }

void append_wrapped(std::string& out, std::string_view text, std::size_t width,
                    std::string_view indent) {
  while (!text.empty()) {
    std::size_t cut = text.size();
    if (cut > width) {
      cut = text.rfind(' ', width);
      if (cut == std::string_view::npos) cut = std::min(text.find(' '), text.size());
    }
    fmt::format_to(std::back_inserter(out), "{}{}\n", indent, text.substr(0, cut));
    text.remove_prefix(std::min(cut + 1, text.size()));
  }
}

}  // namespace

std::string options_text(const Options& options) {
  const Options defaults;
  std::string out;
  for (const Row& row : kRows) {
    const std::string value = value_text(row, options);
    const std::string standard = value_text(row, defaults);
    fmt::format_to(std::back_inserter(out), "{}\n    {} = {}", usage(row), row.variable,
                   or_none(value));
    if (value != standard) {
      fmt::format_to(std::back_inserter(out), "   (default: {})", or_none(standard));
    }
    if (row.unit != nullptr) fmt::format_to(std::back_inserter(out), "   [{}]", row.unit);
    out += '\n';
    append_wrapped(out, row.help, 88, "    ");
  }
  return out;
}

std::string options_markdown() {
  const Options defaults;
  std::string out =
      "# Options\n\n"
      "Generated by `amasia options --markdown` from the table in src/base/options.cpp.\n\n"
      "Options stand before the program: what follows its name belongs to it. An option on the\n"
      "command line comes before its variable. A value that is not allowed ends the command with\n"
      "one sentence and exit code 2.\n\n"
      "| option | variable | takes | default | what it does |\n|---|---|---|---|---|\n";
  for (const Row& row : kRows) {
    std::string flag = usage(row);
    for (auto at = flag.find('|'); at != std::string::npos; at = flag.find('|', at + 2)) {
      flag.insert(at, 1, '\\');
    }
    fmt::format_to(std::back_inserter(out), "| `{}` | `{}` | {} | {} | {} |\n", flag, row.variable,
                   allowed(row), or_none(value_text(row, defaults)), row.help);
  }
  return out;
}

}  // namespace amasia::base
