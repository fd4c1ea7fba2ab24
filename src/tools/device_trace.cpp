// SPDX-License-Identifier: Apache-2.0
#include "tools/device_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

namespace amasia::tools {
namespace {

using Json = nlohmann::json;
using Output = std::back_insert_iterator<std::string>;

constexpr std::uint32_t kMostDevices = 64;
// gnuplot draws no more points than are seen.
constexpr std::size_t kMostPoints = 4000;

double number(const Json& object, const char* key, double otherwise = 0) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : otherwise;
}
std::string text(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}
bool is_true(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || !found->is_boolean() || found->get<bool>();
}

// What is whole of a file that was cut off: events up to the last that is followed by a comma.
std::string closed(std::string_view text) {
  const std::size_t last = text.rfind("},");
  return (last == std::string_view::npos ? std::string("[")
                                         : std::string(text.substr(0, last + 1))) +
         "]";
}

Json parse_events(std::string_view text) {
  Json out = Json::parse(text, nullptr, false);
  const std::size_t first = text.find_first_not_of(" \n\r\t");
  if (first == std::string_view::npos || text[first] != '[') return out;
  if (out.is_discarded()) out = Json::parse(std::string(text) + "]", nullptr, false);
  std::string_view rest = text;
  // A cut within an event's arguments may leave a "}," that is not its end.
  for (int tries = 0; out.is_discarded() && tries < 4 && !rest.empty(); ++tries) {
    out = Json::parse(closed(rest), nullptr, false);
    const std::size_t last = rest.rfind("},");
    rest = rest.substr(0, last == std::string_view::npos ? 0 : last);
  }
  return out;
}

void read_metadata(const Json& event, DeviceTrace& out) {
  const auto arguments = event.find("args");
  if (arguments == event.end() || !arguments->is_object()) return;
  const double device = number(*arguments, "device", -1), client = number(*arguments, "client", -1);
  if (device >= 0 && device < kMostDevices) {
    out.devices[static_cast<std::uint32_t>(device)] = {
        text(*arguments, "name"), text(*arguments, "class"),
        static_cast<std::uint32_t>(std::clamp(number(*arguments, "depth", 1), 1.0, 1e6))};
  } else if (client >= 0 && client < 4e9) {
    out.clients[static_cast<std::uint32_t>(client)] = text(*arguments, "name");
  }
}

void read_slice(const Json& event, DeviceTrace& out) {
  const std::string name = text(event, "name");
  const auto arguments = event.find("args");
  if (arguments == event.end() || !arguments->is_object()) {
    // A part of the last task; a task, whatever its kernel is called, has arguments.
    if (out.tasks.empty() || (name != "run" && name != "copy in" && name != "copy out")) return;
    double& into = name == "run" ? out.tasks.back().run_us : out.tasks.back().copy_us;
    into += number(event, "dur");
    return;
  }
  const double device = number(*arguments, "device", -1);
  if (device < 0 || device >= kMostDevices) return;
  TracedTask task;
  task.device = static_cast<std::uint32_t>(device);
  task.client = static_cast<std::uint32_t>(std::clamp(number(*arguments, "client"), 0.0, 4e9));
  task.bytes = static_cast<std::uint64_t>(std::clamp(number(*arguments, "copied"), 0.0, 1e18));
  task.share = std::clamp(number(*arguments, "share", 1), 0.0, 1.0);
  task.queued_us = number(*arguments, "queued_us");
  task.granted_us = number(event, "ts");
  task.ended_us = task.granted_us + std::max(0.0, number(event, "dur"));
  task.succeeded = is_true(*arguments, "succeeded");
  out.tasks.push_back(task);
  out.devices.try_emplace(task.device, TracedDevice{fmt::format("device {}", task.device), "", 1});
}

struct Sums {
  std::uint64_t tasks = 0, failed = 0, bytes = 0;
  double queued = 0, run = 0, copy = 0;
  void add(const TracedTask& task) {
    ++tasks;
    failed += task.succeeded ? 0 : 1;
    bytes += task.bytes;
    queued += task.queued_us;
    run += task.run_us;
    copy += task.copy_us;
  }
};

double elapsed_us(const DeviceTrace& trace) {
  double first = 1e300, last = 0;
  for (const TracedTask& task : trace.tasks) {
    first = std::min(first, task.granted_us - task.queued_us);
    last = std::max(last, task.ended_us);
  }
  return trace.tasks.empty() ? 0 : last - first;
}

// Of the time from the first grant to the last end, weighted by time and not by events.
std::vector<double> mean_utilisation(const DeviceTrace& trace) {
  const std::vector<UtilisationPoint> points = utilisation(trace);
  std::vector<double> out(trace.devices.size());
  if (points.size() < 2) return out;
  for (std::size_t i = 0; i + 1 < points.size(); ++i) {
    const double length = points[i + 1].at_us - points[i].at_us;
    for (std::size_t d = 0; d < out.size(); ++d) out[d] += points[i].of_device[d] * length;
  }
  const double all = points.back().at_us - points.front().at_us;
  for (double& value : out) value = all > 0 ? value / all : 0;
  return out;
}

std::string time_text(double microseconds) {
  return base::duration_text(static_cast<Nanos>(std::min(microseconds, 9e15) * 1000));
}

struct Row {
  std::string name;
  Sums sums;
  double utilisation = -1;  // below 0: none
};
std::vector<Row> device_rows(const DeviceTrace& trace) {
  const std::vector<double> means = mean_utilisation(trace);
  std::vector<Row> out;
  for (const auto& [id, device] : trace.devices) {
    Row row{device.name, {}, means[out.size()]};
    for (const TracedTask& task : trace.tasks) {
      if (task.device == id) row.sums.add(task);
    }
    out.push_back(std::move(row));
  }
  return out;
}
std::vector<Row> client_rows(const DeviceTrace& trace) {
  std::map<std::uint32_t, Sums> sums;
  for (const TracedTask& task : trace.tasks) sums[task.client].add(task);
  std::vector<Row> out;
  for (const auto& [id, of_client] : sums) {
    const auto name = trace.clients.find(id);
    out.push_back(
        {name == trace.clients.end() ? fmt::format("client {}", id) : name->second, of_client});
  }
  return out;
}

std::vector<std::string> cells(const Row& row) {
  const double tasks = static_cast<double>(std::max<std::uint64_t>(row.sums.tasks, 1));
  return {row.name,
          fmt::format("{}", row.sums.tasks),
          fmt::format("{}", row.sums.failed),
          time_text(row.sums.queued / tasks),
          time_text(row.sums.copy / tasks),
          time_text(row.sums.run / tasks),
          base::volume_text(row.sums.bytes),
          row.utilisation < 0 ? "" : fmt::format("{:.1f} %", 100 * row.utilisation)};
}
constexpr std::array<const char*, 8> kColumns = {"",       "tasks", "failed", "queued",
                                                 "copies", "run",   "copied", "utilisation"};

void append_table(std::string& out, const char* title, const std::vector<Row>& rows) {
  fmt::format_to(Output(out), "{:<40} {:>8} {:>7} {:>10} {:>10} {:>10} {:>11} {:>11}\n", title,
                 kColumns[1], kColumns[2], kColumns[3], kColumns[4], kColumns[5], kColumns[6],
                 rows.empty() || rows[0].utilisation < 0 ? "" : kColumns[7]);
  for (const Row& row : rows) {
    const std::vector<std::string> cell = cells(row);
    fmt::format_to(Output(out), "{:<40.40} {:>8} {:>7} {:>10} {:>10} {:>10} {:>11} {:>11}\n",
                   cell[0], cell[1], cell[2], cell[3], cell[4], cell[5], cell[6], cell[7]);
  }
}

std::string html_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '&') {
      out += "&amp;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += c;
    }
  }
  return out;
}

