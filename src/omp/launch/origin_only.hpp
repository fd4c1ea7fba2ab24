// SPDX-License-Identifier: Apache-2.0
// What only the origin's process may do: start other programs, which would find this node's system
// calls caught, with nobody to answer.
#pragma once

namespace amasia::omp {

// True on another node than the origin, once it has said so in a sentence that names `call`. The
// entry points of the C library; any thread. May write to standard error.
bool refuses_on_this_node(const char* call);

}  // namespace amasia::omp
