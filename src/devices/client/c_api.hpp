// SPDX-License-Identifier: Apache-2.0
// What the files of the C interface share. The only mutable globals of the layer are here: the C
// interface has no object to hold them.
#pragma once

#include <memory>
#include <unordered_map>

#include "devices/client/client.hpp"

namespace amasia::devices::c_api {

struct Handle final : os::InBlocks {
  mcl_handle open{};  // what the user sees
  std::shared_ptr<Task> task;
  std::string reason;  // what mcl_task_reason gave
};

// Between mcl_init and mcl_finit. A child of fork has none.
struct Session {
  std::unique_ptr<Client> client;
  os::Mutex lock;
  os::BlockMap<const mcl_handle*, std::unique_ptr<Handle>> handles AMASIA_GUARDED_BY(lock);
  std::uint32_t last_handle AMASIA_GUARDED_BY(lock) = 0;
};

// nullptr, with the reason set, where there is none.
Session* session();
// The task of a handle that is not freed; nullptr, with the reason set.
std::shared_ptr<Task> task_of(Session& session, const mcl_handle* handle);

// Keeps the reason for mcl_reason(); the code as the C interface returns it: negative, or 0.
int answer(Fault fault);
Nanos deadline_of(std::uint64_t timeout_ns);
std::uint64_t timeout();

mcl_handle* make_handle(Session& session, std::uint64_t properties);
int free_handle(Session& session, mcl_handle* handle);
Fault set_argument(Session& session, Task& task, std::uint64_t index, void* address,
                   std::size_t size, std::uint64_t offset, std::uint64_t flags);
int wait_for_task(Session& session, Task& task, Nanos deadline);

}  // namespace amasia::devices::c_api

// Every function of the C interface: seen from outside, and no exception leaves it.
#define AMASIA_MCL_API extern "C" __attribute__((visibility("default")))
