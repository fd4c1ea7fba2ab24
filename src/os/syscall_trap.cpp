// SPDX-License-Identifier: Apache-2.0
#include "os/syscall_trap.hpp"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <link.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <vector>

#include "os/interruption.hpp"

namespace amasia::os {
namespace {

// The ABI gives a signal handler no context argument, so this is process-wide; written once before
// the first filter exists (release), read by the handler (acquire).
std::atomic<TrapHandler> trap_handler{nullptr};

constexpr std::uint32_t kArchitectureOffset = offsetof(seccomp_data, arch);
constexpr std::uint32_t kNumberOffset = offsetof(seccomp_data, nr);
constexpr std::uint32_t low_word(int argument) {
  return offsetof(seccomp_data, args) + 8 * static_cast<std::uint32_t>(argument);
}
constexpr std::uint32_t high_word(int argument) { return low_word(argument) + 4; }

// Builds the filter. Classic BPF jumps forward only, by at most 255 instructions, so every rule
// ends in a return of its own instead of jumping to a shared one.
class FilterBuilder {
 public:
  void load(std::uint32_t offset) { emit(BPF_LD | BPF_W | BPF_ABS, offset); }
  void give(std::uint32_t action) { emit(BPF_RET | BPF_K, action); }
  // Skips `count` instructions unless accumulator `operation` value.
  void skip_unless(std::uint16_t operation, std::uint32_t value, std::uint8_t count) {
    program_.push_back({static_cast<std::uint16_t>(BPF_JMP | operation | BPF_K), 0, count, value});
  }
  void skip_if(std::uint16_t operation, std::uint32_t value, std::uint8_t count) {
    program_.push_back({static_cast<std::uint16_t>(BPF_JMP | operation | BPF_K), count, 0, value});
  }
  std::vector<sock_filter>& program() { return program_; }

 private:
  void emit(std::uint16_t code, std::uint32_t value) { program_.push_back({code, 0, 0, value}); }
  std::vector<sock_filter> program_;
};

// Traps when the 64-bit first argument lies in [begin, end). 11 instructions, falls through if not.
void trap_in_range(FilterBuilder& filter, const AddressRange& range) {
  const auto high = [](std::uint64_t v) { return static_cast<std::uint32_t>(v >> 32); };
  const auto low = [](std::uint64_t v) { return static_cast<std::uint32_t>(v); };
  const std::uint64_t last = range.end - 1;
  filter.load(high_word(0));
  filter.skip_unless(BPF_JGE, high(range.begin), 9);  // below
  filter.skip_if(BPF_JGT, high(last), 8);             // above
  filter.skip_unless(BPF_JEQ, high(range.begin), 2);  // above begin's word: low does not matter
  filter.load(low_word(0));
  filter.skip_unless(BPF_JGE, low(range.begin), 5);   // below
  filter.load(high_word(0));
  filter.skip_unless(BPF_JEQ, high(last), 2);
  filter.load(low_word(0));
  filter.skip_if(BPF_JGT, low(last), 1);              // above
  filter.give(SECCOMP_RET_TRAP);
}

void trap_futexes(FilterBuilder& filter, std::span<const AddressRange> ranges) {
  if (ranges.empty()) return;
  // A jump cannot span many ranges, so "not a futex" is tested again before each.
  for (const AddressRange& range : ranges) {
    filter.load(kNumberOffset);
    filter.skip_unless(BPF_JEQ, SYS_futex, 11);
    trap_in_range(filter, range);
  }
}

int descriptor_argument(int call) {
  if (call == SYS_tgkill) return 2;
  return call == SYS_mmap ? 4 : 0;
}

// Falls through if not: the same call may have another rule.
void trap_descriptor_call(FilterBuilder& filter, const DescriptorCall& call) {
  filter.load(kNumberOffset);
  filter.skip_unless(BPF_JEQ, static_cast<std::uint32_t>(call.number), 5);
  filter.load(low_word(descriptor_argument(call.number)));
  filter.skip_if(BPF_JEQ, static_cast<std::uint32_t>(AT_FDCWD), 2);
  filter.skip_unless(BPF_JGE, static_cast<std::uint32_t>(call.first), 2);
  filter.skip_if(BPF_JGT, static_cast<std::uint32_t>(call.last), 1);
  filter.give(SECCOMP_RET_TRAP);
}

// The executable segment of the C library of this process.
AddressRange c_library_code() {
  struct Search {
    std::uint64_t inside;
    AddressRange found;
  } search{reinterpret_cast<std::uint64_t>(&::syscall), {}};
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* data) {
        auto& wanted = *static_cast<Search*>(data);
        for (int i = 0; i < object->dlpi_phnum; ++i) {
          const ElfW(Phdr)& header = object->dlpi_phdr[i];
          const std::uint64_t begin = object->dlpi_addr + header.p_vaddr;
          if (header.p_type != PT_LOAD || wanted.inside - begin >= header.p_memsz) continue;
          wanted.found = {begin, begin + header.p_memsz};
        }
        return 0;
      },
      &search);
  return search.found;
}

