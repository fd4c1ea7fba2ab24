// SPDX-License-Identifier: Apache-2.0
// A process's membership in its job: the launcher, the other nodes, and the thread that receives.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string_view>

#include "fabric/fabric.hpp"
#include "launch/launch.hpp"
#include "os/os.hpp"

namespace amasia::nodes {

class ProgramImage;

class Connection {
 public:
  // Joins the job that `amasia run` offers: blocks until all nodes have come. nullptr: there is
  // none, or this process is not meant to be a node of it. Where it cannot take part the job ends,
  // and so does this process (exit code 2). One thread, before the program starts others.
  static std::unique_ptr<Connection> join(const ProgramImage& image);
  ~Connection();

  NodeId self() const { return fabric_->self(); }
  std::uint32_t node_count() const { return fabric_->node_count(); }
  fabric::Fabric& fabric() { return *fabric_; }

  // Messages in [kFirstType, kLastType] go to `handler`, losses to `losses`, on a thread of ours,
  // until stop(). Both outlive that. Tells the launcher that this node is ready.
  void start(fabric::Handler& handler, fabric::PeerLostHandler& losses);
  // The end is in order: the launcher is told, and that others leave is no loss.
  void finishing();
  // The origin has said so.
  void expect_end() { ending_.store(true, std::memory_order_relaxed); }
  // Waits for the thread, then leaves the other nodes in order: up to 5 s.
  void stop();
  // Waits for the thread only: what still sends may go on to.
  void stop_thread();
  // The handler's answer to kStopMessage.
  void stop_receiving() { stopping_.store(true, std::memory_order_relaxed); }
  // Something happened that shows the launcher's watchdog that this node lives. Any thread.
  void show_progress() { membership_.slot().advance(); }

  // The job cannot go on: the launcher says why, and ends all. Does not return. Any thread.
  [[noreturn]] void end_job(std::string_view sentence);
  bool is_ending() const { return ending_.load(std::memory_order_relaxed); }

 private:
  Connection(launch::Membership membership, std::unique_ptr<fabric::Fabric> fabric, Nanos spin)
      : membership_(std::move(membership)), fabric_(std::move(fabric)), spin_(spin) {}
  void receive();

  launch::Membership membership_;
  std::unique_ptr<fabric::Fabric> fabric_;
  const Nanos spin_;  // how long it polls after a message before it sleeps (--spin)
  os::Thread receiver_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> ending_{false};
};

}  // namespace amasia::nodes
