// SPDX-License-Identifier: Apache-2.0
#include "tools/run_command.hpp"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <thread>

#include "fabric/fabric.hpp"
#include "tools/core_shares.hpp"
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
  for (char** entry = environ; *entry != nullptr; ++entry) request.environment.push_back(*entry);
  return os::replace_process(request);
}

int run_nodes(Job job, std::unique_ptr<fabric::PmixMembership> membership, Keeper keeper,
              os::SignalQueue signals, const std::string& name, const std::string& library) {
  settle_memory(job.options, membership != nullptr);
  std::optional<os::NetworkNamespaces> spaces;
  if (job.options.netns) {
    auto made = os::NetworkNamespaces::make(static_cast<unsigned>(job.options.nodes));
    if (!made.ok()) return refuse({"--netns: " + made.error().message, 0});
    spaces.emplace(std::move(made).value());
  }
  SupervisorSettings settings{.options = job.options,
                              .command = {},
                              .command_name = job.arguments.front(),
                              .listeners = {},
                              .signals = std::move(signals),
                              .node_started = {},
                              .cores_of = {},
                              .namespace_of = {}};
  settings.keeper = keeper.process();
  settings.node_started = [&keeper](pid_t process) { keeper.remember(process); };
  settings.command.executable = job.program.path;
  settings.command.arguments = job.arguments;
  settings.command.environment = job_environment(environ, job.options, {library, name});
  auto listeners = listen_everywhere(name, spaces ? &*spaces : nullptr);
  if (!listeners.ok()) return refuse(listeners.error());
  settings.listeners = std::move(listeners).value();

  const std::vector<int> cores = os::allowed_cores();
  const auto count = static_cast<std::size_t>(job.options.nodes);
  const bool bind = job.options.bind, ranks = membership != nullptr;
  settings.cores_of = [=](NodeId node) {
    if (!bind) return std::vector<int>();
    return ranks ? cores_of_rank(cores) : core_share(cores, node.value, count);
  };
  settings.namespace_of = [&spaces](NodeId node) {
    return spaces ? spaces->descriptor(node.value) : -1;
  };
  std::unique_ptr<JobSource> source = make_fork_source(static_cast<std::uint32_t>(count));
  if (ranks) {
    auto made = make_pmix_source(std::move(membership), name);
    if (!made.ok()) return refuse(made.error());
    source = std::move(made).value();
  }
  Supervisor supervisor(std::move(settings), *source);
  const Outcome outcome = supervisor.run();
  source.reset();  // leaves the PMIx job in order
  { const Keeper dismissed = std::move(keeper); }
  leave(outcome);
}

}  // namespace

int run_command(std::span<const char* const> arguments) {
  auto read = read_arguments(arguments);
  if (!read.ok()) return refuse(read.error());
  Job job = std::move(read).value();
  const auto pmix = wants_pmix(job.options);
  if (!pmix.ok()) return refuse(pmix.error());
  const auto is_plain = [&] { return job.options.nodes == 1 && job.options.stats.empty(); };
  if (!pmix.value() && is_plain()) return refuse(run_plainly(job));

  if (const std::string why = why_not_across_nodes(job.program); !why.empty()) {
    return refuse({why, 0});
  }
  auto library = find_library(job.options);
  if (!library.ok()) return refuse(library.error());
  // Before anything starts a thread: the keeper is a fork of this process.
  const std::string name = fresh_name();
  auto keeper = Keeper::start(std::string(launch::kLauncherVariable) + "=" + name);
  if (!keeper.ok()) return refuse(keeper.error());
  auto signals = os::SignalQueue::open(kSupervisedSignals);
  if (!signals.ok()) return refuse(signals.error());
  std::unique_ptr<fabric::PmixMembership> membership;
  if (pmix.value()) {
    // mpirun may be killed, and nobody would tell us.
    os::request_signal_at_parents_end(SIGTERM);
    auto joined = join_pmix_job(job.options);
    if (!joined.ok()) return refuse(joined.error());
    membership = std::move(joined).value();
  }
  if (is_plain()) {
    membership.reset();
    { const Keeper dismissed = std::move(keeper).value(); }
    { const os::SignalQueue unblocked = std::move(signals).value(); }
    return refuse(run_plainly(job));
  }
  return run_nodes(std::move(job), std::move(membership), std::move(keeper).value(),
                   std::move(signals).value(), name, library.value());
}

}  // namespace amasia::tools
