// SPDX-License-Identifier: Apache-2.0
#include "devices/daemon/shared.hpp"

#include <algorithm>
#include <cerrno>

namespace amasia::devices {

SharedSegments::Answer SharedSegments::open(ClientId client, const std::string& name, Bytes size,
                                            bool create) {
  if (name.empty()) return {EINVAL};
  auto found = segments_.find(name);
  Answer answer;
  if (found == segments_.end() && !create) return {ENOENT};
  if (found == segments_.end() || (create && found->second.users.empty())) {
    if (size == 0) return {EINVAL};
    found = segments_.insert_or_assign(name, Segment{size, {}, client}).first;
    answer.takes_memory = true;
  }
  Segment& segment = found->second;
  if (size > segment.size) return {EINVAL};
  ++segment.users[client];
  answer.size = segment.size;
  answer.users = static_cast<std::uint32_t>(segment.users.size());
  return answer;
}

bool SharedSegments::close(ClientId client, const std::string& name) {
  const auto segment = segments_.find(name);
  if (segment == segments_.end()) return false;
  const auto user = segment->second.users.find(client);
  if (user == segment->second.users.end()) return false;
  if (--user->second == 0) segment->second.users.erase(user);
  if (!segment->second.users.empty() || segment->second.maker.has_value()) return false;
  segments_.erase(segment);
  return true;
}

std::vector<std::string> SharedSegments::leave(ClientId client) {
  std::vector<std::string> gone;
  for (auto at = segments_.begin(); at != segments_.end();) {
    at->second.users.erase(client);
    if (at->second.maker == client) at->second.maker.reset();
    if (at->second.users.empty() && !at->second.maker.has_value()) {
      gone.push_back(at->first);
      at = segments_.erase(at);
    } else {
      ++at;
    }
  }
  return gone;
}

bool SharedTasks::publish(ClientId client, std::int32_t process, std::uint64_t task) {
  Owner& owner = owners_[client];
  owner.process = process;
  if (owner.tasks.size() >= kMaxPublished) return false;
  owner.tasks.emplace(task, Task{});
  return true;
}

std::vector<SharedTasks::Answer> SharedTasks::tell(const Owner& owner, std::uint64_t number,
                                                   Task& task) {
  std::vector<Answer> answers;
  for (const Watch& watch : task.watches) {
    TaskPacket packet;
    packet.head = {PacketKind::kWatched, watch.request};
    packet.task = number;
    packet.process = owner.process;
    packet.state = SharedTaskState::kEnded;
    packet.error = task.error;
    answers.push_back({watch.client, watch.request, packet});
    --watching_[watch.client];
  }
  task.watches.clear();
  return answers;
}

std::vector<SharedTasks::Answer> SharedTasks::end(ClientId client, std::uint64_t number,
                                                  std::uint32_t error) {
  const auto owner = owners_.find(client);
  if (owner == owners_.end()) return {};
  const auto task = owner->second.tasks.find(number);
  if (task == owner->second.tasks.end() || task->second.ended) return {};
  task->second.ended = true;
  task->second.error = error;
  return tell(owner->second, number, task->second);
}

bool SharedTasks::watch(ClientId client, const TaskPacket& question,
                        std::vector<Answer>* answers) {
  TaskPacket packet;
  packet.head = {PacketKind::kWatched, question.head.request};
  packet.task = question.task;
  packet.process = question.process;
  for (auto& [id, owner] : owners_) {
    const auto task = owner.tasks.find(question.task);
    if (owner.process != question.process || task == owner.tasks.end()) continue;
    if (!task->second.ended && question.wait != 0) {
      if (watching_[client] >= kMaxWatches) return false;
      ++watching_[client];
      task->second.watches.push_back({client, question.head.request});
      return true;
    }
    packet.state = task->second.ended ? SharedTaskState::kEnded : SharedTaskState::kRuns;
    packet.error = task->second.error;
    break;
  }
  answers->push_back({client, question.head.request, packet});
  return true;
}

std::vector<SharedTasks::Answer> SharedTasks::leave(ClientId client, std::uint32_t error) {
  for (auto& [id, owner] : owners_) {
    for (auto& [number, task] : owner.tasks) {
      std::erase_if(task.watches, [&](const Watch& watch) { return watch.client == client; });
    }
  }
  std::vector<Answer> answers;
  if (const auto owner = owners_.find(client); owner != owners_.end()) {
    for (auto& [number, task] : owner->second.tasks) {
      if (task.ended) continue;
      task.error = error;
      const auto told = tell(owner->second, number, task);
      answers.insert(answers.end(), told.begin(), told.end());
    }
    owners_.erase(owner);
  }
  watching_.erase(client);
  return answers;
}

}  // namespace amasia::devices
