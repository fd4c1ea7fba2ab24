// SPDX-License-Identifier: Apache-2.0
// One GPU: its memory, programs, streams, and works under way.
//
// A work is a row of commands in one stream, with a host function at its end. That function runs on
// a thread of the driver's, where nothing of CUDA may be called, so it only notes the time and
// hands the flight to the device's own thread, which sleeps otherwise. Where a device has failed
// the driver does not call it: while works are under way that thread looks once a second.
// Copies go through pinned memory of ours: from and to the user's own they would block the caller,
// to it even until the kernel has ended. The memory copy is one that the driver would make too.
//
// Who guards what
//   spare memory, pinned blocks, idle flights     mutex
//   flights in the air and landed                 mutex; `signal` wakes the thread
//   a flight                                      one owner at a time: submit(), driver, thread
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "devices/backends/cuda/cuda_driver.hpp"
#include "devices/backends/cuda/cuda_launch.hpp"
#include "devices/backends/outcomes.hpp"
#include "devices/backends/program_cache.hpp"
#include "devices/backends/spare_memory.hpp"
#include "os/os.hpp"

namespace amasia::devices::cuda {

class Device;

// Makes the device's context the calling thread's, and gives back the one it had.
class InContext {
 public:
  explicit InContext(const Device& device);
  ~InContext();
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;

 private:
  const Driver& cuda_;
};

class Program {
 public:
  // nullptr: *outcome says why.
  static std::shared_ptr<Program> load(Device& device, const ProgramCode& code,
                                       ProgramCache& cache, Outcome* outcome);
  Program(Device& device, CUmodule module) : device_(device), module_(module) {}
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  CUmodule module() const { return module_; }

 private:
  Device& device_;
  CUmodule module_;
};

class Kernel final : public LoadedKernel {
 public:
  static std::unique_ptr<Kernel> make(Device& device, std::shared_ptr<Program> program,
                                      const std::string& name, std::size_t argument_count,
                                      Outcome* outcome);
  Outcome refuses(std::size_t count) const override;
  Outcome refuses(std::span<const ArgumentShape> shapes) const override;
  CUfunction function = nullptr;
  std::string name;
  unsigned most_threads = 1;  // of a block, with the registers that it takes
  // Bytes of each parameter; known only where the driver tells (CUDA 12.4).
  std::vector<std::size_t> sizes;
  bool sizes_known = false;

 private:
  std::shared_ptr<Program> program_;
};

class Memory final : public DeviceBuffer {
 public:
  static std::unique_ptr<Memory> make(Device& device, Bytes size, Outcome* outcome);
  Memory(Device& device, CUdeviceptr at, Bytes rounded)
      : address(at), device_(device), rounded_(rounded) {}
  ~Memory() override;
  const CUdeviceptr address;

 private:
  Device& device_;
  Bytes rounded_;
};

// Events are made once and used again: to make one costs a microsecond and more.
enum Mark { kBegan, kRunBegan, kRunEnded, kEnded, kMarks };

struct Stream {
  CUstream handle = nullptr;
  std::atomic<std::uint32_t> works{0};  // relaxed: a hint for choosing one
};

struct Pinned {
  char* bytes = nullptr;
  Bytes size = 0;
};

// A work between submit() and its end.
struct Flight {
  Device* device = nullptr;
  Stream* stream = nullptr;
  Completion* completion = nullptr;
  std::array<CUevent, kMarks> marks{};
  bool ran = false, copied_in = false, copied_out = false;
  Outcome outcome;
  std::string kernel;
  std::vector<Pinned> pinned;
  struct Landing {
    void* host;
    const char* pinned;
    Bytes size;
  };
  std::vector<Landing> landings;  // what goes from pinned to the user's memory at the end
  Nanos landed_at = 0;
};

class Device {
 public:
  static constexpr std::size_t kStreams = 8;
  static Result<std::unique_ptr<Device>> open(const Driver& cuda, int ordinal);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // In one stream works run in the order in which they were submitted; kAnyStream: the least busy.
  static constexpr int kAnyStream = -1;
  void submit(const Work& work, Completion& completion, int stream = kAnyStream);
  // From memory of this GPU, or of another one of the same driver, to memory of this one.
  void copy_here(CUdeviceptr to, const Device& from_device, CUdeviceptr from, Bytes size,
                 Completion& completion, int stream = kAnyStream);

  Result<CUdeviceptr> take_memory(Bytes rounded);
  void give_memory(CUdeviceptr address, Bytes rounded);

  const Driver& cuda;
  CUdevice handle = 0;
  CUcontext context = nullptr;
  int capability = 0;  // 90 for 9.0
  DeviceDescription description;

 private:
  explicit Device(const Driver& driver) : cuda(driver) {}
  void describe();
  std::unique_ptr<Flight> take_flight();
  void give_flight(std::unique_ptr<Flight> flight);
  Pinned take_pinned(Bytes size);

  // Parts of submit(); false: the flight has failed, and nothing more is to be enqueued.
  bool copy_in(Flight& flight, const Work& work);
  bool launch(Flight& flight, const Work& work);
  bool copy_out(Flight& flight, const Work& work);
  bool note(Flight& flight, CUresult error, const char* what);
  bool mark(Flight& flight, Mark which);
  std::unique_ptr<Flight> take_off(Completion& completion, int stream);
  void send(std::unique_ptr<Flight> flight);
  Stream& least_busy_stream();

  static void on_end(void* flight);
  static void serve(void* device);
  void land(std::unique_ptr<Flight> flight);
  std::vector<std::unique_ptr<Flight>> wait_for_landed();
  void look_for_failure() AMASIA_REQUIRES(mutex_);

  std::array<Stream, kStreams> streams_;
  os::Mutex mutex_;
  SpareMemory spare_ AMASIA_GUARDED_BY(mutex_){0};
  std::vector<Pinned> pinned_ AMASIA_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Flight>> idle_ AMASIA_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Flight>> airborne_ AMASIA_GUARDED_BY(mutex_);
  std::vector<Flight*> landed_ AMASIA_GUARDED_BY(mutex_);
  bool ending_ AMASIA_GUARDED_BY(mutex_) = false;
  bool sleeps_ AMASIA_GUARDED_BY(mutex_) = false;  // until it is told of a work
  std::atomic<std::uint32_t> signal_{0};  // counted up under mutex_; partner: wait_for_landed()
  os::Thread thread_;
};

// Where the device sits on the PCI bus, "0000:65:00.0"; "" where the driver does not say.
std::string pci_of(const Driver& cuda, CUdevice device);

}  // namespace amasia::devices::cuda
