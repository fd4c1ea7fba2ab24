// SPDX-License-Identifier: Apache-2.0
// Programs and kernels: building, the cache, the compiler's log.
#include <fmt/format.h>

#include <algorithm>

#include "devices/backends/opencl/opencl_device.hpp"

namespace amasia::devices::opencl {
namespace {

struct Created {
  cl_program handle = nullptr;
  cl_int error = CL_SUCCESS;
};

Created from_binary(Device& device, const std::string& binary) {
  Created created;
  const auto* bytes = reinterpret_cast<const unsigned char*>(binary.data());
  const std::size_t size = binary.size();
  cl_int status = CL_SUCCESS;
  created.handle = device.cl.CreateProgramWithBinary(device.context, 1, &device.handle, &size,
                                                     &bytes, &status, &created.error);
  return created;
}

Created from_built_in(Device& device, const std::string& names) {
  Created created;
  created.handle = device.cl.CreateProgramWithBuiltInKernels(
      device.context, 1, &device.handle, names.c_str(), &created.error);
  return created;
}

// A device's compiler reads a graph itself, from the file that this option names (as MCL 0.6).
std::string options_of(const ProgramCode& code) {
  if (code.kind != ProgramKind::kGraph) return code.options;
  return code.options + (code.options.empty() ? "" : " ") + "-DMCL_CONFIG=" + code.path;
}

Created create(Device& device, const ProgramCode& code) {
  Created created;
  switch (code.kind) {
    case ProgramKind::kSource: {
      const char* text = code.code.data();
      const std::size_t size = code.code.size();
      created.handle = device.cl.CreateProgramWithSource(device.context, 1, &text, &size,
                                                         &created.error);
      break;
    }
    case ProgramKind::kSpirv:
      created.handle = device.create_with_il(device.context, code.code.data(), code.code.size(),
                                             &created.error);
      break;
    case ProgramKind::kBinary:
      return from_binary(device, code.code);
    case ProgramKind::kBuiltIn:
      return from_built_in(device, code.code);
    case ProgramKind::kGraph:
      return from_built_in(device, "dataflow");
    default:
      created.error = CL_INVALID_VALUE;
  }
  return created;
}

cl_int build(Device& device, cl_program program, const std::string& options) {
  return device.cl.BuildProgram(program, 1, &device.handle, options.c_str(), nullptr, nullptr);
}

std::string build_log(Device& device, cl_program program) {
  std::size_t size = 0;
  const auto& cl = device.cl;
  if (cl.GetProgramBuildInfo(program, device.handle, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size) !=
          CL_SUCCESS ||
      size <= 1) {
    return "";
  }
  std::string log(size, '\0');
  cl.GetProgramBuildInfo(program, device.handle, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
  log.resize(size - 1);
  return log;
}

std::string binary_of(Device& device, cl_program program) {
  std::size_t size = 0;
  if (device.cl.GetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr) !=
          CL_SUCCESS ||
      size == 0) {
    return "";
  }
  std::string binary(size, '\0');
  char* bytes = binary.data();
  const cl_int error =
      device.cl.GetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof bytes, &bytes, nullptr);
  return error == CL_SUCCESS ? binary : "";
}

ProgramKey key_for(const Device& device, const ProgramCode& code) {
  return {"opencl", device.description.name, device.driver, code.kind, code.options, code.code};
}

// Whether the back end can load such programs on the device; *outcome says why not.
bool can_load(const Device& device, const ProgramCode& code, Outcome* outcome) {
  if ((device.takes() & set_of(code.kind)) != 0) return true;
  const char* const why =
      code.kind == ProgramKind::kSpirv
          ? "its driver takes no SPIR-V"
          : "OpenCL takes OpenCL C, SPIR-V, its own binaries and built-in kernels";
  *outcome =
      failed(Failure::kUnsupported, fmt::format("{} cannot load {}: {}", device.description.name,
                                                title_of(code), why));
  return false;
}

}  // namespace

std::shared_ptr<Program> Program::build(Device& device, const ProgramCode& code,
                                        ProgramCache& cache, Outcome* outcome) {
  if (!can_load(device, code, outcome)) return nullptr;
  const std::string options = options_of(code);
  const bool compiled =
      code.kind == ProgramKind::kSource || code.kind == ProgramKind::kSpirv;
  const bool cached = compiled && is_self_contained(code);
  const ProgramKey key = cached ? key_for(device, code) : ProgramKey{};
  if (cached) {
    if (const auto binary = cache.find(key)) {
      const Created created = from_binary(device, *binary);
      if (created.handle != nullptr && created.error == CL_SUCCESS &&
          opencl::build(device, created.handle, options) == CL_SUCCESS) {
        return std::make_shared<Program>(device, created.handle);
      }
      // A driver that was changed without a new version: built again, and stored over the old one.
      if (created.handle != nullptr) device.cl.ReleaseProgram(created.handle);
    }
  }
  const Created created = create(device, code);
  if (created.handle == nullptr || created.error != CL_SUCCESS) {
    *outcome = failed(Failure::kBuild, fmt::format("{} is not taken by {}: {}", title_of(code),
                                                   device.description.name,
                                                   name_of_error(created.error)));
    if (created.handle != nullptr) device.cl.ReleaseProgram(created.handle);
    return nullptr;
  }
  auto program = std::make_shared<Program>(device, created.handle);
  const cl_int error = opencl::build(device, program->handle(), options);
  if (error != CL_SUCCESS) {
    *outcome = failed(Failure::kBuild,
                      fmt::format("{} does not build for {} with the options '{}' ({})\n{}",
                                  title_of(code), device.description.name, options,
                                  name_of_error(error), build_log(device, program->handle())));
    return nullptr;
  }
  if (cached) cache.store(key, binary_of(device, program->handle()));
  return program;
}

