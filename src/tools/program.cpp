// SPDX-License-Identifier: Apache-2.0
#include "tools/program.hpp"

#include <elf.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>

#include "os/os.hpp"

namespace amasia::tools {
namespace {

#if defined(__x86_64__)
constexpr Elf64_Half kThisMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr Elf64_Half kThisMachine = EM_AARCH64;
#endif

std::string machine_name(unsigned machine, bool wide) {
  switch (machine) {
    case EM_X86_64:
      return wide ? "x86-64" : "x32";
    case EM_386:
      return "32-bit x86";
    case EM_AARCH64:
      return "AArch64";
    case EM_ARM:
      return "32-bit Arm";
    case EM_RISCV:
      return wide ? "64-bit RISC-V" : "32-bit RISC-V";
    case EM_PPC64:
      return "64-bit Power";
    case EM_S390:
      return "S/390";
    default:
      return fmt::format("machine number {}", machine);
  }
}

std::string quote(const std::string& name) { return "'" + name + "'"; }

bool is_executable_file(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

Result<std::string> resolve(const std::string& name, const char* search_path) {
  if (name.empty()) return Error{"the name of the program is empty", ENOENT};
  if (name.find('/') != std::string::npos) return name;
  std::string_view rest(search_path != nullptr ? search_path : "/bin:/usr/bin");
  std::string refused;  // found, but not executable
  while (true) {
    const auto colon = rest.find(':');
    const std::string_view folder = rest.substr(0, colon);
    std::string path = folder.empty() ? name : fmt::format("{}/{}", folder, name);
    if (is_executable_file(path)) return path;
    struct stat info {};
    if (refused.empty() && ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode)) {
      refused = path;
    }
    if (colon == std::string_view::npos) break;
    rest.remove_prefix(colon + 1);
  }
  if (!refused.empty()) return refused;  // inspect() says what is wrong with it
  return Error{quote(name) + ": there is no such program on PATH", ENOENT};
}

struct Elf {
  bool dynamic = false;
  std::string loader;
};

// Null: not an ELF file.
Result<std::optional<Elf>> read_elf(const std::string& path, int file) {
  Elf64_Ehdr head{};
  const ssize_t got = ::pread(file, &head, sizeof head, 0);
  if (got < SELFMAG || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) {
    return std::optional<Elf>();
  }
  if (got < static_cast<ssize_t>(sizeof(Elf32_Ehdr))) {
    return Error{quote(path) + " is a damaged program: it ends within its header", ENOEXEC};
  }
  const bool wide = head.e_ident[EI_CLASS] == ELFCLASS64;
  const bool little = head.e_ident[EI_DATA] == ELFDATA2LSB;
  const unsigned machine =
      little ? head.e_machine : static_cast<unsigned>(__builtin_bswap16(head.e_machine));
  if (machine != kThisMachine || !wide || !little) {
    return Error{fmt::format("{} is a program for {}; this machine runs {}", quote(path),
                             machine_name(machine, wide), machine_name(kThisMachine, true)),
                 ENOEXEC};
  }
  if (head.e_type != ET_EXEC && head.e_type != ET_DYN) {
    return Error{quote(path) + " is an object file or a core dump, not a program", ENOEXEC};
  }
  Elf elf;
  for (unsigned i = 0; i < head.e_phnum; ++i) {
    Elf64_Phdr segment{};
    const auto at = static_cast<off_t>(head.e_phoff + i * sizeof segment);
    if (::pread(file, &segment, sizeof segment, at) != sizeof segment) {
      return Error{quote(path) + " is a damaged program: it ends within its segment table",
                   ENOEXEC};
    }
    if (segment.p_type != PT_INTERP || segment.p_filesz > 4096) continue;
    elf.dynamic = true;
    elf.loader.resize(segment.p_filesz);
    const ssize_t read =
        ::pread(file, elf.loader.data(), elf.loader.size(), static_cast<off_t>(segment.p_offset));
    elf.loader.resize(strnlen(elf.loader.data(), read < 0 ? 0 : static_cast<std::size_t>(read)));
  }
  // A shared library may be executable by its mode; only one with an entry point is a program.
  if (!elf.dynamic && head.e_type == ET_DYN && head.e_entry == 0) {
    return Error{quote(path) + " is a shared library, not a program", ENOEXEC};
  }
  return std::optional<Elf>(elf);
}

bool looks_like_text(int file) {
  std::array<char, 256> start{};
  const ssize_t got = ::pread(file, start.data(), start.size(), 0);
  return got >= 0 && std::find(start.begin(), start.begin() + got, '\0') == start.begin() + got;
}

Result<Program> inspect(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return Error{quote(path) + ": there is no such program", errno};
    return base::errno_error(errno, quote(path));
  }
  if (S_ISDIR(info.st_mode)) return Error{quote(path) + " is a folder, not a program", EISDIR};
  if (!S_ISREG(info.st_mode)) return Error{quote(path) + " is not a program", EACCES};
  if (::access(path.c_str(), X_OK) != 0) {
    return Error{quote(path) + " is not executable (chmod +x makes it so)", EACCES};
  }
  Program program{.path = path, .loader = {}};
  program.privileged = (info.st_mode & (S_ISUID | S_ISGID)) != 0 ||
                       ::getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
  const os::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  // Executable but not readable is legal: the kernel will tell whether it can be run.
  if (!file.valid()) {
    program.privileged = true;
    return program;
  }
  auto elf = read_elf(path, file.get());
  if (!elf.ok()) return elf.error();
  if (elf.value()) {
    program.dynamic = elf.value()->dynamic;
    program.loader = elf.value()->loader;
    return program;
  }
  if (info.st_size == 0 || !looks_like_text(file.get())) {
    return Error{quote(path) + " is neither a program nor a script", ENOEXEC};
  }
  program.kind = ProgramKind::kScript;
  return program;
}

// What a command that ends by itself prints on standard output.
Result<std::string> output_of(const os::SpawnRequest& request, os::Descriptor reading) {
  const auto child = os::spawn(request);
  ::close(request.standard_output);
  if (!child.ok()) return child.error();
  constexpr int kPatienceMs = 10000;
  std::string out;
  std::array<char, 4096> buffer{};
  while (true) {
    pollfd ready{reading.get(), POLLIN, 0};
    if (::poll(&ready, 1, kPatienceMs) <= 0) break;
    const ssize_t got = ::read(reading.get(), buffer.data(), buffer.size());
    if (got <= 0) break;
    out.append(buffer.data(), static_cast<std::size_t>(got));
  }
  ::kill(child.value(), SIGKILL);  // no effect on one that has ended
  int status = 0;
  ::waitpid(child.value(), &status, 0);
  return out;
}

}  // namespace

