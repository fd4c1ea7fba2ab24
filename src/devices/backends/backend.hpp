// SPDX-License-Identifier: Apache-2.0
// What a back end is: it runs in the client's process, never in the daemon. A new one is a folder
// here, and one line in registry.cpp.
//
// Who calls: the client's worker threads and threads that wait for a task, any number at a time.
// All methods may be called from any thread, except where said. None throws. No method may call
// back into the client, but for Completion::finished.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "devices/ids.hpp"

namespace amasia::devices {

// Which of a back end's devices, 0 … devices().size() - 1.
using LocalDevice = std::uint32_t;

enum class ProgramKind : std::uint8_t {
  kSource,        // OpenCL C
  kSpirv,
  kBinary,        // what the device itself takes: a PoCL binary, a cubin
  kGraph,         // of a device's built-in kernel "dataflow"
  kBuiltIn,       // kernels that the device has already; `code` is their names, a;b;c
  kCudaSource,
  kHostLibrary,   // a shared object at `path`, whose functions are kernels (mcl_host_kernel)
  kHostFunction,  // `function` is the one kernel
};
using ProgramKinds = std::uint32_t;  // a set: bit i is kind i
constexpr ProgramKinds set_of(ProgramKind kind) { return 1U << static_cast<unsigned>(kind); }

// What to load; the same value gives the same program. Owned by the client as long as tasks use it.
struct ProgramCode {
  ProgramKind kind = ProgramKind::kSource;
  std::string code;     // the content of the file, not its path
  std::string path;     // where it came from, for messages; "" where it came from memory
  std::string options;  // the compiler's
  void* function = nullptr;  // kHostFunction: an mcl_host_kernel
};

// Memory on one device. Destroyed by the client when no task uses it: that frees the memory.
class DeviceBuffer {
 public:
  virtual ~DeviceBuffer() = default;
};

// Why something did not work, in the terms of the C API (mcl.h lists the codes; errors.hpp).
enum class Failure : std::uint8_t {
  kNone,
  kBuild,            // the program does not build; the message is the compiler's log
  kNoKernel,         // the program has no kernel of that name
  kArguments,        // wrong number or size of arguments, named in the message
  kWorkSize,         // global or local sizes that the device does not take
  kDeviceMemory,     // the device has no memory for it
  kUnsupported,      // this back end or device cannot load such programs
  kDevice,           // anything else the driver says, in its words
};
struct Outcome {
  Failure failure = Failure::kNone;
  std::string message;  // "" on success; else one sentence, or the compiler's log
  // CLOCK_MONOTONIC, 0 where not known: copies to the device begin, kernel begins, kernel ends,
  // copies back end.
  Nanos copy_began = 0, run_began = 0, run_ended = 0, copy_ended = 0;
};

// Of one argument what can be wrong with it before it has a place: buffers have size 0.
enum class ArgumentKind : std::uint8_t { kValue, kBuffer, kLocal };
struct ArgumentShape {
  ArgumentKind kind = ArgumentKind::kValue;
  std::size_t size = 0;
  bool operator==(const ArgumentShape&) const = default;
};

// Loaded, on one device. Destroyed by the client when no task uses it, before its back end.
class LoadedKernel {
 public:
  virtual ~LoadedKernel() = default;
  // What the kernel is known not to take, as Failure::kArguments with a sentence: so many arguments
  // (before they are set); arguments of these shapes. What is not known now is found when it runs.
  virtual Outcome refuses(std::size_t count) const {
    static_cast<void>(count);
    return {};
  }
  virtual Outcome refuses(std::span<const ArgumentShape> shapes) const {
    static_cast<void>(shapes);
    return {};
  }
};

// Told exactly once of the end of a Work, from any thread, also from within submit(). It must be
// quick and may not block: it may run on a driver's thread.
class Completion {
 public:
  virtual void finished(Outcome&& outcome) noexcept = 0;
  // The same, where the calling thread tells of another Work's end right after this: what is done
  // once for several ends may be left to that.
  virtual void finished_with_others(Outcome&& outcome) noexcept { finished(std::move(outcome)); }

