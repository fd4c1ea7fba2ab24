// SPDX-License-Identifier: Apache-2.0
// How the cost of a loop's iterations is spread over them. Where they are alike a node's part of
// the work is its part of the iterations; of a triangular loop it is not, and who moves the nodes'
// seam by their speeds alone overshoots, or takes long. So shares are of the cost, and the spread
// says which iterations these are (beyond libHetMP, ACM TOCS 2022, whose shares are of iterations).
//
// It is found out while a loop is handed out in parts: a node tells how long what it was given has
// taken. What two nodes tell of neighbouring iterations says how fast they are, as cost hardly
// jumps there; where several such seams contradict each other nothing is clear. What it costs to
// begin, in caches and pages, may look like a spread: the first execution that is divided by it has
// to agree.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "loops/report.hpp"
#include "loops/space.hpp"

namespace amasia::loops {

class CostSpread {
 public:
  static constexpr std::size_t kPieces = 32;

  CostSpread() { pieces_.fill(1.0 / kPieces); }  // evenly
  // The cost of each of equally long pieces, relative; > 0.
  explicit CostSpread(std::span<const double, kPieces> costs);

  // The part of all cost that lies before `place`, and the other way round; all from 0 to 1.
  double cost_before(double place) const;
  double place_of(double cost) const;

  // Neighbours' parts, in the order of the iterations: of the cost, or of the iterations. Their sum
  // stays.
  void to_iterations(std::span<double> parts) const;
  void to_costs(std::span<double> parts) const;

  // Of an execution: nodes' parts of the iterations, neighbours in this order, what these took, and
  // how fast each node is thought to be. Whether times are rather those of the costs than as if all
  // iterations were alike.
  bool agrees(std::span<const double> parts, std::span<const double> times,
              std::span<const double> speeds) const;

 private:
  std::array<double, kPieces> pieces_;  // their sum is 1
};

// What came of one loop that was handed out in parts. Pure state; ranks as of its dealer.
class CostSketch {
 public:
  CostSketch() = default;
  // Of a loop of `count` iterations. Each of `nodes` will do what it is given in the order in which
  // that comes, as far as that can be known.
  CostSketch(std::uint64_t count, std::size_t nodes) : count_(count), nodes_(nodes) {}

  void give(std::size_t rank, const Iterations& range);
  // What the node has done since it told last.
  void tell(std::size_t rank, const Report& report);

  // nullopt: it is not clear, or about even.
  std::optional<CostSpread> spread() const;
  // By rank: the part of the cost that each was given.
  std::vector<double> parts_given(const CostSpread& spread) const;

 private:
  struct Node {
    std::vector<Iterations> given;
    std::size_t next = 0;    // the range that it is at
    std::uint64_t done = 0;  // of that
    bool has_told = false;
    // By pieces of the loop: how many iterations it has told of, and what they took, ns.
    std::array<double, CostSpread::kPieces> iterations{}, ns{};

    double density(std::size_t piece) const {
      return iterations[piece] > 0 ? ns[piece] / iterations[piece] : 0;
    }
    double density_near(std::size_t piece, std::size_t to) const;
  };
  struct Seams;
  void note(Node& node, std::span<const Iterations> runs, double ns) const;
  void note_run(Node& node, const Iterations& range, double ns_each) const;
  std::optional<std::vector<double>> scales() const;

  std::uint64_t count_ = 0;
  std::vector<Node> nodes_;
};

}  // namespace amasia::loops
