// SPDX-License-Identifier: Apache-2.0
// The programs that a client has loaded, and their kernels on its devices.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "devices/client/fault.hpp"
#include "devices/client/residency.hpp"

namespace amasia::devices {

// One of the client's devices, and whose it is.
struct DevicePlace {
  Backend* backend = nullptr;
  LocalDevice local = 0;
  const DeviceDescription* description = nullptr;
};

// Any thread. Building blocks only who asks for that kernel.
class Programs {
 public:
  explicit Programs(const std::vector<DevicePlace>& devices) : devices_(devices) {}

  // Remembers the program, unless the same one is known. A host function replaces one of its name.
  // Fails where no device takes such programs, or where it does not build: it is built at once for
  // one device of each back end that takes it (but for functions), which blocks.
  Fault add(const ProgramCode& code, const std::string& function_name);
  // The devices that may be able to run a kernel of that name; why there is none.
  DeviceSet devices_for(const std::string& kernel, Fault* why) const;
  // The kernel on the device, from the program loaded first that has it. Builds at the first call
  // for it; nullptr: *why.
  LoadedKernel* find(OwnDevice device, const std::string& kernel, std::size_t arguments,
                     Fault* why);
  // Whether find() would return at once.
  bool is_known(OwnDevice device, const std::string& kernel) const;
  // Equal for the same kernel in all programs of the node.
  std::uint64_t identity_of(const std::string& kernel) const;

 private:
  struct Program {
    ProgramCode code;
    std::string function_name;  // kHostFunction: its one kernel
    std::uint64_t identity = 0;
    std::set<std::string> lacks;  // kernels that it is known not to have
  };
  struct Kernel {
    bool ready = false;  // else it is being loaded by some thread
    std::unique_ptr<LoadedKernel> loaded;
    Fault fault;
  };
  Fault build(const ProgramCode& code) const;
  bool may_have(const Program& program, const std::string& kernel) const;

  const std::vector<DevicePlace>& devices_;
  mutable std::mutex mutex_;
  std::condition_variable loaded_;
  std::vector<std::unique_ptr<Program>> programs_;
  std::map<std::pair<OwnDevice, std::string>, Kernel> kernels_;
  // Programs whose function was replaced: tasks may still run it.
  std::vector<Kernel> replaced_;
};

}  // namespace amasia::devices
