// SPDX-License-Identifier: Apache-2.0
// The brief calibration of a job at its start: what the origin learns of the other nodes' cores and
// links where no stored calibration fits, in some 50 ms, before main.
//
//   message         from    to      carries
//   kMeasureSpeed   origin  other   for how long to compute
//   kMeasurePages   origin  other   where pages of the origin lie, which it has just written
//   kMeasured       other   origin  the figures
//
// All nodes measure the speed of a core at the same time, as they will compute; then one node after
// the other takes the pages, as those that wait for an answer of the origin are few in a program.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "base/base.hpp"
#include "fabric/fabric.hpp"
#include "machine/machine.hpp"
#include "omp/services.hpp"
#include "os/os.hpp"

namespace amasia::omp {

inline constexpr fabric::MessageType kCalibrationFirst = 0x330, kCalibrationLast = 0x33f;
inline constexpr fabric::MessageType kMeasureSpeed = 0x330;
inline constexpr fabric::MessageType kMeasurePages = 0x331;
inline constexpr fabric::MessageType kMeasured = 0x332;

class BriefCalibration final : public fabric::Handler {
 public:
  // Before the fabric is polled; all outlive this object. `cpu_group`: what the program's threads
  // are in on this node (os::enter_cpu_group), so that a measurement is as slow as they are.
  BriefCalibration(fabric::Fabric& fabric, Services& services, const std::string& cpu_group);
  ~BriefCalibration() override;

  // On all nodes, once managed memory is served: from now on requests are answered.
  void begin_to_answer();
  // On the origin, afterwards, native stack: blocks until all nodes have answered. An error where
  // one does not in time: whatever it does, the job can go on without.
  Result<machine::Calibration> measure(const machine::Identity& identity);

  void on_message(const fabric::Incoming& message) override;

 private:
  struct Request {
    std::uint64_t address = 0;
    Nanos duration = 0;
  };
  struct Figures {
    double core_ops_per_s = 0;
    double fault_latency_ns = 0;
    double page_stream_ns = 0;
  };

  static void answer(void* answering);
  void ask(NodeId node, fabric::MessageType type, const Request& request);
  bool await(std::uint32_t answers);
  void write_pages();

  fabric::Fabric& fabric_;
  Services& services_;
  const std::string& cpu_group_;
  double* pages_ = nullptr;  // on the origin, while it measures

  // On the other nodes, where each kind of request comes once: a thread of its own answers it.
  struct Answering {
    BriefCalibration* self = nullptr;
    Request request;
    fabric::MessageType type = 0;
    os::Thread thread;
  };
  enum class State { kStarting, kAnswering, kEnding };
  std::array<Answering, 2> answering_;  // by type; written by the handler before it starts a thread
  Figures own_;  // of the answering threads, of which the second is asked for after the first
  std::atomic<State> state_{State::kStarting};

  // On the origin: written by the handler before the release of answered_.
  std::array<Figures, base::kMaxNodes> figures_;
  std::atomic<std::uint32_t> answered_{0};
};

}  // namespace amasia::omp
