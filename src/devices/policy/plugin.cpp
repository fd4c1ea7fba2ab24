// SPDX-License-Identifier: Apache-2.0
#include "devices/policy/plugin.hpp"

#include <fmt/format.h>

#include <array>

namespace amasia::devices::policy {
namespace {

class PluginChooser final : public Chooser {
 public:
  PluginChooser(const amasia_device_policy& plugin, void* state) : plugin_(plugin), state_(state) {}
  ~PluginChooser() override { plugin_.fini(state_); }
  PluginChooser(const PluginChooser&) = delete;
  PluginChooser& operator=(const PluginChooser&) = delete;

  void set_weight(ClientId client, double weight) override {
    if (plugin_.client != nullptr) plugin_.client(state_, client.value, weight);
  }
  void remove_client(ClientId client) override { set_weight(client, 0); }

  void add_device(DeviceId id, const DeviceDescription& description) override {
    const DeviceTerms terms = terms_of(description);
    const amasia_policy_device device = {
        sizeof device,           id.value,     static_cast<std::uint32_t>(terms.device_class),
        terms.elements,          terms.memory, terms.depth,
        description.name.c_str()};
    plugin_.device(state_, &device);
  }

  void put(const TaskDescription& task, DeviceSet possible) override {
    tasks_[task.key] = task;
    Bytes bytes = task.temporary;
    for (const TaskArgument& argument : task.resident) bytes += argument.size;
    const amasia_policy_task out = {
        sizeof out, task.key.client.value, task.key.task, task.kernel, task.work_items, bytes,
        possible,   task.preferred,        task.priority, task.put_at};
    plugin_.put(state_, &out);
  }

  void remove(TaskKey key) override {
    plugin_.remove(state_, key.client.value, key.task);
    tasks_.erase(key);
  }

  std::optional<Choice> next(const Sight& sight) override {
    const Question question{*this, sight};
    const amasia_policy_view view = {sizeof view, &question, fits,          missing_bytes,
                                     run_ns,      copy_ns,   busy_until_ns, in_flight};
    amasia_policy_choice choice = {sizeof choice, 0, 0, 0};
    if (plugin_.next(state_, &view, sight.now, &choice) == 0) return std::nullopt;
    const auto device = static_cast<std::uint16_t>(std::min(choice.device, 0xffffU));
    return Choice{{ClientId(choice.client), choice.task}, DeviceId(device)};
  }

  void started(const TaskDescription&, DeviceId) override {}
  void ended(const TaskDescription& task, const TaskEnd& end) override {
    if (plugin_.finish == nullptr) return;
    const amasia_policy_end out = {sizeof out,       task.key.client.value, task.key.task,
                                   end.device.value, end.succeeded ? 1 : 0, end.run_time,
                                   end.copy_time};
    plugin_.finish(state_, &out);
  }
  Nanos ask_again_at() const override {
    return plugin_.ask_again_at == nullptr ? -1 : plugin_.ask_again_at(state_);
  }

 private:
  struct Question {
    const PluginChooser& chooser;
    const Sight& sight;

    // nullptr where the task or the device is not known.
    const TaskDescription* find(std::uint32_t client, std::uint64_t task,
                                std::uint32_t device) const {
      if (device >= sight.ledger.devices()) return nullptr;
      const auto found = chooser.tasks_.find({ClientId(client), task});
      return found == chooser.tasks_.end() ? nullptr : &found->second;
    }
  };
  static const Question& of(const void* context) { return *static_cast<const Question*>(context); }
  static DeviceId id_of(std::uint32_t device) {
    return DeviceId(static_cast<std::uint16_t>(device));
  }

  static int fits(const void* context, std::uint32_t client, std::uint64_t task,
                  std::uint32_t device) {
    const Question& question = of(context);
    const TaskDescription* found = question.find(client, task, device);
    if (found == nullptr) return 0;
    const Ledger& ledger = question.sight.ledger;
    const bool can = contains(ledger.possible(*found), id_of(device));
    return can && question.sight.fits(*found, id_of(device)) ? 1 : 0;
  }
  static std::uint64_t missing_bytes(const void* context, std::uint32_t client, std::uint64_t task,
                                     std::uint32_t device) {
    const TaskDescription* found = of(context).find(client, task, device);
    return found == nullptr ? 0 : of(context).sight.ledger.missing(*found, id_of(device));
  }
  static std::int64_t run_ns(const void* context, std::uint32_t client, std::uint64_t task,
                             std::uint32_t device) {
    const TaskDescription* found = of(context).find(client, task, device);
    if (found == nullptr) return -1;
    return of(context).sight.estimates.run(*found, id_of(device)).value_or(-1);
  }
  static std::int64_t copy_ns(const void* context, std::uint64_t bytes, std::uint32_t device) {
    if (device >= of(context).sight.ledger.devices()) return -1;
    return of(context).sight.estimates.copy(bytes, id_of(device));
  }
  static std::int64_t busy_until_ns(const void* context, std::uint32_t device) {
    return device < kMaxDevices ? of(context).sight.busy[device] : -1;
  }
  static std::uint32_t in_flight(const void* context, std::uint32_t device) {
    const Ledger& ledger = of(context).sight.ledger;
    return device < ledger.devices() ? ledger.device(id_of(device)).in_flight : 0;
  }

  const amasia_device_policy& plugin_;
  void* state_;
  std::unordered_map<TaskKey, TaskDescription, TaskKeyHash> tasks_;
};

}  // namespace

Result<std::unique_ptr<Chooser>> make_plugin_chooser(const amasia_device_policy& plugin,
                                                     const std::string& options) {
  if (plugin.abi != AMASIA_DEVICE_POLICY_ABI) {
    return Error{fmt::format("it was built for version {} of the policy interface, not {}",
                             plugin.abi, AMASIA_DEVICE_POLICY_ABI),
                 0};
  }
  if (plugin.size < sizeof(amasia_device_policy)) {
    return Error{
        fmt::format("its table has {} bytes, not {}", plugin.size, sizeof(amasia_device_policy)),
        0};
  }
  const std::array<std::pair<const char*, bool>, 7> needed = {{{"name", plugin.name != nullptr},
                                                               {"init", plugin.init != nullptr},
                                                               {"fini", plugin.fini != nullptr},
                                                               {"device", plugin.device != nullptr},
                                                               {"put", plugin.put != nullptr},
                                                               {"remove", plugin.remove != nullptr},
                                                               {"next", plugin.next != nullptr}}};
  for (const auto& [name, there] : needed) {
    if (!there) return Error{fmt::format("its table has no '{}'", name), 0};
  }
  std::array<char, 256> error = {};
  void* state = plugin.init(options.c_str(), error.data(), error.size());
  if (state == nullptr) {
    error.back() = 0;
    return Error{
        fmt::format("its init failed: {}", error[0] != 0 ? error.data() : "no reason given"), 0};
  }
  return std::unique_ptr<Chooser>(std::make_unique<PluginChooser>(plugin, state));
}

}  // namespace amasia::devices::policy
