// SPDX-License-Identifier: Apache-2.0
// The platform file: docs/platform.schema.json says what it holds, this file reads and writes it.
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "machine/json_lines.hpp"
#include "machine/platform.hpp"
#include "os/os.hpp"

namespace amasia::machine {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;
constexpr std::size_t kMostBytes = 64 * base::kMiB;
constexpr double kMostMemory = 9e15;  // whole numbers are exact up to here in any reader

std::string quoted_names(const Platform& platform, const std::vector<std::uint32_t>& path) {
  std::string names;
  for (const std::uint32_t place : path) {
    names += (names.empty() ? "" : ", ") + Json(platform.places[place].name).dump();
  }
  return "[" + names + "]";
}

// Reads fields of one kind each; the first thing that is wrong stays.
class Reader {
 public:
  struct Flaw {
    std::string field;
    std::string what;
  };
  std::optional<Flaw> flaw;

  void fail(const std::string& field, std::string what) {
    if (!flaw) flaw = Flaw{field, std::move(what)};
  }
  // The object, if it is one and has no other fields than these.
  const Json& object(const Json& json, const std::string& field,
                     std::initializer_list<std::string_view> allowed) {
    static const Json nothing = Json::object();
    if (!json.is_object()) {
      fail(field, fmt::format("is {}, and an object is wanted", shown(json)));
      return nothing;
    }
    for (const auto& [name, value] : json.items()) {
      if (std::find(allowed.begin(), allowed.end(), name) != allowed.end()) continue;
      std::string names;
      for (const std::string_view one : allowed) {
        names += (names.empty() ? "" : ", ") + std::string(one);
      }
      fail(join(field, name), "is no field of this object, which has " + names);
    }
    return json;
  }
  const Json& array(const Json& json, const std::string& field, const char* name) {
    static const Json nothing = Json::array();
    const Json* const found = member(json, field, name);
    if (found == nullptr) return nothing;
    if (found->is_array()) return *found;
    fail(join(field, name), fmt::format("is {}, and a list is wanted", shown(*found)));
    return nothing;
  }
  std::string text(const Json& json, const std::string& field) {
    if (json.is_string()) return json.get<std::string>();
    fail(field, fmt::format("is {}, and a text is wanted", shown(json)));
    return "";
  }
  double whole_number(const Json& json, const std::string& field, double least, double most) {
    const double value = json.is_number() ? json.get<double>() : least - 1;
    if (value >= least && value <= most && json.is_number_integer()) return value;
    fail(field, fmt::format("is {}, and a whole number from {:.0f} to {:.0f} is wanted",
                            shown(json), least, most));
    return least;
  }
  // nullptr, and that it is missing.
  const Json* member(const Json& json, const std::string& field, const char* name) {
    const auto found = json.find(name);
    if (found != json.end()) return &*found;
    if (!flaw) flaw = Flaw{field, fmt::format("lacks the field '{}'", name)};
    return nullptr;
  }
  static std::string join(const std::string& field, std::string_view name) {
    return field.empty() ? std::string(name) : field + "." + std::string(name);
  }
  static std::string shown(const Json& json) {
    if (json.is_object()) return "an object";
    if (json.is_array()) return "a list";
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
};

class PlatformReader {
 public:
  Platform read(const Json& document) {
    const Json& all = reader.object(
        document, "", {"amasia_platform", "places", "edges", "workers", "$schema"});
    if (const Json* const version = reader.member(all, "", "amasia_platform")) {
      const double number = reader.whole_number(*version, "amasia_platform", 1, 1e6);
      if (number != kVersion) {
        reader.fail("amasia_platform",
                    fmt::format("is {:.0f}; this amasia reads version {}", number, kVersion));
      }
    }
    std::size_t index = 0;
    for (const Json& each : reader.array(all, "", "places")) {
      read_place(each, fmt::format("places[{}]", index++));
    }
    index = 0;
    if (all.contains("edges")) {
      for (const Json& each : reader.array(all, "", "edges")) {
        read_edge(each, fmt::format("edges[{}]", index++));
      }
    }
    index = 0;
    for (const Json& each : reader.array(all, "", "workers")) {
      read_worker(each, fmt::format("workers[{}]", index++));
    }
    return std::move(platform_);
  }
  Reader reader;

