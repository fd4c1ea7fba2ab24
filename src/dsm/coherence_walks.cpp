// SPDX-License-Identifier: Apache-2.0
// The part of Coherence that asks for pages before they are touched: walks, in sequence or by
// steps, up to where they will end, and what lies around a page.
#include "dsm/coherence.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "dsm/heap/block_bounds.hpp"

namespace amasia::dsm {

// `as_writer`: how to ask for pages. A walk that reads may want to own them.
ReadAhead::Plan Coherence::read_ahead(const Fault& fault, bool as_writer, bool on_its_way) {
  const ReadAhead::Plan plan =
      read_ahead_.on_fault(fault.page, fault.write, end_of_walk(fault.page), on_its_way);
  if (plan.run.count > 0) find_stretch(fault.page);
  for (PageCount i = 0; i < plan.run.count; ++i) {
    ask_for(PageIndex{plan.run.first.value + i}, as_writer);
  }
  return plan;
}

void Coherence::step_ahead(const Fault& fault, bool as_writer, bool on_its_way) {
  const StridedWalks::Plan plan = strided_walks_.on_fault(fault.page, fault.write, on_its_way);
  const bool to_own = as_writer || plan.write;
  for (const PageIndex page : std::span(plan.pages).first(plan.count)) {
    if (!space_.is_valid(page)) continue;
    ask_for(page, to_own);
    // A step may be several pages long, as was seen when it was last made.
    if (read_ahead_.reach_from(page, plan.write) == 0) continue;
    read_ahead({page, 0, plan.write}, to_own, false);
  }
}

bool Coherence::is_trigger(const Fault& fault) const {
  return read_ahead_.is_trigger(fault.page, fault.write) ||
         strided_walks_.is_trigger(fault.page);
}

// The first page of the run that one of the two wants to hear of.
bool Coherence::find_trigger(PageRun run, PageIndex* trigger) const {
  PageIndex other;
  const bool in_sequence = read_ahead_.find_trigger(run, trigger);
  if (!strided_walks_.find_trigger(run, &other)) return in_sequence;
  if (!in_sequence || other.value < trigger->value) *trigger = other;
  return true;
}

void Coherence::read_around(PageIndex page) {
  std::uint64_t wanted = fill_around_.on_fault(page);
  const std::uint64_t first = page.value - page.value % FillAround::kBlock;
  for (; wanted != 0; wanted &= wanted - 1) {
    const PageIndex other{first + static_cast<std::uint64_t>(std::countr_zero(wanted))};
    if (!space_.is_valid(other)) continue;  // before the first page of the program's variables
    ask_for(other, false);
  }
}

// One more than the last page that a walk by this one goes to, as far as is known.
PageIndex Coherence::end_of_walk(PageIndex page) const {
  const PageRun segment = space_.within_segment({page, space_.page_limit()});
  const PageIndex end{segment.first.value + segment.count};
  return std::min(end, stretches_.end_of(page).value_or(end));
}

bool Coherence::is_of_heap(PageIndex page) const {
  const auto address = reinterpret_cast<std::uintptr_t>(space_.address_of(page));
  return space_.heap(space_.arena_of(page)).contains(address);
}

// Of this node's heap. No pages: nothing tells.
PageRun Coherence::stretch_of(PageIndex page) const {
  if (settings_.blocks == nullptr) return {page, 0};
  const auto address = reinterpret_cast<std::uintptr_t>(space_.address_of(page));
  const AddressRange around = settings_.blocks->around(address);
  const std::optional<PageIndex> first = space_.page_of(around.begin);
  if (around.size() == 0 || !first.has_value()) return {page, 0};
  return {*first, around.size() / base::kPageSize};
}

// A walk comes by the page: where it will end is told by the node whose heap that is in.
void Coherence::find_stretch(PageIndex page) {
  if (settings_.blocks == nullptr || !is_of_heap(page)) return;
  if (!stretches_.is_to_be_asked(page, now_)) return;
  const NodeId node = space_.arena_of(page);
  if (node == space_.self()) return stretches_.note(page, stretch_of(page), now_);
  fabric_.send(node, kStretchQuestion, fabric::bytes_of(StretchQuestion{page.value}));
}

void Coherence::on_stretch_question(NodeId from, std::span<const std::byte> body, Nanos now) {
  now_ = now;
  StretchQuestion question;
  if (body.size() != sizeof question) return fail_for(from, "sent a malformed question of a block");
  std::memcpy(&question, body.data(), sizeof question);
  const PageIndex page{question.page};
  if (!space_.is_valid(page) || space_.arena_of(page) != space_.self() || !is_of_heap(page)) {
    return fail_for(from, "asked for a block that is not of this node's heap");
  }
  const PageRun stretch = stretch_of(page);
  const StretchAnswer answer{page.value, stretch.first.value, stretch.count};
  fabric_.send(from, kStretchAnswer, fabric::bytes_of(answer));
}

void Coherence::on_stretch_answer(NodeId from, std::span<const std::byte> body, Nanos now) {
  now_ = now;
  StretchAnswer answer;
  if (body.size() != sizeof answer) return fail_for(from, "sent malformed bounds of a block");
  std::memcpy(&answer, body.data(), sizeof answer);
  const PageRun stretch{PageIndex{answer.first}, answer.count};
  const bool may_be = space_.is_valid(stretch.first) && stretch.count <= space_.page_limit();
  if (stretch.count > 0 && !may_be) {
    return fail_for(from, "sent bounds of a block that cannot be");
  }
  stretches_.note(PageIndex{answer.page}, stretch, now);
}

}  // namespace amasia::dsm
