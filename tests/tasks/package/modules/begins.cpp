// SPDX-License-Identifier: Apache-2.0
// Begins a module: what its header declares is in the installed library.
#include HEADER

#include <cstdio>

int main() {
  amasia::tasks::runtime workers({.workers = 1});
  SPACE::library module(workers);
  workers.run([&] { std::printf("%s\n", static_cast<amasia::tasks::module&>(module).name()); });
}
