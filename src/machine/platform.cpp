// SPDX-License-Identifier: Apache-2.0
#include "machine/platform.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace amasia::machine {
namespace {

constexpr std::array<const char*, kPlaceTypes> kTypeNames = {
    "memory", "numa", "cache", "gpu", "interconnect", "storage", "node", "other"};

std::string flaw_of_path(const Platform& platform, const std::vector<std::uint32_t>& path,
                         const std::string& field) {
  std::set<std::uint32_t> seen;
  for (const std::uint32_t place : path) {
    if (place >= platform.places.size()) {
      return fmt::format("{} has the place number {}, and there are {} places", field, place,
                         platform.places.size());
    }
    if (!seen.insert(place).second) {
      return fmt::format("{} has '{}' twice", field, platform.places[place].name);
    }
  }
  return "";
}

std::string flaw_of_places(const Platform& platform) {
  if (platform.places.empty()) return "places is empty: a worker needs one for its tasks";
  if (platform.places.size() > kMostPlaces) {
    return fmt::format("places has {} entries, and at most {} are allowed", platform.places.size(),
                       kMostPlaces);
  }
  std::set<std::string> names;
  for (std::size_t index = 0; index < platform.places.size(); ++index) {
    const std::string& name = platform.places[index].name;
    if (name.empty()) return fmt::format("places[{}].name is empty", index);
    if (!names.insert(name).second) {
      return fmt::format("places[{}].name is '{}', which another place has", index, name);
    }
  }
  for (std::size_t index = 0; index < platform.edges.size(); ++index) {
    const auto [one, other] = platform.edges[index];
    if (std::max(one, other) >= platform.places.size()) {
      return fmt::format("edges[{}] names a place that is not there", index);
    }
    if (one == other) {
      return fmt::format("edges[{}] joins '{}' with itself", index, platform.places[one].name);
    }
  }
  return "";
}

std::string flaw_of_workers(const Platform& platform) {
  const std::size_t count = platform.workers.size();
  if (count == 0) return "workers is empty: at least one is needed";
  if (count > kMostWorkers) {
    return fmt::format("workers are {}, and at most {} are allowed", count, kMostWorkers);
  }
  for (std::size_t index = 0; index < count; ++index) {
    const PlatformWorker& worker = platform.workers[index];
    const std::string field = fmt::format("workers[{}]", index);
    for (const auto& [path, name] :
         {std::pair(&worker.pop, ".pop"), std::pair(&worker.steal, ".steal")}) {
      const std::string flaw = flaw_of_path(platform, *path, field + name);
      if (!flaw.empty()) return flaw;
    }
    if (worker.pop.empty()) return field + ".pop is empty: the worker could run nothing";
    if (std::find(worker.pop.begin(), worker.pop.end(), worker.home) == worker.pop.end()) {
      return field + ".home is not on the worker's pop path";
    }
  }
  return "";
}

}  // namespace

const char* name_of(PlaceType type) { return kTypeNames[static_cast<std::size_t>(type)]; }

std::uint32_t Platform::find(std::string_view name) const {
  const auto found = std::find_if(places.begin(), places.end(),
                                  [&](const PlatformPlace& place) { return place.name == name; });
  return static_cast<std::uint32_t>(found - places.begin());
}

Platform plain_platform(unsigned workers) {
  Platform made;
  made.places = {{"memory", PlaceType::kMemory},
                 {"interconnect", PlaceType::kInterconnect},
                 {"storage", PlaceType::kStorage}};
  made.edges = {{0, 1}, {0, 2}};
  made.workers.resize(workers, {.home = 0, .pop = {0}, .steal = {0}});
  if (workers != 0) made.workers[0] = {.home = 0, .pop = {1, 2, 0}, .steal = {1, 2, 0}};
  return made;
}

std::string flaw_of(const Platform& platform) {
  std::string flaw = flaw_of_places(platform);
  if (flaw.empty()) flaw = flaw_of_workers(platform);
  return flaw;
}

}  // namespace amasia::machine
