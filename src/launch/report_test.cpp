// SPDX-License-Identifier: Apache-2.0
#include "launch/report.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "support/temporary_folder.hpp"

namespace amasia::launch {
namespace {

namespace fs = std::filesystem;

class StatisticsDestination : public testing::Test {
 protected:
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }
  const tests::TemporaryFolder kept_{"report"};
  const fs::path folder_ = kept_.path();
};

TEST_F(StatisticsDestination, NothingIsLeftWhereNothingWas) {
  EXPECT_TRUE(check_statistics_destination("").ok());
  EXPECT_TRUE(check_statistics_destination("-").ok());
  EXPECT_TRUE(check_statistics_destination((folder_ / "new.json").string()).ok());
  EXPECT_EQ(files(), 0u);
}

TEST_F(StatisticsDestination, AFileThatIsThereKeepsItsText) {
  const fs::path file = folder_ / "old.json";
  std::ofstream(file) << "of the last run";
  EXPECT_TRUE(check_statistics_destination(file.string()).ok());
  std::string text;
  std::getline(std::ifstream(file), text);
  EXPECT_EQ(text, "of the last run");
  EXPECT_EQ(files(), 1u);
}

TEST_F(StatisticsDestination, ADeviceIsWrittenToAndStays) {
  const fs::path device = folder_ / "nothing";
  fs::create_symlink("/dev/null", device);
  EXPECT_TRUE(check_statistics_destination(device.string()).ok());
  EXPECT_TRUE(write_statistics(device.string(), {}).ok());
  EXPECT_TRUE(fs::is_symlink(device));
  EXPECT_TRUE(fs::is_character_file(device));
}

TEST_F(StatisticsDestination, APipeIsNotWaitedForBeforeTheProgramRuns) {
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_TRUE(check_statistics_destination(pipe.string()).ok());  // though nobody reads it
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  EXPECT_TRUE(write_statistics(pipe.string(), {}).ok());
  char text[16];
  EXPECT_GT(::read(reader, text, sizeof text), 0);
  ::close(reader);
  EXPECT_TRUE(fs::is_fifo(pipe));
}

TEST_F(StatisticsDestination, WhatCannotBeWrittenIsNamed) {
  const std::string missing = (folder_ / "no" / "x.json").string();
  for (const std::string& path : {missing, folder_.string()}) {
    const Status checked = check_statistics_destination(path);
    ASSERT_FALSE(checked.ok()) << path;
    EXPECT_TRUE(checked.error().message.starts_with("--stats: cannot write to '" + path + "': "))
        << checked.error().message;
    // The check says what the writing would find.
    EXPECT_FALSE(write_statistics(path, {}).ok());
  }
  EXPECT_EQ(files(), 0u);
}

}  // namespace
}  // namespace amasia::launch
