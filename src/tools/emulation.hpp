// SPDX-License-Identifier: Apache-2.0
// `--emulate`: nodes of one core each on this host, slowed to a part of it.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/base.hpp"
#include "os/os.hpp"

namespace amasia::tools {

// Whether --csr has a number for each node, and --share=threshold what it decides by. Pure; once
// options.nodes is settled.
Status check_sharing(const base::Options& options);

// Holds the options against --emulate, if it is set, and completes their number of nodes. The error
// is a sentence for the user. `pmix`: nodes come from a PMIx launcher. Pure.
Status settle_emulation(base::Options& options, bool pmix);

class Emulation {
 public:
  // Chooses cores and makes the control groups, called `name`. Starts no thread.
  static Result<std::unique_ptr<Emulation>> make(std::span<const double> shares,
                                                 const std::string& name);
  // From here on quotas are kept exactly, where real-time threads are allowed; else roughly.
  void keep_exactly();

  int core_of(NodeId node) const { return nodes_[node.value].core; }
  // The entry of the node's control group; "": it has all of its core.
  std::string cpu_group_of(NodeId node) const;
  // What is to be removed if this process is killed; none where no node is slowed.
  std::vector<std::string> folders() const;

 private:
  struct Placed {
    int core = 0;
    std::optional<std::size_t> quota;  // its index in groups_
  };
  Emulation() = default;
  std::vector<Placed> nodes_;
  std::optional<os::CpuGroups> groups_;
  std::vector<std::unique_ptr<os::QuotaMetronome>> metronomes_;
};

}  // namespace amasia::tools
