// SPDX-License-Identifier: Apache-2.0
// Resident buffers as the program names them: by address.
#include <algorithm>

#include "devices/client/client.hpp"

namespace amasia::devices {
namespace {

// The address itself; a part of it that is used alone is a buffer of its own.
void use_temporary(Argument& argument) {
  argument.address = static_cast<std::byte*>(argument.address) + argument.offset;
  argument.offset = 0;
}

// Whether an argument that is not RESIDENT does without the copies of the buffer that it names.
bool takes_host_bytes(ResidentBuffer& buffer, const Argument& argument) {
  if ((argument.flags & MCL_ARG_INVALID) != 0) {
    buffer.where.written(kHost, {0, buffer.where.size()});
    return true;
  }
  // Other processes may have written it, and nothing of it is on a device.
  return buffer.is_shared && buffer.copies.empty() && buffer.tasks == 0;
}

}  // namespace

Fault Client::bind(Argument& argument) {
  if (!argument.is_buffer()) return no_fault();
  auto* const address = static_cast<std::byte*>(argument.address);
  Locked lock(*this);
  const auto found = buffers_.find(address);
  const bool resident = (argument.flags & MCL_ARG_RESIDENT) != 0;
  const Bytes end = argument.offset + argument.size;
  const bool fits = found != buffers_.end() && end <= found->second->where.size();
  if (found != buffers_.end() && !resident && takes_host_bytes(*found->second, argument)) {
    use_temporary(argument);
    return no_fault();
  }
  const bool may_grow =
      found != buffers_.end() && resident &&
      (!found->second->is_registered || (argument.flags & MCL_ARG_INVALID) != 0);
  if (found != buffers_.end() && (fits || !may_grow)) {
    if (!fits) {
      return fault(MCL_ERR_INVARG, "bytes {} … {} are not within the buffer at {}, which has {}",
                   argument.offset, end, argument.address, found->second->where.size());
    }
    argument.resident = found->second;
  } else if (resident) {
    if (found != buffers_.end()) {
      // It has grown: a new buffer.
      if (found->second->tasks != 0) {
        return fault(MCL_ERR_RESDATA, "the buffer at {} is in use with {} bytes and cannot have {}",
                     argument.address, found->second->where.size(), end);
      }
      for (const OwnDevice device : found->second->where.copies()) {
        drop_copy(*found->second, device, true);
      }
      buffers_by_number_.erase(found->second->number);
      buffers_.erase(found);
    }
    auto made = std::make_shared<ResidentBuffer>(++last_number_, address, end);
    buffers_.emplace(address, made);
    buffers_by_number_.emplace(made->number, made);
    argument.resident = std::move(made);
  } else {
    use_temporary(argument);
    return no_fault();
  }
  if ((argument.flags & (MCL_ARG_INVALID | MCL_ARG_REWRITE)) != 0) {
    argument.resident->where.written(kHost, argument.range());
  }
  return no_fault();
}

Fault Client::register_buffer(void* address, Bytes size) {
  auto* const begin = static_cast<std::byte*>(address);
  if (begin == nullptr || size == 0) {
    return fault(MCL_ERR_INVARG, "a buffer of {} bytes at {} cannot be registered", size, address);
  }
  Locked lock(*this);
  if (const auto same = buffers_.find(begin); same != buffers_.end() &&
                                              same->second->is_shared &&
                                              size <= same->second->where.size()) {
    return no_fault();  // a shared buffer is registered already
  }
  auto after = buffers_.upper_bound(begin);
  if (after != buffers_.end() && begin + size > after->first) {
    return fault(MCL_ERR_RESDATA, "the buffer at {} overlaps the one at {}", address,
                 static_cast<void*>(after->first));
  }
  if (after != buffers_.begin()) {
    const auto& before = std::prev(after)->second;
    if (before->address + before->where.size() > begin) {
      return fault(MCL_ERR_RESDATA, "the buffer at {} overlaps the one at {}", address,
                   static_cast<void*>(before->address));
    }
  }
  auto made = std::make_shared<ResidentBuffer>(++last_number_, begin, size);
  made->is_registered = true;
  buffers_.emplace(begin, made);
  buffers_by_number_.emplace(made->number, made);
  return no_fault();
}

// The buffer is idle and is the caller's until unpark().
Fault Client::claim_alone(ResidentBuffer& buffer) {
  if (buffer.tasks != 0 || buffer.moving) {
    return fault(MCL_ERR_RESDATA, "{} tasks that have not ended use the buffer at {}", buffer.tasks,
                 static_cast<void*>(buffer.address));
  }
  buffer.moving = true;
  return no_fault();
}

Fault Client::unregister_buffer(void* address) {
  std::shared_ptr<ResidentBuffer> buffer;
  std::vector<Move> moves;
  {
    Locked lock(*this);
    const auto found = buffers_.find(static_cast<std::byte*>(address));
    if (found == buffers_.end()) {
      return fault(MCL_ERR_RESDATA, "no buffer is registered at {}", address);
    }
    buffer = found->second;
    if (Fault wrong = claim_alone(*buffer)) return wrong;
    moves = buffer->where.bring(kHost, {0, buffer->where.size()});
  }
  Fault wrong = save(*buffer, moves);
  {
    Locked lock(*this);
    for (const OwnDevice device : buffer->where.copies()) drop_copy(*buffer, device, true);
    buffers_.erase(buffer->address);
    buffers_by_number_.erase(buffer->number);
    unpark(*buffer);
    flush();
  }
  empty_graveyard();
  return wrong;
}

Fault Client::invalidate_buffer(void* address) {
  Locked lock(*this);
  const auto found = buffers_.find(static_cast<std::byte*>(address));
  if (found == buffers_.end()) {
    return fault(MCL_ERR_RESDATA, "no buffer is registered at {}", address);
  }
  ResidentBuffer& buffer = *found->second;
  if (Fault wrong = claim_alone(buffer)) return wrong;
  buffer.where.written(kHost, {0, buffer.where.size()});
  unpark(buffer);
  return no_fault();
}

}  // namespace amasia::devices
