// SPDX-License-Identifier: Apache-2.0
#include "launch/messages.hpp"

#include <gtest/gtest.h>

#include <string>

#include "launch/openmp_runtime.hpp"

namespace amasia::launch {
namespace {

TEST(Message, OnlyWholeFramesOfThisVersionAreActedUpon) {
  Message message;
  message.type = MessageType::kReady;
  EXPECT_EQ(malformed(message, sizeof message), nullptr);
  EXPECT_NE(malformed(message, sizeof message - 1), nullptr);
  message.version = kProtocolVersion + 1;
  EXPECT_NE(malformed(message, sizeof message), nullptr);
  message = {};
  EXPECT_NE(malformed(message, sizeof message), nullptr) << "no type";
  message.type = MessageType::kMembership;
  EXPECT_NE(malformed(message, sizeof message), nullptr) << "no nodes";
  message.node = 2;
  message.node_count = 2;
  EXPECT_NE(malformed(message, sizeof message), nullptr) << "node 2 of 2";
  message.node = 1;
  EXPECT_EQ(malformed(message, sizeof message), nullptr);
  message.text_size = kMaxSentence + 1;
  EXPECT_NE(malformed(message, sizeof message), nullptr) << "text beyond the frame";
}

TEST(Message, ALongSentenceIsCut) {
  Message message;
  message.set_text(std::string(5000, 'x'));
  EXPECT_EQ(message.text_view().size(), kMaxSentence);
}

TEST(OpenMpRuntime, IsToldByTheFileName) {
  EXPECT_EQ(openmp_runtime_of("/usr/lib/llvm-19/lib/libomp.so.5"), OpenMpRuntime::kLibomp);
  EXPECT_EQ(openmp_runtime_of("libiomp5.so"), OpenMpRuntime::kLibomp);
  EXPECT_EQ(openmp_runtime_of("libgomp.so.1"), OpenMpRuntime::kLibgomp);
  EXPECT_EQ(openmp_runtime_of("libgomp.so.1.0.0"), OpenMpRuntime::kLibgomp);
  EXPECT_EQ(openmp_runtime_of("libgomp-plugin-nvptx.so.1"), OpenMpRuntime::kNone);
  EXPECT_EQ(openmp_runtime_of("libomptarget.so.19"), OpenMpRuntime::kNone);
  EXPECT_EQ(openmp_runtime_of(""), OpenMpRuntime::kNone);
}

}  // namespace
}  // namespace amasia::launch
