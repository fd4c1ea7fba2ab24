// SPDX-License-Identifier: Apache-2.0
// The ICD loader (libOpenCL.so.1), found at run time: the library of ours that programs link needs
// no OpenCL to be installed. Only files of this folder include OpenCL's headers.
#pragma once

#define CL_TARGET_OPENCL_VERSION 300
// Command queues are made as in OpenCL 1.2, which every driver still has.
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>

#include <memory>
#include <string>

#include "base/base.hpp"

// What the back end calls. Names are those of the functions of cl.h without "cl".
#define AMASIA_OPENCL_FUNCTIONS(F)                                                                \
  F(GetPlatformIDs) F(GetPlatformInfo) F(GetDeviceIDs) F(GetDeviceInfo) F(CreateContext)          \
  F(ReleaseContext) F(CreateCommandQueue) F(ReleaseCommandQueue) F(CreateBuffer)                  \
  F(CreateSubBuffer) F(ReleaseMemObject) F(GetMemObjectInfo) F(SetMemObjectDestructorCallback)    \
  F(CreateProgramWithSource) F(CreateProgramWithBinary)                                           \
  F(CreateProgramWithBuiltInKernels) F(BuildProgram) F(GetProgramInfo) F(GetProgramBuildInfo)     \
  F(ReleaseProgram) F(CreateKernel) F(GetKernelInfo) F(GetKernelWorkGroupInfo) F(SetKernelArg)    \
  F(ReleaseKernel) F(EnqueueNDRangeKernel) F(EnqueueNativeKernel) F(EnqueueWriteBuffer)           \
  F(EnqueueReadBuffer) F(EnqueueCopyBuffer) F(EnqueueMarkerWithWaitList) F(Flush) F(Finish)       \
  F(GetEventInfo) F(SetEventCallback) F(WaitForEvents) F(GetEventProfilingInfo) F(RetainEvent)    \
  F(ReleaseEvent) F(GetExtensionFunctionAddressForPlatform)

namespace amasia::devices::opencl {

// Functions of the loader; the table lives as long as the process, as the drivers' threads do.
struct Library {
#define AMASIA_OPENCL_MEMBER(name) decltype(&::cl##name) name = nullptr;
  AMASIA_OPENCL_FUNCTIONS(AMASIA_OPENCL_MEMBER)
#undef AMASIA_OPENCL_MEMBER
  // Of OpenCL 2.1; nullptr where the loader is older.
  decltype(&::clCreateProgramWithIL) CreateProgramWithIL = nullptr;
};

// The loader, opened by the first call; any thread. The error says that none is installed, or which
// function it lacks.
Result<const Library*> load_library();

// "CL_OUT_OF_RESOURCES" and the like.
std::string name_of_error(cl_int error);

}  // namespace amasia::devices::opencl
