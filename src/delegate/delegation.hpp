// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>

#include "fabric/fabric.hpp"
#include "os/os.hpp"

namespace amasia::delegate {

// Descriptors up to this number are the program's, which are the origin's. What the runtime opens
// on another node must lie above: the composition root sees to it.
inline constexpr int kLastProgramDescriptor = 1023;

// What calls on descriptors and paths that were carried to the origin have taken so far.
struct CallTimes {
  Nanos at_origin = 0;  // the calls themselves, as they would have there anyway
  Nanos carriage = 0;   // their way there and back
};

// One node's part. Construct it before the fabric is first polled; it registers its handlers there
// and must outlive it.
class Delegation {
 public:
  virtual ~Delegation() = default;

  // Answers a call that was caught; on the thread that made it. May sleep as long as the call.
  virtual void answer(os::TrappedCall& call) noexcept = 0;

  // How often the program has written to standard output or error on this node, past its streams'
  // buffers. What a thread has written is counted by the time it meets others. A load; any thread.
  // 0 on the origin.
  virtual std::uint64_t outputs_written() const noexcept = 0;

  // Of the calling thread, and of all of this node's, any thread; 0 on the origin.
  virtual CallTimes own_call_times() const noexcept = 0;
  virtual CallTimes call_times() const noexcept = 0;
  // Whether the calling thread waits for one, for others to look at as long as the thread lives.
  // No interruption (os/interruption.hpp) is heard before it is answered.
  virtual const std::atomic<bool>& own_carrying() const noexcept = 0;

  // `note` is called before the program aborts on this node, by its own call or by the C library's
  // (assert, a corrupt heap), on the thread that does. Set it before calls are caught. Never called
  // on the origin.
  virtual void set_abort_note(std::function<void()> note) = 0;

  // How many futex and descriptor calls this node has carried to the origin.
  struct Counts {
    std::uint64_t futex_calls = 0;
    std::uint64_t descriptor_calls = 0;
    std::uint64_t refused_calls = 0;
  };
  virtual Counts counts() const = 0;
};

// Waits that take longer than `watchdog` go to the log; 0: none do.
std::unique_ptr<Delegation> make_delegation(fabric::Fabric& fabric, Nanos watchdog = 0);

// From here on, all threads of this process ask `delegation` where the kernel would be wrong:
// futexes on `managed` on every node, and on nodes other than the origin the program's descriptors.
// Call it on the thread that will run the program (origin) or serve regions (other nodes), after
// the OpenMP runtime has read its files. `delegation` must live until the process ends.
Status delegate_all_threads(Delegation& delegation, bool is_origin,
                            std::span<const os::AddressRange> managed);

}  // namespace amasia::delegate
