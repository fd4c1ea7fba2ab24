// SPDX-License-Identifier: Apache-2.0
// What travels over the Unix socket (SOCK_SEQPACKET: one packet, one message), for what is rare:
// coming, devices, shared memory, shared tasks, questions. Every packet begins with its kind and
// the number of the request that it is, or answers; strings are cut at their field's end.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "devices/ids.hpp"

namespace amasia::devices {

// Both are in the first packet each way; another version is refused, with a sentence.
inline constexpr std::uint64_t kProtocolMagic = 0x3144'4149'5341'4d41;  // "AMASIAD1"
inline constexpr std::uint32_t kProtocolVersion = 6;

enum class PacketKind : std::uint32_t {
  kHello = 1,       // client: who it is; then one kDevice for each of its devices
  kDevice = 2,
  kWelcome = 3,     // daemon: with the region and two eventfds (wakes the daemon, wakes the client)
  kRefused = 4,     // daemon: why it will not serve, then it closes
  kOpenShared = 5,  // client: a segment by name; answered by kShared, with its memory
  kCloseShared = 6, // client: no answer
  kShared = 7,
  kPublishTask = 8, // client: others may ask for this task; no answer
  kTaskEnded = 9,   // client: a published task has ended; no answer
  kWatchTask = 10,  // client: answered by kWatched when that task has ended
  kWatched = 11,
  kQuery = 12,      // client: answered by kAnswer packets, the last one marked
  kAnswer = 13,
};

// An observer announces no device and puts no task: it asks (`amasia devices`, `amasia top`).
enum class Role : std::uint32_t { kClient = 0, kObserver = 1 };

struct PacketHead {
  PacketKind kind{};
  std::uint32_t request = 0;  // of the sender's choice; an answer carries its question's
};

struct HelloPacket {
  PacketHead head{PacketKind::kHello};
  std::uint64_t magic = kProtocolMagic;
  std::uint32_t version = kProtocolVersion;
  Role role = Role::kClient;
  std::uint32_t devices = 0;      // how many kDevice packets follow; at most kMaxDevices
  std::uint32_t weight_milli = 1000;  // of this program's share
  char program[64] = {};          // for people
};
struct DevicePacket {
  PacketHead head{PacketKind::kDevice};
  char identity[256] = {};
  char name[128] = {};
  char vendor[128] = {};
  char platform[128] = {};
  char backend[32] = {};
  std::uint32_t device_class = 0;
  std::uint32_t compute_units = 0;
  std::uint32_t max_dimensions = 0;
  std::uint32_t queue_depth = 0;
  std::uint64_t max_work_group = 0;
  std::uint64_t max_work_sizes[3] = {};
  std::uint64_t memory = 0;
  std::uint64_t max_allocation = 0;
  std::uint64_t shares_host_memory = 0;
};
struct WelcomePacket {
  PacketHead head{PacketKind::kWelcome};
  std::uint64_t magic = kProtocolMagic;
  std::uint32_t version = kProtocolVersion;
  std::uint32_t client = 0;  // ClientId
  std::int32_t daemon_process = 0;
  std::uint32_t run_most = 1;  // tasks that may be put as one run
  std::uint32_t traces = 0;    // 1: each task's times are wanted
  std::uint32_t unused = 0;
  char policy[64] = {};
};
struct RefusedPacket {
  PacketHead head{PacketKind::kRefused};
  std::uint64_t magic = kProtocolMagic;
  std::uint32_t version = kProtocolVersion;
  std::uint32_t code = 0;  // errno
  char sentence[240] = {};
};

// The memory itself is the client's own: it makes the file and fills it; the daemon keeps a
// descriptor for those who come later, until the last user has closed it or gone.
struct OpenSharedPacket {
  PacketHead head{PacketKind::kOpenShared};
  std::uint64_t size = 0;       // bytes; 0: as it is, which must exist
  std::uint64_t create = 0;     // 1: with the memory attached, for the case that there is none
  std::uint64_t replace = 0;    // 1: one that is there loses its name first; its users keep it
  char name[128] = {};
};
struct CloseSharedPacket {
  PacketHead head{PacketKind::kCloseShared};
  char name[128] = {};
};
struct SharedPacket {
  PacketHead head{PacketKind::kShared};
  std::uint32_t code = 0;  // errno; 0: the memory is attached
  std::uint32_t users = 0; // with this one
  std::uint64_t size = 0;
};

// PublishTask, TaskEnded, WatchTask, Watched. `process` and `task` name a published task: its
// owner's process id and the number that it chose.
enum class SharedTaskState : std::uint32_t { kUnknown = 0, kRuns = 1, kEnded = 2 };
struct TaskPacket {
  PacketHead head{};
  std::uint64_t task = 0;
  std::int32_t process = 0;                           // WatchTask, Watched
  std::uint32_t wait = 0;                             // WatchTask: 1: answer when it has ended
  SharedTaskState state = SharedTaskState::kUnknown;  // Watched
  std::uint32_t error = 0;                            // TaskEnded, Watched: MCL_ERR_*; 0: it worked
};

enum class Question : std::uint32_t { kSnapshot = 1 };
struct QueryPacket {
  PacketHead head{PacketKind::kQuery};
  Question question = Question::kSnapshot;
  std::uint32_t unused = 0;
};
// `text` in pieces: JSON as docs/protocols/devices.md has it.
struct AnswerPacket {
  PacketHead head{PacketKind::kAnswer};
  std::uint32_t length = 0;
  std::uint32_t last = 0;
  char text[16000] = {};
};
inline constexpr std::size_t kMaxPacket = sizeof(AnswerPacket);

// The field's text, which the sender may have left without an end.
template <std::size_t N>
std::string text_of(const char (&field)[N]) {
  const std::string_view all(field, N);
  return std::string(all.substr(0, all.find('\0')));
}
template <std::size_t N>
void set_text(char (&field)[N], std::string_view text) {
  const std::size_t length = text.size() < N ? text.size() : N - 1;
  text.copy(field, length);
  field[length] = '\0';
}

DevicePacket packet_of(const DeviceDescription& device);
// Refuses what no device can be, with a sentence.
Result<DeviceDescription> description_of(const DevicePacket& packet);

}  // namespace amasia::devices
