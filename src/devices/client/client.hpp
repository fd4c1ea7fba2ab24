// SPDX-License-Identifier: Apache-2.0
// A process's share of the system (paper, section 2.2): tasks, their order, kernels and data, the
// connection to the daemon, and the threads that run what is granted. The C interface
// (c_api.cpp) is a thin layer over it.
//
// Threads
//   the service thread  sleeps until the daemon says something, or the connection is lost; carries
//                       out grants whose kernels are loaded, hands others to workers
//   workers             what may block: building kernels, moving bytes out of the way
//   the user's          submit; those that wait for a task look at the ring themselves for a while
//                       (`spin`), and run what is granted: that saves two changes of thread
//   back ends'          tell of ends (Task::finished)
//
// Locks, in this order: receive_ (who reads the ring), lock_ (all else). Neither is held while a
// back end is called, but for Backend::allocate of a task that has moving buffers to itself.
// Back ends' threads wait for neither: a task that has ended is put into arrived_, and taken out by
// who tells of it or by who has lock_ at that moment, when letting go of it (Locked).
// Invariants: a task ends once; a task that the daemon has granted is answered by kFinished over
// the same connection, or not at all when that is lost; a buffer with a task or an eviction that
// moves its bytes is used by nobody else meanwhile.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "devices/backends/registry.hpp"
#include "devices/client/graph.hpp"
#include "devices/client/lease_habit.hpp"
#include "devices/client/link.hpp"
#include "devices/client/programs.hpp"
#include "devices/client/run.hpp"
#include "devices/client/task.hpp"
#include "os/os.hpp"

namespace amasia::devices {

struct ClientSettings {
  unsigned workers = 1;
  bool pin_workers = false;
  LinkSettings link;
  Nanos spin = 50 * base::kMicrosecond;
};

class Client {
 public:
  // Connects and starts the threads. The error's code is MCL_ERR_*.
  static Result<std::unique_ptr<Client>> start(const ClientSettings& settings,
                                               Backends backends);
  // Waits for all tasks and gives everything back.
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Each device once, by its first way. What several back ends show has several places.
  std::size_t device_count() const { return shown_.size(); }
  const DeviceDescription& device(std::size_t number) const {
    return *places_[shown_[number]].description;
  }
  // The number of the device that the task runs on.
  int number_of(const Task& task) const;
  Programs& programs() { return programs_; }

  // Fills in what submit() needs: the resident buffer of an argument. Before submit().
  Fault bind(Argument& argument);
  // Submits a task that is set up; never waits for a device. On a fault nothing was submitted.
  Fault submit(const std::shared_ptr<Task>& task,
               const std::vector<std::shared_ptr<Task>>& dependencies);
  // Until the task has ended, or CLOCK_MONOTONIC passes `deadline`: false.
  bool wait(Task& task, Nanos deadline);
  void wait_all();
  std::size_t unfinished() const { return unfinished_.load(std::memory_order_acquire); }
  TaskState state_of(const Task& task);
  // From now on the handle is not written any more.
  void forget_handle(Task& task);

  Fault register_buffer(void* address, Bytes size);
  Fault unregister_buffer(void* address);  // saves what only a device has
  Fault invalidate_buffer(void* address);
  std::size_t running_on(std::size_t device_number);

  // Between processes (shared.cpp).
  Fault open_shared(const std::string& name, Bytes size, bool create, bool replace,
                    void** address);
  bool close_shared(void* address);
  Fault publish(Task& task);  // gives task.sharing
  // false: not ended within the time, or (deadline 0) now; *error: how it ended.
  Fault watch(std::int32_t process, std::uint32_t number, Nanos deadline, bool* ended, int* error);

 private:
  friend class Task;
  struct Job {
    std::shared_ptr<Task> task;
    std::shared_ptr<ResidentBuffer> evict;
    OwnDevice device = 0;
  };
  // Holds lock_. Sees to it that tasks that arrived meanwhile are taken in.
  class AMASIA_THREAD_ATTRIBUTE(scoped_lockable) Locked {
   public:
    explicit Locked(Client& client) AMASIA_THREAD_ATTRIBUTE(acquire_capability(client.lock_))
        : client_(client) {
      client_.lock_.lock();
    }
    ~Locked() AMASIA_THREAD_ATTRIBUTE(release_capability()) {
      client_.lock_.unlock();
      client_.take_arrivals();
    }
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;

   private:
    Client& client_;
  };
  struct SharedMemory {
    std::string name;
    Bytes size = 0;
  };
  struct Reply {
    bool lost = false;
    Link::Received packet;
  };

  explicit Client(const ClientSettings& settings) : settings_(settings), programs_(places_) {}
  Status begin(Backends backends);
  void adopt(std::unique_ptr<Link> link) AMASIA_REQUIRES(lock_);

