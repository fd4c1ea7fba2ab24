// SPDX-License-Identifier: Apache-2.0
#include "devices/backends/cuda/cuda_program.hpp"

#include <fmt/format.h>

#include <vector>

#include "devices/backends/cuda/cuda_launch.hpp"
#include "devices/backends/outcomes.hpp"

namespace amasia::devices::cuda {
namespace {

std::vector<int> supported_by(const Compiler& compiler) {
  int count = 0;
  if (compiler.GetNumSupportedArchs(&count) != kSuccess || count <= 0) return {};
  std::vector<int> archs(static_cast<std::size_t>(count));
  if (compiler.GetSupportedArchs(archs.data()) != kSuccess) return {};
  return archs;
}

// One that is being compiled.
class Job {
 public:
  Job(const Compiler& compiler, const ProgramCode& code) : compiler_(compiler) {
    const std::string name = code.path.empty() ? "program.cu" : code.path;
    made_ = compiler_.CreateProgram(&program_, code.code.c_str(), name.c_str(), 0, nullptr,
                                    nullptr) == kSuccess;
  }
  ~Job() {
    if (made_) compiler_.DestroyProgram(&program_);
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  bool compile(const std::vector<std::string>& options) {
    std::vector<const char*> words;
    for (const std::string& option : options) words.push_back(option.c_str());
    return made_ && compiler_.CompileProgram(program_, static_cast<int>(words.size()),
                                             words.data()) == kSuccess;
  }
  std::string log() const {
    return made_ ? text(compiler_.GetProgramLogSize, compiler_.GetProgramLog) : "";
  }
  std::string code(bool is_ptx) const {
    return is_ptx ? text(compiler_.GetPtxSize, compiler_.GetPtx)
                  : text(compiler_.GetCubinSize, compiler_.GetCubin);
  }

 private:
  std::string text(CUresult (*size_of)(nvrtcProgram, std::size_t*),
                   CUresult (*get)(nvrtcProgram, char*)) const {
    std::size_t size = 0;
    if (size_of(program_, &size) != kSuccess || size == 0) return "";
    std::string bytes(size, '\0');
    return get(program_, bytes.data()) == kSuccess ? bytes : "";
  }

  const Compiler& compiler_;
  nvrtcProgram program_ = nullptr;
  bool made_ = false;
};

}  // namespace

std::string compile(const Compiler& compiler, const ProgramCode& code, int capability,
                    Outcome* outcome) {
  const auto target = target_for(capability, supported_by(compiler));
  if (!target) {
    *outcome = failed(Failure::kUnsupported,
                      fmt::format("the compiler (NVRTC) knows no code for compute capability {}.{}",
                                  capability / 10, capability % 10));
    return "";
  }
  std::vector<std::string> options = split_options(code.options);
  options.push_back(target->option);
  Job job(compiler, code);
  if (!job.compile(options)) {
    *outcome = failed(Failure::kBuild, fmt::format("{} does not build with the options '{}'\n{}",
                                                   title_of(code), code.options, job.log()));
    return "";
  }
  std::string made = job.code(target->is_ptx);
  if (made.empty()) {
    *outcome = failed(Failure::kBuild, fmt::format("the compiler (NVRTC) made nothing of {}",
                                                   title_of(code)));
  }
  return made;
}

std::string compile_cached(const ProgramCode& code, int capability, ProgramCache& cache,
                           Outcome* outcome) {
  const auto compiler = load_compiler();
  int major = 0, minor = 0;
  if (compiler) compiler.value()->Version(&major, &minor);
  const ProgramKey key{"cuda",
                       fmt::format("sm_{}", capability),
                       fmt::format("NVRTC {}.{}", major, minor),
                       code.kind,
                       code.options,
                       code.code};
  const bool cached = is_self_contained(code);
  if (cached) {
    if (auto binary = cache.find(key)) return *std::move(binary);
  }
  if (!compiler) {
    *outcome = failed(Failure::kUnsupported,
                      fmt::format("{} cannot be compiled: {}", title_of(code),
                                  compiler.error().message));
    return "";
  }
  std::string made = compile(*compiler.value(), code, capability, outcome);
  if (cached && !made.empty()) cache.store(key, made);
  return made;
}

}  // namespace amasia::devices::cuda
