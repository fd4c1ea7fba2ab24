// SPDX-License-Identifier: Apache-2.0
// Shares badly: conjugate gradients with a sparse matrix whose columns are anywhere. A vector that
// one loop writes by shares is gathered at random by the next, and every loop is short.
// cg [rows [steps]]; a step is kIterations iterations and a new right side from their solution.
#include <math.h>

#include "program.h"

enum { kPairsOfRow = 7, kIterations = 15 };

typedef struct {
  long rows;
  int *starts, *columns;
  double* values;
} Matrix;

static long pair_column(long row, int pair, long rows) {
  return (long)(mixed((uint64_t)(row * kPairsOfRow + pair)) % (uint64_t)rows);
}

static void add(Matrix* a, int* filled, long row, long column, double value) {
  int at = a->starts[row] + filled[row]++;
  a->columns[at] = (int)column;
  a->values[at] = value;
}

// Symmetric, with a diagonal that outweighs its row: each pair of a row stands in both triangles.
static Matrix make_matrix(long rows) {
  size_t entries = (size_t)rows * (1 + 2 * kPairsOfRow);
  Matrix a = {rows, allocate((size_t)rows + 1, sizeof(int)), allocate(entries, sizeof(int)),
              allocate(entries, sizeof(double))};
  int* filled = calloc((size_t)rows, sizeof(int));
  for (long row = 0; row <= rows; row++) a.starts[row] = 0;
  for (long row = 0; row < rows; row++) {
    a.starts[row + 1] += 1 + kPairsOfRow;
    for (int p = 0; p < kPairsOfRow; p++) a.starts[pair_column(row, p, rows) + 1]++;
  }
  for (long row = 0; row < rows; row++) a.starts[row + 1] += a.starts[row];
  for (long row = 0; row < rows; row++) {
    add(&a, filled, row, row, 2 * kPairsOfRow + 1 + uniform((uint64_t)row));
    for (int p = 0; p < kPairsOfRow; p++) {
      long column = pair_column(row, p, rows);
      double value = -uniform((uint64_t)(row * kPairsOfRow + p) + 1000003u);
      add(&a, filled, row, column, value);
      add(&a, filled, column, row, value);
    }
  }
  free(filled);
  return a;
}

static double dot(long rows, const double* x, const double* y) {
  double sum = 0;
#pragma omp parallel for schedule(UNLIKE_SCHEDULE) reduction(+ : sum)
  for (long i = 0; i < rows; i++) sum += x[i] * y[i];
  return sum;
}

static void multiply(const Matrix* a, const double* x, double* y) {
#pragma omp parallel for schedule(UNLIKE_SCHEDULE)
  for (long row = 0; row < a->rows; row++) {
    double sum = 0;
    for (int i = a->starts[row]; i < a->starts[row + 1]; i++)
      sum += a->values[i] * x[a->columns[i]];
    y[row] = sum;
  }
}

// y = p * x + q * y
static void combine(long rows, double p, const double* x, double q, double* y) {
#pragma omp parallel for schedule(UNLIKE_SCHEDULE)
  for (long i = 0; i < rows; i++) y[i] = p * x[i] + q * y[i];
}

// z is about the inverse of a times x; r, d and q are room to work in.
static void solve(const Matrix* a, const double* x, double* z, double* r, double* d, double* q) {
  combine(a->rows, 0, x, 0, z);
  combine(a->rows, 1, x, 0, r);
  combine(a->rows, 1, x, 0, d);
  double rho = dot(a->rows, r, r);
  for (int iteration = 0; iteration < kIterations; iteration++) {
    multiply(a, d, q);
    double alpha = rho / dot(a->rows, d, q);
    combine(a->rows, alpha, d, 1, z);
    combine(a->rows, -alpha, q, 1, r);
    double next = dot(a->rows, r, r);
    combine(a->rows, 1, r, next / rho, d);
    rho = next;
  }
}

int main(int argc, char** argv) {
  long rows = argument(argc, argv, 1, "rows", 20000, 2, 1 << 24);
  long steps = argument(argc, argv, 2, "steps", 250, 1, 1 << 20);
  Matrix a = make_matrix(rows);
  double* vectors[5];
  for (int v = 0; v < 5; v++) {
    vectors[v] = allocate((size_t)rows, sizeof(double));
    for (long i = 0; i < rows; i++) vectors[v][i] = v == 0 ? 0.5 + uniform((uint64_t)i) : 0;
  }
  double *x = vectors[0], *z = vectors[1], checksum = 0;
  Timing timing = {0};
  for (long step = 0; step < steps; step++) {
    step_begins(&timing, step);
    solve(&a, x, z, vectors[2], vectors[3], vectors[4]);
    checksum += 1 / dot(rows, x, z);
    combine(rows, 1 / sqrt(dot(rows, z, z)), z, 0, x);
  }
  steps_end(&timing);
  for (int v = 0; v < 5; v++) free(vectors[v]);
  free(a.starts);
  free(a.columns);
  free(a.values);
  return report("cg", checksum, kReduced, &timing);
}