  // Submitting and ending (client.cpp).
  Fault check(Task& task);
  // It is one of the client's tasks from now on. *begins: the caller runs it, without the lock.
  Fault enter(const std::shared_ptr<Task>& task,
              const std::vector<std::shared_ptr<Task>>& dependencies, bool* begins)
      AMASIA_REQUIRES(lock_);
  DeviceSet classes_of(std::uint64_t flags) const;
  void pump() AMASIA_REQUIRES(lock_);
  // One, or those of a run.
  void put(std::span<const std::shared_ptr<Task>> tasks, const std::shared_ptr<Run>& run)
      AMASIA_REQUIRES(lock_);
  void tell_name(std::uint64_t identity, const std::string& name) AMASIA_REQUIRES(lock_);
  void post_arguments(const Task& task, std::size_t left, Urgency urgency)
      AMASIA_REQUIRES(lock_);
  bool may_put() const AMASIA_REQUIRES(lock_);
  // To the daemon, with the next flush().
  void post(const Record& record, Urgency urgency = Urgency::kOwn) AMASIA_REQUIRES(lock_);
  void flush() AMASIA_REQUIRES(lock_);
  // Of the end of a task on that device: urgent where it has soon nothing to do, to ourselves if
  // the daemon has tasks of ours to grant.
  Urgency urgency_of_end(OwnDevice device) AMASIA_REQUIRES(lock_);
  void end(const std::shared_ptr<Task>& task, Fault failure) AMASIA_REQUIRES(lock_);
  void end_one(Task& task, Fault failure) AMASIA_REQUIRES(lock_);
  void set_status(Task& task, TaskState state, std::uint64_t status) AMASIA_REQUIRES(lock_);

  // Runs of brief tasks (runs.cpp). offer() is how a task that is ready and has room goes on.
  void offer(const std::shared_ptr<Task>& task) AMASIA_REQUIRES(lock_);
  std::uint32_t run_length_of(const Task& task) AMASIA_REQUIRES(lock_);
  void put_some_gathered() AMASIA_REQUIRES(lock_);
  void put_gathered(std::deque<std::shared_ptr<Run>>::iterator at) AMASIA_REQUIRES(lock_);
  void scatter() AMASIA_REQUIRES(lock_);
  std::vector<std::shared_ptr<Task>> answered(std::uint64_t number) AMASIA_REQUIRES(lock_);
  void forget_runs() AMASIA_REQUIRES(lock_);
  // Whether a run lies with a daemon that may be asleep, and a device has room for it.
  bool must_be_heard() AMASIA_REQUIRES(lock_);
  void note_heard() AMASIA_REQUIRES(lock_);
  // By the first place of each, as they are shown: those of a set of places; those with fewer tasks
  // of ours than it pays for them to have.
  DeviceSet devices_of(DeviceSet places) const;
  DeviceSet with_room() AMASIA_REQUIRES(lock_);
  void tell_end(Task& task, const Outcome& outcome, std::uint8_t failure) AMASIA_REQUIRES(lock_);

  // Brief tasks on a leased device (leases.cpp). begin_leased() is how one goes on that may begin;
  // the caller then lets go of the lock, and runs it. Of a CPU both ways are timed: weigh() is told
  // at the end of one that might have begun so.
  bool may_begin(Task& task) AMASIA_REQUIRES(lock_);
  void weigh(const Task& task) AMASIA_REQUIRES(lock_);
  void begin_leased(Task& task) AMASIA_REQUIRES(lock_);
  void run_leased(const std::shared_ptr<Task>& task);
  // Returns at once where this thread has submitted something else meanwhile.
  void wait_for_begun(Task& task, Nanos deadline);
  static void forget_begun();
  void tell_ran(const Task& task, const Outcome& outcome, std::uint8_t failure)
      AMASIA_REQUIRES(lock_);

  // Talking to the daemon (service.cpp).
  static void serve(void* client);
  void serve_loop();
  // Reads records; whether there were any. Others than the service thread do not wait for the ring.
  bool drain(bool own_thread) AMASIA_THREAD_ATTRIBUTE(no_thread_safety_analysis);
  void receive(const Record& record) AMASIA_REQUIRES(lock_);
  void read_packets();
  void lose_link(const std::string& why);
  void reconnect();
  void attend();
  void leave();

