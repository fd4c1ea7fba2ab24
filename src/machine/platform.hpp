// SPDX-License-Identifier: Apache-2.0
// The platform model: what tasks and data can be at, and where each worker looks for tasks (HiPER,
// IPDPSW 2017, section II-A). Pure: values, and what makes them right.
//
//   place      a memory, a cache, a GPU, the interconnect, ...; named, of a type
//   edge       between two places: data gets from one to the other directly
//   worker     a thread: looks for its own tasks along `pop`, then for others' along `steal`
//   home       of a worker: the place that its tasks go to where they are given none
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/base.hpp"

namespace amasia::machine {

// The order is that of amasia::tasks::place_type.
enum class PlaceType : std::uint8_t {
  kMemory,
  kNumaNode,
  kCache,
  kGpu,
  kInterconnect,
  kStorage,
  kNode,
  kOther
};
inline constexpr std::size_t kPlaceTypes = 8;
// As files say it: memory, numa, cache, gpu, interconnect, storage, node, other.
const char* name_of(PlaceType type);

struct PlatformPlace {
  std::string name;
  PlaceType type = PlaceType::kOther;
  int number = -1;          // of its kind, as the system counts; -1: none
  std::uint64_t bytes = 0;  // 0: not known
  bool operator==(const PlatformPlace&) const = default;
};

// Places are told by their index.
struct PlatformWorker {
  std::uint32_t home = 0;
  std::vector<std::uint32_t> pop;
  std::vector<std::uint32_t> steal;
  bool operator==(const PlatformWorker&) const = default;
};

struct Platform {
  std::vector<PlatformPlace> places;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
  std::vector<PlatformWorker> workers;
  bool operator==(const Platform&) const = default;

  // places.size(): there is none of that name.
  std::uint32_t find(std::string_view name) const;
};

inline constexpr std::size_t kMostPlaces = 4096;
inline constexpr std::size_t kMostWorkers = 1024;

// What a runtime has without a file: "memory" on all paths, and "interconnect" and "storage", each
// next to it, on those of worker 0. Worker 0 looks at those two first: what waits there is short,
// and others may wait for it.
Platform plain_platform(unsigned workers);

// Both: "" or what is wrong, as one sentence without a full stop. Every place of a path is there,
// none twice on one path; names differ and are not ""; a home is on its worker's pop path; what
// goes to the home of a worker can be taken by that worker.
std::string flaw_of(const Platform& platform);

// The file's text. Readable: one place, edge list and worker a line.
std::string to_json(const Platform& platform);

// Of a text that is no platform: where, and what is wrong: "line 7: workers[0].pop[1] is ...".
Result<Platform> parse_platform(std::string_view text);

// Whole sentences that begin with the file's name: "platform.json, line 7: ...".
Result<Platform> load_platform(const std::string& path);

}  // namespace amasia::machine
