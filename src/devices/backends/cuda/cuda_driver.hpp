// SPDX-License-Identifier: Apache-2.0
// The part of CUDA's driver API and of NVRTC that the back end calls, declared here and found at
// run time (libcuda.so.1, libnvrtc.so): so it is in every build, also of a machine without CUDA's
// headers, and works wherever a driver is. Where the headers are, cuda_driver_test.cpp holds these
// declarations against theirs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/base.hpp"

namespace amasia::devices::cuda {

// As in cuda.h, whose enumerations have the size of an int.
using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUgraph = struct CUgraph_st*;
using CUgraphNode = struct CUgraphNode_st*;
using CUgraphExec = struct CUgraphExec_st*;
struct CUuuid {
  char bytes[16];
};
// CUDA_KERNEL_NODE_PARAMS_v2
struct KernelNode {
  CUfunction function = nullptr;
  unsigned grid[3] = {}, block[3] = {};
  unsigned shared_bytes = 0;
  void** parameters = nullptr;
  void** extra = nullptr;
  void* kernel = nullptr;       // in place of the function
  CUcontext context = nullptr;  // then; else the function's
};
using nvrtcProgram = struct _nvrtcProgram*;
using nvrtcResult = int;

inline constexpr CUresult kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kInvalidImage = 200,
                          kNoBinaryForGpu = 209, kNotFound = 500, kNotReady = 600,
                          kLaunchOutOfResources = 701;
// CUdevice_attribute
inline constexpr int kMaxThreadsPerBlock = 1, kMaxBlockDimX = 2, kMultiprocessorCount = 16,
                     kComputeCapabilityMajor = 75, kComputeCapabilityMinor = 76;
inline constexpr int kFunctionMaxThreadsPerBlock = 0;       // CUfunction_attribute
inline constexpr unsigned kContextBlockingSync = 0x4;       // CUctx_flags
inline constexpr unsigned kStreamNonBlocking = 0x1;         // CUstream_flags
inline constexpr unsigned kEventDefault = 0x0, kEventDisableTiming = 0x2;  // CUevent_flags

// F(member, name of the symbol, result, parameters). Names with a version are those that programs
// built with any toolkit since CUDA 4 get.
#define AMASIA_CUDA_FUNCTIONS(F)                                                                  \
  F(Init, cuInit, (unsigned))                                                                    \
  F(DriverGetVersion, cuDriverGetVersion, (int*))                                                \
  F(GetErrorName, cuGetErrorName, (CUresult, const char**))                                      \
  F(GetErrorString, cuGetErrorString, (CUresult, const char**))                                  \
  F(DeviceGetCount, cuDeviceGetCount, (int*))                                                    \
  F(DeviceGet, cuDeviceGet, (CUdevice*, int))                                                    \
  F(DeviceGetName, cuDeviceGetName, (char*, int, CUdevice))                                      \
  F(DeviceGetUuid, cuDeviceGetUuid, (CUuuid*, CUdevice))                                         \
  F(DeviceTotalMem, cuDeviceTotalMem_v2, (std::size_t*, CUdevice))                               \
  F(DeviceGetAttribute, cuDeviceGetAttribute, (int*, int, CUdevice))                             \
  F(PrimaryCtxRetain, cuDevicePrimaryCtxRetain, (CUcontext*, CUdevice))                          \
  F(PrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, (CUdevice))                                 \
  F(PrimaryCtxSetFlags, cuDevicePrimaryCtxSetFlags_v2, (CUdevice, unsigned))                     \
  F(CtxPushCurrent, cuCtxPushCurrent_v2, (CUcontext))                                            \
  F(CtxPopCurrent, cuCtxPopCurrent_v2, (CUcontext*))                                             \
  F(ModuleLoadData, cuModuleLoadData, (CUmodule*, const void*))                                  \
  F(ModuleUnload, cuModuleUnload, (CUmodule))                                                    \
  F(ModuleGetFunction, cuModuleGetFunction, (CUfunction*, CUmodule, const char*))                \
  F(FuncGetAttribute, cuFuncGetAttribute, (int*, int, CUfunction))                               \
  F(MemAlloc, cuMemAlloc_v2, (CUdeviceptr*, std::size_t))                                        \
  F(MemFree, cuMemFree_v2, (CUdeviceptr))                                                        \
  F(MemHostAlloc, cuMemHostAlloc, (void**, std::size_t, unsigned))                               \
  F(MemFreeHost, cuMemFreeHost, (void*))                                                         \
  F(MemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, (CUdeviceptr, const void*, std::size_t, CUstream))    \
  F(MemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, (void*, CUdeviceptr, std::size_t, CUstream))          \
  F(MemcpyDtoDAsync, cuMemcpyDtoDAsync_v2, (CUdeviceptr, CUdeviceptr, std::size_t, CUstream))    \
  F(MemcpyPeerAsync, cuMemcpyPeerAsync,                                                          \
    (CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, std::size_t, CUstream))                     \
  F(StreamCreate, cuStreamCreate, (CUstream*, unsigned))                                         \
  F(StreamDestroy, cuStreamDestroy_v2, (CUstream))                                               \
  F(StreamSynchronize, cuStreamSynchronize, (CUstream))                                          \
  F(EventCreate, cuEventCreate, (CUevent*, unsigned))                                            \
  F(EventDestroy, cuEventDestroy_v2, (CUevent))                                                  \
  F(EventRecord, cuEventRecord, (CUevent, CUstream))                                             \
  F(EventQuery, cuEventQuery, (CUevent))                                                         \
  F(EventElapsedTime, cuEventElapsedTime, (float*, CUevent, CUevent))                            \
  F(LaunchKernel, cuLaunchKernel,                                                                \
    (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, \
     void**, void**))
// Without the first the device's address is not known; the second is of CUDA 12.4, and without it
// the number and sizes of a kernel's parameters are not; without the others, of CUDA 12, each
// kernel is launched by itself (cuda_row.hpp).
#define AMASIA_CUDA_OPTIONAL_FUNCTIONS(F)                                                          \
  F(DeviceGetPCIBusId, cuDeviceGetPCIBusId, (char*, int, CUdevice))                               \
  F(FuncGetParamInfo, cuFuncGetParamInfo, (CUfunction, std::size_t, std::size_t*, std::size_t*))  \
  F(GraphCreate, cuGraphCreate, (CUgraph*, unsigned))                                             \
  F(GraphAddKernelNode, cuGraphAddKernelNode_v2,                                                  \
    (CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t, const KernelNode*))                  \
  F(GraphInstantiate, cuGraphInstantiateWithFlags, (CUgraphExec*, CUgraph, unsigned long long))   \
  F(GraphSetKernelNode, cuGraphExecKernelNodeSetParams_v2,                                        \
    (CUgraphExec, CUgraphNode, const KernelNode*))                                                \
  F(GraphLaunch, cuGraphLaunch, (CUgraphExec, CUstream))                                          \
  F(GraphExecDestroy, cuGraphExecDestroy, (CUgraphExec))                                          \
  F(GraphDestroy, cuGraphDestroy, (CUgraph))

#define AMASIA_NVRTC_FUNCTIONS(F)                                                                 \
  F(Version, nvrtcVersion, (int*, int*))                                                         \
  F(GetNumSupportedArchs, nvrtcGetNumSupportedArchs, (int*))                                     \
  F(GetSupportedArchs, nvrtcGetSupportedArchs, (int*))                                           \
  F(CreateProgram, nvrtcCreateProgram,                                                           \
    (nvrtcProgram*, const char*, const char*, int, const char* const*, const char* const*))      \
  F(CompileProgram, nvrtcCompileProgram, (nvrtcProgram, int, const char* const*))                \
  F(DestroyProgram, nvrtcDestroyProgram, (nvrtcProgram*))                                        \
  F(GetProgramLogSize, nvrtcGetProgramLogSize, (nvrtcProgram, std::size_t*))                     \
  F(GetProgramLog, nvrtcGetProgramLog, (nvrtcProgram, char*))                                    \
  F(GetCubinSize, nvrtcGetCUBINSize, (nvrtcProgram, std::size_t*))                               \
  F(GetCubin, nvrtcGetCUBIN, (nvrtcProgram, char*))                                              \
  F(GetPtxSize, nvrtcGetPTXSize, (nvrtcProgram, std::size_t*))                                   \
  F(GetPtx, nvrtcGetPTX, (nvrtcProgram, char*))

#define AMASIA_CUDA_MEMBER(member, symbol, parameters) CUresult(*member) parameters = nullptr;

struct Driver {
  AMASIA_CUDA_FUNCTIONS(AMASIA_CUDA_MEMBER)
  AMASIA_CUDA_OPTIONAL_FUNCTIONS(AMASIA_CUDA_MEMBER)
  // "CUDA_ERROR_LAUNCH_FAILED (unspecified launch failure)"
  std::string text_of(CUresult error) const;
};
struct Compiler {
  AMASIA_NVRTC_FUNCTIONS(AMASIA_CUDA_MEMBER)
};
#undef AMASIA_CUDA_MEMBER

// Opened by the first call, for as long as the process lives; any thread. The error says that none
// is installed, or what it lacks.
Result<const Driver*> load_driver();
Result<const Compiler*> load_compiler();

}  // namespace amasia::devices::cuda
