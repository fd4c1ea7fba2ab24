// SPDX-License-Identifier: Apache-2.0
#include "machine/platform.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "machine/json_lines.hpp"

namespace amasia::machine {
namespace {

Platform example() {
  Platform platform = plain_platform(3);
  platform.places.push_back(
      {.name = "GPU \"0\"\\", .type = PlaceType::kGpu, .number = 0, .bytes = 80ull << 30});
  platform.edges.emplace_back(3, 0);
  platform.workers[2] = {.home = 3, .pop = {0, 3}, .steal = {}};
  return platform;
}

TEST(Platform, ComesBackAsItWasWritten) {
  const auto parsed = parse_platform(to_json(example()));
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(parsed.value(), example());
  EXPECT_EQ(flaw_of(example()), "");
  EXPECT_EQ(flaw_of(plain_platform(1)), "");
}

TEST(Platform, ACountStandsForThatManyWorkers) {
  const auto parsed = parse_platform(R"({"amasia_platform": 1,
    "places": [{"name": "m", "type": "memory"}],
    "workers": [{"count": 3, "pop": ["m"], "steal": ["m"]}, {"pop": ["m"], "steal": []}]})");
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  ASSERT_EQ(parsed.value().workers.size(), 4u);
  EXPECT_EQ(parsed.value().workers[2].steal, std::vector<std::uint32_t>{0});
  EXPECT_TRUE(parsed.value().workers[3].steal.empty());
}

// Each a mistake in a file that is right otherwise, and what is said of it.
struct Mistake {
  const char* right;
  const char* wrong;
  const char* said;
};
constexpr const char* kRight = R"({
  "amasia_platform": 1,
  "places": [
    {"name": "memory", "type": "memory", "number": 0, "bytes": 1024},
    {"name": "net", "type": "interconnect"}
  ],
  "edges": [
    ["memory", "net"]
  ],
  "workers": [
    {"home": "memory",
     "pop": ["net", "memory"],
     "steal": ["net",
               "memory"]}
  ]
}
)";
const std::vector<Mistake> kMistakes = {
    {"\"amasia_platform\": 1,", "", "line 1: the file lacks the field 'amasia_platform'"},
    {"\"amasia_platform\": 1", "\"amasia_platform\": 7",
     "line 2: amasia_platform is 7; this amasia reads version 1"},
    {"\"places\": [", "\"places\": 3, \"x\": [",
     "line 3: x is no field of this object, which has amasia_platform, places, edges, workers, "
     "$schema"},
    {"\"type\": \"memory\", \"number\"", "\"number\"",
     "line 4: places[0] lacks the field 'type'"},
    {"\"number\": 0", "\"number\": -4",
     "line 4: places[0].number is -4, and a whole number from 0 to 1000000 is wanted"},
    {"\"bytes\": 1024", "\"bytes\": \"1 KiB\"",
     "line 4: places[0].bytes is \"1 KiB\", and a whole number from 0 to 9000000000000000 is "
     "wanted"},
    {"\"interconnect\"", "\"network\"",
     "line 5: places[1].type is 'network', and it takes memory, numa, cache, gpu, interconnect, "
     "storage, node, other"},
    {"{\"name\": \"net\"", "{\"name\": \"memory\"",
     "line 5: places[1].name is 'memory', which an earlier place has"},
    {"{\"name\": \"net\"", "{\"name\": \"\"",
     "line 5: places[1].name is empty, and each place has a name"},
    {"{\"name\": \"net\", \"type\": \"interconnect\"}", "[]",
     "line 5: places[1] is a list, and an object is wanted"},
    {"[\"memory\", \"net\"]", "[\"memory\", \"moon\"]",
     "line 8: edges[0][1] is 'moon', and no place has that name"},
    {"[\"memory\", \"net\"]", "[\"memory\", \"memory\"]",
     "line 8: edges[0][1] is the same place: an edge joins two"},
    {"[\"memory\", \"net\"]", "[\"memory\"]",
     "line 8: edges[0] is a list, and a list of the names of two places is wanted"},
    {"\"home\": \"memory\"", "\"hope\": \"memory\"",
     "line 11: workers[0].hope is no field of this object, which has count, home, pop, steal"},
    {"\"home\": \"memory\"", "\"count\": 1.5",
     "line 11: workers[0].count is 1.5, and a whole number from 1 to 1024 is wanted"},
    {"\"pop\": [\"net\", \"memory\"]", "\"pop\": [\"net\"]",
     "line 11: workers[0].home is not on the worker's pop path"},
    {"\"pop\": [\"net\", \"memory\"]", "\"pop\": []",
     "line 12: workers[0].pop is empty: the worker could run nothing"},
    {"               \"memory\"]", "               \"net\"]",
     "line 14: workers[0].steal[1] is on this path already"},
    {"               \"memory\"]", "               \"memory\"",
     "line 14: this is no JSON"},
    {"\"bytes\": 1024", "\"bytes\": 1e999", "line 4: 1e999 is larger than any number can be"},
};

