// SPDX-License-Identifier: Apache-2.0
// Says where the tasks of the platform that it was given ran; with a span, for a trace.
#include <amasia/tasks.hpp>
#include <cstdio>

namespace tasks = amasia::tasks;

int main() {
  try {
    tasks::runtime workers;
    std::printf("workers %zu\n", workers.statistics().size());
    workers.run([] {
      const tasks::place memory = tasks::find_place("memory");
      tasks::buffer from(memory, 1 << 20), to(memory, 1 << 20);
      for (int n = 0; n < 1 << 20; ++n) from.as<char>()[n] = static_cast<char>(n * 7);
      tasks::async_copy(to.data(), memory, from.data(), memory, from.bytes()).get();
      std::printf("copied %d\n", to.as<char>()[1001] == static_cast<char>(1001 * 7));
      for (const tasks::place one : tasks::places()) {
        if (one.workers().empty()) continue;
        tasks::async_at(one, [one] {
          const tasks::span here("a task at a place");
          std::printf("at %s\n", tasks::here() == one ? one.name().c_str() : "another place");
        });
      }
    });
  } catch (const std::exception& failure) {
    std::printf("%s\n", failure.what());
    return 2;
  }
}
