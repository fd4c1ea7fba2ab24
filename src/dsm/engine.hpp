// SPDX-License-Identifier: Apache-2.0
// The engine of a node: answers its page faults, and the other nodes' requests for its pages.
//
// One service thread per node sleeps in one poll on three descriptors (page faults, fabric, local
// requests) and a timer. Whatever it learns becomes an event of dsm/protocol; the effects that the
// protocol returns are carried out in their order, adjacent pages together. A thread that waits for
// a message anyway may do the service thread's work in its place (Helping): the state is guarded by
// one lock, which no thread holds while it touches managed memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/base.hpp"
#include "dsm/address_space.hpp"

namespace amasia::fabric {
class Fabric;
}

namespace amasia::dsm {

class BlockBounds;

enum class AccessKind : std::uint8_t { kRead, kWrite };

// What a thread waited for. Written by the engine, read by the thread itself (it takes differences
// over a loop). Relaxed everywhere: the kernel's wake-up of the thread orders them after the fault.
struct ThreadSlot {
  std::atomic<std::int64_t> stall_ns{0};  // from the fault's arrival at the engine to the wake-up
  std::atomic<std::uint64_t> faults_read{0};
  std::atomic<std::uint64_t> faults_write{0};
  std::atomic<std::uint64_t> faults_upgrade{0};  // a write to a page held read-only
  std::atomic<std::int32_t> thread_id{0};
  std::atomic<std::uint32_t> pauses{0};  // calls of Engine::note_pause(); written by the thread
};

// Totals of a node since start. Bytes are page contents only.
struct Statistics {
  std::uint64_t faults_read = 0;
  std::uint64_t faults_write = 0;
  std::uint64_t faults_upgrade = 0;
  std::uint64_t pages_in = 0;
  std::uint64_t pages_out = 0;
  Bytes bytes_in = 0;
  Bytes bytes_out = 0;
  std::uint64_t messages_in = 0;
  std::uint64_t messages_out = 0;
  std::uint64_t pages_invalidated = 0;
  std::uint64_t pages_prefetched = 0;
  std::uint64_t pages_offered = 0;  // by this node, their home
  std::uint64_t requests_held = 0;  // requests that the holding policy put off at least once
  std::uint64_t pages_evicted = 0;  // copies whose memory was given back to stay within the limit
  Bytes memory_max = 0;  // the most managed memory seen at once; counted with a limit only
  std::uint64_t stale_events = 0;  // faults the kernel reported though the page was there
  std::uint64_t sleeps = 0;        // times the service thread slept
  Nanos stall_ns = 0;
};

class Engine {
 public:
  class Service;  // the implementation, in service.hpp

  // The composition root hears of what ends the job. Called on the service thread (or a helping
  // one); must not block on the engine.
  class Observer {
   public:
    virtual ~Observer() = default;
    // Managed memory can no longer be served: `what` is one sentence.
    virtual void engine_failed(std::string_view what) = 0;
  };

  struct Settings {
    Nanos spin_limit = 20 * base::kMicrosecond;  // before the service thread sleeps; 0: never spin
    // Whether the service thread has a core that no thread of the program needs. If not, it spins
    // only while all registered threads of this node wait for pages.
    bool spare_core = false;
    // Whether threads of other nodes run on its cores, too. The service thread, which goes before
    // all others, does not spin then, and what threads do not run between their pages counts as
    // collecting them (protocol/turns.hpp).
    bool shares_cores = false;
    std::uint32_t read_ahead_pages = 256;       // largest window of a stream; 0: no read-ahead
    Nanos watchdog_period = 5 * base::kSecond;  // a fault older than this is reported; 0: never
    // How much managed memory the node may use: copies of other nodes' pages are evicted to stay
    // below. 0: no limit. Pages whose home is here cannot go, whatever it says.
    Bytes memory = 0;
    // Where large blocks of this node's heap begin and end, beyond which walks are not followed;
    // outlives the engine. nullptr: nobody tells. All nodes' engines have one, or none has.
    const BlockBounds* blocks = nullptr;
    int service_core = -1;         // pin the service thread there; -1: do not
    Observer* observer = nullptr;  // outlives the engine; nullptr: failures abort
  };

