// SPDX-License-Identifier: Apache-2.0
// Network namespaces that stand for separate hosts: N of them, joined by a bridge in one more,
// each with one address on one network of their own. Needs root (CAP_SYS_ADMIN, CAP_NET_ADMIN) and
// the `ip` command. They have no names and no files: they exist through descriptors and processes,
// so that the kernel removes them when the last of those is gone, however that happens.
#pragma once

#include <string>
#include <vector>

#include "base/base.hpp"
#include "os/descriptor.hpp"

namespace amasia::os {

class NetworkNamespaces {
 public:
  // 1 <= count <= 64. Blocks while `ip` runs (some 10 ms for each). An error names what failed and
  // leaves nothing behind.
  static Result<NetworkNamespaces> make(unsigned count);

  unsigned count() const { return static_cast<unsigned>(spaces_.size()); }
  // Moves the calling thread into namespace `index`: between fork and exec, or on a thread that
  // starts nothing else. Safe after fork: allocates nothing on success.
  Status enter(unsigned index) const;
  // Names namespace `index` for setns(2); owned by this object.
  int descriptor(unsigned index) const { return spaces_[index].get(); }
  // The address of namespace `index`, as text, and the name of the device that has it.
  static std::string address(unsigned index);
  static constexpr const char* kDevice = "eth0";

 private:
  std::vector<Descriptor> spaces_;
  Descriptor hub_;  // the namespace with the bridge
};

}  // namespace amasia::os
