// SPDX-License-Identifier: Apache-2.0
#include "base/options.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace amasia::base {
namespace {

std::string error_of(std::vector<const char*> arguments) {
  Options options;
  const auto used = parse_arguments(arguments, options);
  return used.ok() ? "" : used.error().message;
}

TEST(Options, StopAtTheProgram) {
  Options options;
  const std::vector<const char*> arguments = {"-n",      "3",  "--no-bind", "--stats",
                                              "program", "-n", "99",        "--unknown"};
  const auto used = parse_arguments(arguments, options);
  ASSERT_TRUE(used.ok()) << used.error().message;
  EXPECT_EQ(used.value(), 4u);
  EXPECT_EQ(options.nodes, 3);
  EXPECT_FALSE(options.bind);
  EXPECT_EQ(options.stats, "-");
  EXPECT_TRUE(options.is_set("--nodes"));
  EXPECT_FALSE(options.is_set("--threads"));
}

TEST(Options, TakeValuesInEverySpelling) {
  for (const std::vector<const char*>& arguments :
       {std::vector<const char*>{"-n4"}, {"-n", "4"}, {"-n=4"}, {"--nodes", "4"}, {"--nodes=4"}}) {
    Options options;
    ASSERT_TRUE(parse_arguments(arguments, options).ok()) << arguments[0];
    EXPECT_EQ(options.nodes, 4) << arguments[0];
  }
}

TEST(Options, EndAtTwoDashes) {
  Options options;
  const std::vector<const char*> arguments = {"-n2", "--", "-odd-name"};
  const auto used = parse_arguments(arguments, options);
  ASSERT_TRUE(used.ok());
  EXPECT_EQ(used.value(), 2u);
}

TEST(Options, ABadValueIsOneSentenceWithNameValueAndRange) {
  EXPECT_EQ(error_of({"-n", "0"}),
            "-n: '0' is not allowed; it takes a whole number of nodes from 1 to 64");
  EXPECT_EQ(error_of({"--nodes=65"}),
            "--nodes: '65' is not allowed; it takes a whole number of nodes from 1 to 64");
  EXPECT_EQ(error_of({"--nodes", "2x"}),
            "--nodes: '2x' is not allowed; it takes a whole number of nodes from 1 to 64");
  EXPECT_EQ(error_of({"--nodes", "99999999999999999999"}),
            "--nodes: '99999999999999999999' is not allowed; it takes a whole number of nodes from "
            "1 to 64");
  EXPECT_EQ(error_of({"--nodes"}),
            "--nodes: the value is missing; it takes a whole number of nodes from 1 to 64");
  EXPECT_EQ(error_of({"--transport=ib"}),
            "--transport: 'ib' is not allowed; it takes auto, tcp or shm");
  for (const char* const list : {"--csr=", "--csr=1,,2", "--csr=1,2,", "--csr=a", "--csr=-1"}) {
    const std::string_view value = std::string_view(list).substr(6);
    EXPECT_EQ(error_of({list}),
              fmt::format("--csr: '{}' is not allowed; it takes a number from 0.001 to 1000 for "
                          "each node, separated by commas",
                          value));
  }
  EXPECT_EQ(error_of({"--bind=1"}), "--bind: '1' is not allowed; it takes no value");
  EXPECT_EQ(error_of({"--stats="}), "--stats: '' is not allowed; it takes the name of a file");
  EXPECT_EQ(error_of({"--wrong=1"}), "'--wrong' is not an option; 'amasia options' lists them");
  EXPECT_EQ(error_of({"-z"}), "'-z' is not an option; 'amasia options' lists them");
}

TEST(Options, TheCommandLineComesBeforeTheEnvironment) {
  Options options;
  const std::vector<const char*> arguments = {"-n2"};
  ASSERT_TRUE(parse_arguments(arguments, options).ok());
  const char* environment[] = {"AMASIA_NODES=wrong but not looked at", "AMASIA_THREADS=3",
                               "AMASIA_STATS=", "HOME=/", nullptr};
  const Status parsed = parse_environment(environment, options);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(options.nodes, 2);
  EXPECT_EQ(options.threads, 3);
  EXPECT_EQ(options.stats, "");
}

TEST(Options, ABadVariableIsNamed) {
  Options options;
  const char* environment[] = {"AMASIA_BIND=yes", nullptr};
  const Status parsed = parse_environment(environment, options);
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.error().message, "AMASIA_BIND: 'yes' is not allowed; it takes 0 or 1");
}

TEST(Options, MisspeltVariablesAreFound) {
  const char* environment[] = {"AMASIA_NODE=3", "AMASIA_NODES=3", "AMASIA_LAUNCHER=x", nullptr};
  EXPECT_EQ(unknown_variables(environment), std::vector<std::string>{"AMASIA_NODE"});
}

TEST(Options, GoThroughTheEnvironmentUnchanged) {
  Options options;
  const std::vector<const char*> arguments = {
      "-n5", "-t2", "--no-bind", "--netns", "--stats=x y", "--transport=tcp", "--log-level=debug"};
  ASSERT_TRUE(parse_arguments(arguments, options).ok());
  std::vector<std::string> entries;
  for (const auto& [name, value] : to_environment(options)) entries.push_back(name + "=" + value);
  std::vector<const char*> environment;
  for (const std::string& entry : entries) environment.push_back(entry.c_str());
  environment.push_back(nullptr);
  Options again;
  ASSERT_TRUE(parse_environment(environment.data(), again).ok());
  EXPECT_EQ(to_environment(again), to_environment(options));
  EXPECT_EQ(again.stats, "x y");
  EXPECT_EQ(again.transport, Transport::kTcp);
  EXPECT_TRUE(to_environment(Options()).empty());
}

TEST(Options, BytesTakeAUnit) {
  const auto memory_of = [](const char* text) -> std::int64_t {
    Options options;
    const std::array<const char*, 2> arguments = {"--memory", text};
    return parse_arguments(arguments, options).ok() ? options.memory : -1;
  };
  EXPECT_EQ(memory_of("64M"), 64 << 20);
  EXPECT_EQ(memory_of("64MiB"), 64 << 20);
  EXPECT_EQ(memory_of("3GB"), std::int64_t{3} << 30);
  EXPECT_EQ(memory_of("67108865"), 67108865);
  EXPECT_EQ(memory_of("0"), 0);
  for (const char* wrong : {"1M", "64m", "64 M", "M", "-64M", "64MX", "20000000T", "2048T"}) {
    EXPECT_EQ(memory_of(wrong), -1) << wrong;
  }
  Options options;
  options.memory = 67108864;
  EXPECT_EQ(to_environment(options).front().second, "64M");
}

TEST(Options, EveryRowIsPrintedAndDocumented) {
  const std::string text = options_text(Options()), page = options_markdown();
  for (const char* name : {"AMASIA_NODES", "AMASIA_STATS", "--no-bind", "AMASIA_START_TIMEOUT"}) {
    EXPECT_NE(text.find(name), std::string::npos) << name;
    EXPECT_NE(page.find(name), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace amasia::base
