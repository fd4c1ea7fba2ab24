// SPDX-License-Identifier: Apache-2.0
// The thread of an engine, and the lock around its coherence.
//
//   field          written by                       read by              guarded by
//   coherence_     service thread, pollers of the   the same             mutex_
//                  fabric, callers of the engine
//   wakes_at_      service thread                   pollers              mutex_
//   refusals_      service thread                   service thread       –
//   helpers_       helping threads                  service thread       atomic
//   stopping_      shutdown()                       service thread       atomic
//
//   S1  A thread holds mutex_ for a bounded time, with signals blocked, touching no managed memory.
//   S2  fabric_.poll() is called without mutex_: its handlers take it for each message, so that
//       anyone may poll.
//   S3  While the service thread sleeps, it wakes no later than the coherence's next_time(): who
//       makes that earlier raises wakeup_.
//   S4  While helpers_ is not 0 and no thread waits for a page, somebody else polls the fabric; the
//       last to leave raises wakeup_.
//   S5  The service thread has a real-time priority, so it never loops without progress: a thread
//       that holds what it wants (another poller in the middle of a batch, the reader of a full
//       queue) may be an ordinary one on the same core.
#pragma once

#include <atomic>
#include <memory>

#include "dsm/coherence.hpp"
#include "dsm/engine.hpp"
#include "fabric/fabric.hpp"
#include "os/os.hpp"

namespace amasia::dsm {

class Engine::Service final : public fabric::Handler {
 public:
  static Result<std::unique_ptr<Service>> make(AddressSpace& space, fabric::Fabric& fabric,
                                               const Settings& settings);
  ~Service() override { stop(); }

  Status start();
  void stop();

  ThreadSlot* register_thread();
  void unregister_thread(ThreadSlot* slot);
  void note_pause(ThreadSlot* slot);
  bool enter_place(std::uint64_t place);
  void recall(std::uint64_t place);
  void prefetch(AddressRange range, AccessKind access);
  void gather(bool on);
  Offer offer(std::uintptr_t address, std::uint64_t nodes, bool if_asked);
  std::uint32_t give_back(std::uintptr_t address, std::uint32_t mask);
  void take_back(NodeId from, std::uintptr_t address, std::uint32_t mask);
  Statistics statistics() const;
  LossWatch& losses() { return losses_; }

  void begin_helping();
  int help();
  void end_helping();

  void on_message(const fabric::Incoming& message) override;

 private:
  Service(AddressSpace& space, fabric::Fabric& fabric, const Settings& settings)
      : space_(space), fabric_(fabric), settings_(settings) {}
  static void run(void* service) { static_cast<Service*>(service)->serve(); }

  void serve();
  int round();
  int handle_faults_and_time();
  void note_state() AMASIA_REQUIRES(mutex_);
  void wake_in_time() AMASIA_REQUIRES(mutex_);
  bool is_window(PageIndex first, std::uint32_t mask) const;
  bool left_to_helpers() const;
  bool may_spin(Nanos idle) const;
  void sleep();

  AddressSpace& space_;
  fabric::Fabric& fabric_;
  const Settings settings_;
  std::unique_ptr<PageAccess> access_;
  os::Wakeup wakeup_;
  os::Thread thread_;

  LossWatch losses_;  // but for what is any thread's, under the lock, by Coherence

  mutable os::Mutex mutex_;
  std::unique_ptr<Coherence> coherence_ AMASIA_GUARDED_BY(mutex_);
  Nanos wakes_at_ AMASIA_GUARDED_BY(mutex_) = 0;  // 0 while awake
  std::uint64_t sleeps_ AMASIA_GUARDED_BY(mutex_) = 0;
  std::uint32_t refusals_ = 0;  // of arm() in a row, with nothing handled in between

  // Release by the thread that helps or stops, acquire by the service thread: what the other did
  // before is seen after.
  std::atomic<int> helpers_{0};
  std::atomic<bool> stopping_{false};
  // S6: note_pause counts first and then looks here; the service thread sets it after it has looked
  // at the counts, and looks once more at the page's next deadline.
  std::atomic<bool> holding_{false};
  std::atomic<bool> paused_{false};              // since the service thread last looked
  // Relaxed: hints for read-ahead. Where the program's threads are, and which slots of the recall
  // have something to ask for.
  std::atomic<std::uint64_t> place_{0};
  std::array<std::atomic<bool>, Recall::kPlaces> remembered_{};
  std::atomic<int> computing_threads_{0};        // relaxed: a hint for spinning
  std::atomic<std::size_t> waiting_threads_{0};  // relaxed: the same
};

}  // namespace amasia::dsm
