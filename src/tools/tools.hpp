// SPDX-License-Identifier: Apache-2.0
// tools: the `amasia` command. May use base, os, fabric and launch; not the runtime's layers, which
// define symbols of the C library. Invariants: a user's mistake is one sentence and exit code 2; a
// command leaves no process, no shared memory and no file behind, however it ends.
#pragma once

#include "tools/doctor.hpp"
#include "tools/run_command.hpp"
