// SPDX-License-Identifier: Apache-2.0
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
// As the host computes it: bit for bit.
#pragma OPENCL FP_CONTRACT OFF
// Planes `to` from the planes of `from`, which begins one plane below and ends one above. Items: x,
// y and the planes; the outermost cells in x and y stay as they are.
void update(__global const double* from, __global double* to, int width, int height) {
  const int x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
  if (x == 0 || x == width - 1 || y == 0 || y == height - 1) return;
  const int plane = width * height, n = y * width + x;
  __global const double* const below = from + z * plane;
  __global const double* const here = below + plane;
  __global const double* const above = here + plane;
  to[z * plane + n] =
      0.4 * here[n] + 0.1 * (here[n - 1] + here[n + 1] + here[n - width] + here[n + width] +
                             below[n] + above[n]);
}
__kernel void stencil(__global const double* from, __global double* to, int width, int height) {
  update(from, to, width, height);
}
// Of whole grids, whose plane `first` is the first to be computed.
__kernel void stencil_of_grids(__global const double* from, __global double* to, int width,
                               int height, int first) {
  const int plane = width * height;
  update(from + (first - 1) * plane, to + first * plane, width, height);
}
