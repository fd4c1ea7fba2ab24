// SPDX-License-Identifier: Apache-2.0
// A seeded storm: honest clients, clients that write rubbish, kills and drains, with records that
// cross each other in queues, over a policy that grants and evicts at random.
#include "devices/daemon/state.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <set>

namespace amasia::devices {
namespace {

using Random = std::mt19937_64;

// Grants any queued task, on any device where it fits; evicts copies that nobody uses to make room.
class RandomPolicy : public Policy {
 public:
  explicit RandomPolicy(std::uint64_t seed) : random_(seed) {}
  std::string_view name() const override { return "random"; }
  void add_client(ClientId client, double) override {
    ASSERT_TRUE(clients.insert(client).second);
  }
  void remove_client(ClientId client) override {
    ASSERT_EQ(clients.erase(client), 1U);
    suspended.erase(client);
    for (const auto& task : queued) ASSERT_NE(task.key.client, client);
    for (const auto& [copy, size] : copies) ASSERT_NE(copy.first.client, client);
    for (const auto& [key, device] : granted) ASSERT_NE(key.client, client);
  }
  void add_device(DeviceId device, const DeviceDescription& description) override {
    ASSERT_EQ(device.value, memory.size());
    memory.push_back(description.memory);
    depth.push_back(description.queue_depth);
  }
  void change_device(DeviceId device, const DeviceDescription& description) override {
    ASSERT_LT(device.value, memory.size());
    const bool is_used = std::any_of(copies.begin(), copies.end(), [&](const auto& copy) {
      return copy.first.second == device;
    });
    const bool runs = std::any_of(granted.begin(), granted.end(),
                                  [&](const auto& one) { return one.second == device; });
    if (is_used || runs) {
      ASSERT_GE(description.memory, memory[device.value]) << "what is used would not fit";
    }
    memory[device.value] = description.memory;
  }
  void put(TaskDescription task) override { queued.push_back(std::move(task)); }
  Decision next(Nanos) override {
    for (std::size_t tries = 0; tries < 8 * queued.size(); ++tries) {
      const std::size_t at = random_() % queued.size();
      const DeviceId device(static_cast<std::uint16_t>(random_() % memory.size()));
      if (!contains(queued[at].allowed, device)) continue;
      if (suspended.contains(queued[at].key.client)) continue;
      if (Decision decision = consider(at, device); !decision.nothing()) return decision;
    }
    return {};
  }
  void finish(const TaskEnd& end) override {
    ASSERT_EQ(granted.at(end.task), end.device);
    granted.erase(end.task);
  }
  void ran(const TaskDescription& task, const TaskEnd& end) override {
    ASSERT_TRUE(clients.contains(task.key.client));
    ASSERT_LT(end.device.value, memory.size());
    ASSERT_GE(end.run_time, 0);
    ++unasked;
  }
  void cancel(TaskKey task) override {
    const auto found = std::find_if(queued.begin(), queued.end(),
                                    [&](const auto& one) { return one.key == task; });
    ASSERT_NE(found, queued.end());
    queued.erase(found);
  }
  void place(BufferKey buffer, DeviceId device, Bytes size) override {
    ASSERT_TRUE(copies.emplace(std::pair(buffer, device), size).second);
  }
  void drop(BufferKey buffer, DeviceId device) override {
    ASSERT_EQ(copies.erase({buffer, device}), 1U);
    leaving.erase({buffer, device});
  }

  std::uint32_t run_most() const override { return kMost; }
  void suspend(ClientId client) override {
    ASSERT_TRUE(clients.contains(client));
    ASSERT_TRUE(suspended.insert(client).second);
  }
  void resume(ClientId client) override { ASSERT_EQ(suspended.erase(client), 1U); }

  static constexpr std::uint32_t kMost = 64;  // of a run
  std::set<ClientId> clients, suspended;
  std::vector<Bytes> memory;
  std::vector<std::uint32_t> depth;
  std::vector<TaskDescription> queued;
  std::map<TaskKey, DeviceId> granted;
  std::map<std::pair<BufferKey, DeviceId>, Bytes> copies;
  std::set<std::pair<BufferKey, DeviceId>> leaving;
  int evictions = 0, unasked = 0;

