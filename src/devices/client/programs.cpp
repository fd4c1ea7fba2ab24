// SPDX-License-Identifier: Apache-2.0
#include "devices/client/programs.hpp"

#include <algorithm>
#include <bit>

namespace amasia::devices {
namespace {

// FNV-1a: the same in every process.
std::uint64_t hash_of(std::string_view text, std::uint64_t seed = 0xcbf29ce484222325) {
  for (const char c : text) seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return seed;
}

const char* name_of(ProgramKind kind) {
  switch (kind) {
    case ProgramKind::kSource:
      return "OpenCL C";
    case ProgramKind::kSpirv:
      return "SPIR-V";
    case ProgramKind::kBinary:
      return "a device's binary";
    case ProgramKind::kGraph:
      return "a graph";
    case ProgramKind::kBuiltIn:
      return "built-in kernels";
    case ProgramKind::kCudaSource:
      return "CUDA C++";
    case ProgramKind::kHostLibrary:
      return "a shared object of host kernels";
    case ProgramKind::kHostFunction:
      break;
  }
  return "a host kernel";
}

bool same(const ProgramCode& a, const ProgramCode& b) {
  return a.kind == b.kind && a.code == b.code && a.options == b.options && a.path == b.path &&
         a.function == b.function;
}

}  // namespace

// A kernel without a name is in no program: that it is not found means that the program builds.
Fault Programs::build(const ProgramCode& code) const {
  std::set<const Backend*> done;
  for (const DevicePlace& device : devices_) {
    const bool takes = (device.backend->takes(device.local) & set_of(code.kind)) != 0;
    if (!takes || !done.insert(device.backend).second) continue;
    Outcome outcome;
    device.backend->load(device.local, code, "", 0, &outcome);
    if (outcome.failure == Failure::kBuild || outcome.failure == Failure::kUnsupported) {
      return fault_of(outcome);
    }
  }
  return no_fault();
}

Fault Programs::add(const ProgramCode& code, const std::string& function_name) {
  bool taken = false;
  for (const DevicePlace& device : devices_) {
    taken |= (device.backend->takes(device.local) & set_of(code.kind)) != 0;
  }
  if (!taken) {
    return fault(MCL_ERR_INVPRG, "no device of this node takes programs such as '{}', {}{}",
                 code.path.empty() ? function_name : code.path, name_of(code.kind),
                 absent_.empty() ? "" : " (" + absent_ + ")");
  }
  const auto is_known = [&] {
    std::lock_guard lock(mutex_);
    return std::any_of(programs_.begin(), programs_.end(), [&](const auto& program) {
      return same(program->code, code) && program->function_name == function_name;
    });
  };
  if (is_known()) return no_fault();
  if (function_name.empty()) {
    if (Fault wrong = build(code)) return wrong;
  }
  std::lock_guard lock(mutex_);
  auto made = std::make_shared<Program>();
  made->identity = hash_of(code.options, hash_of(code.code, hash_of(code.path)));
  made->code = code;
  made->function_name = function_name;
  if (!function_name.empty()) {
    std::erase_if(programs_, [&](const auto& one) { return one->function_name == function_name; });
  }
  programs_.push_back(std::move(made));
  ++changes_;
  accepted_.clear();
  // What was not found may be there now.
  for (auto at = kernels_.begin(); at != kernels_.end();) {
    const bool replaces = !function_name.empty() && at->first.second == function_name;
    if (at->second.ready && (at->second.loaded == nullptr || replaces)) {
      replaced_.push_back(std::move(at->second));
      at = kernels_.erase(at);
    } else {
      ++at;
    }
  }
  return no_fault();
}

DeviceSet Programs::may_run(const Program& program, const std::string& kernel) const {
  if (!program.function_name.empty() && program.function_name != kernel) return 0;
  DeviceSet set = 0;
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    const DevicePlace& device = devices_[i];
    const bool takes = (device.backend->takes(device.local) & set_of(program.code.kind)) != 0;
    if (takes) set |= DeviceSet{1} << i;
  }
  const auto lacks = program.lacks.find(kernel);
  return lacks == program.lacks.end() ? set : set & ~lacks->second;
}

DeviceSet Programs::devices_for(const std::string& kernel, Fault* why) const {
  std::lock_guard lock(mutex_);
  DeviceSet set = 0;
  for (const auto& program : programs_) set |= may_run(*program, kernel);
  if (set == 0) {
    *why = programs_.empty() ? fault(MCL_ERR_INVKER, "kernel '{}': no program is loaded", kernel)
                             : fault(MCL_ERR_INVKER, "no program that is loaded has kernel '{}'",
                                     kernel);
  }
  return set;
}

DeviceSet Programs::built_for(const std::string& kernel) const {
  std::lock_guard lock(mutex_);
  DeviceSet set = 0;
  for (const auto& program : programs_) {
    std::set<const Backend*> done;
    for (DeviceSet left = may_run(*program, kernel); left != 0; left &= left - 1) {
      const int device = std::countr_zero(left);
      if (done.insert(devices_[static_cast<std::size_t>(device)].backend).second) {
        set |= DeviceSet{1} << device;
      }
    }
  }
  return set;
}

