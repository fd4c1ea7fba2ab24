// SPDX-License-Identifier: Apache-2.0
#include "modules/nodes/away_task.hpp"

namespace amasia::nodes {
namespace {

AwayStep on_ticket(AwayState state) {
  switch (state) {
    case AwayState::kOpen:
      return {AwayState::kHere, AwayAction::kDo};
    case AwayState::kAway:
      return {AwayState::kHeld, AwayAction::kHold};
    case AwayState::kEnded:
      return {AwayState::kOver, AwayAction::kLeave};
    case AwayState::kHere:
    case AwayState::kHeld:
    case AwayState::kOver:
      break;
  }
  AMASIA_CHECK(false, "a task has one ticket, which runs once");
  return {state, AwayAction::kNothing};
}

AwayStep on_end(AwayState state) {
  switch (state) {
    case AwayState::kAway:
      return {AwayState::kEnded, AwayAction::kNote};
    case AwayState::kHeld:
      return {AwayState::kOver, AwayAction::kFinish};
    case AwayState::kOpen:
    case AwayState::kHere:
    case AwayState::kEnded:
    case AwayState::kOver:
      break;
  }
  return {state, AwayAction::kRefuse};
}

}  // namespace

AwayStep step(AwayState state, AwayEvent event) {
  switch (event) {
    case AwayEvent::kTicket:
      return on_ticket(state);
    case AwayEvent::kSteal:
      if (state == AwayState::kOpen) return {AwayState::kAway, AwayAction::kSend};
      return {state, AwayAction::kNothing};
    case AwayEvent::kEnd:
      return on_end(state);
  }
  return {state, AwayAction::kNothing};
}

bool accept(ValueState& state, bool has_value, bool has_end) {
  if (has_value && state != ValueState::kAwaited) return false;
  if (has_value) state = ValueState::kCame;
  return !has_end || state != ValueState::kAwaited;
}

}  // namespace amasia::nodes
