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
// One that says itself how many nanoseconds it took, of whatever it timed.
struct TimedWay {
  std::string name;
  std::function<double()> run;
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

// Of each way, what each round took; ratios are to the first way's.
inline void report(const std::string& question, unsigned workers, const char* unit,
                   const std::vector<std::string>& names,
                   const std::vector<std::vector<double>>& times) {
  const std::size_t rounds = times.front().size();
  const int n = static_cast<int>(rounds);
  for (std::size_t index = 0; index < names.size(); ++index) {
    const double middle = median(times[index]);
    std::vector<double> off, ratios;
    for (std::size_t at = 0; at < rounds; ++at) {
      off.push_back(std::abs(times[index][at] - middle));
      ratios.push_back(times[0][at] / times[index][at]);
    }
    const double least = *std::min_element(times[index].begin(), times[index].end());
    write_json(question, workers, names[index], unit, middle, median(off), least, n,
               median(ratios));
    std::printf("%-22s %u  %-8s median %9.1f ns a %s  MAD %7.1f  min %9.1f  n %d  amasia x%.2f\n",
                question.c_str(), workers, names[index].c_str(), middle, unit, median(off), least,
                n, median(ratios));
  }
  std::fflush(stdout);
}

enum class Threads { kAsleep, kAwake };  // a way's own, when its turn comes

// Before a way's turn, after one that took so long. At real-time priority Linux stops who uses more
// than 95% of a second until that is over, 50 ms: who comes after a long turn would pay for it.
inline void pause_after(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(std::max(0.03, 0.15 * seconds)));
}

// `count` is what the time is divided by; `unit` says what it counts.
inline void compare(const std::string& question, unsigned workers, double count, const char* unit,
                    const std::vector<Way>& ways, int rounds,
                    Threads threads = Threads::kAsleep) {
  std::vector<std::vector<double>> times(ways.size());
  double taken = 0;
  for (const Way& way : ways) way.run();  // warm
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t index = 0; index < ways.size(); ++index) {
      if (ways.size() > 1) pause_after(taken);
      if (threads == Threads::kAwake) ways[index].run();
      taken = seconds_of(ways[index].run);
      times[index].push_back(taken / count * 1e9);
    }
  }
  std::vector<std::string> names;
  for (const Way& way : ways) names.push_back(way.name);
  report(question, workers, unit, names, times);
}

inline void compare_timed(const std::string& question, unsigned workers, const char* unit,
                          const std::vector<TimedWay>& ways, int rounds) {
  std::vector<std::vector<double>> times(ways.size());
  std::vector<std::string> names;
  for (const TimedWay& way : ways) {
    names.push_back(way.name);
    way.run();  // warm
  }
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t index = 0; index < ways.size(); ++index) {
      pause_after(0);
      times[index].push_back(ways[index].run());
    }
  }
  report(question, workers, unit, names, times);
}

}  // namespace bench
