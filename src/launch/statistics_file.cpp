// SPDX-License-Identifier: Apache-2.0
#include "launch/statistics_file.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <nlohmann/json.hpp>

#include "os/os.hpp"

namespace amasia::launch {
namespace {

using base::RegionNodeStatistics;
using base::RegionOutcome;
using base::RegionStatistics;
using Json = nlohmann::json;

constexpr std::size_t kMostBytes = 64 * base::kMiB;  // of tens of thousands of regions

// One object of the document. The first thing that is wrong is kept in `wrong`, and what is read
// after it is zero.
class Object {
 public:
  Object(const Json& json, std::string name, std::string& wrong)
      : json_(json), name_(std::move(name)), wrong_(wrong) {
    if (!json_.is_object()) complain(name_, "is not an object");
  }

  // Null, where that is allowed, reads as nothing.
  enum class Null { kRefused, kAllowed };

  template <typename Number>
  void read(const char* key, Number& number, Null null = Null::kRefused) {
    const Json* const found = find(key);
    if (found == nullptr || (null == Null::kAllowed && found->is_null())) return;
    if (!found->is_number_unsigned() ||
        found->get<std::uint64_t>() > static_cast<std::uint64_t>(kMost<Number>)) {
      return complain(path(key), fmt::format("is not a whole number from 0 to {}", kMost<Number>));
    }
    number = found->get<Number>();
  }
  void read(const char* key, bool& flag) {
    const Json* const found = find(key);
    if (found == nullptr) return;
    if (!found->is_boolean()) return complain(path(key), "is neither true nor false");
    flag = found->get<bool>();
  }
  // A part of a whole.
  void read(const char* key, double& part) {
    const Json* const found = find(key);
    if (found == nullptr) return;
    if (!found->is_number() || found->get<double>() < 0 || found->get<double>() > 1) {
      return complain(path(key), "is not a number from 0 to 1");
    }
    part = found->get<double>();
  }
  void read(const char* key, std::string& text, Null null = Null::kRefused) {
    const Json* const found = find(key);
    if (found == nullptr || (null == Null::kAllowed && found->is_null())) return;
    if (!found->is_string()) return complain(path(key), "is not text");
    text = found->get<std::string>();
  }

  // Calls `one` with each element and its name.
  template <typename One>
  void each(const char* key, std::size_t most, One one) {
    const Json* const found = find(key);
    if (found == nullptr) return;
    if (!found->is_array()) return complain(path(key), "is not a list");
    if (found->size() > most) {
      return complain(path(key), fmt::format("has more than {} elements", most));
    }
    for (std::size_t i = 0; i < found->size() && wrong_.empty(); ++i) {
      one((*found)[i], fmt::format("{}[{}]", path(key), i));
    }
  }
  const Json* find(const char* key) {
    if (!wrong_.empty()) return nullptr;
    const auto found = json_.find(key);
    if (found != json_.end()) return &*found;
    complain(path(key), "is missing");
    return nullptr;
  }
  std::string path(const char* key) const { return name_.empty() ? key : name_ + "." + key; }
  void complain(const std::string& what, const std::string& why) {
    if (wrong_.empty()) wrong_ = (what.empty() ? "the whole" : what) + " " + why;
  }

 private:
  // Sums of a few of these do not overflow.
  template <typename Number>
  static constexpr auto kMost = static_cast<Number>(std::min<std::uint64_t>(
      std::numeric_limits<Number>::max(), 1'000'000'000'000'000'000));

