// SPDX-License-Identifier: Apache-2.0
// What nodes say to each other, as bytes. Both ends are of one build (program_image.hpp), so heads
// are sent as they lie in memory; each is checked before anything is done with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "fabric/fabric.hpp"
#include "modules/nodes/deadlock.hpp"
#include "modules/nodes/program_image.hpp"

namespace amasia::nodes {

inline constexpr fabric::MessageType kFirstType = 0x3c0, kLastType = 0x3cf;
enum Type : fabric::MessageType {
  kTaskMessage = kFirstType,  // a task for the receiver
  kAnswerMessage,             // a value, an end or an error of a task that the receiver has sent
  kRequestMessage,            // the sender has nothing to do
  kLifelineMessage,           // the same, and it waits for an answer as long as it takes
  kNothingMessage,            // to a request
  kTasksMessage,              // to a request or a lifeline
  kJobOverMessage,            // from the origin: the program ends
  kStopMessage,               // to oneself: the thread that receives is to end
  kStalledMessage,            // to the origin: the sender can do nothing more by itself
  kAskMessage,                // from the origin: is the receiver stalled?
  kStallAnswerMessage,        // to that
};
// Those that can make a stalled node do something: deadlock.hpp.
inline bool is_counted(fabric::MessageType type) {
  return type == kTaskMessage || type == kTasksMessage || type == kAnswerMessage;
}

// The longest callable and the longest result. A job's longest message has room for both.
inline constexpr std::uint32_t kMostBytes = 1 << 20;
// Texts of errors are cut to this.
inline constexpr std::uint32_t kMostText = 32 * 1024;
// Of one kTasksMessage.
inline constexpr std::uint32_t kMostTasks = 32;
inline constexpr std::size_t kMostBytesOfTasks = std::size_t{2} << 20;

// Before the callable's bytes, which are filled up to a multiple of 8.
struct TaskHead {
  std::uint64_t number = 0;  // of the sender; comes back with the answers
  CodePosition code;         // of the function that does it
  std::uint32_t bytes = 0;   // of the callable
  std::uint32_t result_bytes = 0;
  std::uint32_t wants_value = 0;  // 1: somebody waits for the value
  std::uint32_t reserved = 0;
};
static_assert(std::has_unique_object_representations_v<TaskHead>);

struct ArrivedTask {
  TaskHead head;
  std::span<const std::byte> body;
};
// The bytes of one task, added to those of others.
void append_task(std::vector<std::byte>& out, const TaskHead& head, const void* body);
// What begins `bytes`, which are then those behind it. nullopt: they are malformed.
std::optional<ArrivedTask> take_task(std::span<const std::byte>& bytes);

struct TasksHead {
  std::uint32_t count = 0;
  std::uint32_t for_lifeline = 0;
};
struct ArrivedTasks {
  TasksHead head;
  std::vector<ArrivedTask> tasks;
};
std::optional<ArrivedTasks> read_tasks(std::span<const std::byte> bytes);

// Then value_bytes of the value, then text_bytes of what the task or its descendants threw.
struct AnswerHead {
  std::uint64_t number = 0;
  std::uint32_t flags = 0;
  std::uint32_t value_bytes = 0;
  std::uint32_t text_bytes = 0;
  std::uint32_t failed_on = 0;  // node, where there is a text
};
static_assert(std::has_unique_object_representations_v<AnswerHead>);
// Flags of an answer.
inline constexpr std::uint32_t kHasValue = 1;     // or the error in its place, if there is a text
inline constexpr std::uint32_t kHasEnd = 2;       // the task is over
inline constexpr std::uint32_t kTextIsOfEnd = 4;  // it leaves the finish scope; else the value's
struct Answer {
  AnswerHead head;
  std::span<const std::byte> value;
  std::string_view text;
  bool has_value() const { return (head.flags & kHasValue) != 0; }
  bool has_end() const { return (head.flags & kHasEnd) != 0; }
  bool value_failed() const { return has_text() && (head.flags & kTextIsOfEnd) == 0; }
  bool end_failed() const { return has_text() && (head.flags & kTextIsOfEnd) != 0; }
  bool has_text() const { return head.text_bytes != 0; }
};
// nullopt: malformed. The spans are parts of `bytes`.
std::optional<Answer> read_answer(std::span<const std::byte> bytes);

// kStalledMessage and kStallAnswerMessage; the latter goes on with who waits there, in lines.
struct StallHead {
  std::uint64_t round = 0;  // that is answered
  std::uint64_t serial = 0;
  std::uint64_t sent = 0, received = 0;
  std::uint32_t is_stalled = 0;  // 1: yes; 0: and so no counts
  std::uint32_t text_bytes = 0;
};
static_assert(std::has_unique_object_representations_v<StallHead>);
struct ArrivedStall {
  std::uint64_t round = 0;
  StallNews news;
  std::string_view text;
};
StallHead head_of(const StallNews& news, std::uint64_t round, std::size_t text_bytes);
// nullopt: malformed. The text is a part of `bytes`.
std::optional<ArrivedStall> read_stall(std::span<const std::byte> bytes);

}  // namespace amasia::nodes