void append_html_table(std::string& out, const char* title, const std::vector<Row>& rows) {
  const bool with_utilisation = !rows.empty() && rows[0].utilisation >= 0;
  const std::size_t columns = with_utilisation ? kColumns.size() : kColumns.size() - 1;
  out += "<table><tr>";
  for (std::size_t i = 0; i < columns; ++i) {
    fmt::format_to(Output(out), "<th>{}</th>", i == 0 ? title : kColumns[i]);
  }
  out += "</tr>\n";
  for (const Row& row : rows) {
    const std::vector<std::string> cell = cells(row);
    out += "<tr>";
    for (std::size_t i = 0; i < columns; ++i) {
      fmt::format_to(Output(out), "<td>{}</td>", html_text(cell[i]));
    }
    out += "</tr>\n";
  }
  out += "</table>\n";
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      group = group << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      out += i + j > bytes.size() ? '=' : kDigits[group >> (18 - 6 * j) & 63];
    }
  }
  return out;
}

// In single quotes of gnuplot, where only the quote itself is special; in titles, with enhanced
// text off.
std::string gnuplot_text(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') out += "''";
    if (c != '\'' && static_cast<unsigned char>(c) >= 0x20) out += c;
  }
  return out + "'";
}

}  // namespace

Result<DeviceTrace> parse_device_trace(std::string_view text) {
  const Json json = parse_events(text);
  if (json.is_discarded()) return Error{"it is not JSON", 0};
  const Json* events = &json;
  if (json.is_object() && json.contains("traceEvents")) events = &json["traceEvents"];
  if (!events->is_array()) return Error{"it is not a trace: neither a list nor 'traceEvents'", 0};
  DeviceTrace out;
  for (const Json& event : *events) {
    if (!event.is_object()) continue;
    const std::string phase = tools::text(event, "ph");
    if (phase == "M") read_metadata(event, out);
    if (phase == "X") read_slice(event, out);
  }
  if (out.devices.empty()) return Error{"it is a trace, but has no device of amasia-deviced", 0};
  return out;
}