Result<Program> find_program(const std::string& name, const char* search_path) {
  auto path = resolve(name, search_path);
  if (!path.ok()) return path.error();
  return inspect(path.value());
}

std::string why_not_across_nodes(const Program& program) {
  if (program.kind == ProgramKind::kScript) return {};
  if (program.privileged) {
    return quote(program.path) +
           " runs with other privileges than yours (setuid, setgid, capabilities, or not readable),"
           " so no library can be loaded into it; only -n 1 is possible";
  }
  if (!program.dynamic) {
    return quote(program.path) +
           " is statically linked, so no library can be loaded into it; link it dynamically, or "
           "use -n 1";
  }
  return {};
}

Result<std::vector<LinkedLibrary>> linked_libraries(const Program& program) {
  if (program.kind != ProgramKind::kElf || !program.dynamic) return std::vector<LinkedLibrary>();
  auto pipe = os::make_pipe();
  if (!pipe.ok()) return pipe.error();
  os::SpawnRequest request;
  request.executable = program.loader;
  // A path without a slash would be looked for among the libraries.
  const bool bare = program.path.find('/') == std::string::npos;
  request.arguments = {program.loader, "--list", bare ? "./" + program.path : program.path};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (std::string_view(*entry).starts_with("LD_LIBRARY_PATH=")) request.environment = {*entry};
  }
  const os::Descriptor nowhere(::open("/dev/null", O_RDWR | O_CLOEXEC));
  request.standard_input = request.standard_error = nowhere.get();
  request.standard_output = pipe.value().second.release();
  const auto text = output_of(request, std::move(pipe.value().first));
  if (!text.ok()) return text.error();
  if (text.value().empty()) {
    return Error{program.loader + " does not tell the libraries of " + quote(program.path), 0};
  }
  std::vector<LinkedLibrary> out;
  std::string_view rest(text.value());
  while (!rest.empty()) {  // "\tlibm.so.6 => /lib/libm.so.6 (0x…)", "\tlibx.so => not found"
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    const auto arrow = line.find(" => ");
    if (arrow == std::string_view::npos) continue;
    LinkedLibrary library{std::string(line.substr(0, arrow)), {}};
    const std::string_view where = line.substr(arrow + 4);
    if (!where.starts_with("not found")) library.path = where.substr(0, where.rfind(" ("));
    out.push_back(std::move(library));
  }
  return out;
}

OpenMpUse openmp_use(const std::vector<LinkedLibrary>& libraries) {
  OpenMpUse use;
  for (const LinkedLibrary& library : libraries) {
    const auto runtime = launch::openmp_runtime_of(library.name);
    if (runtime == launch::OpenMpRuntime::kNone) continue;
    if (use.runtime == launch::OpenMpRuntime::kLibomp) continue;
    use = {runtime, library};
  }
  return use;
}

}  // namespace amasia::tools