 private:
  Decision consider(std::size_t at, DeviceId device) {
    std::uint32_t running = 0;
    for (const auto& [key, on] : granted) running += on == device;
    if (running >= depth[device.value]) return {};
    Decision decision;
    if (random_() % 8 == 0) {
      for (const auto& [copy, size] : copies) {
        if (copy.second != device || leaving.contains(copy) || random_() % 2 == 0) continue;
        decision.evictions.push_back({copy.first, copy.second});
        leaving.insert(copy);
        ++evictions;
      }
      if (!decision.evictions.empty()) return decision;
    }
    decision.grant = Grant{queued[at].key, device};
    granted[queued[at].key] = device;
    queued.erase(queued.begin() + static_cast<std::ptrdiff_t>(at));
    return decision;
  }
  Random random_;
};

DeviceDescription device(const std::string& identity, Bytes memory) {
  DeviceDescription description;
  description.identity = identity;
  description.memory = memory;
  description.queue_depth = 3;
  description.device_class = DeviceClass::kGpu;
  return description;
}

// A client of the model: what it has sent and not seen answered, and the records on their way.
struct ModelClient {
  bool honest = true;
  std::size_t devices = 0;
  std::uint64_t leased = 0;
  std::uint64_t next_task = 1;
  std::set<std::uint64_t> waiting;              // put, neither granted nor refused yet
  std::set<std::uint64_t> cancelled;            // withdrawn; may still be granted
  std::map<std::uint64_t, std::uint8_t> running;
  std::map<std::uint64_t, std::vector<std::uint64_t>> arguments;  // of tasks
  std::set<std::pair<std::uint64_t, std::uint8_t>> copies;
  std::deque<Record> to_daemon, to_client;
};

class Storm {
 public:
  explicit Storm(std::uint64_t seed) : random_(seed) {
    auto made = std::make_unique<RandomPolicy>(seed + 1);
    policy_ = made.get();
    state_ = std::make_unique<DaemonState>(std::move(made));
  }

  void run(int steps) {
    for (int step = 0; step < steps && !testing::Test::HasFatalFailure(); ++step) {
      const auto choice = random_() % 100;
      if (clients_.size() < 2 || (choice < 2 && clients_.size() < 8)) {
        join();
      } else if (choice < 4) {
        kill(pick());
      } else if (choice < 7) {
        if (random_() % 2 == 0) {
          this->step(Stopped{pick()});
        } else {
          this->step(Continued{pick()});
        }
      } else if (choice < 45) {
        send(clients_.at(pick()));
      } else if (choice < 75) {
        deliver(pick());
      } else {
        answer(clients_.at(pick()));
      }
      if (random_() % 4 == 0) carry_out_schedule();
      ASSERT_TRUE(state_->is_valid());
    }
  }

  // Everything that was put by those who live on comes to an end.
  void finish() {
    // One that has written rubbish may have lost count of its own tasks.
    while (clients_.size() > 1 || (!clients_.empty() && !clients_.begin()->second.honest)) {
      const auto bad = std::find_if(clients_.begin(), clients_.end(),
                                    [](const auto& one) { return !one.second.honest; });
      if (bad == clients_.end()) break;
      kill(bad->first);
    }
    for (int round = 0; round < 2000 && !quiet(); ++round) {
      std::vector<ClientId> ids;
      for (const auto& [id, client] : clients_) ids.push_back(id);
      for (const ClientId id : ids) {
        step(Continued{id});
        for (int i = 0; i < 50 && clients_.contains(id); ++i) deliver(id);
        for (int i = 0; i < 50 && clients_.contains(id); ++i) answer(clients_.at(id), true);
      }
      carry_out_schedule();
      ASSERT_TRUE(state_->is_valid());
    }
    ASSERT_TRUE(quiet()) << "tasks are left that nobody will end";
    ASSERT_FALSE(state_->has_tasks());
    while (!clients_.empty()) kill(clients_.begin()->first);
    EXPECT_TRUE(policy_->clients.empty());
    EXPECT_TRUE(policy_->copies.empty());
    for (const DeviceState& one : state_->devices()) {
      EXPECT_EQ(one.granted, 0U);
      EXPECT_EQ(one.clients, 0U);
      EXPECT_EQ(one.resident, 0U);
    }
  }

