// SPDX-License-Identifier: Apache-2.0
// How nodes of one host meet on memory that they share (meeting_board.hpp), and how a thread sleeps
// until something is posted there, as pure state machines. Each says which access to the memory
// comes next and is told what it found; the node carries the accesses out, and the explorer does so
// in every order, with the store buffers of x86 (board_meeting_test).
//
// Meeting: every participant writes the meeting's number as its arrival and then sees whether all
// others have written theirs. Numbers rise from meeting to meeting, so nothing is ever reset, and a
// participant that is one meeting ahead has arrived at this one too. With P participants that is
// one store and P-1 loads of lines that are fetched side by side: cheaper than rounds of messages
// while P is small, and where nodes share cores each need run only once a meeting.
//
// A1 An arrival is written after the word that is given, and read before it is taken.
// A2 Of a participant's words those of two meetings are of use at a time: it gives in the next one
//    while others may still take from this one, and comes to the one after that when all have
//    arrived at the next, so have left this one. Two slots, by the number's lowest bit.
// A3 No wake-up is lost: who posts writes, then looks for sleepers; who sleeps says so, then looks
//    for the post. Each of the two pairs is in the one order of all nodes (sequentially
//    consistent), so at least one sees the other. A bell that is rung after it was read ends the
//    sleep at once.
#pragma once

#include <cstdint>

#include "base/base.hpp"
#include "omp/meeting/meeting.hpp"

namespace amasia::omp {

class BoardMeeting {
 public:
  enum class Action : std::uint8_t {
    kGive,            // write the word, then its number, into the slot of this meeting
    kArrive,          // write the arrival; what follows comes after it in the order of all nodes
    kLookForSleeper,  // answer: does a thread of `other` sleep, or is it about to?
    kRing,            // ring the bell of `other`
    kAwait,           // wait until `other` has arrived (BellWait)
    kTake,            // has `other` given a word? take()
    kLeave,           // all have arrived; word() is what was given
  };

  // Participant `rank` of `size`, which brings `word`.
  BoardMeeting(std::uint32_t rank, std::uint32_t size, Word word)
      : rank_(rank), size_(size), word_(word) {
    AMASIA_CHECK(size >= 1 && size <= base::kMaxNodes && rank < size,
                 "a meeting has between 1 and 64 participants, this one among them");
    action_ = word.present ? Action::kGive : Action::kArrive;
  }

  // Whether a participant whose arrival reads `seen` has come to the meeting `number`.
  static bool has_arrived(std::uint64_t seen, std::uint64_t number) { return seen >= number; }

  Action action() const { return action_; }
  // The rank that the action is about.
  std::uint32_t other() const { return other_; }
  const Word& word() const { return word_; }

  // The action was carried out, and this is its answer.
  void done(bool answer = false) {
    switch (action_) {
      case Action::kGive:
        action_ = Action::kArrive;
        return;
      case Action::kArrive:
        begin(Action::kLookForSleeper);
        return;
      case Action::kLookForSleeper:
        if (answer) {
          action_ = Action::kRing;
          return;
        }
        [[fallthrough]];
      case Action::kRing:
        if (on_to_next(Action::kLookForSleeper)) begin(Action::kAwait);
        return;
      case Action::kAwait:
        if (on_to_next(Action::kAwait)) begin(Action::kTake);
        return;
      case Action::kTake:
        if (on_to_next(Action::kTake)) action_ = Action::kLeave;
        return;
      case Action::kLeave:
        break;
    }
    AMASIA_CHECK(false, "nothing follows the end of a meeting");
  }
  // The answer to kTake.
  void take(const Word& given) {
    AMASIA_CHECK(action_ == Action::kTake, "words are taken when all have arrived");
    word_.join(given);
    done();
  }

 private:
  // The first of the others, if there is one.
  void begin(Action action) {
    other_ = rank_ == 0 ? 1 : 0;
    action_ = size_ > 1 ? action : Action::kLeave;
  }
  // True: `other` was the last one.
  bool on_to_next(Action action) {
    other_ += other_ + 1 == rank_ ? 2 : 1;
    action_ = action;
    return other_ >= size_;
  }

  std::uint32_t rank_;
  std::uint32_t size_;
  std::uint32_t other_ = 0;
  Action action_;
  Word word_;
};

// A thread that waits for a post. While it is patient it looks again and again; then it sleeps.
class BellWait {
 public:
  enum class Action : std::uint8_t {
    kLook,      // has what is waited for been posted? looked()
    kReadBell,  // note how often the own node's bell was rung
    kMark,      // say that a thread sleeps; later looks come after it in the order of all nodes
    kSleep,     // until the bell was rung more often than noted
    kUnmark,    // say that it does not sleep any more
    kGo,        // it has been posted
  };

  Action action() const { return action_; }
  // Whether a look decides about sleeping: then `patient` is not asked for.
  bool marked() const { return marked_; }

  // The answer to kLook. `patient`: look again rather than sleep.
  void looked(bool posted, bool patient) {
    AMASIA_CHECK_DEBUG(action_ == Action::kLook, "an answer without a question");
    if (posted) {
      posted_ = true;
      action_ = marked_ ? Action::kUnmark : Action::kGo;
    } else if (marked_) {
      action_ = Action::kSleep;
    } else if (!patient) {
      action_ = Action::kReadBell;
    }
  }
  // Any other action was carried out.
  void done() {
    switch (action_) {
      case Action::kReadBell:
        action_ = Action::kMark;
        return;
      case Action::kMark:
        marked_ = true;
        action_ = Action::kLook;
        return;
      case Action::kSleep:
        action_ = Action::kUnmark;
        return;
      case Action::kUnmark:
        marked_ = false;
        action_ = posted_ ? Action::kGo : Action::kLook;
        return;
      case Action::kLook:
      case Action::kGo:
        break;
    }
    AMASIA_CHECK(false, "a look has an answer, and nothing follows the end of a wait");
  }

 private:
  Action action_ = Action::kLook;
  bool marked_ = false;
  bool posted_ = false;
};

}  // namespace amasia::omp
