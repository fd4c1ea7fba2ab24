// SPDX-License-Identifier: Apache-2.0
#include "tools/calibration_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

namespace amasia::tools {
namespace {

using machine::BreakEven;
using machine::CurvePoint;
using Json = nlohmann::json;
using Output = std::back_insert_iterator<std::string>;

constexpr double kMega = 1e6;

CurvePoint point_of(const Json& json) {
  // A thread that met no fault was at it for all of its time, at least.
  const double faults = std::max(json.at("faults").get<double>(), 1.0);
  return {.ops_per_byte = json.at("ops_per_byte").get<double>(),
          .ops_per_s = json.at("ops_per_s").get<double>(),
          .fault_period_ns = json.at("thread_ns").get<double>() / faults};
}

MeasuredNode node_of(const Json& json) {
  MeasuredNode out;
  out.threads = json.at("threads").get<std::uint32_t>();
  out.peak_ops_per_s = json.at("peak_ops_per_s").get<double>();
  out.fault_latency_ns = json.at("fault_latency_ns").get<double>();
  out.page_stream_ns = json.at("page_stream_ns").get<double>();
  const Json& bare = json.at("bare");
  out.bare_page_ns = bare.at("thread_ns").get<double>() / bare.at("pages").get<double>();
  out.bare_fault_ns = point_of(bare).fault_period_ns;
  for (const Json& point : json.at("points")) out.points.push_back(point_of(point));
  return out;
}

std::string tidy_number(double value) {
  if (value >= 100) return fmt::format("{:.0f}", value);
  return value >= 10 ? fmt::format("{:.1f}", value) : fmt::format("{:.2f}", value);
}

std::string micros(double nanos) { return tidy_number(nanos / 1e3); }

double core_speed(const MeasuredNode& node) { return node.peak_ops_per_s / node.threads; }

}  // namespace

Result<Measurements> parse_measurements(std::string_view text) {
  try {
    const Json document = Json::parse(text);
    Measurements out;
    if (!document.at("identity").is_null()) {
      auto identity = machine::parse_identity(document.at("identity").dump());
      if (!identity.ok()) return identity.error();
      out.identity = std::move(identity).value();
    }
    for (const Json& node : document.at("nodes")) out.nodes.push_back(node_of(node));
    const bool whole = !out.nodes.empty() &&
                       (!out.identity || out.identity->nodes.size() == out.nodes.size()) &&
                       std::all_of(out.nodes.begin(), out.nodes.end(), [](const auto& node) {
                         return node.threads > 0 && node.peak_ops_per_s > 0 && !node.points.empty();
                       });
    if (whole) return out;
    return Error{"the calibration program left out figures", 0};
  } catch (const Json::exception& failure) {
    return Error{
        fmt::format("the calibration program printed what is not understood: {}", failure.what()),
        0};
  }
}

bool Evaluation::agrees() const {
  return measured && measured->ops_per_byte >= overlapped.ops_per_byte / 2 &&
         measured->ops_per_byte <= in_turns.ops_per_byte * 2;
}

Evaluation evaluate(const MeasuredNode& node) {
  const auto model = [&](machine::Transfers transfers) {
    return machine::model_break_even(core_speed(node), node.bare_page_ns, node.bare_fault_ns,
                                     transfers);
  };
  return {.measured = machine::measured_break_even(node.points, node.peak_ops_per_s),
          .overlapped = model(machine::Transfers::kOverlapped),
          .in_turns = model(machine::Transfers::kInTurns)};
}

machine::Calibration calibration_of(const Measurements& measured, machine::Method method,
                                    std::int64_t now_s) {
  AMASIA_CHECK(measured.identity.has_value(), "whose figures they are is known");
  machine::Calibration out;
  out.identity = *measured.identity;
  out.method = method;
  out.measured_s = now_s;
  for (const MeasuredNode& node : measured.nodes) {
    machine::NodeCalibration one{.core_ops_per_s = core_speed(node)};
    if (!out.nodes.empty()) {
      const Evaluation found = evaluate(node);
      const BreakEven& break_even = found.measured ? *found.measured : found.in_turns;
      one.fault_latency_ns = node.fault_latency_ns;
      one.page_stream_ns = node.page_stream_ns;
      one.break_even_ops_per_byte = break_even.ops_per_byte;
      one.break_even_ns_per_fault = break_even.fault_period_ns;
    }
    out.nodes.push_back(one);
  }
  return out;
}

namespace {

void append_nodes(std::string& out, const Measurements& measured) {
  out +=
      "                core speed, Mops/s          one fault   pages in a row      break-even at "
      "70 % of peak\n"
      "node  cores   plain  most work  to node 0         µs      µs     MB/s   ops/byte   µs/fault "
      " "
      "model, ops/byte\n";
  for (std::size_t i = 0; i < measured.nodes.size(); ++i) {
    const MeasuredNode& node = measured.nodes[i];
    fmt::format_to(Output(out), "{:>4}  {:>5}  {:>6}  {:>9}  {:>9.2f}", i, node.threads,
                   tidy_number(core_speed(node) / kMega),
                   tidy_number(node.points.back().ops_per_s / node.threads / kMega),
                   core_speed(node) / core_speed(measured.nodes[0]));
    if (i == 0) {
      out += "          -       -        -          -          -                -\n";
      continue;
    }
    const Evaluation found = evaluate(node);
    const std::string bounds = fmt::format("{} to {}", tidy_number(found.overlapped.ops_per_byte),
                                           tidy_number(found.in_turns.ops_per_byte));
    fmt::format_to(Output(out), "  {:>9}  {:>6}  {:>7}  {:>9}  {:>9}  {:>15}\n",
                   micros(node.fault_latency_ns), micros(node.page_stream_ns),
                   tidy_number(4096e3 / node.page_stream_ns),
                   found.measured ? tidy_number(found.measured->ops_per_byte) : "never",
                   found.measured ? micros(found.measured->fault_period_ns) : "-", bounds);
  }
  for (std::size_t i = 1; i < measured.nodes.size(); ++i) {
    if (evaluate(measured.nodes[i]).agrees()) continue;
    fmt::format_to(Output(out),
                   "node {}: the curve and the model differ by more than a factor of two; was "
                   "something else running?\n",
                   i);
  }
}

// A few nodes beside each other, so that lines stay short.
void append_curves(std::string& out, const Measurements& measured, std::size_t from,
                   std::size_t to) {
  std::string first = "          ", second = "ops/byte  ";
  std::size_t rows = 0;
  for (std::size_t i = from; i < to; ++i) {
    fmt::format_to(Output(first), "{:>20}", fmt::format("node {}", i));
    second += i == 0 ? "              Mops/s" : "    Mops/s  µs/fault";
    rows = std::max(rows, measured.nodes[i].points.size());
  }
  out += "\n" + first + "\n" + second + "\n";
  for (std::size_t row = 0; row < rows; ++row) {
    std::string line;
    for (std::size_t i = from; i < to; ++i) {
      const auto& points = measured.nodes[i].points;
      if (row >= points.size()) {
        line += std::string(20, ' ');
        continue;
      }
      if (line.find_first_not_of(' ') == std::string::npos) {
        line = fmt::format("{:>8.0f}  ", points[row].ops_per_byte) + line;
      }
      const std::string speed = tidy_number(points[row].ops_per_s / kMega);
      if (i == 0) {
        fmt::format_to(Output(line), "{:>20}", speed);
      } else {
        fmt::format_to(Output(line), "{:>10}{:>10}", speed, micros(points[row].fault_period_ns));
      }
    }
    line.resize(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
}

// In single quotes of gnuplot, where only the quote itself is special.
std::string for_gnuplot(std::string_view text) {
  std::string out = "'";
  for (const char character : text) {
    out += character;
    if (character == '\'') out += '\'';
  }
  return out + "'";
}

// Okabe and Ito's colours, which nobody confuses.
constexpr const char* kColours[] = {"#000000", "#0072B2", "#D55E00", "#009E73",
                                    "#CC79A7", "#E69F00", "#56B4E9"};

const char* colour_of(std::size_t node) { return kColours[node % std::size(kColours)]; }

std::string title_of(const Measurements& measured, std::size_t node) {
  const std::uint32_t threads = measured.nodes[node].threads;
  return fmt::format("node {}, {} core{}{}", node, threads, threads == 1 ? "" : "s",
                     node == 0 ? ", no transfers" : "");
}

void append_data(std::string& out, const Measurements& measured) {
  for (std::size_t i = 0; i < measured.nodes.size(); ++i) {
    fmt::format_to(Output(out), "$node{} << end\n", i);
    for (const CurvePoint& point : measured.nodes[i].points) {
      fmt::format_to(Output(out), "{} {} {}\n", point.ops_per_byte, point.ops_per_s / kMega,
                     point.fault_period_ns / 1e3);
    }
    out += "end\n";
    if (i == 0) continue;
    const Evaluation found = evaluate(measured.nodes[i]);
    if (!found.measured) continue;
    const double share = measured.nodes[i].peak_ops_per_s * machine::kBreakEvenPart / kMega;
    fmt::format_to(Output(out), "$even{} << end\n{} {} {}\nend\n", i, found.measured->ops_per_byte,
                   share, found.measured->fault_period_ns / 1e3);
  }
}

// What a panel shows of a point.
struct Panel {
  int column;  // of the data
  double (*value)(const CurvePoint&);
  std::string (*label)(double);  // of a tic
  std::string_view unit;         // of break-even
  std::size_t first_node;
};

std::string mops_label(double value) { return fmt::format("{}", value); }

// Microseconds, as a duration.
std::string duration_label(double value) {
  if (value < 1e3) return fmt::format("{} µs", value);
  return value < 1e6 ? fmt::format("{} ms", value / 1e3) : fmt::format("{} s", value / 1e6);
}

constexpr Panel kThroughput = {2, [](const CurvePoint& point) { return point.ops_per_s / kMega; },
                               mops_label, "operations/byte", 0};
constexpr Panel kPeriod = {3, [](const CurvePoint& point) { return point.fault_period_ns / 1e3; },
                           duration_label, "µs/fault", 1};

// Axes that fit the curves: some room at both ends, and tics at 1, 2 and 5 where there is room.
void append_axes(std::string& out, const Measurements& measured, const Panel& panel) {
  double low = 1e300, high = 0, most_ops = 1;
  for (std::size_t i = panel.first_node; i < measured.nodes.size(); ++i) {
    for (const CurvePoint& point : measured.nodes[i].points) {
      low = std::min(low, panel.value(point));
      high = std::max(high, panel.value(point));
      most_ops = std::max(most_ops, point.ops_per_byte);
    }
  }
  // A curve that is nearly level is to look so.
  low = std::min(low / 2, high / 20);
  high *= 1.6;
  std::string tics;
  const bool few = high / low < 2000;
  for (double power = 1e-9; power < high; power *= 10) {
    for (const double step : {1.0, 2.0, 5.0}) {
      const double at = step * power;
      if (at < low || at > high || (step != 1 && !few)) continue;
      if (!tics.empty()) tics += ", ";
      fmt::format_to(Output(tics), "'{}' {}", panel.label(std::round(at * 1e9) / 1e9), at);
    }
  }
  fmt::format_to(Output(out), "set xrange [0.8:{}]\nset yrange [{}:{}]\nset ytics ({})\n",
                 most_ops * 1.4, low, high, tics);
}

// One panel: the curves, with break-even marked on each and told beside it.
void append_panel(std::string& out, const Measurements& measured, const Panel& panel) {
  append_axes(out, measured, panel);
  std::string curves;
  for (std::size_t i = panel.first_node; i < measured.nodes.size(); ++i) {
    if (!curves.empty()) curves += ", \\\n  ";
    fmt::format_to(Output(curves),
                   "$node{} using 1:{} with linespoints lc rgb '{}' lw 2 pt 7 ps 0.7 {}title {}", i,
                   panel.column, colour_of(i), i == 0 ? "dt (6,4) " : "",
                   for_gnuplot(title_of(measured, i)));
    const auto even = i == 0 ? std::nullopt : evaluate(measured.nodes[i]).measured;
    if (!even) continue;
    const double told = panel.column == 2 ? even->ops_per_byte : even->fault_period_ns / 1e3;
    const std::string title = fmt::format("break-even: {} {}", tidy_number(told), panel.unit);
    fmt::format_to(Output(curves),
                   ", \\\n  $even{0} using 1:{1} with impulses lc rgb '{2}' lw 1.2 dt 3 notitle"
                   ", \\\n  $even{0} using 1:{1} with points lc rgb '{2}' pt 6 ps 2.2 lw 2.5 "
                   "title {3}",
                   i, panel.column, colour_of(i), for_gnuplot(title));
  }
  out += "plot " + curves + "\n";
}

}  // namespace

std::string table_of(const Measurements& measured, const machine::Identity& identity) {
  constexpr std::size_t kBeside = 4;
  std::string out = machine::text_of(identity) + "\n\n";
  append_nodes(out, measured);
  for (std::size_t from = 0; from < measured.nodes.size(); from += kBeside) {
    append_curves(out, measured, from, std::min(from + kBeside, measured.nodes.size()));
  }
  return out;
}

std::string plot_script(const Measurements& measured, const machine::Identity& identity,
                        const std::string& path) {
  const bool alone = measured.nodes.size() == 1;
  std::string out = fmt::format(
      "set terminal pngcairo size {},620 enhanced font 'DejaVu Sans,11' linewidth 1.2\n"
      "set output {}\n"
      "set encoding utf8\n"
      "set logscale xy\n"
      "set format x '%.0f'\n"
      "set grid xtics ytics lc rgb '#e4e4e4' lw 1 lt 1\n"
      "set border 3 lc rgb '#606060'\nset tics nomirror out scale 0.6\n"
      "set xtics 1,4\nset mxtics 1\nset mytics 1\n"
      "set xlabel 'operations per transferred byte'\n",
      alone ? 720 : 1400, for_gnuplot(path));
  append_data(out, measured);
  const std::string title =
      "Sharing between " + machine::text_of(identity) + "; break-even is at 70 % of peak";
  fmt::format_to(Output(out),
                 "set multiplot layout 1,{} title {} font ',13' noenhanced margins {}, 0.985, "
                 "0.11, 0.86 spacing 0.09, 0\n",
                 alone ? 1 : 2, for_gnuplot(title), alone ? 0.13 : 0.068);
  out +=
      "set title '{/:Bold a}   Throughput of the node'\n"
      "set ylabel 'million operations per second'\n"
      "set key bottom right Left reverse spacing 1.3 opaque box lc rgb '#e4e4e4' samplen 3 width 1 "
      "height 0.4\n";
  append_panel(out, measured, kThroughput);
  if (!alone) {
    out +=
        "set title '{/:Bold b}   Fault period of a thread'\n"
        "set ylabel 'time from one page fault to the next'\n"
        "set key top left\n";
    append_panel(out, measured, kPeriod);
  }
  out += "unset multiplot\n";
  return out;
}

}  // namespace amasia::tools
