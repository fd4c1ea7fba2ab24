// SPDX-License-Identifier: Apache-2.0
// A directory for this user's sockets, and a lock that goes with its holder.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/base.hpp"
#include "os/descriptor.hpp"

namespace amasia::os {

// Makes `path` with these permissions if it is not there, and locks it (lock_directory), also where
// others remove it all the time. One that is there must be a directory of this user that others
// cannot write: else an error, EPERM.
Result<Descriptor> lock_private_directory(const std::string& path, mode_t permissions);
// Locks the directory against others that lock it, waiting for them; the lock goes with the
// descriptor, or with the process. ENOENT where it has been removed meanwhile.
Result<Descriptor> lock_directory(const std::string& path);

// A file in memory of `size` zeroes that can neither grow nor shrink, so that whoever maps it can
// touch all of it at any time. ENOMEM where that much is not free, before any is taken; ENOSPC.
Result<Descriptor> make_sealed_memory(const char* name, Bytes size);
// The size of such a file; an error for any other descriptor.
Result<Bytes> sealed_memory_size(int descriptor);

}  // namespace amasia::os