  // Registers managed memory with the kernel, and itself as the fabric's handler of 0x100 ...
  // 0x1ff. `space` and `fabric` outlive the engine; globals must have been added. From now on a
  // touch of another node's memory waits for start(). Fails with a sentence when userfaultfd is
  // refused.
  static Result<std::unique_ptr<Engine>> make(AddressSpace& space, fabric::Fabric& fabric,
                                              const Settings& settings);
  // Starts the service thread, which polls the fabric: every other handler must be set by then.
  Status start();
  // shutdown(), then releases everything.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Stops the service thread. All nodes must have stopped touching managed memory of other nodes
  // and must have met (a barrier of the layer above) before the first one calls this; afterwards a
  // fault on a page that is not here blocks for ever. Idempotent.
  void shutdown();

  // The calling thread's slot; the same at every call. Never null: beyond 4096 threads all share
  // one. Also tells the engine how many threads compute. Any thread.
  ThreadSlot* register_thread();
  // Before the thread ends, so that its slot can be used by another one.
  void unregister_thread(ThreadSlot* slot);

  // The calling thread, whose slot it is, is about to wait for other nodes: pages that were kept
  // for it can go. Two atomic operations if none is; does not block. Any thread, any stack.
  void note_pause(ThreadSlot* slot);

  // The node's threads come to a place of the program, such as a region or a loop, named by any
  // number; 0: to none. What they waited for at the same place before is asked for, without
  // waiting. A store, and two system calls where something is to be asked for. Any thread that is
  // not in os::in_runtime_section().
  void enter_place(std::uint64_t place);

  // Asks for the pages of a range that are not here yet, without waiting. A hint: what is not
  // managed is skipped, what is beyond 16 MiB is dropped. Any thread.
  void prefetch(const void* begin, Bytes length, AccessKind access);

  // Pages whose home is this node and that another one owns are asked back, 128 at a time, until
  // all are here or gather(false) says that others have use for them. For when only this node will
  // compute for a while: each page would be waited for apart. Does not wait. Any thread.
  void gather(bool on);

  struct Offer {
    std::uint64_t sent = 0;  // a bit for each node to which a copy was
    bool asked = false;      // another node has asked for one since the last call
  };
  // At the home of the page that `address` is in: gives each of `nodes` (a bit for each; not this
  // one) a read copy before it asks, unless it has one, or the page is not here or under way. None
  // of another node's page, of one that other nodes have written since the last call, who would
  // rather own it, and with `if_asked` of one that none has asked for. Does not wait. Any thread;
  // not on a stack in that page.
  Offer offer(const void* address, std::uint64_t nodes, bool if_asked = false);
  // On a node that was offered pages: drops those of the 32 from that of `first` on (bit i of
  // `mask`: the i-th) that the program has not asked for since. Which of them; their home must be
  // told by take_back() before it offers one of these to this node again. Any thread.
  std::uint32_t give_back(const void* first, std::uint32_t mask);
  // At their home: `from` gave these back, so that nobody has to be asked before they are written.
  void take_back(NodeId from, const void* first, std::uint32_t mask);

  // From now on, anew, it is noted which pages other nodes take from this one. What threads have
  // waited for such pages since the engine started, ns: data that are needed by several nodes in
  // turn, not data that come to stay. Any thread, any stack; some ns.
  void watch_losses();
  Nanos stall_for_lost() const;

  // Handles messages that have come, without blocking. Any thread.
  void poll();

  // Any thread; the values are of slightly different moments.
  Statistics statistics() const;

  // While an object of this class lives, its thread handles messages in place of the service
  // thread, which leaves them to it (faults and timers stay with the service thread). For threads
  // that wait for a message: a barrier then costs no switch of threads. Construct, poll and destroy
  // it in one os::in_runtime_section(): outside of one each poll has to enter it (two system
  // calls), and the wait would touch the program's own stack between polls.
  class Helping {
   public:
    explicit Helping(Engine& engine);
    ~Helping();
    Helping(const Helping&) = delete;
    Helping& operator=(const Helping&) = delete;
    // Handles what has come, without blocking. Returns how many messages; 0 also when another
    // thread is at it.
    int poll();

   private:
    Service& service_;
  };

 private:
  explicit Engine(std::unique_ptr<Service> service);
  std::unique_ptr<Service> service_;
};

}  // namespace amasia::dsm
