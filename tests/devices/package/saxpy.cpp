// SPDX-License-Identifier: Apache-2.0
// The same in C++, by the installed header.
#include <amasia/devices.hpp>
#include <cstdio>
#include <numeric>
#include <vector>

static int saxpy(const mcl_host_range* part, void* const* args, uint64_t) {
  const auto* x = static_cast<const float*>(args[0]);
  auto* y = static_cast<float*>(args[1]);
  for (auto i = part->begin[0]; i < part->end[0]; ++i) y[i] += *static_cast<float*>(args[2]) * x[i];
  return 0;
}

int main() {
  namespace dev = amasia::devices;
  dev::session session(2);
  session.add_host_kernel("saxpy", saxpy);
  std::vector<float> x(1000, 1), y(1000, 3);
  dev::submit("saxpy", {x.size()}, dev::in(x), dev::inout(y), 2.0F).get();
  std::printf("sum %g\n", std::accumulate(y.begin(), y.end(), 0.0));
}
