// SPDX-License-Identifier: Apache-2.0
#include "omp/launch/node_process.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>

#include "omp/abi/runtimes.hpp"
#include "omp/launch/image.hpp"
#include "omp/launch/main_stack.hpp"
#include "omp/launch/threads.hpp"

namespace amasia::omp {
namespace {

constexpr Nanos kStartTimeout = 60 * base::kSecond;

// The engine's helper object of a thread, which lives from begin_help to end_help.
struct alignas(dsm::Engine::Helping) HelpingMemory {
  std::byte bytes[sizeof(dsm::Engine::Helping)];
};
thread_local HelpingMemory helping_memory;
thread_local dsm::Engine::Helping* helping = nullptr;
thread_local dsm::ThreadSlot* thread_slot = nullptr;

std::byte* pointer(std::uintptr_t address) { return reinterpret_cast<std::byte*>(address); }

std::span<const std::byte> bytes_of_text(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

NodeProcess::NodeProcess(Process& owner)
    : process_(owner),
      origin_(owner.space.self() == base::kOrigin),
      team_stacks_(pointer(plan_stacks(owner.space.stacks(owner.space.self())).teams.begin),
                   plan_stacks(owner.space.stacks(owner.space.self())).teams.size(),
                   managed_stack_size(true)) {}

NodeProcess::~NodeProcess() = default;

Result<std::unique_ptr<NodeProcess>> NodeProcess::start(Process& owner) {
  AMASIA_CHECK(owner.membership != nullptr, "a node has joined its launcher");
  std::unique_ptr<NodeProcess> node(new NodeProcess(owner));
  if (const Status connected = node->connect(); !connected.ok()) return connected.error();
  node->make_node();
  if (const Status shared = node->share_globals(); !shared.ok()) return shared.error();
  if (const Status running = node->run_engine(); !running.ok()) return running.error();
  owner.membership->ready();
  return node;
}

Status NodeProcess::connect() {
  auto bootstrap = fabric::connect_bootstrap(process_.membership->take_bootstrap());
  if (!bootstrap.ok()) return bootstrap.error();
  bootstrap_ = std::move(bootstrap).value();
  if (const Status same = agree_on_image(*bootstrap_); !same.ok()) return same.error();
  auto fabric = fabric::connect_ucx(*bootstrap_, fabric::UcxSettings{});
  if (!fabric.ok()) return fabric.error();
  fabric_ = std::move(fabric).value();
  fabric_->set_peer_lost_handler(this);
  fabric_->set_handler(kProcessFirst, kProcessLast, this);
  foreign_blocks_ = std::make_unique<dsm::ForeignBlocks>(process_.space, process_.heap, *fabric_);
  if (origin_) {
    sink_ = std::make_unique<OutputSink>(*fabric_);
  } else {
    auto source = OutputSource::redirect(*fabric_);
    if (!source.ok()) return source.error();
    source_ = std::move(source).value();
  }
  return base::ok();
}

Status NodeProcess::agree_on_image(fabric::Bootstrap& bootstrap) {
  const std::string mine = describe_image(process_.objects);
  if (const Status put = bootstrap.put("image", bytes_of_text(mine)); !put.ok()) {
    return put.error();
  }
  const std::uint32_t cores = os::allowed_core_count();
  if (const Status put = bootstrap.put("cores", fabric::bytes_of(cores)); !put.ok()) {
    return put.error();
  }
  if (const Status met = bootstrap.fence(kStartTimeout); !met.ok()) return met.error();
  if (origin_) return base::ok();
  auto theirs = bootstrap.get(base::kOrigin, "image");
  if (!theirs.ok()) return theirs.error();
  const std::string_view text(reinterpret_cast<const char*>(theirs.value().data()),
                              theirs.value().size());
  return compare_images(mine, text, base::kOrigin);
}

void NodeProcess::make_node() {
  NodeSettings settings;
  for (std::uint16_t i = 0; i < fabric_->node_count(); ++i) {
    std::uint32_t cores = 1;
    if (auto told = bootstrap_->get(NodeId{i}, "cores");
        told.ok() && told.value().size() == sizeof cores) {
      std::memcpy(&cores, told.value().data(), sizeof cores);
    }
    settings.capacity.push_back(std::max(cores, 1u));
  }
  node_ = std::make_unique<Node>(*fabric_, *this, std::move(settings));
  sharing_ = std::make_unique<WorkSharing>(*node_);
  locks_ = std::make_unique<LockService>(*fabric_, *this, kLocksFirst);
  set_runtimes(*node_);
  node_->set_work_sharing(sharing_.get());
  node_->set_locks(locks_.get());
}

Status NodeProcess::share_globals() {
  auto ranges = global_ranges(process_.objects);
  if (!ranges.ok()) return ranges.error();
  // What constructors printed here is the origin's to print.
  if (!origin_) std::fflush(nullptr);
  for (const dsm::AddressRange& range : ranges.value()) {
    if (const auto added = process_.space.add_globals(range); !added.ok()) {
      return base::errno_error(
          added.errno_value,
          fmt::format("cannot {} at 0x{:x}-0x{:x}", added.failed_step, range.begin, range.end));
    }
  }
  return base::ok();
}

Status NodeProcess::run_engine() {
  dsm::Engine::Settings settings;
  settings.observer = this;
  auto engine = dsm::Engine::make(process_.space, *fabric_, settings);
  if (!engine.ok()) return engine.error();
  engine_ = std::move(engine).value();
  return engine_->start();
}

void NodeProcess::serve() {
  node_->serve();
  ending_.store(true, std::memory_order_relaxed);
  source_.reset();
  engine_->shutdown();
  fabric_.reset();
}

void NodeProcess::end_in_order() {
  ending_.store(true, std::memory_order_relaxed);
  process_.membership->finishing();
  node_->shutdown();
  engine_->shutdown();
  fabric_.reset();
}

void NodeProcess::end_job_from_here(int status, bool immediate) {
  if (!immediate) source_->flush();
  const EndJob end{status, immediate ? 1u : 0u};
  bool sent = false;
  os::in_runtime_section(
      [&] { sent = fabric_->send(base::kOrigin, kEndJob, fabric::bytes_of(end)); });
  while (sent) pause();  // the origin ends this process with the job
}

void NodeProcess::finish_output() {
  if (sink_ != nullptr) sink_->finish();
}

bool NodeProcess::code_is_everywhere(const void* code) const {
  return process_.objects.is_from_start(code) && process_.objects.late_library() == nullptr;
}

void NodeProcess::flush_output() {
  foreign_blocks_->flush();
  if (source_ != nullptr) source_->flush();
  if (sink_ != nullptr) sink_->wait_written();
}

ThreadCounters NodeProcess::thread_counters() {
  if (thread_slot == nullptr) thread_slot = engine_->register_thread();
  const auto load = [](const auto& counter) {
    return static_cast<std::uint64_t>(counter.load(std::memory_order_relaxed));
  };
  return {load(thread_slot->faults_read) + load(thread_slot->faults_write) +
              load(thread_slot->faults_upgrade),
          static_cast<Nanos>(load(thread_slot->stall_ns))};
}

void NodeProcess::begin_help() {
  AMASIA_CHECK(helping == nullptr, "a thread helps once at a time");
  helping = new (helping_memory.bytes) dsm::Engine::Helping(*engine_);
}

int NodeProcess::help() { return helping->poll(); }

void NodeProcess::end_help() {
  helping->~Helping();
  helping = nullptr;
}

void NodeProcess::abort_job(std::string_view why) {
  base::log_line(base::LogLevel::kError, "{}", why);
  real_exit_now(1);
}

void NodeProcess::on_peer_lost(NodeId peer, std::string_view why) {
  if (ending_.load(std::memory_order_relaxed)) return;
  node_->peer_lost(peer, why);
}

void NodeProcess::on_message(const fabric::Incoming& message) {
  EndJob end;
  if (message.type != kEndJob || message.body.size() != sizeof end || !origin_) return;
  std::memcpy(&end, message.body.data(), sizeof end);
  // Handlers of the program run on a thread that may block; this one must not.
  std::thread([end] {
    end.immediate != 0 ? real_exit_now(end.status) : std::exit(end.status);
  }).detach();
}

}  // namespace amasia::omp