// Lets every call pass that is not made by code in [begin, end).
void allow_other_callers(FilterBuilder& filter, const AddressRange& code) {
  const auto high = [](std::uint64_t v) { return static_cast<std::uint32_t>(v >> 32); };
  AMASIA_CHECK(high(code.begin) == high(code.end - 1), "a library crosses a 4 GiB boundary");
  filter.load(offsetof(seccomp_data, instruction_pointer) + 4);
  filter.skip_unless(BPF_JEQ, high(code.begin), 3);
  filter.load(offsetof(seccomp_data, instruction_pointer));
  filter.skip_unless(BPF_JGE, static_cast<std::uint32_t>(code.begin), 1);
  filter.skip_unless(BPF_JGT, static_cast<std::uint32_t>(code.end - 1), 1);
  filter.give(SECCOMP_RET_ALLOW);
}

std::vector<sock_filter> build_filter(const TrapRules& rules) {
  FilterBuilder filter;
  allow_other_callers(filter, c_library_code());
  filter.load(kArchitectureOffset);
  filter.skip_if(BPF_JEQ, AUDIT_ARCH_X86_64, 1);
  filter.give(SECCOMP_RET_ALLOW);
  trap_futexes(filter, rules.futex_words);
  for (const DescriptorCall& call : rules.descriptor_calls) trap_descriptor_call(filter, call);
  for (const int call : rules.calls) {
    filter.load(kNumberOffset);
    filter.skip_unless(BPF_JEQ, static_cast<std::uint32_t>(call), 1);
    filter.give(SECCOMP_RET_TRAP);
  }
  filter.give(SECCOMP_RET_ALLOW);
  return std::move(filter.program());
}

void on_sigsys(int, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  TrappedCall call;
  call.number = info->si_syscall;
  const auto argument = [&](int reg) { return static_cast<std::uint64_t>(registers[reg]); };
  call.arguments = {argument(REG_RDI), argument(REG_RSI), argument(REG_RDX),
                    argument(REG_R10), argument(REG_R8),  argument(REG_R9)};
  call.result = -ENOSYS;
  const TrapHandler handler = trap_handler.load(std::memory_order_acquire);
  AMASIA_CHECK(handler != nullptr, "a filter was installed before its handler");
  handler(call);
  registers[REG_RAX] = call.result;
  errno = saved_errno;
}

// 0 or errno. A thread that has got a filter of its own meanwhile stands in the way of all: EBUSY.
int filter_all_threads(const sock_fprog& program) {
  const long refused = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC,
                               &program);
  return refused == 0 ? 0 : refused > 0 ? EBUSY : errno;
}

Status install_handler(TrapHandler handler) {
  TrapHandler previous = nullptr;
  if (!trap_handler.compare_exchange_strong(previous, handler, std::memory_order_release)) {
    AMASIA_CHECK(previous == handler, "one system call handler a process");
    return base::ok();
  }
  struct sigaction action {};
  action.sa_sigaction = on_sigsys;
  // NODEFER: a handler may wait long, and a call caught inside another signal's handler must work.
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART;
  ::sigaddset(&action.sa_mask, kInterruption);  // waits until the call has ended
  if (sigaction(SIGSYS, &action, nullptr) != 0) {
    return base::errno_error(errno, "sigaction(SIGSYS)");
  }
  return base::ok();
}

}  // namespace

Status install_syscall_trap(const TrapRules& rules, TrapHandler handler) {
  if (Status status = install_handler(handler); !status.ok()) return status;
  std::vector<sock_filter> filter = build_filter(rules);
  AMASIA_CHECK(filter.size() <= BPF_MAXINSNS, "a filter has at most 4096 instructions");
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  // An administrator needs no promise that privileges will not grow; anyone else does.
  int refused = filter_all_threads(program);
  if (refused == EACCES) {
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
      return base::errno_error(errno, "prctl(PR_SET_NO_NEW_PRIVS)");
    }
    refused = filter_all_threads(program);
  }
  if (refused != 0) return base::errno_error(refused, "seccomp(SECCOMP_SET_MODE_FILTER)");
  return base::ok();
}

long make_uncaught_call(long number, const std::array<std::uint64_t, 6>& arguments) noexcept {
  long result = number;
  register std::uint64_t fourth asm("r10") = arguments[3];
  register std::uint64_t fifth asm("r8") = arguments[4];
  register std::uint64_t sixth asm("r9") = arguments[5];
  asm volatile("syscall"
               : "+a"(result)
               : "D"(arguments[0]), "S"(arguments[1]), "d"(arguments[2]), "r"(fourth), "r"(fifth),
                 "r"(sixth)
               : "rcx", "r11", "memory");
  return result;
}

}  // namespace amasia::os