std::vector<UtilisationPoint> utilisation(const DeviceTrace& trace) {
  struct Step {
    double at;
    int change;  // ends before grants of the same moment
    std::size_t device;
    double share;
  };
  std::map<std::uint32_t, std::size_t> index;
  for (const auto& [id, device] : trace.devices) index.emplace(id, index.size());
  std::vector<Step> steps;
  for (const TracedTask& task : trace.tasks) {
    steps.push_back({task.granted_us, 1, index.at(task.device), task.share});
    steps.push_back({task.ended_us, -1, index.at(task.device), task.share});
  }
  std::sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) {
    return a.at != b.at ? a.at < b.at : a.change < b.change;
  });
  std::vector<double> now(index.size());
  std::vector<std::size_t> tasks(index.size());
  std::vector<UtilisationPoint> out;
  for (const Step& step : steps) {
    now[step.device] += step.change * step.share;
    tasks[step.device] += static_cast<std::size_t>(step.change);
    if (tasks[step.device] == 0) now[step.device] = 0;  // sums of fractions end at nothing
    UtilisationPoint point{step.at, now};
    for (double& value : point.of_device) value = std::clamp(value, 0.0, 1.0);
    out.push_back(std::move(point));
  }
  return out;
}

std::string device_report_text(const DeviceTrace& trace) {
  std::string out =
      fmt::format("{} {} of {} {} on {} {} in {}\n\n", trace.tasks.size(),
                  trace.tasks.size() == 1 ? "task" : "tasks", client_rows(trace).size(),
                  client_rows(trace).size() == 1 ? "client" : "clients", trace.devices.size(),
                  trace.devices.size() == 1 ? "device" : "devices", time_text(elapsed_us(trace)));
  append_table(out, "device", device_rows(trace));
  out += '\n';
  append_table(out, "client", client_rows(trace));
  out += "\nqueued, copies and run: means of a task\n";
  return out;
}

