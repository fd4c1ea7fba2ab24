// SPDX-License-Identifier: Apache-2.0
// The broken and the curious in a storm (storm_test.py), which speak with the daemon below its C
// interface.
//   storm_peer rubbish SEED   one way to be broken, of the seed; ends by itself, also when the
//                             daemon disconnects it, with 0
//   storm_peer state          prints the daemon's state (JSON), as an observer
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string_view>
#include <vector>

#include "devices/client/link.hpp"
#include "os/os.hpp"

namespace amasia::devices {
namespace {

constexpr Nanos kLinger = 300 * base::kMillisecond;  // at most, holding what it holds

std::vector<DeviceDescription> some_devices(std::mt19937_64& random) {
  std::vector<DeviceDescription> devices;
  for (std::uint64_t i = random() % 3; i < 3; ++i) {
    DeviceDescription device;
    // Some are those that honest programs have, too.
    device.identity = i == 0 ? "host" : fmt::format("broken {}", random() % 4);
    device.name = device.identity;
    device.queue_depth = 1 + static_cast<std::uint32_t>(random() % 8);
    device.memory = random() % 2 == 0 ? 0 : 1 << 20;
    devices.push_back(std::move(device));
  }
  return devices;
}

// Numbers that the daemon has seen, or nearly, reach further than quite random ones.
std::uint64_t number(std::mt19937_64& random) {
  return random() % 16 == 0 ? random() : random() % 6;
}

Record nearly_right(std::mt19937_64& random) {
  switch (random() % 6) {
    case 0:
    case 1: {
      PutRecord put;
      put.task = random() % 200;
      put.allowed = 1 + random() % 3;
      put.preferred = random() % 2;
      put.arguments = static_cast<std::uint16_t>(random() % 4);
      put.priority = static_cast<std::int32_t>(random());
      put.kernel = number(random);
      put.work_items = random();
      put.temporary = random() % 8 == 0 ? random() : random() % 4096;
      return Record::of(put);
    }
    case 2: {
      ArgumentsRecord arguments;
      arguments.count = static_cast<std::uint8_t>(1 + random() % 3);
      for (unsigned i = 0; i < arguments.count; ++i) {
        arguments.access[i] = static_cast<std::uint8_t>(random() % 5);
        arguments.entries[i] = {1 + random() % 4, 64};
      }
      return Record::of(arguments);
    }
    case 3: {
      FinishedRecord finished;
      finished.task = random() % 200;
      finished.failure = static_cast<std::uint8_t>(random());
      finished.run_began = static_cast<std::int64_t>(random());
      finished.run_ended = static_cast<std::int64_t>(random());
      return Record::of(finished);
    }
    default: {
      constexpr RecordKind kKinds[] = {RecordKind::kCancel, RecordKind::kDropped,
                                       RecordKind::kNameKernel, RecordKind::kRan};
      return short_record(kKinds[random() % 4], number(random),
                          static_cast<std::uint8_t>(random() % 3));
    }
  }
}

std::unique_ptr<Link> link_with(const std::vector<DeviceDescription>& devices, Role role) {
  LinkSettings settings;
  settings.connect.start_daemon = false;
  settings.program = "broken";
  settings.role = role;
  auto made = Link::open(settings, devices);
  return made.ok() ? std::move(made).value() : nullptr;
}

bool is_connected(Link& link) {
  for (;;) {
    const auto packet = link.receive_packet();
    if (!packet.ok()) return false;
    if (!packet.value().has_value()) return true;
  }
}

// Records whose order or content is wrong sooner or later, ends of tasks that were granted among
// them; then it holds what it has.
void write_records(std::mt19937_64& random) {
  const auto link = link_with(some_devices(random), Role::kClient);
  if (link == nullptr) return;
  const bool reads = random() % 2 == 0;
  const Nanos until = os::monotonic_now() + static_cast<Nanos>(random() % kLinger);
  while (os::monotonic_now() < until && is_connected(*link)) {
    const Record record = nearly_right(random);
    const bool is_urgent = random() % 4 != 0;
    static_cast<void>(link->send({{record}}, is_urgent ? Urgency::kOwn : Urgency::kNone));
    Record said;
    while (reads && link->receive(&said) == RingState::kOk) {
      FinishedRecord finished;
      finished.task = said.as<ShortRecord>().number;
      if (random() % 2 == 0) static_cast<void>(link->send({{Record::of(finished)}}));
    }
    if (random() % 4 == 0) os::yield_core();
  }
}

// What a correct client may hold without ever giving it back: tasks granted, a ring not read.
void hold(std::mt19937_64& random) {
  const auto link = link_with(some_devices(random), Role::kClient);
  if (link == nullptr) return;
  const std::uint64_t count = random() % 5000;
  const Nanos until = os::monotonic_now() + static_cast<Nanos>(random() % kLinger);
  for (std::uint64_t task = 1; os::monotonic_now() < until && is_connected(*link);) {
    PutRecord put;
    put.task = task;
    put.allowed = 1;
    if (task <= count && link->send({{Record::of(put)}})) ++task;
    os::yield_core();
  }
}

// The whole memory that it shares with the daemon: counts of both rings, slots; with wake-ups.
void scribble(std::mt19937_64& random, const os::Packet& welcome) {
  void* const memory = ::mmap(nullptr, sizeof(Region), PROT_READ | PROT_WRITE, MAP_SHARED,
                              welcome.descriptors[0].get(), 0);
  if (memory == MAP_FAILED) return;
  auto* const bytes = static_cast<volatile unsigned char*>(memory);
  auto* const region = static_cast<Region*>(memory);
  for (std::uint64_t i = 0, count = random() % 20000; i < count; ++i) {
    switch (random() % 64) {
      case 0:
        region->to_daemon.control.tail.store(static_cast<std::uint32_t>(random() % 1100));
        break;
      case 1:
        region->to_client.control.head.store(static_cast<std::uint32_t>(random() % 1100));
        break;
      case 2:
        region->to_daemon.control.sleeps.store(static_cast<std::uint32_t>(random() % 4));
        break;
      case 3: {
        const std::uint64_t often = random() % 2 == 0 ? 1 : 1ULL << 62;
        if (::write(welcome.descriptors[1].get(), &often, sizeof often) < 0) os::yield_core();
        break;
      }
      case 4: {
        // Without O_NONBLOCK, and empty: whoever else used it would wait.
        const int one = welcome.descriptors[1 + random() % 2].get();
        ::fcntl(one, F_SETFL, 0);
        std::uint64_t taken[8];
        if (os::wait_readable(&one, 1, 0) != 0 && ::read(one, taken, sizeof taken) < 0) return;
        os::yield_core();
        ::fcntl(one, F_SETFL, O_NONBLOCK);
        break;
      }
      default:
        bytes[random() % sizeof(Region)] = static_cast<unsigned char>(random());
    }
  }
  ::munmap(memory, sizeof(Region));
}

template <typename T>
bool send(int socket, const T& packet) {
  return os::send_packet(socket, std::as_bytes(std::span(&packet, 1)), {}).ok();
}

// Packets of any kind and size, with descriptors that belong nowhere.
void send_rubbish(std::mt19937_64& random, int socket) {
  static std::byte buffer[kMaxPacket + 512];
  const os::Descriptor nowhere(::open("/dev/null", O_RDWR | O_CLOEXEC));
  for (std::uint64_t i = 0, count = 1 + random() % 40; i < count; ++i) {
    constexpr std::size_t kSizes[] = {sizeof(HelloPacket), sizeof(DevicePacket),
                                      sizeof(OpenSharedPacket), sizeof(CloseSharedPacket),
                                      sizeof(TaskPacket), sizeof(QueryPacket)};
    const std::size_t size =
        random() % 4 == 0 ? 1 + random() % sizeof buffer : kSizes[random() % std::size(kSizes)];
    for (std::size_t at = 0; at < size; ++at) buffer[at] = static_cast<std::byte>(random());
    if (random() % 4 != 0 && size >= sizeof(PacketHead)) {
      const auto kind = static_cast<std::uint32_t>(1 + random() % 13);
      std::memcpy(buffer, &kind, sizeof kind);
    }
    const int handed[] = {nowhere.get(), socket, nowhere.get(), nowhere.get()};
    const auto some = std::span(handed).first(random() % 5);
    if (!os::send_packet(socket, std::span(buffer, size), some).ok()) return;
  }
}

// By hand, as far as it likes; the welcome where it got that far.
void come_badly(std::mt19937_64& random) {
  auto connected = os::connect_to_path(std::getenv("AMASIA_DEVICES_SOCKET"));
  if (!connected.ok()) return;
  const int socket = connected.value().get();
  const std::uint64_t stops_at = random() % 8;
  if (stops_at == 0) return send_rubbish(random, socket);
  HelloPacket hello;
  const auto devices = some_devices(random);
  hello.devices = static_cast<std::uint32_t>(devices.size());
  set_text(hello.program, "scribbler");
  if (!send(socket, hello)) return;
  if (stops_at == 1) return send_rubbish(random, socket);
  for (const DeviceDescription& device : devices) {
    if (!send(socket, packet_of(device))) return;
  }
  if (stops_at == 2) return;  // gone before the answer
  os::wait_readable(&socket, 1, base::kSecond);
  static std::byte buffer[kMaxPacket];
  const auto welcome = os::receive_packet(socket, buffer);
  if (!welcome.ok() || welcome.value().descriptors.size() != 3) return;
  if (stops_at == 3) return send_rubbish(random, socket);
  scribble(random, welcome.value());
}

int print_state() {
  const auto link = link_with({}, Role::kObserver);
  if (link == nullptr || !link->send_packet(QueryPacket{}).ok()) return 1;
  for (;;) {
    const int socket = link->socket();
    os::wait_readable(&socket, 1, -1);
    const auto received = link->receive_packet();
    if (!received.ok()) return 1;
    AnswerPacket packet;
    if (!received.value().has_value() || !received.value()->read(&packet)) continue;
    std::fwrite(packet.text, 1, packet.length, stdout);
    if (packet.last != 0) return 0;
  }
}

int run(std::string_view what, std::uint64_t seed) {
  if (what == "state") return print_state();
  std::mt19937_64 random(seed);
  switch (random() % 4) {
    case 0:
      hold(random);
      return 0;
    case 1:
      write_records(random);
      return 0;
    default:
      come_badly(random);
      return 0;
  }
}

}  // namespace
}  // namespace amasia::devices

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  return amasia::devices::run(argv[1], argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0);
}