  int closed = 0, granted = 0, refused = 0, ended = 0, evicted = 0, leases = 0, revoked = 0;
  int unasked() const { return policy_->unasked; }

 private:
  ClientId pick() {
    auto at = clients_.begin();
    std::advance(at, static_cast<std::ptrdiff_t>(random_() % clients_.size()));
    return at->first;
  }

  void join() {
    Joined joined;
    joined.client = ClientId(++last_client_);
    for (const char* name : {"a", "b", "c", "d"}) {
      if (random_() % 3 != 0) {
        joined.devices.push_back(device(name, name[0] == 'a' ? 0 : 3900 + random_() % 3 * 100));
      }
    }
    if (joined.devices.empty()) joined.devices.push_back(device("a", 0));
    ModelClient& client = clients_[joined.client];
    client.devices = joined.devices.size();
    client.honest = random_() % 4 != 0;
    step(joined);
  }
  void kill(ClientId id) {
    clients_.erase(id);
    step(Left{id});
  }

  void send(ModelClient& client) {
    if (!client.honest && random_() % 10 == 0) return send_rubbish(client);
    if (!client.waiting.empty() && random_() % 6 == 0) {
      const std::uint64_t task = *client.waiting.begin();
      client.cancelled.insert(task);
      client.waiting.erase(task);
      client.to_daemon.push_back(short_record(RecordKind::kCancel, task));
      return;
    }
    if (client.leased != 0 && random_() % 2 == 0) {
      RanRecord ran;
      ran.task = client.next_task++;
      ran.device = static_cast<std::uint8_t>(std::countr_zero(client.leased));
      ran.failure = random_() % 10 == 0;
      ran.sent = static_cast<Nanos>(random_());
      ran.run_began = static_cast<Nanos>(random_());
      ran.run_ended = static_cast<Nanos>(random_());
      client.to_daemon.push_back(Record::of(ran));
      return;
    }
    PutRecord put;
    put.task = client.next_task++;
    const std::uint64_t all = (1ULL << client.devices) - 1;
    put.allowed = 1 + random_() % all;
    put.preferred = put.allowed & random_();
    put.temporary = random_() % 500;
    std::vector<std::uint64_t> buffers;
    for (auto left = random_() % 6; left > 0; --left) buffers.push_back(1 + random_() % 12);
    if (random_() % 50 == 0) put.temporary = 100000;
    if (random_() % 3 == 0) put.more = random_() % RandomPolicy::kMost;
    put.arguments = static_cast<std::uint16_t>(buffers.size());
    client.to_daemon.push_back(Record::of(put));
    for (std::size_t i = 0; i < buffers.size();) {
      ArgumentsRecord record;
      for (; record.count < ArgumentsRecord::kMost && i < buffers.size(); ++i) {
        record.entries[record.count] = {buffers[i], 100 * buffers[i]};
        record.access[record.count++] = static_cast<std::uint8_t>(1 + random_() % 3);
      }
      client.to_daemon.push_back(Record::of(record));
    }
    client.waiting.insert(put.task);
    client.arguments[put.task] = buffers;
  }

  void send_rubbish(ModelClient& client) {
    Record record;
    for (std::byte& byte : record.bytes) {
      byte = static_cast<std::byte>(random_() % 3 == 0 ? random_() : random_() % 3);
    }
    if (random_() % 2 == 0) record.bytes[0] = static_cast<std::byte>(1 + random_() % 5);
    client.to_daemon.push_back(record);
  }

  void deliver(ClientId id) {
    ModelClient& client = clients_.at(id);
    if (client.to_daemon.empty()) return;
    const Record record = client.to_daemon.front();
    client.to_daemon.pop_front();
    step(Received{id, record});
  }

