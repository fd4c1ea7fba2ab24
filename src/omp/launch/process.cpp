// SPDX-License-Identifier: Apache-2.0
#include "omp/launch/process.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "delegate/delegate.hpp"
#include "omp/launch/own_names.hpp"
#include "omp/team/affinity_display.hpp"

namespace amasia::omp {

constinit Process process;
constinit thread_local AllocationMode allocation_mode = AllocationMode::kByCaller;

namespace {

// For programs that are to have managed memory on one node without a launcher: tests, and finding
// out whether managed memory alone upsets a program.
constexpr const char* kAloneVariable = "AMASIA_ALONE";

// Removes what the launcher put into the environment for this process and not for its children.
void clean_environment() noexcept {
  unsetenv(launch::kLauncherVariable);
  unsetenv(kAloneVariable);
  const char* preload = getenv("LD_PRELOAD");
  if (preload == nullptr) return;
  static char rest[4096];
  std::size_t length = 0;
  while (*preload != '\0') {
    const std::size_t separator = strspn(preload, " :");
    const std::size_t entry = strcspn(preload + separator, " :");
    const std::string_view name(preload + separator, entry);
    preload += separator + entry;
    if (name.empty() || name.find("libamasia") != std::string_view::npos) continue;
    if (length + name.size() + 2 > sizeof rest) return;
    if (length > 0) rest[length++] = ':';
    std::memcpy(rest + length, name.data(), name.size());
    length += name.size();
  }
  if (length == 0) {
    unsetenv("LD_PRELOAD");
  } else {
    setenv("LD_PRELOAD", rest, 1);
  }
}

// Of several nodes each runtime would show its own threads only, by its own numbers. It has not
// read the variable yet: libgomp does in its constructor, libomp when it is first called.
bool take_over_display_of_affinity() noexcept {
  const char* const value = getenv(kDisplayAffinity);
  const bool libomp = launch::loaded_openmp_runtime() == launch::OpenMpRuntime::kLibomp;
  if (value == nullptr || !turns_on_display(value, libomp)) return false;
  unsetenv(kDisplayAffinity);
  return true;
}

// A block that all nodes' memory together could not hold is refused, as the system would.
Bytes largest_block(std::uint32_t nodes) noexcept {
  struct sysinfo info {};
  if (sysinfo(&info) != 0) return UINT64_MAX;
  return (Bytes{info.totalram} + info.totalswap) * info.mem_unit * nodes;
}

void make_memory(NodeId self, std::uint32_t nodes) noexcept {
  dsm::AddressSpace::Settings settings;
  settings.self = self;
  settings.node_count = nodes;
  if (const auto mapped = process.space.map(settings); !mapped.ok()) {
    rlimit space{};
    const bool limited = getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY;
    fail_start(fmt::format("cannot {}: {}{}", mapped.failed_step,
                           strerrordesc_np(mapped.errno_value),
                           limited ? " (the address space is limited; ulimit -v unlimited is "
                                     "needed)" : ""));
  }
  process.arenas = process.space.arenas();
  dsm::Heap::Settings heap_settings;
  heap_settings.largest_block = largest_block(nodes);
  if (self == base::kOrigin && process.options != nullptr && process.options->memory > 0) {
    // A quarter of the origin's memory is for globals, stacks and copies of the others' pages.
    heap_settings.spread = process.space.spread();
    heap_settings.own_share = static_cast<Bytes>(process.options->memory) / 4 * 3;
    heap_settings.even_spread = process.space.even_spread();
    heap_settings.others_share = heap_settings.own_share * (nodes - 1);
  }
  if (const auto heap = process.heap.start(process.space.heap(self), heap_settings); !heap.ok()) {
    fail_start(fmt::format("cannot {}: {}", heap.failed_step, strerrordesc_np(heap.errno_value)));
  }
}

void reserve_descriptors_below(int limit) noexcept {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < static_cast<rlim_t>(2 * limit)) {
    files.rlim_cur = std::min<rlim_t>(files.rlim_max, static_cast<rlim_t>(2 * limit));
    setrlimit(RLIMIT_NOFILE, &files);
  }
  int filler = open("/", O_PATH | O_CLOEXEC);
  while (filler >= 0 && filler < limit) filler = open("/", O_PATH | O_CLOEXEC);
  if (filler >= 0) close(filler);
}

// Until its output is forwarded, a node other than the origin is mute: what the constructors of
// libraries print, the origin prints too.
void mute() noexcept {
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0) fail_start("cannot open /dev/null");
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(null, stream);
  if (null > STDERR_FILENO) close(null);
}

// The launcher passes its options on as variables, checked already.
void read_options() noexcept {
  auto* const options = new base::Options;
  if (const Status parsed = base::parse_environment(environ, *options); !parsed.ok()) {
    fail_start(parsed.error().message);
  }
  base::set_log_level(options->log_level);
  process.options = options;
}

}  // namespace

void return_descriptors() noexcept {
  for (int number = STDERR_FILENO + 1; number < first_own_descriptor(true); ++number) {
    const int flags = fcntl(number, F_GETFL);
    if (flags >= 0 && (flags & O_PATH) != 0) close(number);
  }
}

void return_signals() noexcept {
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action {};
    if (sigaction(number, nullptr, &action) != 0) continue;
    if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN) continue;
    if (!process.objects.allocates_privately(reinterpret_cast<void*>(action.sa_handler))) continue;
    signal(number, SIG_DFL);
  }
}

void fail_start(std::string_view sentence) noexcept {
  if (process.membership != nullptr) {
    process.membership->failed(sentence);
  } else {
    base::log_line(base::LogLevel::kError, "{}", sentence);
  }
  _exit(2);
}

void early_start(char** environment) noexcept {
  // The C library's own constructor, which would set it, comes after this one.
  if (environ == nullptr) environ = environment;
  const bool alone = getenv(kAloneVariable) != nullptr;
  if (!alone && !launch::below_launcher()) return;
  if (!alone && launch::loaded_openmp_runtime() == launch::OpenMpRuntime::kNone) return;
  // Before anything of ours, or of the communication library, calls the C library.
  const bool scanned = process.objects.scan(reinterpret_cast<const void*>(&early_start));
  if (scanned) bind_runtime_to_c_library(process.objects);
  if (!alone) {
    reserve_descriptors_below(first_own_descriptor(true));
    auto joined = launch::join();
    if (!joined.ok()) {
      base::log_line(base::LogLevel::kError, "running on one node: {}", joined.error().message);
      return_descriptors();
      return;
    }
    if (!joined.value().has_value()) return return_descriptors();
    process.membership = new launch::Membership(std::move(*joined.value()));
    read_options();
  }
  clean_environment();
  const NodeId self = alone ? base::kOrigin : process.membership->self();
  const bool origin = self == base::kOrigin;
  if (!origin) reserve_descriptors_below(delegate::kLastProgramDescriptor + 1);
  const int first_own = first_own_descriptor(origin);
  const int log = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, first_own);
  if (log < 0) {
    fail_start(
        fmt::format("the limit of open files is too low: descriptor {} cannot be used", first_own));
  }
  base::set_log_identity(self.value, log);
  if (!origin) mute();
  os::randomise_addresses_of_children();
  if (!scanned) {
    fail_start(
        fmt::format("the program has loaded more than {} libraries", ObjectTable::kMaxObjects));
  }
  const std::uint32_t nodes = alone ? 1 : process.membership->node_count();
  if (nodes > 1) process.displays_affinity = take_over_display_of_affinity();
  make_memory(self, nodes);
  process.id = getpid();
  process.managed = true;
}

}  // namespace amasia::omp
