// SPDX-License-Identifier: Apache-2.0
// The doctor's part that looks at a program.
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>

#include "os/os.hpp"
#include "tools/doctor.hpp"

namespace amasia::tools {
namespace {

// A file mapped for reading, whose structures are looked at only where they lie within it.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path) {
    const os::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat info {};
    if (!file.valid() || ::fstat(file.get(), &info) != 0 || info.st_size <= 0) return;
    size_ = static_cast<std::size_t>(info.st_size);
    void* mapped = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (mapped != MAP_FAILED) begin_ = static_cast<const char*>(mapped);
  }
  ~MappedFile() {
    if (begin_ != nullptr) ::munmap(const_cast<char*>(begin_), size_);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  template <typename T>
  const T* at(std::uint64_t offset, std::uint64_t count = 1) const {
    if (begin_ == nullptr || count > size_ / sizeof(T)) return nullptr;
    if (offset > size_ - count * sizeof(T)) return nullptr;
    return reinterpret_cast<const T*>(begin_ + offset);
  }
  std::string_view text_at(std::uint64_t offset) const {
    if (begin_ == nullptr || offset >= size_) return {};
    return {begin_ + offset, strnlen(begin_ + offset, size_ - offset)};
  }

 private:
  const char* begin_ = nullptr;
  std::size_t size_ = 0;
};

// Whether an ELF file takes `symbol` from another one.
bool imports(const std::string& path, std::string_view symbol) {
  const MappedFile file(path);
  const auto* head = file.at<Elf64_Ehdr>(0);
  if (head == nullptr || std::memcmp(head->e_ident, ELFMAG, SELFMAG) != 0) return false;
  const auto* sections = file.at<Elf64_Shdr>(head->e_shoff, head->e_shnum);
  if (sections == nullptr) return false;
  for (unsigned i = 0; i < head->e_shnum; ++i) {
    if (sections[i].sh_type != SHT_DYNSYM || sections[i].sh_link >= head->e_shnum) continue;
    const std::uint64_t count = sections[i].sh_size / sizeof(Elf64_Sym);
    const auto* symbols = file.at<Elf64_Sym>(sections[i].sh_offset, count);
    if (symbols == nullptr) return false;
    const std::uint64_t names = sections[sections[i].sh_link].sh_offset;
    for (std::uint64_t s = 0; s < count; ++s) {
      if (symbols[s].st_shndx == SHN_UNDEF && file.text_at(names + symbols[s].st_name) == symbol) {
        return true;
      }
    }
  }
  return false;
}

bool is_system_library(std::string_view name) {
  for (const std::string_view prefix :
       {"libc.so", "libm.so", "ld-linux", "libpthread", "libdl.so", "libgcc_s", "libstdc++",
        "libomp", "libgomp", "libiomp5", "libnss_", "libcrypto", "libgfortran"}) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

std::optional<Finding> judge_dlopen(const Program& program,
                                    const std::vector<LinkedLibrary>& libraries) {
  std::string users;
  if (imports(program.path, "dlopen")) users = program.path;
  for (const LinkedLibrary& library : libraries) {
    if (library.path.empty() || is_system_library(library.name)) continue;
    if (imports(library.path, "dlopen")) users += (users.empty() ? "" : ", ") + library.name;
  }
  if (users.empty()) return std::nullopt;
  return Finding{Severity::kNote, "libraries may be loaded while it runs, by " + users,
                 "variables of libraries that are not there when main begins are not shared "
                 "between nodes; LD_PRELOAD them if parallel regions use them"};
}

}  // namespace

Finding judge_openmp(const Program& program, const std::vector<LinkedLibrary>& libraries) {
  const OpenMpUse use = openmp_use(libraries);
  if (use.runtime == launch::OpenMpRuntime::kNone) {
    return {Severity::kNote, "OpenMP runtime: none among the libraries of " + program.path,
            "it runs on the origin alone, unless it starts an OpenMP program; compile with "
            "-fopenmp to change that"};
  }
  const char* name = use.runtime == launch::OpenMpRuntime::kLibomp ? "libomp" : "libgomp";
  return {Severity::kGood, fmt::format("OpenMP runtime: {} ({})", name, use.library.path), {}};
}

std::vector<Finding> examine_program(const std::string& name) {
  const auto found = find_program(name, std::getenv("PATH"));
  if (!found.ok()) {
    return {{Severity::kProblem, found.error().message, "name a program that can be executed"}};
  }
  const Program& program = found.value();
  if (program.kind == ProgramKind::kScript) {
    return {{Severity::kGood, "program: " + program.path + " is a script", {}},
            {Severity::kNote, "what it starts is not known here",
             "nodes are started when an OpenMP program begins below it; examine that program"}};
  }
  if (const std::string why = why_not_across_nodes(program); !why.empty()) {
    return {{Severity::kProblem, why, "see above"}};
  }
  std::vector<Finding> out = {
      {Severity::kGood, "program: " + program.path + ", dynamically linked, for this machine", {}}};
  const auto libraries = linked_libraries(program);
  if (!libraries.ok()) {
    out.push_back({Severity::kProblem, libraries.error().message, "can it be run at all?"});
    return out;
  }
  for (const LinkedLibrary& library : libraries.value()) {
    if (library.path.empty()) {
      out.push_back({Severity::kProblem, "library " + library.name + ": not found",
                     "install it, or put its folder into LD_LIBRARY_PATH"});
    }
  }
  out.push_back(judge_openmp(program, libraries.value()));
  if (auto finding = judge_dlopen(program, libraries.value())) out.push_back(*finding);
  return out;
}

}  // namespace amasia::tools
