// SPDX-License-Identifier: Apache-2.0
// Whether a move of shares was for the better, by what executions took before and after it. Shares
// are moved as if a node's time grew with its share, and where it does not, they would be moved to
// and fro: under a quota of CPU time a share is done before the quota is, or waits for the next.
// A move that was for the worse is undone, and later ones are shorter. Pure.
#pragma once

#include <array>
#include <cstdint>

#include "base/base.hpp"

namespace amasia::loops {

class MoveTrial {
 public:
  enum class Verdict : std::uint8_t {
    kNone,    // no move is on trial
    kOpen,    // too few executions tell
    kBetter,  // or no worse than can be told
    kWorse,   // to be undone; what was known of the shares before is known of the present ones
  };

  // After an execution, in ns; not while data follow a move. `cycle`: with all that other regions
  // took since the one before, who may have to fetch what it has taken; a move is for the worse
  // also if that is clearly longer.
  Verdict note(double elapsed, double cycle);
  // The shares have just been moved. On trial if enough is known of those before.
  void move();
  // How far the next move is to go towards balance, above 0 up to 1.
  double step() const { return step_; }
  // So much is known of the present shares that a move would be on trial.
  bool is_ready() const { return now_.own.is_enough(); }
  // The last move was for the worse, and executions take what they took before it.
  bool is_wary() const { return wary_; }

 private:
  // What the last executions with the same shares took.
  class Sample {
   public:
    void add(double elapsed);
    // Without the longest eighth, as executions take long for reasons of their own.
    void tell(double& mean, double& error) const;
    double above(const Sample& before) const;
    bool is_enough() const;
    std::uint32_t count() const { return count_; }
    // Whether each of the latest ones is longer than that.
    bool lately_above(double limit) const;
    void keep_latest();

   private:
    std::array<double, 32> values_{};
    std::uint32_t count_ = 0;  // ever
  };

  struct Samples {
    Sample own, cycle;
  };

  Verdict judge() const;

  Samples before_, now_;
  bool on_trial_ = false, wary_ = false;
  double step_ = 1;
};

}  // namespace amasia::loops