 private:
  void read_place(const Json& json, const std::string& field) {
    const Json& from = reader.object(json, field, {"name", "type", "number", "bytes"});
    PlatformPlace place;
    if (const Json* const name = reader.member(from, field, "name")) {
      place.name = reader.text(*name, field + ".name");
    }
    if (const Json* const type = reader.member(from, field, "type")) {
      place.type = type_of(*type, field + ".type");
    }
    if (from.contains("number")) {
      place.number =
          static_cast<int>(reader.whole_number(from["number"], field + ".number", 0, 1e6));
    }
    if (from.contains("bytes")) {
      place.bytes = static_cast<std::uint64_t>(
          reader.whole_number(from["bytes"], field + ".bytes", 0, kMostMemory));
    }
    // The field is told of, not the place's number in the list of all.
    if (place.name.empty()) reader.fail(field + ".name", "is empty, and each place has a name");
    const auto index = static_cast<std::uint32_t>(platform_.places.size());
    if (!indices_.emplace(place.name, index).second) {
      reader.fail(field + ".name", "is '" + place.name + "', which an earlier place has");
    }
    platform_.places.push_back(std::move(place));
    if (platform_.places.size() > kMostPlaces) {
      reader.fail(field, fmt::format("is one too many: at most {} are allowed", kMostPlaces));
    }
  }

  PlaceType type_of(const Json& json, const std::string& field) {
    const std::string text = reader.text(json, field);
    std::string names;
    for (std::size_t index = 0; index < kPlaceTypes; ++index) {
      const auto type = static_cast<PlaceType>(index);
      if (text == name_of(type)) return type;
      names += (names.empty() ? "" : ", ") + std::string(name_of(type));
    }
    reader.fail(field, fmt::format("is '{}', and it takes {}", text, names));
    return PlaceType::kOther;
  }

  std::uint32_t place_of(const Json& json, const std::string& field) {
    const std::string name = reader.text(json, field);
    const auto found = indices_.find(name);
    if (found != indices_.end()) return found->second;
    reader.fail(field, fmt::format("is '{}', and no place has that name", name));
    return 0;
  }

  void read_edge(const Json& json, const std::string& field) {
    if (!json.is_array() || json.size() != 2) {
      return reader.fail(field,
                         fmt::format("is {}, and a list of the names of two places is wanted",
                                     Reader::shown(json)));
    }
    const std::uint32_t one = place_of(json[0], field + "[0]");
    const std::uint32_t other = place_of(json[1], field + "[1]");
    if (one == other) reader.fail(field + "[1]", "is the same place: an edge joins two");
    platform_.edges.emplace_back(one, other);
  }

  std::vector<std::uint32_t> read_path(const Json& from, const std::string& field,
                                       const char* name) {
    std::vector<std::uint32_t> path;
    for (const Json& each : reader.array(from, field, name)) {
      const std::string step = fmt::format("{}.{}[{}]", field, name, path.size());
      const std::uint32_t place = place_of(each, step);
      if (std::find(path.begin(), path.end(), place) != path.end()) {
        reader.fail(step, "is on this path already");
      }
      path.push_back(place);
      if (reader.flaw) break;
    }
    return path;
  }

  void read_worker(const Json& json, const std::string& field) {
    const Json& from = reader.object(json, field, {"count", "home", "pop", "steal"});
    PlatformWorker worker;
    worker.pop = read_path(from, field, "pop");
    worker.steal = read_path(from, field, "steal");
    if (worker.pop.empty()) {
      return reader.fail(field + ".pop", "is empty: the worker could run nothing");
    }
    worker.home = worker.pop.front();
    if (from.contains("home")) {
      worker.home = place_of(from["home"], field + ".home");
      if (std::find(worker.pop.begin(), worker.pop.end(), worker.home) == worker.pop.end()) {
        reader.fail(field + ".home", "is not on the worker's pop path");
      }
    }
    std::size_t count = 1;
    if (from.contains("count")) {
      count = static_cast<std::size_t>(
          reader.whole_number(from["count"], field + ".count", 1, kMostWorkers));
    }
    if (platform_.workers.size() + count > kMostWorkers) {
      return reader.fail(field, fmt::format("makes it {} workers, and at most {} are allowed",
                                            platform_.workers.size() + count, kMostWorkers));
    }
    platform_.workers.insert(platform_.workers.end(), count, worker);
  }

