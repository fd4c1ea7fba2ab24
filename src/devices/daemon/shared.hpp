// SPDX-License-Identifier: Apache-2.0
// What several programs share by name: memory segments and published tasks. Pure: who uses what;
// the server keeps the memory's descriptors.
//
// Invariants: a segment exists as long as a client uses it, or the one that made it has not left:
// programs of the original library free what others have yet to find. A client that has left uses
// nothing. A published task exists until its owner leaves, and then who waits for it is told that
// it failed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "devices/ids.hpp"
#include "devices/wire/packets.hpp"

namespace amasia::devices {

class SharedSegments {
 public:
  struct Answer {
    int code = 0;              // errno: ENOENT, EINVAL (its size is another, or no name)
    bool takes_memory = false; // this client's memory is the segment from now on
    std::uint32_t users = 0;
    Bytes size = 0;
  };
  // `size` 0: any. `create`: the client has brought memory, for the case that there is none yet, or
  // one that nobody uses. Each opening counts as a use.
  Answer open(ClientId client, const std::string& name, Bytes size, bool create);
  // One use less; true: it was the last, its maker has left, and the segment has gone.
  bool close(ClientId client, const std::string& name);
  // The name is free again; who uses the segment keeps its memory, and closes it without effect.
  void forget(const std::string& name) { segments_.erase(name); }
  // Ends all uses of the client; the names of segments that have gone.
  std::vector<std::string> leave(ClientId client);
  std::size_t size() const { return segments_.size(); }

 private:
  struct Segment {
    Bytes size = 0;
    std::map<ClientId, std::uint32_t> users;
    std::optional<ClientId> maker;  // as long as it has not left
  };
  std::map<std::string, Segment, std::less<>> segments_;
};

class SharedTasks {
 public:
  // Who is to be told what, about a question of its own.
  struct Answer {
    ClientId client;
    std::uint32_t request = 0;
    TaskPacket packet;
  };
  static constexpr std::size_t kMaxPublished = 65536;  // of one client
  static constexpr std::size_t kMaxWatches = 65536;    // of one client, at a time
  // False: more than allowed.
  bool publish(ClientId client, std::int32_t process, std::uint64_t task);
  // Ends `task`, for good: a second end says nothing.
  std::vector<Answer> end(ClientId client, std::uint64_t task, std::uint32_t error);
  // Answers at once, or, where `wait` is set and the task runs, when it ends. False: too many.
  bool watch(ClientId client, const TaskPacket& question, std::vector<Answer>* answers);
  // Its tasks that have not ended fail with `error`; its questions are forgotten.
  std::vector<Answer> leave(ClientId client, std::uint32_t error);

 private:
  struct Watch {
    ClientId client;
    std::uint32_t request = 0;
  };
  struct Task {
    bool ended = false;
    std::uint32_t error = 0;
    std::vector<Watch> watches;
  };
  struct Owner {
    std::int32_t process = 0;
    std::map<std::uint64_t, Task> tasks;
  };
  std::vector<Answer> tell(const Owner& owner, std::uint64_t number, Task& task);
  std::map<ClientId, Owner> owners_;
  std::map<ClientId, std::size_t> watching_;
};

}  // namespace amasia::devices
