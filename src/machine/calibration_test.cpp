// SPDX-License-Identifier: Apache-2.0
#include "machine/calibration.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>

#include "machine/break_even.hpp"
#include "machine/calibration_file.hpp"
#include "support/temporary_folder.hpp"

namespace amasia::machine {
namespace {

std::string random_text(std::mt19937& random) {
  std::string out;
  for (std::size_t left = 1 + random() % 20; left > 0; --left) {
    out += static_cast<char>(0x20 + random() % 0x5f);
  }
  return out;
}

Calibration random_calibration(std::mt19937& random) {
  std::uniform_real_distribution<double> value(1, 1e12);
  Calibration out;
  out.method = static_cast<Method>(random() % 3);
  out.measured_s = static_cast<std::int64_t>(random());
  for (std::size_t left = 1 + random() % 5; left > 0; --left) {
    out.identity.nodes.push_back(
        {random_text(random), random_text(random), 1 + static_cast<unsigned>(random() % 999)});
    out.nodes.push_back(
        {value(random), value(random), value(random), value(random), value(random)});
  }
  out.identity.settings = {{"AMASIA_LINK", random_text(random)}, {"UCX_TLS", random_text(random)}};
  return out;
}

TEST(Calibration, JsonAndBackLosesNothing) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<Calibration> all;
    for (std::size_t left = random() % 4; left > 0; --left) {
      all.push_back(random_calibration(random));
    }
    const auto again = parse_calibrations(to_json(all));
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ(again.value(), all);
  }
}

TEST(Calibration, AnIdentityTravelsAlone) {
  std::mt19937 random(12);
  for (int round = 0; round < 100; ++round) {
    const Identity identity = random_calibration(random).identity;
    const auto again = parse_identity(to_json(identity));
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ(again.value(), identity);
  }
  for (const char* text : {"", "{}", "[1]", "{\"nodes\": [{}], \"settings\": {}}", "nul"}) {
    EXPECT_FALSE(parse_identity(text).ok()) << text;
  }
}

// Bytes left out, doubled or changed: it is understood, with values in their ranges, or refused
// with words; never a crash.
TEST(Calibration, DamagedTextIsRefusedOrSane) {
  std::mt19937 random(4);
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text = to_json({random_calibration(random)});
    const std::size_t at = random() % text.size();
    switch (random() % 4) {
      case 0:
        text.resize(at);
        break;
      case 1:
        text.erase(at, 1 + random() % 40);
        break;
      case 2:
        text[at] = static_cast<char>(random());
        break;
      default:
        text.insert(at, text.substr(random() % text.size(), random() % 40));
    }
    const auto parsed = parse_calibrations(text);
    if (!parsed.ok()) {
      ++refused;
      EXPECT_FALSE(parsed.error().message.empty());
      continue;
    }
    for (const Calibration& one : parsed.value()) {
      EXPECT_EQ(one.nodes.size(), one.identity.nodes.size());
      for (const NodeCalibration& node : one.nodes) {
        EXPECT_GE(node.core_ops_per_s, 1);
        EXPECT_TRUE(std::isfinite(node.fault_latency_ns) && node.fault_latency_ns >= 0);
      }
    }
  }
  EXPECT_GT(refused, 1000);
}

TEST(Calibration, WhatIsWrongIsNamed) {
  std::mt19937 random(5);
  Calibration one = random_calibration(random);
  one.nodes[0].core_ops_per_s = 0;
  EXPECT_NE(parse_calibrations(to_json({one}))
                .error()
                .message.find("calibrations[0].nodes[0].core_ops_per_s"),
            std::string::npos);
  one = random_calibration(random);
  one.nodes.pop_back();
  EXPECT_NE(parse_calibrations(to_json({one})).error().message.find("identity.nodes"),
            std::string::npos);
  EXPECT_NE(parse_calibrations("{\"amasia_calibration\": 1").error().message.find("no JSON"),
            std::string::npos);
  EXPECT_NE(parse_calibrations("{\"amasia_calibration\": 2, \"calibrations\": []}")
                .error()
                .message.find("version 2"),
            std::string::npos);
  EXPECT_NE(parse_calibrations("{\"amasia_calibration\": 1e999}").error().message.find("larger"),
            std::string::npos);
  EXPECT_FALSE(parse_calibrations("[]").ok());
  EXPECT_FALSE(parse_calibrations("").ok());
}

TEST(Calibration, OnlyTheSameNodesAndLinksFit) {
  std::mt19937 random(6);
  for (int round = 0; round < 200; ++round) {
    Calibration one = random_calibration(random);
    one.method = Method::kFull;
    const std::vector<Calibration> all = {one};
    EXPECT_EQ(find_calibration(all, one.identity, one.measured_s + 10'000'000), &all[0]);
    Identity other = one.identity;
    switch (random() % 5) {
      case 0:
        other.nodes.push_back(other.nodes[0]);
        break;
      case 1:
        other.nodes.back().cores += 1;
        break;
      case 2:
        other.nodes.back().cpu += "x";
        break;
      case 3:
        other.settings.pop_back();
        break;
      default:
        other.settings[0].second += "0";
    }
    EXPECT_EQ(find_calibration(all, other, one.measured_s), nullptr);
  }
}

