// SPDX-License-Identifier: Apache-2.0
// What omp::Node needs of the parts around it (managed memory, standard streams, the job), as one
// interface that the composition root implements. The defaults are those of the emulation, where
// all nodes share one memory.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/base.hpp"
#include "delegate/delegate.hpp"
#include "omp/launch/stack_pool.hpp"
#include "omp/region/argument_pages.hpp"
#include "omp/thread_counters.hpp"
#include "omp/thread_locals/thread_values.hpp"

namespace amasia::omp {

// The calling thread's variables of the module that has one at `address`; empty if none has.
std::span<std::byte> thread_local_block(const void* address);

class Services {
 public:
  virtual ~Services() = default;

  // A managed stack for a thread of a global team; kept for the node's later regions.
  virtual Result<ManagedStack> acquire_stack() = 0;

  // Zeroed memory that all nodes can reach, aligned to 64 bytes, and its end. Any thread; on
  // exhaustion the job ends with a sentence.
  virtual void* allocate_shared(Bytes size);
  virtual void free_shared(void* block);

  // Whether other nodes can reach what lies at `address`. Any thread.
  virtual bool is_managed(const void* address) const {
    (void)address;
    return true;
  }
  // Whether it is an address of memory that only this process has, but of no library: what the next
  // runtime keeps, such as what a task has captured. Any thread; some ns for what is managed or no
  // address, a system call for others.
  virtual bool is_private(const void* address) const {
    (void)address;
    return false;
  }
  // Whether there is memory that the program has mapped by itself. Any thread; some ns.
  virtual bool has_own_mappings() const { return false; }
  // Whether a block of the program's heap may lie there. The emulation, which does not know, takes
  // every address of a program for one. Any thread, some ns.
  virtual bool is_heap(std::uintptr_t address) const {
    return address >= 64 * base::kKiB && address < std::uintptr_t{1} << 47;
  }
  // Up to where what lies above `address`, which is on the calling thread's stack, may be read: at
  // least to the end of the page. Any thread.
  virtual const std::byte* readable_end(const void* address) const;
  // Whether it may point into the thread-local memory of the calling thread.
  virtual bool is_thread_local(const void* address) const;
  // Whether the program may have thread-local variables at all. Any thread, some 100 ns.
  virtual bool has_thread_locals() const { return true; }
  // What its threads keep in them. The kind may become kBound, where a library is opened late; the
  // blocks stay. Any thread, some 100 ns.
  virtual ThreadLocals::Kind kind_of_thread_locals() const { return ThreadLocals::Kind::kBound; }
  virtual std::span<const ThreadBlock> thread_blocks() const { return {}; }
  // Where they are kWatched: whether the calling thread has changed any. Any thread, some 10 ns.
  virtual bool has_changed_thread_locals() const { return true; }
  // Whether an address of one of them may be in memory or a register, so that they cannot follow a
  // thread that comes home (homecoming.hpp). Any thread; the first time some 0.1 ms a MiB of code.
  virtual bool may_take_thread_local_addresses() { return true; }
  // Whether this code is loaded on every node: false for libraries that the program opened late.
  virtual bool code_is_everywhere(const void* code) const {
    (void)code;
    return true;
  }

  // Whether a thread of a region may go on as another one, which may be another node's: nothing of
  // the next runtime is its own, nor of the program but what kind_of_thread_locals() tells, and is
  // not kBound. The same on all nodes.
  virtual bool can_move_threads() const { return false; }
  // Whether such a thread may keep addresses of its own there (own_addresses.hpp). Any context.
  virtual bool may_keep_own_addresses() const { return false; }
  // Whether it is an instruction of the program, not of a library that keeps a state of its own.
  // Any thread, any context.
  virtual bool is_program_code(const void* instruction) const {
    (void)instruction;
    return false;
  }
  // From now on it is noted which pages other nodes take from this one; what threads have waited
  // for such pages so far, ns. Any thread; some ns.
  virtual void watch_losses() {}
  virtual Nanos stall_for_lost() const { return 0; }
  // What carried system calls of this node's threads have taken so far. Any thread; some ns.
  virtual delegate::CallTimes call_times() const { return {}; }
  // Whether the calling thread waits for one, for others to look at as long as it lives; nullptr:
  // none does.
  virtual const std::atomic<bool>* own_carrying() const { return nullptr; }
  // Where the program's threads may run on this node, whatever the next runtime binds them to.
  virtual std::span<const int> cores() const { return {}; }
  // Starts a thread that executes the program, on any of these. Native stack.
  virtual Status start_thread(pthread_t& thread, void* (*function)(void*), void* argument);

