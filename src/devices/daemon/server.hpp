// SPDX-License-Identifier: Apache-2.0
// The daemon around its state: socket, rings, sleep. One thread. docs/protocols/devices.md.
//
// It sleeps in one epoll on: the listening socket, each client's socket (packets, and the end of
// the process), one eventfd that clients raise when they put something into a ring of a daemon that
// sleeps, and the caller's stop descriptor. After work it looks at the rings for `spin` more before
// it sleeps, since the next record of a program that waits for a task comes within microseconds;
// not so while tasks are queued.
#pragma once

#include <sys/types.h>

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "devices/daemon/shared.hpp"
#include "devices/daemon/state.hpp"
#include "devices/patience.hpp"
#include "devices/wire/packets.hpp"
#include "devices/wire/ring.hpp"
#include "os/os.hpp"

namespace amasia::devices {

// Told of every task that ended after a grant (trace, statistics). Called by the server's thread.
class TaskSink {
 public:
  virtual ~TaskSink() = default;
  virtual void client_joined(ClientId client, const ClientState& state) = 0;
  virtual void kernel_named(const KernelNamed& kernel) = 0;
  virtual void ended(const TaskEnded& task, const DeviceDescription& device) = 0;
};

struct ServerSettings {
  std::optional<gid_t> group;       // whose users may connect too
  Nanos idle_end = -1;              // end after so long without clients; negative: never
  Nanos drain_limit = 30 * base::kSecond;
  Nanos spin = 50 * base::kMicrosecond;
  // Where its socket is, to be removed at the end; "": it is not ours (systemd's).
  std::string own_path;
};

class Server {
 public:
  Server(ServerSettings settings, os::Descriptor listening, std::unique_ptr<Policy> policy,
         TaskSink* sink);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Serves until `stop` is readable (then it drains: refuses new tasks, ends those that it has), or
  // `idle_end` has passed. `stop` is level-triggered; stop_again() says whether, while it drains,
  // it shall end at once.
  class StopSource {
   public:
    virtual ~StopSource() = default;
    virtual int descriptor() const = 0;
    virtual void consume() = 0;  // called when readable
  };
  Status run(StopSource& stop);

 private:
  struct Connection;

  Status prepare(StopSource& stop);
  void accept_all();
  void greet(std::uint64_t tag, os::Descriptor socket);
  // Whether something came that more is to be expected after: not what runs without asking.
  bool read_rings(Nanos now);
  // How long to look at the rings after something was in one, before it sleeps.
  Nanos time_to_look() const;
  // Asks the policy, tells clients what it says, logs once what is wrong with it.
  void decide(Nanos now);
  bool read_ring(Connection& connection, Nanos now);
  void read_rest(Connection& connection);
  // Programs that are stopped while they hold what others wait for.
  void look_for_stopped(Nanos now);
  void read_packets(std::uint64_t tag);
  // A sentence where the packet breaks the protocol.
  std::optional<std::string> handle(Connection& connection, std::span<const std::byte> bytes,
                                    std::vector<os::Descriptor>& descriptors);
  std::optional<std::string> handle_hello(Connection& connection, std::span<const std::byte> bytes);
  std::optional<std::string> handle_device(Connection& connection,
                                           std::span<const std::byte> bytes);
  std::optional<std::string> handle_open(Connection& connection, std::span<const std::byte> bytes,
                                         std::vector<os::Descriptor>& descriptors);
  std::optional<std::string> handle_task(Connection& connection, PacketKind kind,
                                         std::span<const std::byte> bytes);
  void handle_query(Connection& connection, std::uint32_t request);
  bool welcome(Connection& connection);
  void refuse(Connection& connection, int code, const std::string& sentence);
  // False: the client is disconnected, since it has gone, or does not read what it asked for.
  template <typename T>
  bool send(Connection& connection, const T& packet, std::span<const int> descriptors = {});
  void answer(const std::vector<SharedTasks::Answer>& answers);
  void carry_out(std::vector<Effect>& effects);
  void flush(Connection& connection);
  void flush_all();
  void disconnect(std::uint64_t tag, const std::string& why);
  void remove_closed();
  Connection* connection_of(ClientId client);
  // Sleeps until there is something, at most `limit` (negative: for ever).
  void sleep(Nanos limit);
  void handle_ready(const std::vector<std::uint64_t>& ready, StopSource& stop);
  Nanos sleep_limit(Nanos now) const;
  bool idle_over(Nanos now);
  bool drain_over(Nanos now) const;
  void remove_socket();

  ServerSettings settings_;
  os::Descriptor listening_;
  DaemonState state_;
  TaskSink* sink_;
  os::EventPoll poll_;
  SharedSegments segments_;
  std::map<std::string, os::Descriptor> segment_memory_;
  SharedTasks shared_tasks_;
  std::map<std::uint64_t, std::unique_ptr<Connection>> connections_;  // by tag
  std::uint64_t last_tag_ = 2;  // below: the fixed ones
  std::vector<Effect> effects_;
  Nanos idle_since_ = 0;
  Nanos looked_for_stopped_ = 0;
  Nanos drain_began_ = -1;
  bool end_now_ = false;
  bool complained_ = false;
  bool somebody_asks_ = false;  // among the records read last
  Patience patience_;
};

}  // namespace amasia::devices
