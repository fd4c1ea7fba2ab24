// SPDX-License-Identifier: Apache-2.0
// Brief tasks through a client and a daemon: they go as runs, and each is a task of its own still.
#include <gtest/gtest.h>

#include <vector>

#include "devices/client/test_backend.hpp"
#include "devices/client/test_server.hpp"

namespace amasia::devices {
namespace {

constexpr int kTasks = 3000, kEvery = 50;

// One device, whose tasks end at once; every so many fail, by their argument.
class Brief final : public TestBackend {
 public:
  Brief() : TestBackend(1, 4) {}
  void submit(const Work& work, Completion& completion) override {
    Outcome outcome;
    outcome.run_began = os::monotonic_now();
    outcome.run_ended = outcome.run_began + 300;
    if (*static_cast<const int*>(work.arguments[0].value) % kEvery == 7) {
      outcome.failure = Failure::kDevice;
      outcome.message = "as it was told";
    }
    completion.finished(std::move(outcome));
  }
};

// Submits the tasks behind a first one, and checks how each of them ends.
void run_tasks(Client& client, std::uint32_t* failures) {
  std::vector<std::shared_ptr<Task>> tasks, after;
  for (int i = 0; i < kTasks; ++i) {
    auto task = std::make_shared<Task>(&client);
    task->kernel = "brief";
    task->arguments.resize(1);
    Argument& argument = task->arguments[0];
    argument.set = true;
    argument.flags = MCL_ARG_SCALAR | MCL_ARG_INPUT;
    argument.size = sizeof i;
    argument.value.resize(sizeof i);
    std::memcpy(argument.value.data(), &i, sizeof i);
    // Some have to wait for another one.
    const bool waits = i % 10 == 9;
    const Fault wrong = client.submit(task, waits ? std::vector{tasks[tasks.size() - 2]}
                                                  : std::vector<std::shared_ptr<Task>>());
    ASSERT_FALSE(wrong) << wrong.reason;
    tasks.push_back(std::move(task));
  }
  client.wait_all();
  for (int i = 0; i < kTasks; ++i) {
    const Task& task = *tasks[static_cast<std::size_t>(i)];
    ASSERT_EQ(task.ended.load(), 1U);
    const bool depends_on_failed = i % 10 == 9 && (i - 2) % kEvery == 7;
    ASSERT_EQ(task.failure.code, i % kEvery == 7      ? MCL_ERR_EXEC
                                 : depends_on_failed ? MCL_ERR_DEPEND
                                                     : 0)
        << "task " << i << ": " << task.failure.reason;
    *failures += i % kEvery == 7 ? 1 : 0;
    ASSERT_EQ(task.run, nullptr);
  }
}

TEST(ClientRuns, EachTaskEndsAsItselfAndTheDaemonHearsOfFew) {
  for (const char* const settings : {"", "quota-tasks=3", "ahead-us=0"}) {
    ServedClient served;
    served.begin(std::make_unique<Brief>(), settings);
    if (testing::Test::HasFatalFailure()) return;
    ProgramCode code;
    code.kind = ProgramKind::kHostFunction;
    ASSERT_FALSE(served.client().programs().add(code, "brief"));
    std::uint32_t failures = 0;
    for (int round = 0; round < 3; ++round) run_tasks(served.client(), &failures);
    const HeardTasks& heard = served.end();
    // Those that depend on one that failed never came to it.
    EXPECT_EQ(heard.failed, failures);
    EXPECT_EQ(heard.tasks, 3U * (kTasks - kTasks / kEvery));
    if (*settings == '\0') {
      EXPECT_GT(heard.longest, 1U) << "no run was made";
      EXPECT_LE(heard.longest, 64U);
    } else {
      EXPECT_EQ(heard.longest, 1U) << settings << ": each task counts";
    }
  }
}

}  // namespace
}  // namespace amasia::devices
