// SPDX-License-Identifier: Apache-2.0
// Proves: declared reductions over objects whose memory points back to them, and whose combiner
// moves their content out: the object has to be combined where it is, by no copy of its bytes.
#include <omp.h>

#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "../c/expect.h"

using Counts = std::map<int, long>;
using Names = std::list<std::string>;
using Words = std::set<std::string>;

struct Owner {
  double weight[12] = {};
  std::unique_ptr<long> sum = std::make_unique<long>(0);
  std::string longest;
};

void add(Counts& out, const Counts& in) {
  for (const auto& [key, count] : in) out[key] += count;
}

void take(Owner& out, Owner& in) {
  for (int i = 0; i < 12; i++) out.weight[i] += in.weight[i];
  auto old = std::move(out.sum);
  out.sum = std::move(in.sum);
  *out.sum += *old;
  if (in.longest.size() > out.longest.size()) out.longest = std::move(in.longest);
}

#pragma omp declare reduction(add : Counts : add(omp_out, omp_in))
#pragma omp declare reduction(splice : Names : omp_out.splice(omp_out.end(), omp_in))
#pragma omp declare reduction(merge : Words : omp_out.merge(omp_in))
#pragma omp declare reduction(take : Owner : take(omp_out, omp_in))

int main() {
  for (int round = 0; round < 5; round++) {
    Counts counts;
    Names names;
    Words words;
    Owner owner;
#pragma omp parallel for num_threads(4) reduction(add : counts) reduction(splice : names) \
    reduction(merge : words) reduction(take : owner)
    for (int i = 0; i < 200; i++) {
      counts[i % 13] += i;
      names.push_back(std::to_string(i));
      words.insert(std::string(static_cast<std::size_t>(i % 40), 'w'));
      owner.weight[i % 12] += i;
      *owner.sum += i;
      if (owner.longest.size() < static_cast<std::size_t>(i % 9)) owner.longest.push_back('l');
    }
    long total = 0, letters = 0;
    for (const auto& [key, count] : counts) total += count * (key + 1);
    for (const std::string& name : names) letters += static_cast<long>(name.size());
    printf("%d %ld, %d %ld, %d, %ld %g\n", static_cast<int>(counts.size()), total,
           static_cast<int>(names.size()), letters, static_cast<int>(words.size()), *owner.sum,
           owner.weight[5]);
    expect(counts.size() == 13 && names.size() == 200 && letters == 490 && words.size() == 40);
    expect(*owner.sum == 19900 && owner.longest.size() <= 8);
  }
  return expect_result();
}