std::string utilisation_script(const DeviceTrace& trace, const std::string& path) {
  const std::vector<UtilisationPoint> points = utilisation(trace);
  const std::size_t devices = trace.devices.size();
  const bool panels = devices <= 8;
  std::string out = fmt::format(
      "set terminal pngcairo noenhanced size 1000,{} font 'sans,10'\nset output {}\n"
      "set yrange [0:105]\nset xrange [0:{}]\nset grid ytics lc rgb '#dddddd'\nset tics nomirror\n"
      "set border 3\n",
      panels ? 110 + 130 * std::max<std::size_t>(devices, 2) : 520, gnuplot_text(path),
      std::max<std::size_t>(points.size(), 1));
  // Of more events than are seen, the mean of so many: single ones of a device that runs one task
  // at a time would show nothing but grants, or nothing but ends.
  const std::size_t step = (points.size() + kMostPoints - 1) / kMostPoints;
  out += "$points << EOD\n0";
  for (std::size_t d = 0; d < devices; ++d) out += " 0";
  out += '\n';
  for (std::size_t i = 0; i < points.size(); i += step) {
    const std::size_t until = std::min(i + step, points.size());
    fmt::format_to(Output(out), "{}", until);
    for (std::size_t device = 0; device < devices; ++device) {
      double sum = 0;
      for (std::size_t k = i; k < until; ++k) sum += points[k].of_device[device];
      fmt::format_to(Output(out), " {:.2f}", 100 * sum / static_cast<double>(until - i));
    }
    out += '\n';
  }
  out += "EOD\n";
  const std::array<const char*, 8> colours = {"#1f77b4", "#ff7f0e", "#2ca02c", "#d62728",
                                              "#9467bd", "#8c564b", "#e377c2", "#17becf"};
  if (panels) {
    fmt::format_to(Output(out),
                   "set multiplot layout {},1 title 'Utilisation of each device over scheduling "
                   "events (%)'\nset key above right samplen 1 font ',9'\nset ytics 50\n",
                   devices);
  } else {
    out += "set title 'Utilisation of each device over scheduling events (%)'\nset key outside\n";
  }
  std::size_t d = 0;
  for (const auto& [id, device] : trace.devices) {
    const bool last = ++d == devices;
    if (panels && last) out += "set xlabel 'scheduling events (a task is granted, or ends)'\n";
    if (!panels && d == 1) out += "set xlabel 'scheduling events'\nplot ";
    fmt::format_to(Output(out), "{}$points using 1:{} with {} lc rgb '{}' title {}{}",
                   panels ? "plot " : "", d + 1, panels ? "fillsteps fs solid 0.6" : "steps",
                   colours[(d - 1) % colours.size()], gnuplot_text(device.name),
                   panels || last ? "\n" : ", ");
  }
  if (panels) out += "unset multiplot\n";
  return out;
}

std::string device_report_html(const DeviceTrace& trace, std::string_view png,
                               std::string_view title) {
  std::string out = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title>\n"
      "<style>body{{font:15px sans-serif;max-width:1040px;margin:2em auto;color:#222}}"
      "table{{border-collapse:collapse;margin:1em 0}}th,td{{padding:.25em .8em;text-align:right;"
      "border-bottom:1px solid #ddd}}th:first-child,td:first-child{{text-align:left}}"
      "img{{max-width:100%}}</style></head><body>\n<h1>{0}</h1>\n",
      html_text(title));
  fmt::format_to(Output(out), "<p>{} tasks of {} clients on {} devices in {}.</p>\n",
                 trace.tasks.size(), client_rows(trace).size(), trace.devices.size(),
                 time_text(elapsed_us(trace)));
  if (!png.empty()) {
    out +=
        "<p><img alt=\"Utilisation of each device over scheduling events\" "
        "src=\"data:image/png;base64,";
    out += base64(png) + "\"></p>\n";
  }
  append_html_table(out, "device", device_rows(trace));
  append_html_table(out, "client", client_rows(trace));
  out +=
      "<p>queued, copies and run: means of a task. Utilisation: the part of a device's processing "
      "elements that tasks in flight have, over the time from the first grant to the last end."
      "</p>\n</body></html>\n";
  return out;
}

}  // namespace amasia::tools
