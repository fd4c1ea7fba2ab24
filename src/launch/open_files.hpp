// SPDX-License-Identifier: Apache-2.0
// How many files a node must be allowed to open.
#pragma once

#include <cstdint>
#include <string>

namespace amasia::launch {

// The program's descriptors keep the numbers of a plain run, so the runtime's own lie above them:
// from 64 on at the origin, from 1024 on elsewhere. Nodes of six were seen to take 30.
inline constexpr std::uint64_t kOwnOpenFiles = 64;
inline constexpr int kFirstOwnFileOfOrigin = 64;
inline constexpr int kFirstOwnFileElsewhere = 1024;

// What is wrong with a limit of open files, for a job of so many nodes; "": nothing. `hard` is the
// hard limit: nodes raise the soft one.
std::string why_too_few_files(std::uint64_t hard, unsigned nodes);

}  // namespace amasia::launch
