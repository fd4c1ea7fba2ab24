// SPDX-License-Identifier: Apache-2.0
#include "amasia/cuda.hpp"

#include <fmt/format.h>

#include <deque>

#include "modules/blocking_calls.hpp"
#include "modules/cuda/gpus.hpp"

namespace amasia::cuda {
namespace {

namespace driver = devices::cuda;
using tasks::place;
using tasks::place_type;

// Copies go through pinned memory, whose amount this bounds: so much at once, and two of it.
constexpr std::size_t kPiece = 4 << 20, kPiecesUnderWay = 2;
constexpr place_type kOfCores[] = {place_type::memory, place_type::numa_node, place_type::cache};

const driver::Driver& installed_driver() {
  const auto loaded = driver::load_driver();
  if (!loaded.ok()) throw error("cuda: " + loaded.error().message);
  return *loaded.value();
}

std::size_t gpu_at(const std::vector<place>& gpus, place at) {
  if (at.valid() && at.type() != place_type::gpu) return Gpus::kHost;
  const auto found = std::find(gpus.begin(), gpus.end(), at);
  if (found == gpus.end()) {
    throw error(fmt::format("cuda: '{}' is not the place of one of the {} GPUs of the driver",
                            at.valid() ? at.name() : "an invalid place", gpus.size()));
  }
  return static_cast<std::size_t>(found - gpus.begin());
}

template <typename T>
future<T> failed(std::exception_ptr why) {
  tasks::promise<T> promise;
  promise.fail(std::move(why));
  return promise.get_future();
}

}  // namespace

// What copies and memory at the places need; the runtime has it as long as it lives.
struct library::State : std::enable_shared_from_this<State> {
  std::shared_ptr<Gpus> gpus;
  std::vector<place> places;
  tasks::module_host* attached = nullptr;

