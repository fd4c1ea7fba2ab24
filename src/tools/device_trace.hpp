// SPDX-License-Identifier: Apache-2.0
// What a trace of devices says (docs/device_tools.md): figure 5 of mcl-gpgpu2020, utilisation of
// each device over scheduling events, and tables. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/base.hpp"

namespace amasia::tools {

struct TracedTask {
  std::uint32_t device = 0, client = 0;
  std::uint64_t bytes = 0;
  double share = 1;  // of the device's elements
  double granted_us = 0, ended_us = 0, queued_us = 0, run_us = 0, copy_us = 0;
  bool succeeded = true;
};
struct TracedDevice {
  std::string name;
  std::string device_class;
  std::uint32_t depth = 1;
};
struct DeviceTrace {
  std::map<std::uint32_t, TracedDevice> devices;
  std::map<std::uint32_t, std::string> clients;
  std::vector<TracedTask> tasks;
};

// A trace whose writer was killed may end anywhere: what is whole of it is read. Errors say what is
// wrong, and where.
Result<DeviceTrace> parse_device_trace(std::string_view text);

// One point for each grant and each end, in time: what part of each device's elements tasks have.
struct UtilisationPoint {
  double at_us = 0;
  std::vector<double> of_device;  // 0 … 1, in the order of DeviceTrace::devices
};
std::vector<UtilisationPoint> utilisation(const DeviceTrace& trace);

// For people: devices and clients, tasks, time, utilisation.
std::string device_report_text(const DeviceTrace& trace);
// For gnuplot 5: figure 5 as a PNG at `path`. A device has a panel, or all share one where there
// are more than eight.
std::string utilisation_script(const DeviceTrace& trace, const std::string& path);
// One file without anything beside it: the picture (bytes of a PNG) and the tables.
std::string device_report_html(const DeviceTrace& trace, std::string_view png,
                               std::string_view title);

}  // namespace amasia::tools