  const Json& json_;
  std::string name_;
  std::string& wrong_;
};

// A number that is not negative, or null.
std::optional<double> read_amount(Object& object, const char* key, double most) {
  const Json* const found = object.find(key);
  if (found == nullptr || found->is_null()) return std::nullopt;
  if (found->is_number() && found->get<double>() >= 0 && found->get<double>() <= most) {
    return found->get<double>();
  }
  object.complain(object.path(key), fmt::format("is neither null nor a number from 0 to {}", most));
  return std::nullopt;
}

base::LoopNodeStatistics read_loop_part(Object part) {
  constexpr double kLongest = 1e18;
  base::LoopNodeStatistics out;
  part.read("id", out.id);
  part.read("share", out.share);
  out.csr = read_amount(part, "csr", 1);
  part.read("probes", out.probes);
  out.compute_ns = read_amount(part, "compute_ns", kLongest).value_or(0);
  out.stall_ns = read_amount(part, "stall_ns", kLongest).value_or(0);
  return out;
}

base::LoopStatistics read_loop(const Json& json, const std::string& name, std::string& wrong) {
  Object loop(json, name, wrong);
  base::LoopStatistics out;
  std::string form;
  loop.read("site", out.site);
  loop.read("kind", out.kind);
  loop.read("schedule", out.schedule);
  loop.read("form", form);
  if (const auto known = base::form_named(form)) {
    out.form = *known;
  } else {
    loop.complain(loop.path("form"), "is '" + form + "', which is none");
  }
  loop.read("chunk", out.chunk);
  loop.read("runs", out.runs);
  loop.read("iterations", out.iterations);
  loop.each("per_node", base::kMaxNodes, [&](const Json& part, const std::string& at) {
    out.per_node.push_back(read_loop_part(Object(part, at, wrong)));
  });
  loop.read("elapsed_ns", out.elapsed_ns, Object::Null::kAllowed);
  loop.read("predicted_runs", out.predicted_runs);
  loop.read("predicted_ns", out.predicted_ns, Object::Null::kAllowed);
  loop.read("measured_ns", out.measured_ns, Object::Null::kAllowed);
  return out;
}

std::optional<double> read_misses(Object& object) {
  return read_amount(object, "cache_misses_per_1000_instructions", 1e6);
}

RegionNodeStatistics read_part(Object part) {
  RegionNodeStatistics out;
  part.read("id", out.id);
  part.read("threads", out.threads);
  part.read("work", out.work);
  part.read("busy_ns", out.busy_ns);
  part.read("stall_ns", out.stall_ns);
  part.read("dropped", out.dropped);
  out.misses_per_kilo = read_misses(part);
  return out;
}

RegionOutcome read_outcome(Object outcome) {
  RegionOutcome out;
  outcome.read("runs", out.runs);
  outcome.read("elapsed_ns", out.elapsed_ns);
  outcome.read("settled_runs", out.settled_runs);
  outcome.read("settled_ns", out.settled_ns);
  return out;
}

void read_names(Object& region, RegionStatistics& out) {
  std::string phase, rule;
  region.read("phase", phase, Object::Null::kAllowed);
  region.read("rule", rule);
  if (const auto known = base::phase_named(phase)) {
    out.phase = *known;
  } else {
    region.complain(region.path("phase"), "is '" + phase + "', which is none");
  }
  if (const auto known = base::rule_named(rule)) {
    out.rule = *known;
  } else {
    region.complain(region.path("rule"), "is '" + rule + "', which is none");
  }
}

RegionStatistics read_region(const Json& json, const std::string& name, std::string& wrong) {
  Object region(json, name, wrong);
  RegionStatistics out;
  region.read("site", out.site);
  region.read("runs", out.runs);
  region.read("nodes", out.nodes);
  region.read("single_node_reason", out.single_node_reason, Object::Null::kAllowed);
  region.read("single_node_runs", out.single_node_runs);
  region.read("faults", out.faults);
  region.read("stall_ns", out.stall_ns);
  region.read("elapsed_ns", out.elapsed_ns);
  read_names(region, out);
  region.each("csr", base::kMaxNodes, [&](const Json& ratio, const std::string& at) {
    if (ratio.is_null()) {
      out.csr.emplace_back();
    } else if (ratio.is_number() && ratio.get<double>() >= 0 && ratio.get<double>() <= 1) {
      out.csr.emplace_back(ratio.get<double>());
    } else {
      region.complain(at, "is neither null nor a number from 0 to 1");
    }
  });
  region.each("per_node", base::kMaxNodes, [&](const Json& part, const std::string& at) {
    out.per_node.push_back(read_part(Object(part, at, wrong)));
  });
  region.read("predicted_alone_ns", out.predicted_alone_ns, Object::Null::kAllowed);
  region.read("predicted_shared_ns", out.predicted_shared_ns, Object::Null::kAllowed);
  region.read("stall_ns_expected", out.stall_ns_expected);
  region.read("charged_ns", out.charged_ns);
  region.read("fork_join_ns", out.fork_join_ns);
  region.read("tried_alone", out.tried_alone);
  region.read("profiled", out.profiled);
  region.read("until_retried_ns", out.until_retried_ns);
  region.read("gathered", out.gathered);
  region.read("runs_come_home", out.runs_come_home);
  region.read("lost_before_home_ns", out.lost_before_home_ns);
  for (const auto& [key, outcome] : {std::pair{"shared", &out.shared}, {"alone", &out.alone},
                                     {"elsewhere", &out.elsewhere}}) {
    const Json* const found = region.find(key);
    if (found != nullptr) *outcome = read_outcome(Object(*found, region.path(key), wrong));
  }
  if (const auto node = read_amount(region, "elsewhere_node", base::kMaxNodes - 1); node) {
    out.elsewhere_node = static_cast<std::uint32_t>(*node);
  }
  out.misses_per_kilo = read_misses(region);
  out.work_of_first_half = read_amount(region, "work_of_first_half", 1);
  region.each("loops", std::numeric_limits<std::size_t>::max(),
              [&](const Json& loop, const std::string& at) {
                out.loops.push_back(read_loop(loop, at, wrong));
              });
  region.read("loops_left_out", out.loops_left_out);
  return out;
}

}  // namespace

Result<base::JobStatistics> parse_statistics(std::string_view text) {
  const Json document = Json::parse(text, nullptr, false);
  if (document.is_discarded()) return Error{"is not JSON", 0};
  std::string wrong;
  Object whole(document, "", wrong);
  base::JobStatistics job;
  whole.each("nodes", base::kMaxNodes, [&](const Json& json, const std::string& at) {
    Object node(json, at, wrong);
    node.read("id", job.nodes.emplace_back().id);
  });
  whole.each("regions", std::numeric_limits<std::size_t>::max(),
             [&](const Json& json, const std::string& at) {
               job.regions.push_back(read_region(json, at, wrong));
             });
  if (!wrong.empty()) return Error{"is not what --stats=FILE writes: " + wrong, 0};
  return job;
}

Result<base::JobStatistics> load_statistics(const std::string& path) {
  const std::string name = "the statistics in '" + path + "'";
  const os::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return base::errno_error(errno, "cannot read " + name);
  const Result<std::string> text = os::read_to_end(file, kMostBytes);
  if (!text.ok() && text.error().code == EFBIG) {
    return Error{"'" + path + "' is larger than 64 MiB", 0};
  }
  if (!text.ok()) return base::errno_error(text.error().code, "cannot read " + name);
  auto parsed = parse_statistics(text.value());
  if (!parsed.ok()) return Error{"'" + path + "' " + parsed.error().message, 0};
  return parsed;
}

Result<std::optional<base::JobStatistics>> load_profile(const base::Options& options) {
  if (options.profile.empty()) return std::optional<base::JobStatistics>();
  auto earlier = load_statistics(options.profile);
  if (earlier.ok()) return std::optional(std::move(earlier).value());
  const bool is_to_come = earlier.error().code == ENOENT && options.profile == options.stats;
  if (is_to_come) return std::optional<base::JobStatistics>();
  return Error{"--profile: " + earlier.error().message, earlier.error().code};
}

}  // namespace amasia::launch