  Platform platform_;
  std::map<std::string, std::uint32_t> indices_;
};

// What stands between the first two quotes of a parser's complaint: the number it is about.
std::string_view quoted_in(std::string_view complaint) {
  complaint.remove_prefix(std::min(complaint.find('\''), complaint.size() - 1) + 1);
  return complaint.substr(0, complaint.find('\''));
}

}  // namespace

std::string to_json(const Platform& platform) {
  std::string text = fmt::format("{{\n  \"amasia_platform\": {},\n  \"places\": [", kVersion);
  const char* separator = "\n";
  for (const PlatformPlace& place : platform.places) {
    text += fmt::format("{}    {{\"name\": {}, \"type\": \"{}\"", separator,
                        Json(place.name).dump(-1, ' ', false, Json::error_handler_t::replace),
                        name_of(place.type));
    if (place.number >= 0) text += fmt::format(", \"number\": {}", place.number);
    if (place.bytes != 0) text += fmt::format(", \"bytes\": {}", place.bytes);
    text += "}";
    separator = ",\n";
  }
  text += "\n  ],\n  \"edges\": [";
  separator = "\n";
  for (const auto& [one, other] : platform.edges) {
    text += fmt::format("{}    {}", separator, quoted_names(platform, {one, other}));
    separator = ",\n";
  }
  text += "\n  ],\n  \"workers\": [";
  separator = "\n";
  for (const PlatformWorker& worker : platform.workers) {
    text += fmt::format("{}    {{\"home\": {},\n     \"pop\": {},\n     \"steal\": {}}}", separator,
                        Json(platform.places[worker.home].name).dump(),
                        quoted_names(platform, worker.pop), quoted_names(platform, worker.steal));
    separator = ",\n";
  }
  return text + "\n  ]\n}\n";
}

Result<Platform> parse_platform(std::string_view text) {
  Json document;
  try {
    document = Json::parse(text);
  } catch (const Json::parse_error& failure) {
    const std::size_t line = line_of_byte(text, failure.byte == 0 ? 0 : failure.byte - 1);
    return Error{fmt::format("line {}: this is no JSON", line), 0};
  } catch (const Json::out_of_range& failure) {
    const std::string_view number = quoted_in(failure.what());
    return Error{fmt::format("line {}: {} is larger than any number can be",
                             line_of_byte(text, text.find(number)), number),
                 0};
  }
  PlatformReader platform_reader;
  Platform platform = platform_reader.read(document);
  if (const auto& flaw = platform_reader.reader.flaw) {
    return Error{fmt::format("line {}: {} {}", line_of_value(text, flaw->field),
                             flaw->field.empty() ? "the file" : flaw->field, flaw->what),
                 0};
  }
  // What is not a matter of single fields.
  if (const std::string flaw = flaw_of(platform); !flaw.empty()) {
    const std::string field = flaw.substr(0, flaw.find(' '));
    return Error{fmt::format("line {}: {}", line_of_value(text, field), flaw), 0};
  }
  return platform;
}

Result<Platform> load_platform(const std::string& path) {
  const std::string name = "the platform file '" + path + "'";
  const os::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) return base::errno_error(errno, "cannot read " + name);
  const Result<std::string> text = os::read_to_end(file, kMostBytes);
  if (!text.ok()) return base::errno_error(text.error().code, "cannot read " + name);
  auto parsed = parse_platform(text.value());
  if (!parsed.ok()) return Error{name + ", " + parsed.error().message, 0};
  return parsed;
}

}  // namespace amasia::machine