  // Running: which thread (jobs.cpp), and what (execute.cpp).
  static void work(void* client);
  void work_loop();
  // `stays`: the caller runs quick jobs itself, as soon as it has let go of the lock.
  void enqueue(Job job, bool stays) AMASIA_REQUIRES(lock_);
  // Runs some that can be run without blocking; false: there is none. If one is the task `mine`,
  // for which the caller waits until `deadline`, it stays with it.
  bool run_quick_jobs(const Task* mine, Nanos deadline);
  void call_worker();  // for a job that is queued
  // What a worker may run; false: nothing. `*hand`: it is one that is for many.
  bool take_job(Job* job, bool* hand) AMASIA_REQUIRES(lock_);
  void submit_all(std::span<const Job> jobs, const Task* mine, Nanos deadline);
  bool is_for_many(const Job& job) AMASIA_REQUIRES(lock_);
  bool is_quick(const Job& job) AMASIA_REQUIRES(lock_);
  void run(Job& job);
  void execute(const std::shared_ptr<Task>& task, CallerWaits caller_waits = CallerWaits::kNo);
  // What to submit; false: nothing, as the task has failed, waits, or has nothing to do.
  bool begin(const std::shared_ptr<Task>& task, Work* work);
  // False without a fault: the task waits for a buffer, and will be a job again.
  bool prepare(const std::shared_ptr<Task>& task, Work* work, Fault* why);
  bool claim(const std::shared_ptr<Task>& task) AMASIA_REQUIRES(lock_);
  // The device's copy of a resident argument; nullptr: there is none, or bytes have to come first.
  std::shared_ptr<DeviceBuffer> valid_copy(const Task& task, const Argument& argument)
      AMASIA_REQUIRES(lock_);
  // All arguments, where no memory is to be had and no bytes to move for any; else none: false.
  bool place_where_they_are(Task& task) AMASIA_REQUIRES(lock_);
  static void place_value(Task& task, const Argument& argument);
  Fault place_arguments(Task& task);
  Fault place_resident(Task& task, Argument& argument);
  // The argument's bytes come to the copy by `moves`, and are used there.
  void use_copy(Task& task, Argument& argument, std::shared_ptr<DeviceBuffer> copy,
                const std::vector<Move>& moves) AMASIA_REQUIRES(lock_);
  Fault place_temporary(Task& task, Argument& argument);
  Fault move_only(Task& task, Argument& argument);
  void evict(const std::shared_ptr<ResidentBuffer>& buffer, OwnDevice device);
  // Copies to the host, and waits for it.
  Fault copy_now(OwnDevice device, const std::vector<Copy>& to_host);
  Fault save(ResidentBuffer& buffer, const std::vector<Move>& moves);
  Fault claim_alone(ResidentBuffer& buffer) AMASIA_REQUIRES(lock_);
  // From any thread; never waits for a lock. The task's own reference keeps it until then.
  // `others_follow`: the thread tells of another one's end right after, which sees to this one's.
  void finish_run(Task& task, Outcome&& outcome, bool others_follow = false);
  void take_arrivals() AMASIA_THREAD_ATTRIBUTE(no_thread_safety_analysis);
  void land(const std::shared_ptr<Task>& task) AMASIA_REQUIRES(lock_);
  void release(Task& task, bool failed) AMASIA_REQUIRES(lock_);
  void unpark(ResidentBuffer& buffer) AMASIA_REQUIRES(lock_);
  void drop_copy(ResidentBuffer& buffer, OwnDevice device, bool tell) AMASIA_REQUIRES(lock_);
  // Whether the same device has a copy, or will have one, by another place.
  bool has_other_copy(const ResidentBuffer& buffer, OwnDevice device) AMASIA_REQUIRES(lock_);
  void bury(std::shared_ptr<DeviceBuffer> buffer) AMASIA_REQUIRES(lock_);
  void empty_graveyard();

  // Sends a packet as a request and waits for its answer. The service thread reads it.
  template <typename T>
  Fault ask(T packet, std::span<const int> descriptors, Nanos deadline, bool* answered,
            Link::Received* reply);
  std::shared_ptr<Link> connected_link();

  const ClientSettings settings_;
  Backends backends_;
  std::vector<DevicePlace> places_;
  std::vector<DeviceDescription> descriptions_;
  // For each place those that are the same device, itself included; the first of each device. To
  // the daemon they are one device, which has a copy of a buffer as long as one of them has.
  std::vector<DeviceSet> same_;
  std::vector<OwnDevice> shown_;
  Programs programs_;
  os::Wakeup interrupt_;  // wakes the service thread
  os::Thread service_;
  std::vector<os::Thread> workers_;
  std::atomic<bool> stopping_{false};

  os::Mutex receive_;  // reading the ring of link_
  std::atomic<std::uint32_t> attending_{0};  // threads that look at the ring, besides the service

  std::atomic<Task*> arrived_{nullptr};  // a stack, by Task::arrived_before
  std::atomic<std::uint32_t> telling_{0};  // threads within finish_run()