template <typename What>
Fault Programs::check_what(const std::string& kernel, std::size_t count, What what) {
  bool is_there = false;
  const auto ask = [&](DeviceSet devices) {
    Fault why;
    for (DeviceSet left = devices; left != 0; left &= left - 1) {
      const auto device = static_cast<OwnDevice>(std::countr_zero(left));
      const LoadedKernel* const loaded = find(device, kernel, count, &why);
      is_there |= loaded != nullptr;
      if (loaded != nullptr) why = fault_of(loaded->refuses(what));
      if (why.code == MCL_ERR_ARGCOUNT || why.code == MCL_ERR_ARGSIZE) return why;
    }
    return no_fault();
  };
  Fault why = ask(built_for(kernel));
  // Nothing has been built for the others; it is where else nobody has it.
  if (!why && !is_there) {
    Fault none;
    why = ask(devices_for(kernel, &none));
  }
  if (why) return why;
  leave_to_those_that_have(kernel);
  why = no_fault();
  devices_for(kernel, &why);
  return why;
}

// One device of each back end was asked. What its others would say is not known (the preprocessor
// may see to it that they have other kernels); but a task need not go there to find out.
void Programs::leave_to_those_that_have(const std::string& kernel) {
  std::lock_guard lock(mutex_);
  std::set<const Backend*> have;
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    const auto found = kernels_.find({static_cast<OwnDevice>(i), kernel});
    const bool has = found != kernels_.end() && found->second.loaded != nullptr;
    if (has) have.insert(devices_[i].backend);
  }
  if (have.empty()) return;
  for (const auto& program : programs_) {
    const auto lacks = program->lacks.find(kernel);
    if (lacks == program->lacks.end()) continue;
    for (DeviceSet left = lacks->second; left != 0; left &= left - 1) {
      const auto asked = static_cast<std::size_t>(std::countr_zero(left));
      const Backend* const backend = devices_[asked].backend;
      if (have.contains(backend)) continue;
      for (std::size_t i = 0; i < devices_.size(); ++i) {
        if (devices_[i].backend == backend) lacks->second |= DeviceSet{1} << i;
      }
    }
  }
}

Fault Programs::check(const std::string& kernel, std::size_t count) {
  {
    std::lock_guard lock(mutex_);
    const auto found = accepted_.find(kernel);
    if (found != accepted_.end() && found->second.size() == count) return no_fault();
  }
  return check_what(kernel, count, count);
}

Fault Programs::check(const std::string& kernel, std::span<const ArgumentShape> shapes) {
  {
    std::lock_guard lock(mutex_);
    const auto found = accepted_.find(kernel);
    if (found != accepted_.end() && std::ranges::equal(found->second, shapes)) return no_fault();
  }
  if (Fault wrong = check_what(kernel, shapes.size(), shapes)) return wrong;
  std::lock_guard lock(mutex_);
  accepted_[kernel].assign(shapes.begin(), shapes.end());
  return no_fault();
}

bool Programs::is_known(OwnDevice device, const std::string& kernel) const {
  std::lock_guard lock(mutex_);
  const auto found = kernels_.find({device, kernel});
  return found != kernels_.end() && found->second.ready;
}

std::uint64_t Programs::identity_of(const std::string& kernel) const {
  std::lock_guard lock(mutex_);
  for (const auto& program : programs_) {
    if (may_run(*program, kernel) != 0) return hash_of(kernel, program->identity) | 1;
  }
  return hash_of(kernel) | 1;
}

// From the first program that has it. `lock` is open while a program is built: where others were
// added or replaced meanwhile, what was found may have been replaced, and what was not be there.
Programs::Kernel Programs::load(std::unique_lock<std::mutex>& lock, OwnDevice device,
                                const std::string& kernel, std::size_t arguments) {
  const DevicePlace& place = devices_[device];
  for (;;) {
    const std::uint64_t changes = changes_;
    std::vector<std::shared_ptr<Program>> candidates;
    for (const auto& program : programs_) {
      if ((may_run(*program, kernel) >> device & 1) != 0) candidates.push_back(program);
    }
    Kernel result;
    result.fault = fault(MCL_ERR_INVKER, "no program that device '{}' takes has kernel '{}'",
                         place.description->name, kernel);
    for (const auto& program : candidates) {
      Outcome outcome;
      lock.unlock();
      result.loaded = place.backend->load(place.local, program->code, kernel, arguments, &outcome);
      lock.lock();
      if (result.loaded != nullptr) {
        result.fault = no_fault();
        break;
      }
      result.fault = fault_of(outcome);
      if (outcome.failure != Failure::kNoKernel) break;
      program->lacks[kernel] |= DeviceSet{1} << device;
    }
    if (changes == changes_) return result;
  }
}

LoadedKernel* Programs::find(OwnDevice device, const std::string& kernel, std::size_t arguments,
                             Fault* why) {
  std::unique_lock lock(mutex_);
  for (;;) {
    auto [at, is_new] = kernels_.try_emplace({device, kernel});
    if (is_new) break;  // this thread loads it
    if (at->second.ready) {
      if (at->second.loaded == nullptr) *why = at->second.fault;
      return at->second.loaded.get();
    }
    // Looked up again: who loaded it may have taken the entry away, and so may add().
    loaded_.wait(lock);
  }
  Kernel result = load(lock, device, kernel, arguments);
  result.ready = true;
  Kernel& kept = kernels_[{device, kernel}];
  kept = std::move(result);
  loaded_.notify_all();
  if (kept.loaded != nullptr) return kept.loaded.get();
  *why = kept.fault;
  // A wrong number of arguments is that task's mistake, not the kernel's.
  if (why->code == MCL_ERR_ARGCOUNT) kernels_.erase({device, kernel});
  return nullptr;
}

}  // namespace amasia::devices
