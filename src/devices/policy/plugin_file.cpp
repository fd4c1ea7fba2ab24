// SPDX-License-Identifier: Apache-2.0
#include "devices/policy/plugin_file.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include "amasia/device_policy.h"

namespace amasia::devices {

Result<std::unique_ptr<Policy>> policy_of(std::string_view choice, std::string_view settings) {
  if (choice.find('/') == std::string_view::npos) return make_policy(choice, settings);
  const std::size_t colon = choice.find(':', choice.rfind('/'));
  const std::string file(choice.substr(0, colon));
  const std::string_view options =
      colon == std::string_view::npos ? std::string_view() : choice.substr(colon + 1);
  void* const object = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (object == nullptr) {
    const char* why = ::dlerror();
    return Error{
        fmt::format("cannot load the policy '{}': {}", file, why ? why : "no reason given"), 0};
  }
  const auto entry = reinterpret_cast<amasia_device_policy_entry_function>(
      ::dlsym(object, AMASIA_DEVICE_POLICY_ENTRY));
  const amasia_device_policy* table = entry == nullptr ? nullptr : entry();
  if (table == nullptr) {
    return Error{fmt::format("'{}' is not a policy: it {} {}", file,
                             entry == nullptr ? "has no" : "returns nothing from",
                             AMASIA_DEVICE_POLICY_ENTRY),
                 0};
  }
  auto made = make_policy_of(*table, options, "", settings);
  if (!made.ok()) {
    return Error{fmt::format("cannot use the policy '{}': {}", file, made.error().message), 0};
  }
  return made;
}

}  // namespace amasia::devices