  void finish_task(ModelClient& client, std::uint64_t task) {
    const std::uint8_t on = client.running.at(task);
    FinishedRecord record;
    record.task = task;
    record.failure = random_() % 10 == 0;
    record.run_began = static_cast<Nanos>(random_());
    record.run_ended = static_cast<Nanos>(random_());
    record.idle = static_cast<Nanos>(random_());
    record.failed = static_cast<std::uint8_t>(random_());
    client.running.erase(task);
    client.to_daemon.push_back(Record::of(record));
    if (random_() % 5 != 0) return;
    for (const std::uint64_t buffer : client.arguments[task]) drop(client, {buffer, on});
  }
  // Only what no running task uses.
  void drop(ModelClient& client, std::pair<std::uint64_t, std::uint8_t> copy) {
    for (const auto& [task, on] : client.running) {
      const auto& used = client.arguments[task];
      if (on == copy.second && std::count(used.begin(), used.end(), copy.first) != 0) return;
    }
    if (client.copies.erase(copy) == 0) return;
    client.to_daemon.push_back(short_record(RecordKind::kDropped, copy.first, copy.second));
  }

  // The client looks at what the daemon has sent, or a task of its ends.
  void answer(ModelClient& client, bool only_reading = false) {
    if (!client.running.empty() && (client.to_client.empty() || random_() % 2 == 0)) {
      return finish_task(client, client.running.begin()->first);
    }
    if (client.to_client.empty()) {
      if (!only_reading) send(client);
      return;
    }
    const ShortRecord record = client.to_client.front().as<ShortRecord>();
    client.to_client.pop_front();
    switch (record.kind) {
      case RecordKind::kGrant:
        if (client.waiting.erase(record.number) + client.cancelled.erase(record.number) == 0) {
          ASSERT_FALSE(client.honest) << "granted without having been put";
          return;
        }
        ASSERT_LT(record.device, client.devices);
        client.running[record.number] = record.device;
        if (record.lease != 0) client.leased |= 1ULL << record.device;
        leases += record.lease;
        for (const auto buffer : client.arguments[record.number]) {
          client.copies.insert({buffer, record.device});
        }
        ++granted;
        break;
      case RecordKind::kRefuse:
        ASSERT_TRUE(!client.honest || client.waiting.erase(record.number) +
                                              client.cancelled.erase(record.number) ==
                                          1);
        client.waiting.erase(record.number);
        ++refused;
        break;
      case RecordKind::kEvict:
        ++evicted;
        drop(client, {record.number, record.device});
        break;
      case RecordKind::kRevoke:
        ASSERT_TRUE(!client.honest || client.leased != 0);
        client.leased = 0;
        ++revoked;
        break;
      default:
        FAIL() << "record " << static_cast<int>(record.kind);
    }
  }

  void step(const Event& event) {
    std::vector<Effect> effects;
    now_ += static_cast<Nanos>(random_() % 100 == 0 ? 2 * base::kMillisecond : random_() % 1000);
    state_->step(event, now_, effects);
    carry_out(effects);
  }
  void carry_out_schedule() {
    std::vector<Effect> effects;
    state_->schedule(now_, effects);
    carry_out(effects);
  }
  void carry_out(const std::vector<Effect>& effects) {
    for (const Effect& effect : effects) {
      if (const auto* sent = std::get_if<Send>(&effect)) {
        // A daemon that has closed a connection does not write to it.
        ASSERT_TRUE(clients_.contains(sent->client));
        clients_.at(sent->client).to_client.push_back(sent->record);
      } else if (const auto* close = std::get_if<Close>(&effect)) {
        ASSERT_FALSE(clients_.at(close->client).honest) << close->sentence;
        ASSERT_FALSE(close->sentence.empty());
        clients_.erase(close->client);
        ++closed;
      } else {
        const auto& end = std::get<TaskEnded>(effect);
        ++ended;
        ASSERT_LE(end.put_at, end.granted_at);
        ASSERT_LE(end.failed, end.count);
        ASSERT_EQ(end.failed == 0, end.succeeded);
        Nanos last = end.granted_at;
        for (const Nanos at : {end.copy_began, end.run_began, end.run_ended, end.copy_ended}) {
          if (at == 0) continue;
          ASSERT_LE(last, at);
          last = at;
        }
        ASSERT_LE(last, end.finished_at);
      }
    }
  }
  bool quiet() const {
    for (const auto& [id, client] : clients_) {
      if (!client.to_daemon.empty() || !client.to_client.empty()) return false;
      if (!client.running.empty() || !client.waiting.empty()) return false;
    }
    return true;
  }