  // On another node than the origin, before its part of a region begins, on its main thread.
  virtual void enter_region() {}

  // At the end of a region. On another node than the origin: on its main thread, before the origin
  // hears that the node has joined; what its threads printed must be on its way to the origin.
  // True: something has been sent since the last call, so the origin must hear of the join by a
  // message, which follows what was sent. On the origin: once all have joined; what has arrived
  // must be in the program's streams.
  virtual bool flush_output() { return false; }

  // A leader, on its native stack, before it tells others that its node has come to a barrier: what
  // its threads printed must be in the program's streams before anything that is printed after the
  // barrier. Some ns if there is nothing; else may block for the way to the origin and back.
  virtual void publish_output() {}

  // Of the calling thread. Must not touch managed memory.
  virtual ThreadCounters thread_counters() { return {}; }

  // The calling thread is about to wait for other nodes, so it is done with pages that were kept
  // for it. Cheap; does not block. Must not touch managed memory.
  virtual void note_pause() {}

  // The node's threads come to a place of the program, named by any number; 0: to none. Pages that
  // they waited for there before are asked for. Any thread; does not block.
  virtual void enter_place(std::uint64_t place) { (void)place; }

  // Whether only this node computes, for all that is known: what others have of the program's data
  // may then come back in one go (true), or no longer (false). Any thread; does not block.
  virtual void gather_data(bool on) { (void)on; }

  // The node's pages that other nodes read first in a region that begins (argument_pages.hpp).
  // offer: gives each of `nodes` (a bit for each) a copy of the page at `page`, unless it has one;
  // with `if_asked` only where a node has asked for it since the last call. give_back, there: drops
  // those of the window that were not used for more; which. take_back: what `from` has given back.
  // Any thread; none blocks.
  virtual PageOffer offer(std::uint64_t page, std::uint64_t nodes, bool if_asked) {
    (void)page, (void)nodes, (void)if_asked;
    return {};
  }
  virtual std::uint32_t give_back(const PageWindow& window) {
    (void)window;
    return 0;
  }
  virtual void take_back(NodeId from, const PageWindow& window) { (void)from, (void)window; }
  // Handles the messages that have come. Native stack; does not block.
  virtual void handle_messages() {}

  // A thread that waits for a message helps to fetch it: begin_help(), help() until it has come,
  // end_help(). On a native stack; help() does not block and returns how much it handled.
  virtual void begin_help() {}
  virtual int help() { return 0; }
  virtual void end_help() {}

  // What the launcher tells of this node if it dies or hangs. Any thread; a few stores. A region's
  // site; what a thread has waited for longer than a moment ({}: it has come); and that something
  // has been done.
  virtual void enter_region(std::string_view site) { (void)site; }
  virtual void leave_region() {}
  virtual void show_wait(std::string_view what) { (void)what; }
  virtual void show_progress() {}

  // On another node than the origin, whose program has ended while threads of this node were in a
  // region: this process goes, without a word.
  [[noreturn]] virtual void leave_job();
  // The same while threads of this node may compute on, told by the handler, which may not leave
  // itself.
  virtual void leave_job_soon() {}
  // Ends the job on all nodes with a non-zero code. `why`: one sentence.
  [[noreturn]] virtual void abort_job(std::string_view why) = 0;
};

}  // namespace amasia::omp