  tasks::module_host& host() const {
    if (attached == nullptr) throw std::logic_error("the module 'cuda' is not attached any more");
    return *attached;
  }
  std::unique_ptr<Ended> ending(tasks::promise<void> result) const {
    return std::make_unique<Ended>(gpus->inside(), std::move(result), host().hold_scope());
  }
  future<void> begin(const Gpus::Piece& piece) const {
    tasks::promise<void> result;
    auto done = result.get_future();
    host().call([all = gpus, piece, ended = ending(std::move(result))]() mutable {
      all->copy(piece, std::move(ended));
    });
    return done;
  }
  future<void> copy(const stream& order, void* to, place to_place, const void* from,
                    place from_place, std::size_t bytes);
  future<void> copy_in_pieces(const Gpus::Piece& whole);
};

future<void> library::State::copy(const stream& order, void* to, place to_place, const void* from,
                                  place from_place, std::size_t bytes) {
  if (bytes == 0) return tasks::async_future([] {});
  try {
    Gpus::Piece whole{to, gpu_at(places, to_place), from, gpu_at(places, from_place), bytes};
    if (whole.to_gpu != Gpus::kHost) gpus->must_have(whole.to_gpu, to, bytes);
    if (whole.from_gpu != Gpus::kHost) gpus->must_have(whole.from_gpu, from, bytes);
    if (order.number >= 0) {
      whole.stream = order.number;
      if (gpu_at(places, order.gpu) != whole.gpu()) {
        throw error(fmt::format("cuda: a copy from '{}' to '{}' in a stream of '{}'",
                                from_place.name(), to_place.name(), order.gpu.name()));
      }
    }
    const bool by_driver = whole.to_gpu != Gpus::kHost && whole.from_gpu != Gpus::kHost;
    return by_driver || bytes <= kPiece ? begin(whole) : copy_in_pieces(whole);
  } catch (const error&) {
    return failed<void>(std::current_exception());
  }
}

future<void> library::State::copy_in_pieces(const Gpus::Piece& whole) {
  const auto piece_at = [whole](std::size_t at) {
    Gpus::Piece piece = whole;
    piece.to = static_cast<char*>(whole.to) + at;
    piece.from = static_cast<const char*>(whole.from) + at;
    piece.bytes = std::min(kPiece, whole.bytes - at);
    return piece;
  };
  const auto await_all = [](const std::deque<future<void>>& all) {
    for (const auto& one : all) one.wait();  // the memory is in use until all are over
    for (const auto& one : all) one.get();
  };
  if (whole.stream >= 0) {
    // All are begun now: what follows in the stream comes after them.
    std::deque<future<void>> all;
    for (std::size_t at = 0; at < whole.bytes; at += kPiece) all.push_back(begin(piece_at(at)));
    return tasks::async_future([all = std::move(all), await_all] { await_all(all); });
  }
  return tasks::async_future([self = shared_from_this(), whole, piece_at, await_all] {
    std::deque<future<void>> under_way;
    for (std::size_t at = 0; at < whole.bytes; at += kPiece) {
      if (under_way.size() == kPiecesUnderWay) {
        try {
          under_way.front().get();
        } catch (const error&) {
          break;  // told by await_all(), when the other is over, too
        }
        under_way.pop_front();
      }
      under_way.push_back(self->begin(piece_at(at)));
    }
    await_all(under_way);
  });
}

class library::Compiler : public BlockingCalls {
 public:
  Compiler() : BlockingCalls("amasia-nvrtc") {}
};

library::library(tasks::runtime& workers) : library(workers, Gpus::open(installed_driver())) {}

library::library(tasks::runtime& workers, std::shared_ptr<Gpus> gpus)
    : workers_(workers), state_(std::make_shared<State>()) {
  state_->gpus = std::move(gpus);
  for (std::size_t gpu = 0; gpu < state_->gpus->count(); ++gpu) {
    state_->places.push_back(
        workers_.add_place({.name = fmt::format("gpu{}", gpu),
                            .type = place_type::gpu,
                            .number = static_cast<int>(gpu),
                            .bytes = state_->gpus->device(gpu).description.memory,
                            .first_worker_only = false}));
  }
  const auto copy = [state = state_](void* to, place to_place, const void* from, place from_place,
                                     std::size_t bytes) {
    return state->copy(stream{}, to, to_place, from, from_place, bytes);
  };
  for (const place_type cores : kOfCores) {
    workers_.copies_by(place_type::gpu, cores, copy);
    workers_.copies_by(cores, place_type::gpu, copy);
  }
  workers_.copies_by(place_type::gpu, place_type::gpu, copy);
  const auto allocate = [state = state_](place at, std::size_t bytes) {
    try {
      tasks::promise<void*> made;
      made.put(state->gpus->allocate(gpu_at(state->places, at), bytes));
      return made.get_future();
    } catch (const error&) {
      return failed<void*>(std::current_exception());
    }
  };
  const auto release = [state = state_](place at, void* block, std::size_t) {
    state->gpus->release(gpu_at(state->places, at), block);
    tasks::promise<void> done;
    done.put();
    return done.get_future();
  };
  workers_.memory_by(place_type::gpu, {.allocate = allocate, .release = release});
  workers_.attach(*this);
}
library::~library() { workers_.detach(*this); }

const std::vector<place>& library::gpus() const { return state_->places; }

void library::initialise(tasks::module_host& host) {
  compiler_ = std::make_unique<Compiler>();
  state_->attached = &host;
}

// run() is over, so the ends of all works have been told; perhaps not all who told are back.
void library::finalise() noexcept {
  compiler_.reset();
  while (state_->gpus->inside()->load(std::memory_order_seq_cst) != 0) os::yield_core();
  state_->attached = nullptr;
}

std::vector<stream> library::streams(place gpu) const {
  gpu_at(state_->places, gpu);
  std::vector<stream> all;
  for (int n = 0; n < static_cast<int>(driver::Device::kStreams); ++n) all.push_back({gpu, n});
  return all;
}

future<kernel> library::load(place gpu, std::string code, std::string name, code_kind kind,
                             std::string options) {
  devices::ProgramCode program;
  program.kind = kind == code_kind::source ? devices::ProgramKind::kCudaSource
                                           : devices::ProgramKind::kBinary;
  program.code = std::move(code);
  program.options = std::move(options);
  return compiler_->call(state_->host().hold_scope(),
                         [gpus = state_->gpus, number = gpu_at(state_->places, gpu),
                          program = std::move(program), name = std::move(name)] {
                           return gpus->load(number, program, name);
                         });
}

future<void> library::launch(work launched) {
  tasks::promise<void> result;
  auto done = result.get_future();
  launch_into(std::move(launched), std::move(result));
  return done;
}

void library::launch_into(work launched, tasks::promise<void> result) {
  const LoadedKernel* const loaded = launched.kernel_.loaded();
  const bool has_stream = launched.stream_.number >= 0;
  try {
    if (loaded == nullptr) throw error("cuda: a launch without a kernel");
    if (has_stream && gpu_at(state_->places, launched.stream_.gpu) != loaded->gpu) {
      throw error(fmt::format("cuda: the kernel '{}' is on GPU {}, and the stream is of '{}'",
                              loaded->kernel->name, loaded->gpu, launched.stream_.gpu.name()));
    }
  } catch (...) {
    return result.fail(std::current_exception());
  }
  auto ended = state_->ending(std::move(result));
  ended->bytes = std::move(launched.arguments_);
  state_->host().call([launched = std::move(launched), ended = std::move(ended)]() mutable {
    const LoadedKernel& on = *launched.kernel_.loaded();
    std::vector<devices::KernelArgument> arguments;
    for (const auto& bytes : ended->bytes) {
      arguments.push_back({.value = bytes.data(), .size = bytes.size()});
    }
    if (launched.shape_.shared_bytes != 0) {
      arguments.push_back({.kind = devices::KernelArgument::Kind::kLocal,
                           .size = launched.shape_.shared_bytes});
    }
    devices::Work work;
    work.kernel = on.kernel.get();
    work.dimensions = 3;
    for (std::size_t d = 0; d < 3; ++d) {
      work.global[d] = std::max<std::uint64_t>(1, launched.shape_.items[d]);
      const std::uint64_t group = launched.shape_.group[d];
      work.local[d] = launched.shape_.group[0] == 0 ? group : std::max<std::uint64_t>(1, group);
    }
    work.arguments = arguments;
    on.gpus->device(on.gpu).submit(work, *ended.release(), launched.stream_.number);
  });
}

future<void> library::copy(const stream& order, void* to, place to_place, const void* from,
                           place from_place, std::size_t bytes) {
  return state_->copy(order, to, to_place, from, from_place, bytes);
}

}  // namespace amasia::cuda
