// SPDX-License-Identifier: Apache-2.0
#include "modules/devices/endings.hpp"

namespace amasia::device_tasks {

void Line::empty() {
  std::vector<Ending*> over;
  {
    const os::MutexLock lock(mutex_);
    over.swap(over_);
  }
  for (Ending* const ending : over) delete ending;
}

void Ending::tell(void* context, int code, const char* reason) noexcept {
  auto* const ending = static_cast<Ending*>(context);
  if (code == 0) {
    ending->result_.put();
  } else {
    const int positive = -code;
    ending->result_.fail(std::make_exception_ptr(
        error(positive, *reason == '\0' ? mcl_strerror(positive) : reason)));
  }
  // In the line before the finish scope may end, and with it run() and the module (L1).
  tasks::hold held = std::move(ending->held_);
  ending->let_go();
}

}  // namespace amasia::device_tasks