TEST(Calibration, ABriefOneServesForADay) {
  std::mt19937 random(7);
  Calibration one = random_calibration(random);
  one.method = Method::kBrief;
  const std::vector<Calibration> all = {one};
  EXPECT_NE(find_calibration(all, one.identity, one.measured_s + kBriefLifetime_s), nullptr);
  EXPECT_EQ(find_calibration(all, one.identity, one.measured_s + kBriefLifetime_s + 1), nullptr);
  EXPECT_EQ(find_calibration(all, one.identity, one.measured_s - kBriefLifetime_s - 1), nullptr);
}

TEST(Calibration, ANewOneReplacesItsLikeAndTheOldestGo) {
  std::mt19937 random(8);
  std::vector<Calibration> all;
  for (std::size_t i = 0; i < kMostCalibrations + 10; ++i) {
    add_calibration(all, random_calibration(random));
    EXPECT_LE(all.size(), kMostCalibrations);
  }
  Calibration again = all[5];
  again.nodes[0].core_ops_per_s = 17;
  add_calibration(all, again);
  EXPECT_EQ(all.size(), kMostCalibrations);
  EXPECT_EQ(all[0], again);
  EXPECT_EQ(std::count_if(all.begin(), all.end(),
                          [&](const Calibration& one) { return one.identity == again.identity; }),
            1);
}

TEST(Calibration, TheModelFillsWhatABriefOneDoesNotMeasure) {
  NodeCalibration node{.core_ops_per_s = 1e9, .fault_latency_ns = 30e3, .page_stream_ns = 5e3};
  fill_break_even_from_model(node);
  EXPECT_NEAR(node.break_even_ns_per_fault, 100e3, 1);
  EXPECT_NEAR(node.break_even_ops_per_byte, 17.1, 0.1);
}

class CalibrationFile : public testing::Test {
 protected:
  const tests::TemporaryFolder folder_{"calibration"};
  const std::string path_ = folder_ / "a/b/calibration.json";
};

TEST_F(CalibrationFile, KeepsWhatWasStored) {
  std::mt19937 random(9);
  const Calibration first = random_calibration(random), second = random_calibration(random);
  const auto none = load_calibrations(path_);
  ASSERT_TRUE(none.ok());
  EXPECT_TRUE(none.value().empty());
  ASSERT_TRUE(check_can_store(path_).ok());
  ASSERT_TRUE(store_calibration(path_, first).ok());
  ASSERT_TRUE(store_calibration(path_, second).ok());
  const auto both = load_calibrations(path_);
  ASSERT_TRUE(both.ok());
  EXPECT_EQ(both.value(), (std::vector<Calibration>{second, first}));
  // Nothing else is left beside it.
  const std::filesystem::directory_iterator files(folder_ / "a/b");
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

TEST_F(CalibrationFile, ADamagedOneIsNamedAndLeftAsItIs) {
  std::mt19937 random(10);
  std::filesystem::create_directories(folder_ / "a/b");
  std::ofstream(path_) << "my thesis";
  for (const Status& status :
       {check_can_store(path_), store_calibration(path_, random_calibration(random))}) {
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.error().message.find("'" + path_ + "' is no JSON"), std::string::npos)
        << status.error().message;
  }
  std::string text;
  std::getline(std::ifstream(path_), text);
  EXPECT_EQ(text, "my thesis");
}

TEST_F(CalibrationFile, APlaceThatCannotBeIsNamed) {
  std::mt19937 random(11);
  std::ofstream(folder_ / "a") << "a file where a folder should be";
  const Status status = store_calibration(path_, random_calibration(random));
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find(folder_ / "a"), std::string::npos);
  EXPECT_FALSE(check_can_store(path_).ok());
  EXPECT_FALSE(check_can_store(folder_.path()).ok());  // a folder itself
  EXPECT_FALSE(check_can_store("").ok());
}

TEST_F(CalibrationFile, ThePlaceFollowsTheEnvironment) {
  const auto with = [](const char* config, const char* home, const std::string& chosen) {
    config == nullptr ? ::unsetenv("XDG_CONFIG_HOME") : ::setenv("XDG_CONFIG_HOME", config, 1);
    home == nullptr ? ::unsetenv("HOME") : ::setenv("HOME", home, 1);
    return calibration_path(chosen);
  };
  EXPECT_EQ(with("/c", "/h", "/x"), "/x");
  EXPECT_EQ(with("/c", "/h", ""), "/c/amasia/calibration.json");
  EXPECT_EQ(with("relative", "/h", ""), "/h/.config/amasia/calibration.json");
  EXPECT_EQ(with(nullptr, "/h", ""), "/h/.config/amasia/calibration.json");
  EXPECT_EQ(with(nullptr, nullptr, ""), "");
}

}  // namespace
}  // namespace amasia::machine
