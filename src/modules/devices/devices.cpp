// SPDX-License-Identifier: Apache-2.0
#include "amasia/device_tasks.hpp"

#include "modules/blocking_calls.hpp"
#include "modules/devices/endings.hpp"
#include "modules/devices/memory.hpp"

namespace amasia::device_tasks {
namespace {

// The process has one connection to the daemon, which the C interface keeps; so has who uses it.
struct Connection {
  os::Mutex mutex;
  std::size_t users AMASIA_GUARDED_BY(mutex) = 0;
  bool ours AMASIA_GUARDED_BY(mutex) = false;

  void take(std::uint64_t threads) {
    const os::MutexLock lock(mutex);
    // 1: the program had it before, and will end it.
    if (users == 0) ours = devices::detail::checked(mcl_init(threads, 0)) == 0;
    ++users;
  }
  void give() {
    const os::MutexLock lock(mutex);
    if (--users == 0 && ours) mcl_finit();
  }
};
Connection the_connection;

struct Submitted final : Ending::Handle {
  explicit Submitted(devices::future its_task) : task(std::move(its_task)) {}
  devices::future task;  // ends with its handle
};

constexpr tasks::place_type kOfCores[] = {tasks::place_type::memory, tasks::place_type::numa_node,
                                          tasks::place_type::cache};

}  // namespace

class Loader : public BlockingCalls {
 public:
  using BlockingCalls::BlockingCalls;
};

library::library(tasks::runtime& workers, settings chosen)
    : workers_(workers),
      settings_(chosen),
      line_(std::make_shared<Line>()),
      memory_(std::make_shared<Memory>(line_, chosen.classes)) {
  using tasks::place;
  constexpr auto kOther = tasks::place_type::other;
  place_ = workers_.add_place(
      {.name = "devices", .type = kOther, .first_worker_only = false});
  for (const tasks::place_type cores : kOfCores) {
    workers_.copies_by(kOther, cores,
                       [memory = memory_](void* to, place, const void* from, place,
                                          std::size_t bytes) {
                         return memory->copy_to_device(to, from, bytes);
                       });
    workers_.copies_by(cores, kOther,
                       [memory = memory_](void* to, place, const void* from, place,
                                          std::size_t bytes) {
                         return memory->copy_from_device(to, from, bytes);
                       });
  }
  workers_.copies_by(kOther, kOther,
                     [memory = memory_](void* to, place, const void* from, place,
                                        std::size_t bytes) {
                       return memory->copy_on_device(to, from, bytes);
                     });
  workers_.memory_by(
      kOther, {.allocate = [memory = memory_](place, std::size_t bytes) {
                 return memory->allocate(bytes);
               },
               .release = [memory = memory_](place, void* block, std::size_t) {
                 return memory->release(block);
               }});
  workers_.attach(*this);
}
library::~library() { workers_.detach(*this); }

void library::initialise(tasks::module_host& host) {
  the_connection.take(settings_.threads);
  loader_ = std::make_unique<Loader>("amasia-loader");
  host_ = &host;
  memory_->use(&host);
}

// run() is over, so all that was submitted has been told of its end.
void library::finalise() noexcept {
  memory_->use(nullptr);
  loader_.reset();
  line_->empty();  // L1: nobody calls into the runtime any more
  the_connection.give();
}

future<void> library::load(std::string path, unsigned long kind, std::string options) {
  return loader_->call(host_->hold_scope(), [path = std::move(path), kind,
                                             options = std::move(options)]() mutable {
    devices::detail::checked(mcl_prg_load(path.data(), options.data(), kind));
  });
}

void library::add_host_kernel(const std::string& name, mcl_host_kernel function) {
  devices::detail::checked(mcl_prg_add_host(name.c_str(), function));
}

future<void> library::submit(devices::task work, devices::range over) {
  tasks::promise<void> result;
  auto done = result.get_future();
  submit_into(std::move(work), over, std::move(result));
  return done;
}

void library::submit_into(devices::task work, devices::range over, tasks::promise<void> result) {
  Ending::begin(line_, std::move(result), host_->hold_scope(), [&](Ending* ending) {
    return std::make_unique<Submitted>(
        work.when_ended(&Ending::tell, ending).submit(over));
  });
}

}  // namespace amasia::device_tasks