 protected:
  ~Completion() = default;
};

struct KernelArgument {
  using Kind = ArgumentKind;
  Kind kind = Kind::kValue;
  const void* value = nullptr;     // kValue: `size` bytes, to be copied by submit()
  std::size_t size = 0;            // kValue, kLocal (bytes of work-group memory), kBuffer
  DeviceBuffer* buffer = nullptr;  // kBuffer: of the same device
  Bytes offset = 0;                // kBuffer: where in the buffer the argument begins
};
// Between host memory and a buffer, either way. `host` stays valid and unchanged (to device), or
// untouched by others (to host), until the Work has finished.
struct Copy {
  DeviceBuffer* buffer = nullptr;
  Bytes offset = 0;
  void* host = nullptr;
  Bytes size = 0;
};

// Whether the thread that submits a work calls wait_for() for it.
enum class CallerWaits : std::uint8_t {
  kNo,
  kPerhaps,  // it may do so soon: for some microseconds nobody else need notice the end
  kAtOnce,   // as soon as submit() has returned: nobody else need, before that call is over
};

// One task's share of a device: copies to it, then the kernel, then copies back, in this order.
// Works of different tasks are independent and should overlap (copies of one, kernel of another).
struct Work {
  LocalDevice device = 0;
  LoadedKernel* kernel = nullptr;  // nullptr: only copies (a transfer task)
  std::uint32_t dimensions = 1;
  std::uint64_t global[3] = {1, 1, 1};
  std::uint64_t local[3] = {0, 0, 0};   // all 0: the back end chooses
  std::uint64_t offset[3] = {0, 0, 0};  // of global ids
  std::span<const KernelArgument> arguments;
  std::span<const Copy> to_device;
  std::span<const Copy> to_host;
  // The outcome's times are wanted of this very work; else what is known of its kernel will do.
  bool wants_times = true;
  CallerWaits caller_waits = CallerWaits::kNo;
};

struct Submission {
  Work work;
  Completion* completion = nullptr;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  // Found once, when the back end was made; the same order all along.
  virtual const std::vector<DeviceDescription>& devices() const = 0;
  // Programs that the device may be able to load. Tasks of others are not placed there.
  virtual ProgramKinds takes(LocalDevice device) const {
    static_cast<void>(device);
    return set_of(ProgramKind::kSource) | set_of(ProgramKind::kSpirv) |
           set_of(ProgramKind::kBinary) | set_of(ProgramKind::kGraph) |
           set_of(ProgramKind::kBuiltIn);
  }

  // Loads `code` for the device (building it, or taking it from the on-disk cache) and finds
  // `kernel` in it. Blocks for as long as a compiler takes. The client remembers what it got by
  // (program, device, kernel name), so each is asked for once. `argument_count` is what the user
  // said; a different number in the program is Failure::kArguments. On failure *outcome says why,
  // and with kNoKernel the client looks for the kernel in other programs.
  virtual std::unique_ptr<LoadedKernel> load(LocalDevice device, const ProgramCode& code,
                                             const std::string& kernel, std::size_t argument_count,
                                             Outcome* outcome) = 0;

  // Memory for `size` bytes (> 0). `host` is the user's memory of that size, which lives as long as
  // the buffer: a device that shares host memory may use it in place; then copies between the two
  // are no-ops. nullptr: the device's own. Does not block for long.
  virtual std::unique_ptr<DeviceBuffer> allocate(LocalDevice device, Bytes size, void* host,
                                                 Outcome* outcome) = 0;

  // Whether submit() to the device may run whole kernels before it returns: several threads should
  // then submit to several such devices.
  virtual bool runs_in_caller(LocalDevice device) const {
    static_cast<void>(device);
    return false;
  }
  // Whether works that copy are begun sooner by several threads that submit them at a time.
  virtual bool takes_copies_from_many(LocalDevice device) const {
    static_cast<void>(device);
    return false;
  }
  // Begins the work and returns; `completion` is told of the end, or of what is wrong. All that
  // `work` points to stays until then. May run a short kernel to its end before it returns.
  virtual void submit(const Work& work, Completion& completion) = 0;
  // The same for several, in this order. Of those that are known to be brief the end may be told
  // when some more of them have ended, which must be a matter of microseconds.
  virtual void submit_all(std::span<const Submission> all) {
    for (const Submission& one : all) submit(one.work, *one.completion);
  }

  // The calling thread waits for `completion`, of a work submitted and perhaps finished, and has
  // nothing else to do: a back end whose driver has a cheaper way to wait than a call-back may use
  // it, until `deadline` (CLOCK_MONOTONIC) at the latest. Returns at once where there is none.
  // The completion may have been told, and have gone, before or during the call.
  virtual void wait_for(Completion& completion, Nanos deadline) {
    static_cast<void>(completion);
    static_cast<void>(deadline);
  }
};

}  // namespace amasia::devices
