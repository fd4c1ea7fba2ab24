// SPDX-License-Identifier: Apache-2.0
// Shares well: particles in a cube of boxes, each drawn by those of its own and the 26 boxes around
// (the pattern of Rodinia's lavaMD). Much work for each particle that is read; boxes at the faces
// have fewer neighbours. Between steps the particles move a little within their box.
// particles [boxes along an edge [steps]]
#include <cmath>
#include <vector>

#include "program.h"

namespace {

constexpr int kInBox = 64;

struct Particle {
  double x, y, z, charge;
};

struct Force {
  double potential, x, y, z;
};

struct Cube {
  long edge;
  std::vector<Particle> particles;
  std::vector<Force> forces;

  [[nodiscard]] long boxes() const { return edge * edge * edge; }
};

// The order of the sums is fixed for each particle: who computes it does not show in the result.
void add_box(const Particle* mine, Force* forces, const Particle* others) {
  for (int i = 0; i < kInBox; i++) {
    Force sum = forces[i];
    for (int j = 0; j < kInBox; j++) {
      double dx = mine[i].x - others[j].x, dy = mine[i].y - others[j].y;
      double dz = mine[i].z - others[j].z;
      double draw = others[j].charge * std::exp(-0.5 * (dx * dx + dy * dy + dz * dz));
      sum.potential += draw;
      sum.x += draw * dx;
      sum.y += draw * dy;
      sum.z += draw * dz;
    }
    forces[i] = sum;
  }
}

void add_neighbours(Cube& cube, long box) {
  long bx = box % cube.edge, by = box / cube.edge % cube.edge, bz = box / (cube.edge * cube.edge);
  Force* forces = &cube.forces[box * kInBox];
  for (int i = 0; i < kInBox; i++) forces[i] = {};
  for (long z = bz - 1; z <= bz + 1; z++)
    for (long y = by - 1; y <= by + 1; y++)
      for (long x = bx - 1; x <= bx + 1; x++) {
        bool inside = x >= 0 && y >= 0 && z >= 0 && x < cube.edge && y < cube.edge && z < cube.edge;
        if (!inside) continue;
        long other = (z * cube.edge + y) * cube.edge + x;
        add_box(&cube.particles[box * kInBox], forces, &cube.particles[other * kInBox]);
      }
}

void move(Cube& cube, long box) {
  for (long i = box * kInBox; i < (box + 1) * kInBox; i++) {
    cube.particles[i].x += 1e-6 * cube.forces[i].x;
    cube.particles[i].y += 1e-6 * cube.forces[i].y;
    cube.particles[i].z += 1e-6 * cube.forces[i].z;
  }
}

Cube make_cube(long edge) {
  Cube cube{edge, {}, {}};
  cube.particles.resize(cube.boxes() * kInBox);
  cube.forces.resize(cube.boxes() * kInBox);
  for (long i = 0; i < cube.boxes() * kInBox; i++) {
    long box = i / kInBox;
    uint64_t seed = static_cast<uint64_t>(i) * 4;
    cube.particles[i] = {static_cast<double>(box % edge) + uniform(seed),
                         static_cast<double>(box / edge % edge) + uniform(seed + 1),
                         static_cast<double>(box / (edge * edge)) + uniform(seed + 2),
                         0.1 + 0.9 * uniform(seed + 3)};
  }
  return cube;
}

}  // namespace

int main(int argc, char** argv) {
  long edge = argument(argc, argv, 1, "boxes along an edge", 6, 1, 128);
  long steps = argument(argc, argv, 2, "steps", 12, 1, 1 << 20);
  Cube cube = make_cube(edge);
  Timing timing{};
  for (long step = 0; step < steps; step++) {
    step_begins(&timing, step);
#pragma omp parallel for schedule(UNLIKE_SCHEDULE)
    for (long box = 0; box < cube.boxes(); box++) add_neighbours(cube, box);
#pragma omp parallel for schedule(UNLIKE_SCHEDULE)
    for (long box = 0; box < cube.boxes(); box++) move(cube, box);
  }
  steps_end(&timing);
  double checksum = 0;
  for (const Force& force : cube.forces)
    checksum += force.potential + std::abs(force.x) + std::abs(force.y) + std::abs(force.z);
  for (const Particle& particle : cube.particles) checksum += particle.x + particle.y + particle.z;
  return report("particles", checksum, kExact, &timing);
}