  os::Mutex lock_;
  std::shared_ptr<Link> link_ AMASIA_GUARDED_BY(lock_);
  std::uint64_t link_number_ AMASIA_GUARDED_BY(lock_) = 0;
  std::atomic<bool> wants_times_{false};  // of each task: the daemon traces; relaxed
  bool draining_ AMASIA_GUARDED_BY(lock_) = false;
  bool link_wanted_ AMASIA_GUARDED_BY(lock_) = false;
  std::string link_error_ AMASIA_GUARDED_BY(lock_);
  std::vector<Record> unsent_ AMASIA_GUARDED_BY(lock_);
  Urgency unsent_urgency_ AMASIA_GUARDED_BY(lock_) = Urgency::kNone;
  TaskGraph graph_ AMASIA_GUARDED_BY(lock_);
  os::BlockMap<std::uint64_t, std::shared_ptr<Task>> tasks_ AMASIA_GUARDED_BY(lock_);
  std::uint64_t last_number_ AMASIA_GUARDED_BY(lock_) = 0;
  // Ready, but not put: by priority, then in order.
  using ReadyKey = std::pair<std::int64_t, std::uint64_t>;
  std::map<ReadyKey, std::shared_ptr<Task>, std::less<>,
           os::BlockAllocator<std::pair<const ReadyKey, std::shared_ptr<Task>>>>
      ready_ AMASIA_GUARDED_BY(lock_);
  std::deque<std::shared_ptr<Run>> gathered_ AMASIA_GUARDED_BY(lock_);  // to be put
  std::size_t gathered_tasks_ AMASIA_GUARDED_BY(lock_) = 0;             // in all of them
  std::vector<QueuedRun> runs_queued_ AMASIA_GUARDED_BY(lock_);  // put over link_, not granted
  // Since the last flush() a run was put or granted, or a device got room. Looked at only then:
  // with each brief task it would be seen in how many there are a second.
  bool looks_for_room_ AMASIA_GUARDED_BY(lock_) = false;
  std::unordered_map<std::uint64_t, BriefTimes> brief_times_ AMASIA_GUARDED_BY(lock_);
  std::unordered_map<std::uint64_t, LeaseHabit> lease_habits_ AMASIA_GUARDED_BY(lock_);
  std::size_t outstanding_ AMASIA_GUARDED_BY(lock_) = 0;  // put or granted over link_
  // Of those, granted: on all devices, on each, and half of what it was there with the last grant.
  std::size_t granted_ AMASIA_GUARDED_BY(lock_) = 0;
  struct InFlight {
    std::uint32_t now = 0, half = 0;
    bool runs_long = false;  // in the thread that submits, and the last one took long
  };
  std::vector<InFlight> in_flight_ AMASIA_GUARDED_BY(lock_);
  // Workers that submit jobs which are for many to that device, and that were called for such since
  // one of them found nothing to do.
  struct Hands {
    std::uint32_t busy = 0, called = 0;
  };
  std::vector<Hands> hands_ AMASIA_GUARDED_BY(lock_);
  DeviceSet leased_ AMASIA_GUARDED_BY(lock_) = 0;  // by the first place of each
  std::uint32_t unheard_ran_ AMASIA_GUARDED_BY(lock_) = 0;
  std::set<std::uint64_t> named_ AMASIA_GUARDED_BY(lock_);  // kernels whose names this daemon has
  std::map<std::byte*, std::shared_ptr<ResidentBuffer>> buffers_ AMASIA_GUARDED_BY(lock_);
  std::unordered_map<std::uint64_t, std::shared_ptr<ResidentBuffer>> buffers_by_number_
      AMASIA_GUARDED_BY(lock_);
  std::vector<std::shared_ptr<DeviceBuffer>> graveyard_ AMASIA_GUARDED_BY(lock_);
  std::atomic<bool> has_dead_{false};  // something is in graveyard_, or was a moment ago
  std::deque<Job, os::BlockAllocator<Job>> jobs_ AMASIA_GUARDED_BY(lock_);
  std::atomic<std::uint32_t> job_posts_{0};  // workers sleep on it
  std::atomic<std::uint32_t> idle_workers_{0};
  std::atomic<std::size_t> unfinished_{0};
  std::atomic<std::uint32_t> all_ended_{0};  // counts how often nothing was unfinished

  std::map<void*, SharedMemory> shared_ AMASIA_GUARDED_BY(lock_);
  std::uint32_t last_request_ AMASIA_GUARDED_BY(lock_) = 0;
  std::map<std::uint32_t, Reply> replies_ AMASIA_GUARDED_BY(lock_);
  std::map<std::uint32_t, bool> asked_ AMASIA_GUARDED_BY(lock_);
  std::atomic<std::uint32_t> reply_posts_{0};
  std::int64_t last_sharing_ AMASIA_GUARDED_BY(lock_) = -1;
};

// What a client may have in the daemon's hands at a time; the rest waits here.
inline constexpr std::size_t kWindow = 1024;

}  // namespace amasia::devices
