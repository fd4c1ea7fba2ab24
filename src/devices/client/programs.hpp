// SPDX-License-Identifier: Apache-2.0
// The programs that a client has loaded, and their kernels on its devices.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
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

  // Why back ends are not there, for those whose programs no device takes. Before all else.
  void note_absent(const std::string& reasons) { absent_ = reasons; }
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
  // What is known to be wrong with so many arguments, or with arguments of these shapes
  // (MCL_ERR_ARGCOUNT, MCL_ERR_ARGSIZE), of the kernel that a task would run; that no program has
  // it (MCL_ERR_INVKER), once each device that takes one was asked. Loads the kernel, from what
  // add() has built, at the first call for it; later ones with the same shapes are quick.
  Fault check(const std::string& kernel, std::size_t count);
  Fault check(const std::string& kernel, std::span<const ArgumentShape> shapes);
  // Whether find() would return at once.
  bool is_known(OwnDevice device, const std::string& kernel) const;
  // Equal for the same kernel in all programs of the node.
  std::uint64_t identity_of(const std::string& kernel) const;

 private:
  struct Program {
    ProgramCode code;
    std::string function_name;  // kHostFunction: its one kernel
    std::uint64_t identity = 0;
    std::map<std::string, DeviceSet> lacks;  // kernels that it is known not to have there
  };
  struct Kernel {
    bool ready = false;  // else it is being loaded by some thread
    std::unique_ptr<LoadedKernel> loaded;
    Fault fault;
  };
  Fault build(const ProgramCode& code) const;
  Kernel load(std::unique_lock<std::mutex>& lock, OwnDevice device, const std::string& kernel,
              std::size_t arguments);
  // Of each back end the device for which build() has built, for each program that may have it.
  DeviceSet built_for(const std::string& kernel) const;
  template <typename What>
  Fault check_what(const std::string& kernel, std::size_t count, What what);
  // Takes devices out that would not find the kernel, where others are known to have it.
  void leave_to_those_that_have(const std::string& kernel);
  // Devices that take the program, and may find the kernel in it.
  DeviceSet may_run(const Program& program, const std::string& kernel) const;

  const std::vector<DevicePlace>& devices_;
  std::string absent_;
  mutable std::mutex mutex_;
  std::condition_variable loaded_;
  std::vector<std::shared_ptr<Program>> programs_;  // `code` of each is constant
  std::uint64_t changes_ = 0;                       // of programs_
  std::map<std::pair<OwnDevice, std::string>, Kernel> kernels_;
  std::map<std::string, std::vector<ArgumentShape>> accepted_;  // the last ones of each kernel
  // Programs whose function was replaced: tasks may still run it.
  std::vector<Kernel> replaced_;
};

}  // namespace amasia::devices
