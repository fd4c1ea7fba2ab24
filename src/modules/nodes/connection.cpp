// SPDX-License-Identifier: Apache-2.0
#include "modules/nodes/connection.hpp"

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>

#include "modules/nodes/messages.hpp"
#include "modules/nodes/program_image.hpp"

namespace amasia::nodes {
namespace {

// How long the launcher may take to end a job that it was told cannot go on.
constexpr Nanos kEndTime = 5 * base::kSecond;
constexpr std::uint32_t kMessagesAtOnce = 64;
// When the fabric says that it must be polled soon, though nothing is there (fabric::Fabric::arm).
constexpr Nanos kRefusedPause = 50 * base::kMicrosecond;

Status agree_on_image(fabric::Bootstrap& bootstrap, const ProgramImage& image, Nanos timeout) {
  const std::string& mine = image.description();
  const Status put = bootstrap.put("program", std::as_bytes(std::span(mine)));
  if (!put.ok()) return put;
  if (const Status met = bootstrap.fence(timeout); !met.ok()) return met;
  if (bootstrap.self() == base::kOrigin) return base::ok();
  const auto theirs = bootstrap.get(base::kOrigin, "program");
  if (!theirs.ok()) return theirs.error();
  const std::string_view text(reinterpret_cast<const char*>(theirs.value().data()),
                              theirs.value().size());
  return compare_images(mine, bootstrap.self(), text, base::kOrigin);
}

// UCX has put its own in the place of what the system does when the program crashes.
void take_back_signals() {
  for (const os::LoadedObject& object : os::loaded_objects()) {
    if (object.path.find("/libucs.so") == std::string::npos) continue;
    for (const int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE}) {
      struct sigaction action {};
      if (::sigaction(number, nullptr, &action) != 0) continue;
      const auto handler = reinterpret_cast<std::uintptr_t>(action.sa_handler);
      for (const os::AddressRange& code : object.code) {
        if (handler >= code.begin && handler < code.end) ::signal(number, SIG_DFL);
      }
    }
  }
}

Result<std::unique_ptr<fabric::Fabric>> connect(launch::Membership& membership,
                                                const ProgramImage& image,
                                                base::Options& options) {
  if (const Status read = base::parse_environment(environ, options); !read.ok()) {
    return read.error();
  }
  base::set_log_level(options.log_level);
  auto bootstrap = fabric::connect_bootstrap(membership.take_bootstrap());
  if (!bootstrap.ok()) return bootstrap.error();
  const Nanos timeout = options.start_timeout_s * base::kSecond;
  if (const Status same = agree_on_image(*bootstrap.value(), image, timeout); !same.ok()) {
    return same.error();
  }
  return fabric::connect_job(*bootstrap.value(), options);
}

}  // namespace

std::unique_ptr<Connection> Connection::join(const ProgramImage& image) {
  if (!launch::below_launcher()) return nullptr;
  auto joined = launch::join();
  ::unsetenv(launch::kLauncherVariable);  // what this program starts is no part of the job
  if (!joined.ok()) {
    base::log_line(base::LogLevel::kError, "running on one node: {}", joined.error().message);
    return nullptr;
  }
  if (!joined.value()) return nullptr;
  launch::Membership& membership = *joined.value();
  base::Options options;  // the launcher's, checked already
  auto fabric = connect(membership, image, options);
  if (!fabric.ok()) {
    membership.failed(fabric.error().message);
    ::_exit(2);
  }
  take_back_signals();
  base::set_log_identity(membership.self().value, STDERR_FILENO);
  return std::unique_ptr<Connection>(
      new Connection(std::move(membership), std::move(fabric).value(),
                     options.spin_us * base::kMicrosecond));
}

Connection::~Connection() { stop(); }

void Connection::start(fabric::Handler& handler, fabric::PeerLostHandler& losses) {
  fabric_->set_handler(kFirstType, kLastType, &handler);
  fabric_->set_peer_lost_handler(&losses);
  auto started = os::Thread::start(
      [](void* self) {
        os::set_thread_name("amasia-nodes");
        os::declare_runtime_thread();
        static_cast<Connection*>(self)->receive();
      },
      this);
  if (!started.ok()) end_job(started.error().message);
  receiver_ = std::move(started).value();
  // The thread that receives is a network card's part, and stays at full speed (--emulate); the
  // program's threads are this one and those that it starts.
  const std::string& group = membership_.cpu_group();
  if (!group.empty() && os::enter_cpu_group(group.c_str()) != 0) {
    end_job("cannot slow the program (--emulate) through " + group);
  }
  membership_.ready();
}

void Connection::receive() {
  std::uint32_t refusals = 0;
  Nanos awake_until = 0;  // answers come soon, and more tasks do
  while (!stopping_.load(std::memory_order_relaxed)) {
    if (fabric_->poll(kMessagesAtOnce) != 0) {
      refusals = 0;
      awake_until = os::monotonic_now() + spin_;
      continue;
    }
    if (os::monotonic_now() < awake_until) {
      os::pause_core();
      continue;
    }
    const bool armed = fabric_->arm();
    refusals = armed ? 0 : refusals + 1;
    if (refusals == 1) continue;  // something came in between
    const int descriptor = fabric_->wait_descriptor();
    os::wait_readable(&descriptor, 1, armed ? -1 : kRefusedPause);
  }
}

void Connection::finishing() {
  ending_.store(true, std::memory_order_relaxed);
  membership_.finishing();
}

void Connection::stop_thread() {
  ending_.store(true, std::memory_order_relaxed);
  if (!receiver_.joinable()) return;
  fabric_->send(self(), kStopMessage, {});
  receiver_.join();
}

void Connection::stop() {
  if (fabric_ == nullptr) return;
  stop_thread();
  fabric_.reset();
}

void Connection::end_job(std::string_view sentence) {
  ending_.store(true, std::memory_order_relaxed);
  membership_.failed(sentence);
  os::wait_readable(nullptr, 0, kEndTime);
  base::log_line(base::LogLevel::kError, "{}", sentence);
  ::_exit(2);
}

}  // namespace amasia::nodes