  Random random_;
  RandomPolicy* policy_ = nullptr;
  std::unique_ptr<DaemonState> state_;
  std::map<ClientId, ModelClient> clients_;
  std::uint32_t last_client_ = 0;
  Nanos now_ = 1;
};

TEST(DaemonState, SurvivesAStorm) {
  int closed = 0, granted = 0, refused = 0, ended = 0, evicted = 0, leases = 0, revoked = 0;
  int unasked = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Storm storm(seed);
    storm.run(3000);
    if (HasFatalFailure()) return;
    storm.finish();
    if (HasFailure()) return;
    closed += storm.closed;
    granted += storm.granted;
    refused += storm.refused;
    ended += storm.ended;
    evicted += storm.evicted;
    leases += storm.leases;
    revoked += storm.revoked;
    unasked += storm.unasked();
  }
  // The rare paths were gone.
  EXPECT_GT(closed, 100);
  EXPECT_GT(granted, 5000);
  EXPECT_GT(refused, 100);
  EXPECT_GT(ended, 2000);
  EXPECT_GT(evicted, 500);
  EXPECT_GT(leases, 100);
  EXPECT_GT(revoked, 20);
  EXPECT_GT(unasked, 100);
}

struct Bench {
  std::unique_ptr<DaemonState> state =
      std::make_unique<DaemonState>(std::make_unique<RandomPolicy>(1));
  std::vector<Effect> effects;
  void join(std::uint32_t client, std::vector<DeviceDescription> devices) {
    Joined joined;
    joined.client = ClientId(client);
    joined.devices = std::move(devices);
    state->step(joined, 1, effects);
  }
  template <typename T>
  void receive(std::uint32_t client, const T& record) {
    state->step(Received{ClientId(client), Record::of(record)}, 1, effects);
  }
  bool closed() const {
    return !effects.empty() && std::holds_alternative<Close>(effects.back());
  }
  std::string sentence() const { return std::get<Close>(effects.back()).sentence; }
};

TEST(DaemonState, NamesWhatAClientDidWrong) {
  const auto complaint = [](auto&& act) {
    Bench bench;
    bench.join(1, {device("a", 1000)});
    act(bench);
    EXPECT_TRUE(bench.closed());
    EXPECT_TRUE(bench.state->clients().empty());
    EXPECT_TRUE(bench.state->is_valid());
    return bench.closed() ? bench.sentence() : std::string();
  };
  PutRecord put;
  put.task = 5;
  put.allowed = 1;
  EXPECT_EQ(complaint([&](Bench& b) {
              b.receive(1, put);
              b.receive(1, put);
            }),
            "task 5 was put twice, or is 0");
  EXPECT_EQ(complaint([&](Bench& b) {
              PutRecord wrong = put;
              wrong.allowed = 6;
              b.receive(1, wrong);
            }),
            "task 5 may run on devices 0x6, better 0x0, but there are 1");
  EXPECT_EQ(complaint([&](Bench& b) {
              PutRecord wrong = put;
              wrong.arguments = 5000;
              b.receive(1, wrong);
            }),
            "task 5 has 5000 resident arguments (allowed: at most 4096)");
  EXPECT_EQ(complaint([&](Bench& b) {
              PutRecord wrong = put;
              wrong.arguments = 1;
              b.receive(1, wrong);
              b.receive(1, put);
            }),
            "record 1 came where arguments of task 5 had to");
  EXPECT_EQ(complaint([&](Bench& b) { b.receive(1, FinishedRecord{}); }),
            "task 0 has ended without having been granted");
  EXPECT_EQ(complaint([&](Bench& b) {
              RanRecord ran;
              ran.task = 5;
              b.receive(1, ran);
            }),
            "task 5 ran without having been put");
  EXPECT_EQ(complaint([&](Bench& b) {
              b.receive(1, put);
              b.state->schedule(1, b.effects);
              RanRecord ran;
              ran.task = 5;
              b.receive(1, ran);
            }),
            "task 5 ran on device 0 of 1, or was put before");
  EXPECT_EQ(complaint([&](Bench& b) { b.receive(1, ArgumentsRecord{}); }),
            "arguments came without a task");
  EXPECT_EQ(complaint([&](Bench& b) {
              b.state->step(Received{ClientId(1), short_record(RecordKind::kGrant, 1)}, 1,
                            b.effects);
            }),
            "record of kind 16 (allowed: 1 … 7)");
}

// The device of who is alone is its own until others find no room.
class Lease : public testing::Test {
 protected:
  // Puts a task of the client's first device, and grants what there is; whether with a lease.
  bool put(std::uint32_t client, std::uint64_t task, Nanos now) {
    PutRecord record;
    record.task = task;
    record.allowed = 1;
    bench.effects.clear();
    bench.state->step(Received{ClientId(client), Record::of(record)}, now, bench.effects);
    bench.state->schedule(now, bench.effects);
    for (const Effect& effect : bench.effects) {
      const auto* const sent = std::get_if<Send>(&effect);
      if (sent == nullptr || sent->record.kind() != RecordKind::kGrant) continue;
      return sent->client == ClientId(client) && sent->record.as<ShortRecord>().lease != 0;
    }
    return false;
  }
  void finish(std::uint32_t client, std::uint64_t task, Nanos now) {
    FinishedRecord record;
    record.task = task;
    bench.state->step(Received{ClientId(client), Record::of(record)}, now, bench.effects);
  }
  std::vector<ClientId> revoked() const {
    std::vector<ClientId> out;
    for (const Effect& effect : bench.effects) {
      const auto* const sent = std::get_if<Send>(&effect);
      if (sent == nullptr || sent->record.kind() != RecordKind::kRevoke) continue;
      out.push_back(sent->client);
    }
    return out;
  }
  Bench bench;
};

TEST_F(Lease, IsForWhoIsAlone) {
  constexpr Nanos kMs = base::kMillisecond;
  bench.join(1, {device("gpu", 0)});
  bench.join(2, {device("gpu", 0)});
  EXPECT_TRUE(put(1, 1, 10 * kMs)) << "the other has put nothing yet";
  EXPECT_FALSE(put(2, 1, 10 * kMs + 200)) << "the first one's task is under way";
  EXPECT_TRUE(revoked().empty()) << "there is room for both";
  finish(1, 1, 10 * kMs + 300);
  EXPECT_FALSE(put(2, 2, 10 * kMs + 400)) << "it may come again";
  finish(2, 1, 13 * kMs);
  finish(2, 2, 13 * kMs);
  EXPECT_TRUE(put(2, 3, 15 * kMs));
  // Three fit (its depth): the fourth waits.
  put(2, 4, 16 * kMs);
  put(2, 5, 16 * kMs);
  put(2, 6, 16 * kMs);
  EXPECT_EQ(revoked(), std::vector{ClientId(1)}) << "not of the one that waits itself";
  put(2, 7, 16 * kMs);
  EXPECT_TRUE(revoked().empty()) << "it has none any more";
  // One that crosses it counts.
  RanRecord ran;
  ran.task = 2;
  ran.kernel = 7;
  ran.sent = 12 * kMs;
  ran.run_began = 13 * kMs;
  ran.run_ended = 14 * kMs;
  bench.state->step(Received{ClientId(1), Record::of(ran)}, 17 * kMs, bench.effects);
  EXPECT_FALSE(bench.closed());
  EXPECT_EQ(bench.state->clients().at(ClientId(1)).finished, 2U);
  EXPECT_EQ(bench.state->devices()[0].busy, kMs);
  // The same time does not count twice, whatever the client says.
  ran.task = 3;
  bench.state->step(Received{ClientId(1), Record::of(ran)}, 17 * kMs, bench.effects);
  EXPECT_EQ(bench.state->devices()[0].busy, kMs);
}

TEST_F(Lease, IsNotWhileTheDaemonDrains) {
  bench.join(1, {device("gpu", 0)});
  EXPECT_TRUE(put(1, 1, 1));
  bench.state->step(DrainBegins{}, 4, bench.effects);
  EXPECT_FALSE(put(1, 2, 10 * base::kMillisecond));
}

TEST(DaemonState, TheSameDeviceOfTwoClientsIsOne) {
  Bench bench;
  bench.join(1, {device("a", 0), device("b", 0)});
  bench.join(2, {device("b", 0), device("c", 0)});
  ASSERT_EQ(bench.state->devices().size(), 3U);
  EXPECT_EQ(bench.state->devices()[1].clients, 2U);
  PutRecord put;
  put.task = 1;
  put.allowed = 1;  // its first: b
  bench.receive(2, put);
  bench.state->schedule(2, bench.effects);
  const auto& task = bench.state->clients().at(ClientId(2)).tasks.at(1);
  EXPECT_TRUE(task.granted);
  EXPECT_EQ(task.device, DeviceId(1));
}

// A GPU that a client has by two back ends: one device, whose tasks come by the way they may.
TEST(DaemonState, TwoWaysToADeviceOfOneClientAreOne) {
  Bench bench;
  bench.join(1, {device("gpu", 0), device("cpu", 0), device("gpu", 0), device("last", 0)});
  ASSERT_EQ(bench.state->devices().size(), 3U);
  EXPECT_EQ(bench.state->devices()[0].clients, 1U);
  const auto granted_at = [&](std::uint64_t task, std::uint64_t allowed) {
    PutRecord put;
    put.task = task;
    put.allowed = allowed;
    bench.receive(1, put);
    bench.effects.clear();
    bench.state->schedule(2, bench.effects);
    AMASIA_CHECK(bench.effects.size() == 1, "a task of each way fits");
    return int{std::get<Send>(bench.effects[0]).record.as<ShortRecord>().device};
  };
  EXPECT_EQ(granted_at(1, 0b0100), 2) << "only the second way takes it";
  EXPECT_EQ(granted_at(2, 0b0101), 0) << "the first way, where both do";
  EXPECT_EQ(granted_at(3, 0b1000), 3);
  EXPECT_EQ(bench.state->devices()[0].granted, 2U);
  EXPECT_TRUE(bench.state->is_valid());
  bench.state->step(Left{ClientId(1)}, 3, bench.effects);
  EXPECT_EQ(bench.state->devices()[0].clients, 0U);
  EXPECT_TRUE(bench.state->is_valid());
}

std::optional<RefuseReason> refusal_of(Bench& bench, std::uint32_t client, PutRecord put) {
  bench.effects.clear();
  bench.receive(client, put);
  if (bench.effects.empty()) return std::nullopt;
  return static_cast<RefuseReason>(
      std::get<Send>(bench.effects[0]).record.as<ShortRecord>().reason);
}

// A driver may show a program less of a device's memory than another program.
TEST(DaemonState, ADeviceHasWhatTheProgramsSayThatAreThere) {
  Bench bench;
  PutRecord put;
  put.task = 1;
  put.allowed = 1;
  put.temporary = 3000;
  bench.join(1, {device("gpu", 1000)});
  EXPECT_EQ(refusal_of(bench, 1, put), RefuseReason::kTooLarge);
  bench.join(2, {device("gpu", 4000)});
  EXPECT_EQ(refusal_of(bench, 2, put), std::nullopt);
  bench.join(3, {device("gpu", 2000)});
  EXPECT_EQ(bench.state->devices()[0].description.memory, 4000U);
  for (const std::uint32_t client : {1, 2, 3}) {
    bench.state->step(Left{ClientId(client)}, 3, bench.effects);
  }
  bench.join(4, {device("gpu", 2000)});
  EXPECT_EQ(bench.state->devices()[0].description.memory, 2000U);
  EXPECT_EQ(refusal_of(bench, 4, put), RefuseReason::kTooLarge);
  EXPECT_TRUE(bench.state->is_valid());
}

TEST(DaemonState, DevicesThatNobodyHasAnyMoreKeepNoNewOnesOut) {
  Bench bench;
  std::vector<DeviceDescription> others;
  for (std::uint32_t i = 0; i < kMaxDevices; ++i) others.push_back(device(fmt::format("{}", i), 0));
  bench.join(1, others);
  const auto task_of = [&](std::uint32_t client) {
    const auto& tasks = bench.state->clients().at(ClientId(client)).tasks;
    // The policy tries some of the devices at a time.
    for (int i = 0; i < 1000 && !tasks.at(1).granted; ++i) bench.state->schedule(2, bench.effects);
    return tasks.at(1);
  };
  PutRecord put;
  put.task = 1;
  put.allowed = 0b10;  // its second: no place for that, but for the first
  bench.join(2, {others[5], device("new", 0)});
  EXPECT_EQ(refusal_of(bench, 2, put), RefuseReason::kNoDevice);
  put.allowed = 0b11;
  EXPECT_EQ(refusal_of(bench, 2, put), std::nullopt);
  EXPECT_TRUE(task_of(2).granted);
  bench.state->step(Left{ClientId(1)}, 3, bench.effects);
  bench.join(3, {device("new", 0)});
  put.allowed = 1;
  EXPECT_EQ(refusal_of(bench, 3, put), std::nullopt);
  const auto task = task_of(3);
  EXPECT_TRUE(task.granted);
  EXPECT_EQ(bench.state->devices()[task.device.value].description.identity, "new");
  EXPECT_NE(task.device, DeviceId(5)) << "another program has that";
  EXPECT_TRUE(bench.state->is_valid());
}

TEST(DaemonState, WakesForEndsThatOthersWaitFor) {
  Bench bench;
  for (std::uint32_t client : {1U, 2U}) bench.join(client, {device("a", 0)});
  const auto least = [&](std::uint32_t client) {
    return bench.state->least_urgency(ClientId(client));
  };
  PutRecord put;
  put.allowed = 1;
  for (put.task = 1; put.task <= 5; ++put.task) bench.receive(1, put);
  EXPECT_TRUE(bench.state->has_queued());
  EXPECT_EQ(least(1), Urgency::kOwn) << "only its own tasks wait";
  EXPECT_EQ(least(2), Urgency::kOthers);
  bench.state->schedule(2, bench.effects);  // the device takes three
  EXPECT_TRUE(bench.state->has_granted());
  EXPECT_EQ(least(1), Urgency::kOwn);
  put.task = 1;
  bench.receive(2, put);
  EXPECT_EQ(least(1), Urgency::kOthers) << "the other one waits for room";
  bench.state->step(Left{ClientId(2)}, 3, bench.effects);
  EXPECT_EQ(least(1), Urgency::kOwn);
  bench.state->step(DrainBegins{}, 4, bench.effects);
  EXPECT_EQ(least(1), Urgency::kNone) << "the last end is waited for";
  bench.state->step(Left{ClientId(1)}, 5, bench.effects);
  EXPECT_FALSE(bench.state->has_queued() || bench.state->has_granted());
}

TEST(DaemonState, DrainingRefusesWhatComesLaterAndEndsWhatIsThere) {
  Bench bench;
  bench.join(1, {device("a", 0)});
  PutRecord put;
  put.task = 1;
  put.allowed = 1;
  bench.receive(1, put);
  bench.state->step(DrainBegins{}, 2, bench.effects);
  bench.effects.clear();
  put.task = 2;
  bench.receive(1, put);
  ASSERT_EQ(bench.effects.size(), 1U);
  const auto refused = std::get<Send>(bench.effects[0]).record.as<ShortRecord>();
  EXPECT_EQ(refused.kind, RecordKind::kRefuse);
  EXPECT_EQ(refused.reason, static_cast<std::uint8_t>(RefuseReason::kDraining));
  bench.state->schedule(3, bench.effects);
  EXPECT_TRUE(bench.state->has_tasks());
  FinishedRecord finished;
  finished.task = 1;
  bench.receive(1, finished);
  EXPECT_FALSE(bench.state->has_tasks());
}

}  // namespace
}  // namespace amasia::devices
