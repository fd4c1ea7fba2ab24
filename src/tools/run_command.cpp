// SPDX-License-Identifier: Apache-2.0
#include "tools/run_command.hpp"

#include <limits.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>

#include "fabric/fabric.hpp"
#include "tools/core_shares.hpp"
#include "tools/emulation.hpp"
#include "tools/job_environment.hpp"
#include "tools/leftovers.hpp"
#include "tools/memory_share.hpp"
#include "tools/pmix_source.hpp"
#include "tools/program.hpp"
#include "tools/supervisor.hpp"

namespace amasia::tools {
namespace {

using base::BootstrapKind;
using base::LogLevel;
using base::Options;

int refuse(const Error& error) {
  base::log_line(LogLevel::kError, "{}", error.message);
  return kExitUsage;
}

// The library of the same build or installation as this tool, unless the user names one.
Result<std::string> find_library(const Options& options) {
  std::vector<std::string> candidates;
  if (!options.library.empty()) {
    candidates = {options.library};
  } else {
    char self[PATH_MAX];
    const ssize_t length = ::readlink("/proc/self/exe", self, sizeof self);
    if (length <= 0) return base::errno_error(errno, "cannot tell where this command lies");
    std::string folder(self, static_cast<std::size_t>(length));
    folder.resize(folder.rfind('/'));
    candidates = {folder + "/../lib/libamasia.so", folder + "/../lib/amasia/libamasia.so"};
  }
  for (const std::string& candidate : candidates) {
    const std::unique_ptr<char, void (*)(void*)> real(::realpath(candidate.c_str(), nullptr),
                                                      ::free);
    if (!real || ::access(real.get(), R_OK) != 0) continue;
    const std::string path(real.get());
    if (path.find_first_of(": ") != std::string::npos) {
      return Error{"the loader cannot preload '" + path + "': the path has a space or a colon", 0};
    }
    return path;
  }
  return Error{"the runtime library '" + candidates.front() +
                   "' is not there (--library, AMASIA_LIBRARY, names another)",
               0};
}

// Sockets of one name: an abstract address is seen in its own network namespace only, so each
// namespace has one.
Result<std::vector<os::Descriptor>> listen_everywhere(const std::string& name,
                                                      const os::NetworkNamespaces* spaces) {
  std::vector<os::Descriptor> out;
  const unsigned count = spaces == nullptr ? 1 : spaces->count();
  for (unsigned index = 0; index < count; ++index) {
    Result<os::Descriptor> listener = Error{"not tried", 0};
    const auto listen = [&] {
      const Status entered = spaces == nullptr ? base::ok() : spaces->enter(index);
      listener = entered.ok() ? os::listen_abstract(name) : Result<os::Descriptor>(entered.error());
    };
    // A thread enters a namespace for itself alone.
    std::thread(listen).join();
    if (!listener.ok()) return listener.error();
    out.push_back(std::move(listener).value());
  }
  return out;
}

std::string fresh_name() {
  std::array<std::byte, 16> bytes{};
  os::fill_random(bytes);
  std::string name = "amasia-";
  for (const std::byte byte : bytes) name += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return name;
}

// The entry of their environment by which a job's processes are known.
std::string mark_of(const std::string& name) {
  return std::string(launch::kLauncherVariable) + "=" + name;
}

// Where ranks of one host are not bound by their launcher, they share the cores as local nodes do.
std::vector<int> cores_of_rank(const std::vector<int>& cores) {
  const char* rank = std::getenv("OMPI_COMM_WORLD_LOCAL_RANK");
  const char* count = std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
  const bool bound = cores.size() < static_cast<std::size_t>(::sysconf(_SC_NPROCESSORS_ONLN));
  if (rank == nullptr || count == nullptr || bound) return cores;
  const std::size_t index = std::strtoul(rank, nullptr, 10),
                    total = std::strtoul(count, nullptr, 10);
  return index < total ? core_share(cores, index, total) : cores;
}

// What the user leaves to us is settled once, here: a node does not know who else is on its host.
void settle_memory(Options& options, bool one_node_here) {
  if (options.memory != 0) return;
  auto nodes = static_cast<unsigned>(options.nodes);
  if (one_node_here) {
    const char* count = std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    if (count == nullptr) count = std::getenv("SLURM_NTASKS_PER_NODE");
    nodes = count == nullptr ? 1 : static_cast<unsigned>(std::strtoul(count, nullptr, 10));
  }
  options.memory = static_cast<std::int64_t>(memory_share(host_memory(), nodes));
}

struct Job {
  Options options;
  Program program;
  std::vector<std::string> arguments;
};

// Takes the options and finds the program.
Result<Job> read_arguments(std::span<const char* const> arguments) {
  Job job;
  const auto used = base::parse_arguments(arguments, job.options);
  if (!used.ok()) return used.error();
  if (const Status parsed = base::parse_environment(environ, job.options); !parsed.ok()) {
    return parsed.error();
  }
  base::set_log_level(job.options.log_level);
  for (const std::string& name : base::unknown_variables(environ)) {
    base::log_line(LogLevel::kWarning,
                   "{} is no option, and is ignored; 'amasia options' lists them", name);
  }
  if (used.value() == arguments.size()) {
    return Error{"which program? usage: amasia run [options] program [arguments]", 0};
  }
  for (const char* const argument : arguments.subspan(used.value())) {
    job.arguments.emplace_back(argument);
  }
  auto program = find_program(job.arguments.front(), std::getenv("PATH"));
  if (!program.ok()) return program.error();
  job.program = std::move(program).value();
  return job;
}

// Whether nodes come from a PMIx launcher, as far as options and environment tell.
Result<bool> wants_pmix(const Options& options) {
  const bool there = fabric::started_by_pmix();
  if (options.bootstrap == BootstrapKind::kFork) return false;
  if (options.bootstrap == BootstrapKind::kAuto) return there;
  if (!there) {
    return Error{
        "--bootstrap: 'pmix' needs a PMIx launcher around this command (mpirun, prterun, "
        "srun --mpi=pmix), and there is none",
        0};
  }
  return true;
}

// Joins that launcher's job, and completes options.nodes.
Result<std::unique_ptr<fabric::PmixMembership>> join_pmix_job(Options& options) {
  if (options.netns) {
    return Error{"--netns is for nodes on one host; a PMIx launcher has placed these already", 0};
  }
  auto joined = fabric::join_pmix(options.start_timeout_s * base::kSecond);
  if (!joined.ok()) return joined.error();
  const std::uint32_t size = joined.value()->node_count();
  if (options.is_set("--nodes") && static_cast<std::uint32_t>(options.nodes) != size) {
    return Error{fmt::format("--nodes: '{}' is not allowed; under this PMIx launcher it takes {}, "
                             "the size of its job (or --bootstrap=fork to start nodes here)",
                             options.nodes, size),
                 0};
  }
  options.nodes = static_cast<int>(size);
  return joined;
}

[[noreturn]] void leave(const Outcome& outcome) {
  if (outcome.signal != 0) os::end_by_signal(outcome.signal);
  // Not exit(): a thread may still wait inside PMIx, whose destructors would run under its feet.
  ::_exit(outcome.exit_code);
}

// One node: the program takes the place of this process, and runs as if we had not been there.
Error run_plainly(const Job& job) {
  os::SpawnRequest request;
  request.executable = job.program.path;
  request.arguments = job.arguments;
  request.environment = plain_environment(environ, job.options);
  return os::replace_process(request);
}

// What a job consists of beside its program.
struct Parts {
  Keeper keeper;
  os::SignalQueue signals;
  std::string name;     // of the job
  std::string library;  // "": the command runs without the runtime
  std::unique_ptr<fabric::PmixMembership> membership = nullptr;
  std::unique_ptr<Emulation> emulation = nullptr;
  std::optional<os::NetworkNamespaces> spaces = std::nullopt;
};

void place_nodes(SupervisorSettings& settings, const Job& job, const Parts& parts) {
  if (const Emulation* const emulation = parts.emulation.get(); emulation != nullptr) {
    settings.cores_of = [=](NodeId node) { return std::vector<int>{emulation->core_of(node)}; };
    settings.cpu_group_of = [=](NodeId node) { return emulation->cpu_group_of(node); };
  } else {
    const std::vector<int> cores = os::allowed_cores();
    const auto count = static_cast<std::size_t>(job.options.nodes);
    const bool bind = job.options.bind, ranks = parts.membership != nullptr;
    settings.cores_of = [=](NodeId node) {
      if (!bind) return std::vector<int>();
      return ranks ? cores_of_rank(cores) : core_share(cores, node.value, count);
    };
  }
  settings.namespace_of = [&parts](NodeId node) {
    return parts.spaces ? parts.spaces->descriptor(node.value) : -1;
  };
}

Result<SupervisorSettings> make_settings(const Job& job, Parts& parts) {
  SupervisorSettings settings{.options = job.options,
                              .command = {},
                              .command_name = job.arguments.front(),
                              .listeners = {},
                              .signals = std::move(parts.signals),
                              .node_started = {},
                              .cores_of = {},
                              .namespace_of = {}};
  settings.keeper = parts.keeper.process();
  settings.node_started = [&parts](pid_t process) { parts.keeper.remember(process); };
  settings.command.executable = job.program.path;
  settings.command.arguments = job.arguments;
  place_nodes(settings, job, parts);
  settings.is_plain = parts.library.empty();
  if (settings.is_plain) {
    for (char** entry = environ; *entry != nullptr; ++entry) {
      settings.command.environment.push_back(*entry);
    }
    // By which the keeper knows them.
    settings.command.environment.push_back(mark_of(parts.name));
    return settings;
  }
  settings.command.environment =
      job_environment(environ, job.options,
                      {parts.library, parts.name, parts.membership != nullptr});
  auto listeners = listen_everywhere(parts.name, parts.spaces ? &*parts.spaces : nullptr);
  if (!listeners.ok()) return listeners.error();
  settings.listeners = std::move(listeners).value();
  return settings;
}

// Whoever starts the program may change the folder.
void settle_folder(Options& options) {
  for (std::string* const path : {&options.stats, &options.profile}) {
    if (path->empty() || *path == "-") continue;
    std::error_code no_folder;
    const auto absolute = std::filesystem::absolute(*path, no_folder);
    if (!no_folder) *path = absolute.string();
  }
}

// Before the program starts: it may run for long.
Status check_files(const Options& options) {
  const auto earlier = launch::load_profile(options);
  if (!earlier.ok()) return earlier.error();
  return launch::check_statistics_destination(options.stats);
}

// A node that cannot open files cannot even join, and its program would run alone.
Status check_open_files(const Options& options) {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return base::ok();
  const std::string why =
      launch::why_too_few_files(files.rlim_max, static_cast<unsigned>(options.nodes));
  return why.empty() ? base::ok() : Status(Error{why, 0});
}

int run_supervised(Job job, Parts parts) {
  if (!parts.library.empty()) {
    const Status enough = check_open_files(job.options);
    if (!enough.ok()) return refuse(enough.error());
  }
  // The origin writes.
  if (parts.membership == nullptr || parts.membership->self() == base::kOrigin) {
    const Status usable = check_files(job.options);
    if (!usable.ok()) return refuse(usable.error());
  }
  settle_memory(job.options, parts.membership != nullptr);
  if (job.options.netns) {
    auto made = os::NetworkNamespaces::make(static_cast<unsigned>(job.options.nodes));
    if (!made.ok()) return refuse({"--netns: " + made.error().message, 0});
    parts.spaces.emplace(std::move(made).value());
  }
  auto settings = make_settings(job, parts);
  if (!settings.ok()) return refuse(settings.error());
  std::unique_ptr<JobSource> source =
      make_fork_source(static_cast<std::uint32_t>(job.options.nodes));
  if (parts.membership != nullptr) {
    auto made = make_pmix_source(std::move(parts.membership), parts.name);
    if (!made.ok()) return refuse(made.error());
    source = std::move(made).value();
  }
  if (parts.emulation != nullptr) parts.emulation->keep_exactly();
  Supervisor supervisor(std::move(settings).value(), *source);
  const Outcome outcome = supervisor.run();
  source.reset();           // leaves the PMIx job in order
  parts.emulation.reset();  // before the keeper, which would see to it if this process is killed
  { const Keeper dismissed = std::move(parts.keeper); }
  leave(outcome);
}

// A plain program on one core. Returns only on failure.
Error run_on_core(const Job& job, int core) {
  if (const Status pinned = os::pin_to_core(core); !pinned.ok()) return pinned.error();
  return run_plainly(job);
}

}  // namespace

int run_command(std::span<const char* const> arguments) {
  auto read = read_arguments(arguments);
  if (!read.ok()) return refuse(read.error());
  Job job = std::move(read).value();
  settle_folder(job.options);
  const auto pmix = wants_pmix(job.options);
  if (!pmix.ok()) return refuse(pmix.error());
  if (const Status settled = settle_emulation(job.options, pmix.value()); !settled.ok()) {
    return refuse(settled.error());
  }
  // Under PMIx the number of nodes is that of the launcher's job, which is joined later.
  const Status fits = pmix.value() ? base::ok() : check_sharing(job.options);
  if (!fits.ok()) return refuse(fits.error());
  // Where nothing is shared it is of no use, but may be wrong all the same.
  if (const auto earlier = launch::load_profile(job.options); !pmix.value() && !earlier.ok()) {
    return refuse(earlier.error());
  }
  const auto is_plain = [&] { return job.options.nodes == 1 && job.options.stats.empty(); };
  const std::string name = fresh_name();
  std::unique_ptr<Emulation> emulation;
  if (const auto shares = base::parse_shares(job.options.emulate); shares) {
    auto made = Emulation::make(*shares, name);
    if (!made.ok()) return refuse(made.error());
    emulation = std::move(made).value();
    if (is_plain() && emulation->folders().empty()) {
      return refuse(run_on_core(job, emulation->core_of(base::kOrigin)));
    }
  } else if (!pmix.value() && is_plain()) {
    return refuse(run_plainly(job));
  }
  std::string library;
  if (pmix.value() || !is_plain()) {
    if (const std::string why = why_not_across_nodes(job.program); !why.empty()) {
      return refuse({why, 0});
    }
    auto found = find_library(job.options);
    if (!found.ok()) return refuse(found.error());
    library = found.value();
  }
  // Before anything starts a thread: the keeper is a fork of this process.
  auto keeper = Keeper::start(mark_of(name),
                              emulation ? emulation->folders() : std::vector<std::string>());
  if (!keeper.ok()) return refuse(keeper.error());
  auto signals = os::SignalQueue::open(kSupervisedSignals);
  if (!signals.ok()) return refuse(signals.error());
  Parts parts{.keeper = std::move(keeper).value(),
              .signals = std::move(signals).value(),
              .name = name,
              .library = library};
  parts.emulation = std::move(emulation);
  if (pmix.value()) {
    // mpirun may be killed, and nobody would tell us.
    os::request_signal_at_parents_end(SIGTERM);
    auto joined = join_pmix_job(job.options);
    if (!joined.ok()) return refuse(joined.error());
    parts.membership = std::move(joined).value();
    if (const Status known = check_sharing(job.options); !known.ok()) {
      return refuse(known.error());
    }
    if (is_plain()) {
      parts.membership.reset();
      { const Keeper dismissed = std::move(parts.keeper); }
      { const os::SignalQueue unblocked = std::move(parts.signals); }
      return refuse(run_plainly(job));
    }
  }
  return run_supervised(std::move(job), std::move(parts));
}

}  // namespace amasia::tools