TEST(Platform, MistakesAreNamedWithLineAndField) {
  ASSERT_TRUE(parse_platform(kRight).ok()) << parse_platform(kRight).error().message;
  for (const Mistake& mistake : kMistakes) {
    std::string text = kRight;
    const auto at = text.find(mistake.right);
    ASSERT_NE(at, std::string::npos) << mistake.right;
    text.replace(at, std::string(mistake.right).size(), mistake.wrong);
    const auto parsed = parse_platform(text);
    ASSERT_FALSE(parsed.ok()) << mistake.said;
    EXPECT_EQ(parsed.error().message, mistake.said);
  }
}

// Whatever a file holds, it is refused in a sentence or gives a platform without flaws.
TEST(Platform, DamagedFilesDoNoHarm) {
  const std::string right = to_json(example());
  for (unsigned seed = 1; seed <= 3000; ++seed) {
    std::mt19937 random(seed);
    std::string text = random() % 2 == 0 ? right : kRight;
    for (unsigned n = 1 + random() % 3; n > 0; --n) {
      const std::size_t at = random() % text.size();
      const std::string_view characters = "{}[]\",:0127eE.-\\ \nmnx";
      if (random() % 3 == 0) {
        text.erase(at, 1 + random() % 9);
      } else {
        text[at] = characters[random() % characters.size()];
      }
    }
    const auto parsed = parse_platform(text);
    if (parsed.ok()) {
      ASSERT_EQ(flaw_of(parsed.value()), "") << "seed " << seed;
    } else {
      ASSERT_TRUE(parsed.error().message.starts_with("line ")) << "seed " << seed;
    }
  }
}

TEST(Platform, FlawsThatNoFileCanHave) {
  Platform platform = plain_platform(2);
  platform.workers[1].steal = {9};
  EXPECT_EQ(flaw_of(platform), "workers[1].steal has the place number 9, and there are 3 places");
  platform = plain_platform(2);
  platform.workers[1].home = 1;
  EXPECT_EQ(flaw_of(platform), "workers[1].home is not on the worker's pop path");
  EXPECT_EQ(flaw_of(plain_platform(0)), "workers is empty: at least one is needed");
  platform.edges.emplace_back(0, 7);
  EXPECT_EQ(flaw_of(platform), "edges[2] names a place that is not there");
}

TEST(Platform, FilesThatCannotBeRead) {
  const auto missing = load_platform("/nowhere/platform.json");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().message,
            "cannot read the platform file '/nowhere/platform.json': No such file or directory");
  EXPECT_FALSE(load_platform("/").ok());
}

TEST(JsonLines, ValuesAreFoundByTheirPath) {
  const std::string text = "{\"a\":\n[1,\n{\"b.c\": \"x\\\"]\",\n\"d\": 2}],\n\"ab\": 3}";
  EXPECT_EQ(line_of_value(text, ""), 1u);
  EXPECT_EQ(line_of_value(text, "a"), 2u);
  EXPECT_EQ(line_of_value(text, "a[0]"), 2u);
  EXPECT_EQ(line_of_value(text, "a[1]"), 3u);
  EXPECT_EQ(line_of_value(text, "a[1].d"), 4u);
  EXPECT_EQ(line_of_value(text, "a[1].e"), 3u);  // the nearest around it
  EXPECT_EQ(line_of_value(text, "ab"), 5u);
  EXPECT_EQ(line_of_value("", "a"), 1u);
  EXPECT_EQ(line_of_value(std::string(100'000, '['), "a"), 1u);
}

}  // namespace
}  // namespace amasia::machine
