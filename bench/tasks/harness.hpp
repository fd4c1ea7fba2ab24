// SPDX-License-Identifier: Apache-2.0
// Runs the ways to do one thing in turns, round by round, so that what else the machine does falls
// on all of them alike, and prints median, median absolute deviation, minimum and the ratio of each
// to the first: the median of the ratios of one round. Before its turn each way waits until the
// threads of the others sleep: those that still spin for their next work (libgomp's do for some ms)
// would have the core that it needs. `kAwake`: then it is run once untimed, and its own threads are
// as awake as in a program of its own, which matters where a run takes less than some ms. Where
// BENCH_JSON names a file, a line of JSON for each way is added to it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace bench {

struct Way {
  std::string name;
  std::function<void()> run;
};

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

inline double seconds_of(const std::function<void()>& run) {
  const auto began = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

inline void write_json(const std::string& question, unsigned workers, const std::string& way,
                       const char* unit, double middle, double deviation, double least, int rounds,
                       double ratio) {
  const char* const path = std::getenv("BENCH_JSON");
  std::FILE* const file = path == nullptr ? nullptr : std::fopen(path, "a");
  if (file == nullptr) return;
  std::fprintf(file,
               "{\"question\": \"%s\", \"workers\": %u, \"way\": \"%s\", \"unit\": \"ns a %s\", "
               "\"median\": %.1f, \"mad\": %.1f, \"min\": %.1f, \"n\": %d, \"amasia_x\": %.3f}\n",
               question.c_str(), workers, way.c_str(), unit, middle, deviation, least, rounds,
               ratio);
  std::fclose(file);
}

enum class Threads { kAsleep, kAwake };  // a way's own, when its turn comes

// `count` is what the time is divided by; `unit` says what it counts.
inline void compare(const std::string& question, unsigned workers, double count, const char* unit,
                    const std::vector<Way>& ways, int rounds,
                    Threads threads = Threads::kAsleep) {
  std::vector<std::vector<double>> times(ways.size());
  for (const Way& way : ways) way.run();  // warm
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t index = 0; index < ways.size(); ++index) {
      if (ways.size() > 1) std::this_thread::sleep_for(std::chrono::milliseconds(30));
      if (threads == Threads::kAwake) ways[index].run();
      times[index].push_back(seconds_of(ways[index].run) / count * 1e9);
    }
  }
  for (std::size_t index = 0; index < ways.size(); ++index) {
    const double middle = median(times[index]);
    std::vector<double> off, ratios;
    for (int round = 0; round < rounds; ++round) {
      const auto at = static_cast<std::size_t>(round);
      off.push_back(std::abs(times[index][at] - middle));
      ratios.push_back(times[0][at] / times[index][at]);
    }
    const double least = *std::min_element(times[index].begin(), times[index].end());
    write_json(question, workers, ways[index].name, unit, middle, median(off), least, rounds,
               median(ratios));
    std::printf("%-22s %u  %-8s median %9.1f ns a %s  MAD %7.1f  min %9.1f  n %d  amasia x%.2f\n",
                question.c_str(), workers, ways[index].name.c_str(), middle, unit, median(off),
                least, rounds, median(ratios));
  }
  std::fflush(stdout);
}

}  // namespace bench
