// SPDX-License-Identifier: Apache-2.0
// One GPU: its memory, programs, streams, and works under way.
//
// A work is a row of commands in one stream, where brief ones fly together, up to sixteen kernels
// as one command (cuda_row.hpp), and its end is an event that the watch looks at: the driver's own
// ways to tell of it come late, or keep a core.
// Copies go through pinned memory of ours: from and to the user's own they would block the caller,
// to it even until the kernel has ended. The memory copy is one that the driver would make too.
//
// Who guards what
//   spare memory, idle flights                    mutex
//   pinned memory                                 its own
//   a flight                                      one owner at a time: submit(), then the watch
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "devices/backends/brief_works.hpp"
#include "devices/backends/cuda/cuda_driver.hpp"
#include "devices/backends/cuda/cuda_launch.hpp"
#include "devices/backends/cuda/cuda_pinned.hpp"
#include "devices/backends/cuda/cuda_row.hpp"
#include "devices/backends/outcomes.hpp"
#include "devices/backends/program_cache.hpp"
#include "devices/backends/spare_memory.hpp"
#include "devices/backends/watch.hpp"
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
  KernelTime time;
  // A row of these launches, in the context of the device; nullptr: they are launched one by one.
  std::unique_ptr<Row> take_row(const Device& device, std::span<Launch> launches);
  void give_row(std::unique_ptr<Row> row);

 private:
  std::shared_ptr<Program> program_;
  os::Mutex rows_mutex_;
  std::vector<std::unique_ptr<Row>> idle_rows_ AMASIA_GUARDED_BY(rows_mutex_);
  unsigned rows_wanted_ AMASIA_GUARDED_BY(rows_mutex_) = 0;
  bool has_no_rows_ AMASIA_GUARDED_BY(rows_mutex_) = false;  // the driver does not take them
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

struct Stream : Line {
  CUstream handle = nullptr;
  Nanos last_end = 0;  // of what stood in it, as it was noticed; has_ended()'s
};

// One work, or brief ones that fly together, from submit() to its end. Kept for further ones: to
// make its events costs a microsecond.
class Flight final : public Watched {
 public:
  explicit Flight(Device& device);
  ~Flight();
  Flight(const Flight&) = delete;
  Flight& operator=(const Flight&) = delete;

  // In the context of the device: for so many works in that stream; enqueues each one's commands,
  // until one fails, whose other commands are not.
  void take_off(Stream& stream, std::size_t works);
  void board(const Submission& one);
  // All of them as one command; false: nothing has been enqueued, they are to board one by one.
  bool board_row(std::span<const Submission> all);
  void board(Completion& completion, CUdeviceptr to, const Device& from_device, CUdeviceptr from,
             Bytes size);
  // No more is enqueued.
  void close();
  Stream& stream() const { return *stream_; }

  bool has_ended() noexcept override;
  void land() noexcept override;
  bool will_tell(const Completion& completion) const noexcept override {
    return devices::will_tell(passengers_, completion);
  }

 private:
  // Events. Those that record times cost as much as a third of a launch: a work that is measured
  // has one before and after its kernel and after its copies to the host, of those that fly with it
  // only the last. Where none of them is at the end kOver is. A row of kernels has the first two
  // around it.
  enum Mark { kRunBegan, kRunEnded, kEnded, kOver, kMarks };

  // false: it has failed, and nothing more is to be enqueued.
  bool copy_in(std::span<const Copy> copies);
  // How it is to be launched. False: *wrong says why it cannot be.
  bool prepare(const Work& work, Launch* launch, Outcome* wrong) const;
  bool launch(const Work& work);
  bool copy_out(std::span<const Copy> copies);
  bool note(CUresult error, const char* what);
  bool fail(Outcome&& outcome);
  bool mark(Mark which);
  bool mark_end();
  Outcome measure(Nanos* interval);
  void give_back();

  Device& device_;
  const Driver& cuda_;
  std::array<CUevent, kMarks> marks_{};
  // Of the works that it has now.
  Stream* stream_ = nullptr;
  std::size_t works_ = 0;
  os::BlockVector<Passenger> passengers_;
  Kernel* kernel_ = nullptr;
  std::uint64_t items_ = 1;
  std::array<bool, kMarks> marked_{};
  Mark last_ = kOver;       // the event at the end
  bool has_later_ = false;  // commands were enqueued after that
  bool is_measured_ = false;
  std::unique_ptr<Row> row_;
  std::vector<Pinned> pinned_;
  struct Landing {
    void* host;
    const char* pinned;
    Bytes size;
  };
  std::vector<Landing> landings_;  // what goes from pinned to the user's memory at the end
  SeenTimes seen_;
  CUresult end_ = kNotReady;
};

class Device {
 public:
  static constexpr std::size_t kStreams = 8;
  static Result<std::unique_ptr<Device>> open(const Driver& cuda, int ordinal);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // Begins the works. In one stream they run in the order in which they were submitted;
  // kAnyStream: the least busy.
  static constexpr int kAnyStream = -1;
  void submit(std::span<const Submission> all, int stream = kAnyStream);
  void submit(const Work& work, Completion& completion, int stream = kAnyStream) {
    const Submission one{work, &completion};
    submit({&one, 1}, stream);
  }
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
  friend class Flight;
  explicit Device(const Driver& driver) : cuda(driver) {}
  void describe();
  Flight& take_flight();
  void send(Flight& flight, CallerWaits caller_waits);
  Stream& stream_at(int number);

  std::array<Stream, kStreams> streams_;
  os::Mutex mutex_;
  SpareMemory spare_ AMASIA_GUARDED_BY(mutex_){0};
  std::optional<PinnedMemory> pinned_;
  std::vector<std::unique_ptr<Flight>> flights_ AMASIA_GUARDED_BY(mutex_);  // all
  std::vector<Flight*> idle_ AMASIA_GUARDED_BY(mutex_);
  std::optional<Watch> watch_;  // ends before all that it looks at
};

// Where the device sits on the PCI bus, "0000:65:00.0"; "" where the driver does not say.
std::string pci_of(const Driver& cuda, CUdevice device);

}  // namespace amasia::devices::cuda