std::unique_ptr<Kernel> Kernel::make(Device& device, std::shared_ptr<Program> program,
                                     const std::string& name, std::size_t argument_count,
                                     Outcome* outcome) {
  auto kernel = std::make_unique<Kernel>(device, std::move(program), name, argument_count);
  cl_int error = CL_SUCCESS;
  const cl_kernel first = kernel->take(&error);
  if (first == nullptr) {
    *outcome = error == CL_INVALID_KERNEL_NAME
                   ? failed(Failure::kNoKernel,
                            fmt::format("the program has no kernel '{}' for {}", name,
                                        device.description.name))
                   : failed(Failure::kDevice, fmt::format("cannot make the kernel '{}': {}", name,
                                                          name_of_error(error)));
    return nullptr;
  }
  cl_uint has = 0;
  error = device.cl.GetKernelInfo(first, CL_KERNEL_NUM_ARGS, sizeof has, &has, nullptr);
  kernel->learn_sizes(first);
  kernel->give_back(first);
  if (error == CL_SUCCESS) kernel->arguments_ = has;
  *outcome = kernel->refuses(argument_count);
  if (outcome->failure != Failure::kNone) return nullptr;
  return kernel;
}

void Kernel::learn_sizes(cl_kernel kernel) {
  std::size_t most = 0;
  const auto ask = [&](cl_kernel_work_group_info what, std::size_t size, void* out) {
    return device_.cl.GetKernelWorkGroupInfo(kernel, device_.handle, what, size, out, nullptr) ==
           CL_SUCCESS;
  };
  if (!ask(CL_KERNEL_COMPILE_WORK_GROUP_SIZE, sizeof required_, required_)) required_[0] = 0;
  chooses_sizes_ = device_.watch.has_value() &&
                   ask(CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most) && most > 0;
  limits_.most = most;
  std::copy_n(device_.description.max_work_sizes, 3, limits_.most_in);
}

// Those that the kernel's source demands have to be given. A GPU's driver takes 5 us to choose
// some, which counts where the kernel takes as much; where it runs for longer the driver may know
// better.
bool Kernel::choose_sizes(const Work& work, std::size_t local[3]) const {
  constexpr double kBrief = 10 * base::kMicrosecond;
  constexpr std::uint64_t kEnough = 32;
  if (required_[0] != 0) {
    std::copy_n(required_, 3, local);
    return true;
  }
  const double expected = chooses_sizes_ ? time.expected(items_of(work)) : -1;
  if (expected < 0 || expected > kBrief) return false;
  std::uint64_t group[3];
  const std::uint64_t items = choose_group(work, limits_, group);
  if (items < kEnough && items != items_of(work)) return false;
  std::copy_n(group, 3, local);
  return true;
}

Outcome Kernel::refuses(std::size_t count) const {
  if (count == arguments_) return {};
  return failed(Failure::kArguments, fmt::format("the kernel '{}' takes {} arguments, not {}",
                                                 name_, arguments_, count));
}

// The driver looks at sizes when an argument is set, which need not be for a launch. Only what it
// says of the size counts: a value of zeroes may be none that this parameter can have.
Outcome Kernel::refuses(std::span<const ArgumentShape> shapes) const {
  Outcome outcome = refuses(shapes.size());
  cl_int error = CL_SUCCESS;
  const cl_kernel kernel = outcome.failure == Failure::kNone ? take(&error) : nullptr;
  if (kernel == nullptr) return outcome;
  std::vector<std::byte> zeroes;
  for (cl_uint index = 0; index < shapes.size() && outcome.failure == Failure::kNone; ++index) {
    const ArgumentShape& shape = shapes[index];
    const void* value = nullptr;
    std::size_t size = shape.size;
    if (shape.kind == ArgumentKind::kBuffer) size = sizeof(cl_mem);
    if (shape.kind == ArgumentKind::kValue) {
      zeroes.assign(size, std::byte{0});
      value = zeroes.data();
    }
    error = device_.cl.SetKernelArg(kernel, index, size, value);
    if (error == CL_INVALID_ARG_SIZE) outcome = wrong_argument(error, *this, index, size);
  }
  give_back(kernel);
  return outcome;
}

Kernel::~Kernel() {
  for (const cl_kernel kernel : idle_) device_.cl.ReleaseKernel(kernel);
}

cl_kernel Kernel::take(cl_int* error) const {
  {
    const os::MutexLock lock(mutex_);
    if (!idle_.empty()) {
      const cl_kernel kernel = idle_.back();
      idle_.pop_back();
      return kernel;
    }
  }
  return device_.cl.CreateKernel(program_->handle(), name_.c_str(), error);
}

void Kernel::give_back(cl_kernel kernel) const {
  const os::MutexLock lock(mutex_);
  idle_.push_back(kernel);
}

}  // namespace amasia::devices::opencl
