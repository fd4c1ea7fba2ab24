// SPDX-License-Identifier: Apache-2.0
#include "launch/board.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace amasia::launch {
namespace {

constexpr Bytes kSlotsSize = base::round_up(sizeof(BoardSlot) * base::kMaxNodes, base::kPageSize);
constexpr Bytes kBoardSize = kSlotsSize + JobBoard::kCommonSize;
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "shared between processes");

}  // namespace

void BoardText::set(std::string_view text) noexcept {
  // Acquire: this writer's words come after those of the writer that left `even` (its release
  // below).
  std::uint32_t even = sequence_.load(std::memory_order_relaxed);
  if (even % 2 != 0 || !sequence_.compare_exchange_strong(even, even + 1, std::memory_order_acq_rel,
                                                          std::memory_order_relaxed)) {
    return;
  }
  const std::size_t length = std::min(text.size(), kSize);
  for (std::size_t word = 0; word < kWords; ++word) {
    std::uint64_t value = 0;
    const std::size_t from = word * sizeof value;
    // Whole words by a size that the compiler knows: this is done for every region.
    if (from + sizeof value <= length) {
      std::memcpy(&value, text.data() + from, sizeof value);
    } else if (from < length) {
      std::memcpy(&value, text.data() + from, length - from);
    }
    // Release with read()'s acquire: whoever sees this word sees the odd number too.
    words_[word].store(value, std::memory_order_release);
    if (from >= length) break;  // a zero word ends the text
  }
  // Release with read()'s first load.
  sequence_.store(even + 2, std::memory_order_release);
}

std::string BoardText::read_words(bool* whole) const {
  std::array<std::uint64_t, kWords> copy{};
  const std::uint32_t before = sequence_.load(std::memory_order_acquire);
  for (std::size_t word = 0; word < kWords; ++word) {
    copy[word] = words_[word].load(std::memory_order_acquire);
  }
  // Relaxed is enough: the acquire loads above keep it behind them.
  *whole = before % 2 == 0 && sequence_.load(std::memory_order_relaxed) == before;
  const auto* text = reinterpret_cast<const char*>(copy.data());
  return std::string(text, strnlen(text, kSize));
}

std::optional<std::string> BoardText::read_whole() const {
  bool whole = false;
  std::string text = read_words(&whole);
  return whole ? std::optional(std::move(text)) : std::nullopt;
}

std::string BoardText::read() const {
  constexpr int kAttempts = 100;  // a writer that died within set() leaves it odd for ever
  bool whole = false;
  std::string text = read_words(&whole);
  for (int attempt = 1; attempt < kAttempts && !whole; ++attempt) text = read_words(&whole);
  return text;
}

const char* state_name(NodeState state) noexcept {
  switch (state) {
    case NodeState::kAbsent:
      return "starting up";
    case NodeState::kStarting:
      return "starting";
    case NodeState::kServing:
      return "outside any region";
    case NodeState::kInRegion:
      return "in a region";
    case NodeState::kFinishing:
      return "finishing";
  }
  return "in an unknown state";
}

void BoardSlot::enter_region(std::string_view site) noexcept {
  region.set(site);
  advance();
  state.store(NodeState::kInRegion, std::memory_order_release);
}

void BoardSlot::leave_region() noexcept {
  state.store(NodeState::kServing, std::memory_order_release);
  advance();
}

JobBoard::JobBoard(os::Descriptor descriptor, BoardSlot* slots)
    : descriptor_(std::move(descriptor)), slots_(slots) {}

JobBoard::JobBoard(JobBoard&& other) noexcept
    : descriptor_(std::move(other.descriptor_)), slots_(std::exchange(other.slots_, nullptr)) {}

JobBoard::~JobBoard() {
  if (slots_ != nullptr) os::unmap(reinterpret_cast<std::uintptr_t>(slots_), kBoardSize);
}

Result<JobBoard> JobBoard::create() {
  int descriptor = -1;
  const int error = os::create_memory_file("amasia-board", kBoardSize, &descriptor);
  if (error != 0) return base::errno_error(error, "cannot make the job board");
  return open(descriptor);
}

Result<JobBoard> JobBoard::open(int descriptor) {
  os::Descriptor owned(descriptor);
  std::uintptr_t address = 0;
  const int error = os::map_shared(descriptor, 0, kBoardSize, os::Placement::kAnywhere, &address);
  if (error != 0) return base::errno_error(error, "cannot map the job board");
  return JobBoard(std::move(owned), reinterpret_cast<BoardSlot*>(address));
}

std::span<std::byte> JobBoard::common() {
  return {reinterpret_cast<std::byte*>(slots_) + kSlotsSize, kCommonSize};
}

std::string JobBoard::describe(NodeId node) const {
  const BoardSlot& from = slot(node);
  // Acquire with enter_region's release.
  const NodeState state = from.state.load(std::memory_order_acquire);
  std::string line = state_name(state);
  if (state == NodeState::kInRegion) line = "in region " + from.region.read();
  if (const std::string waits = from.waits_for.read(); !waits.empty()) {
    line += ", waiting for " + waits;
  }
  return line;
}

}  // namespace amasia::launch
