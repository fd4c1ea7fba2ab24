// SPDX-License-Identifier: Apache-2.0
#include "devices/backends/opencl/opencl_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

namespace amasia::devices::opencl {
namespace {

Result<const Library*> open_library() {
  void* const handle = ::dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return Error{"no OpenCL here: libOpenCL.so.1 is not installed"};
  static Library library;
  const char* missing = nullptr;
  const auto find = [&](const char* name) {
    void* const found = ::dlsym(handle, name);
    if (found == nullptr) missing = name;
    return found;
  };
#define AMASIA_OPENCL_FIND(name) \
  library.name = reinterpret_cast<decltype(library.name)>(find("cl" #name));
  AMASIA_OPENCL_FUNCTIONS(AMASIA_OPENCL_FIND)
#undef AMASIA_OPENCL_FIND
  if (missing != nullptr) return Error{fmt::format("libOpenCL.so.1 has no {}", missing)};
  library.CreateProgramWithIL = reinterpret_cast<decltype(library.CreateProgramWithIL)>(
      ::dlsym(handle, "clCreateProgramWithIL"));
  return static_cast<const Library*>(&library);
}

}  // namespace

Result<const Library*> load_library() {
  static const Result<const Library*> library = open_library();
  return library;
}

std::string name_of_error(cl_int error) {
#define AMASIA_OPENCL_ERROR(code) \
  case code:                      \
    return #code;
  switch (error) {
    AMASIA_OPENCL_ERROR(CL_DEVICE_NOT_FOUND)
    AMASIA_OPENCL_ERROR(CL_DEVICE_NOT_AVAILABLE)
    AMASIA_OPENCL_ERROR(CL_COMPILER_NOT_AVAILABLE)
    AMASIA_OPENCL_ERROR(CL_MEM_OBJECT_ALLOCATION_FAILURE)
    AMASIA_OPENCL_ERROR(CL_OUT_OF_RESOURCES)
    AMASIA_OPENCL_ERROR(CL_OUT_OF_HOST_MEMORY)
    AMASIA_OPENCL_ERROR(CL_BUILD_PROGRAM_FAILURE)
    AMASIA_OPENCL_ERROR(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
    AMASIA_OPENCL_ERROR(CL_INVALID_VALUE)
    AMASIA_OPENCL_ERROR(CL_INVALID_BINARY)
    AMASIA_OPENCL_ERROR(CL_INVALID_BUILD_OPTIONS)
    AMASIA_OPENCL_ERROR(CL_INVALID_PROGRAM)
    AMASIA_OPENCL_ERROR(CL_INVALID_PROGRAM_EXECUTABLE)
    AMASIA_OPENCL_ERROR(CL_INVALID_KERNEL_NAME)
    AMASIA_OPENCL_ERROR(CL_INVALID_KERNEL_ARGS)
    AMASIA_OPENCL_ERROR(CL_INVALID_ARG_INDEX)
    AMASIA_OPENCL_ERROR(CL_INVALID_ARG_VALUE)
    AMASIA_OPENCL_ERROR(CL_INVALID_ARG_SIZE)
    AMASIA_OPENCL_ERROR(CL_INVALID_WORK_DIMENSION)
    AMASIA_OPENCL_ERROR(CL_INVALID_WORK_GROUP_SIZE)
    AMASIA_OPENCL_ERROR(CL_INVALID_WORK_ITEM_SIZE)
    AMASIA_OPENCL_ERROR(CL_INVALID_GLOBAL_OFFSET)
    AMASIA_OPENCL_ERROR(CL_INVALID_GLOBAL_WORK_SIZE)
    AMASIA_OPENCL_ERROR(CL_INVALID_BUFFER_SIZE)
    AMASIA_OPENCL_ERROR(CL_INVALID_MEM_OBJECT)
    AMASIA_OPENCL_ERROR(CL_INVALID_OPERATION)
    AMASIA_OPENCL_ERROR(CL_MISALIGNED_SUB_BUFFER_OFFSET)
    default:
      return fmt::format("OpenCL error {}", error);
  }
#undef AMASIA_OPENCL_ERROR
}

}  // namespace amasia::devices::opencl
