// SPDX-License-Identifier: Apache-2.0
#include "omp/region/region_statistics.hpp"

#include <algorithm>
#include <cmath>

namespace amasia::omp {
namespace {

using base::RegionStatistics;

RegionStatistics::Phase phase_of(loops::SharingModel::Phase phase) {
  using Model = loops::SharingModel::Phase;
  using Told = RegionStatistics::Phase;
  switch (phase) {
    case Model::kCold:
      return Told::kCold;
    case Model::kWarm:
      return Told::kWarm;
    case Model::kTrial:
      return Told::kTrial;
    case Model::kShared:
      return Told::kShared;
    case Model::kAlone:
      return Told::kAlone;
    case Model::kElsewhere:
      return Told::kElsewhere;
  }
  AMASIA_CHECK(false, "the model is in one of its phases");
  return Told::kNone;
}

RegionStatistics::Rule rule_of(loops::SharingModel::Rule rule) {
  using Model = loops::SharingModel::Rule;
  if (rule == Model::kAlways) return RegionStatistics::Rule::kAlways;
  if (rule == Model::kThreshold) return RegionStatistics::Rule::kThreshold;
  return RegionStatistics::Rule::kPrediction;
}

Nanos rounded(double nanos) { return static_cast<Nanos>(std::llround(std::max(nanos, 0.0))); }

// A node without power has no part, and nothing tells how fast it would be.
std::vector<std::optional<double>> core_speed_ratios(const RegionRecord& record) {
  const std::span<const double> powers = record.model->powers();
  AMASIA_CHECK(powers.size() == record.cores.size(), "each power is of a node's cores");
  std::vector<std::optional<double>> ratios(powers.size());
  double fastest = 0;
  for (std::size_t i = 0; i < powers.size(); ++i) {
    if (powers[i] <= 0 || record.cores[i] <= 0) continue;
    ratios[i] = powers[i] / record.cores[i];
    fastest = std::max(fastest, *ratios[i]);
  }
  for (auto& ratio : ratios) {
    if (ratio) *ratio /= fastest;
  }
  return ratios;
}

std::optional<double> misses_per_kilo(const RegionRecord::Counted& counted) {
  if (counted.instructions == 0) return std::nullopt;
  return 1000 * static_cast<double>(counted.cache_misses) /
         static_cast<double>(counted.instructions);
}

void add_decision(const RegionRecord& record, RegionStatistics& region) {
  const loops::SharingModel& model = *record.model;
  const loops::SharingModel::Findings& found = model.findings();
  region.phase = phase_of(model.phase());
  region.rule = rule_of(model.rule());
  region.csr = core_speed_ratios(record);
  region.predicted_alone_ns = rounded(found.alone);
  region.predicted_shared_ns = rounded(found.shared);
  region.stall_ns_expected = rounded(found.stall);
  region.charged_ns = rounded(found.charged);
  region.fork_join_ns = rounded(found.rest);
  region.tried_alone = found.tried_alone;
  region.misses_per_kilo = model.misses_per_kilo();
  if (found.elsewhere_node != 0) {
    region.elsewhere_node = static_cast<std::uint32_t>(found.elsewhere_node);
  }
  region.profiled = record.is_profiled;
  if (record.spread.has_value()) region.work_of_first_half = record.spread->cost_before(0.5);
  region.until_retried_ns = rounded(model.until_retried());
  region.gathered = model.is_gathered() || record.apart != nullptr;
  for (std::size_t i = 0; i < region.csr.size(); ++i) {
    const loops::RegionPart& sample = record.samples.nodes[i];
    const bool moved = model.phase() == loops::SharingModel::Phase::kElsewhere;
    const bool dropped = !moved && model.powers()[i] <= 0 && record.took_part.test(i);
    if (sample.threads == 0 && !dropped) continue;
    region.per_node.push_back({.id = static_cast<std::uint32_t>(i),
                               .threads = sample.threads,
                               .work = sample.work,
                               .busy_ns = sample.busy,
                               .stall_ns = sample.stall,
                               .dropped = dropped,
                               .misses_per_kilo = misses_per_kilo(record.counted[i])});
  }
}

}  // namespace

RegionStatistics statistics_of(const RegionRecord& record) {
  RegionStatistics region;
  region.site = record.site;
  if (record.runs_single != 0) region.single_node_reason = text_of(record.single_reason);
  region.runs = record.runs;
  region.single_node_runs = record.runs_single;
  region.nodes = record.nodes;
  region.faults = record.faults;
  region.stall_ns = record.stall_ns;
  region.elapsed_ns = record.elapsed_ns;
  region.shared = record.shared;
  region.alone = record.alone;
  region.elsewhere = record.elsewhere;
  region.runs_come_home = record.runs_come_home;
  region.lost_before_home_ns = record.lost_before_home;
  if (record.model.has_value()) add_decision(record, region);
  return region;
}

}  // namespace amasia::omp
