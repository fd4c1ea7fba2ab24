#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The search of ratios against synthetic machines whose best ratios are known."""

import random
import unittest

import ratios


def makespan(true_speeds, serial=0.0):
    """The time of one loop shared by given ratios; node 0 is also busy with `serial` by itself."""
    def cost(given):
        shares = [ratio / sum(given) for ratio in given]
        times = [share / speed for share, speed in zip(shares, true_speeds)]
        times[0] += serial
        return max(times)
    return cost


class GoldenSection(unittest.TestCase):
    def test_finds_the_least_of_a_valley(self):
        value, least = ratios.golden_section(lambda x: abs(x - 0.7) + 3, 0.1, 5, 25)
        self.assertAlmostEqual(value, 0.7, delta=0.01)
        self.assertAlmostEqual(least, 3, delta=0.01)

    def test_tries_as_often_as_told_and_within_the_limits(self):
        tried = []
        ratios.golden_section(lambda x: tried.append(x) or x, 0.5, 2, 7)
        self.assertEqual(len(tried), 7)
        self.assertTrue(all(0.5 <= x <= 2 for x in tried))

    def test_a_value_that_cannot_be_tried_is_never_the_best(self):
        value, _ = ratios.golden_section(lambda x: None if x < 1 else x, 0.25, 4, 9)
        self.assertGreaterEqual(value, 1)


class SearchRatios(unittest.TestCase):
    def test_comes_near_the_optimum_of_random_machines(self):
        for seed in range(200):
            generator = random.Random(seed)
            count = generator.randint(2, 4)
            told = [1.0] + [generator.uniform(0.1, 1) for _ in range(count - 1)]
            # The program runs up to 1.3 times better or worse on each node than the node's speed.
            true = [speed * generator.uniform(1 / 1.3, 1.3) for speed in told]
            cost = makespan(true)
            found, least = ratios.search_ratios(cost, told, 12)
            optimum = 1 / sum(true)
            self.assertLess(cost(found), optimum * 1.12, f"seed {seed}: {found} for {true}")
            self.assertEqual(cost(found), least, f"seed {seed}")

    def test_gives_a_busy_first_node_less(self):
        found, _ = ratios.search_ratios(makespan([1, 1], serial=0.1), [1, 1], 12)
        self.assertAlmostEqual(found[1], 0.55 / 0.45, delta=0.03)

    def test_is_never_worse_than_the_speeds(self):
        found, least = ratios.search_ratios(makespan([1, 0.5]), [1, 0.5], 3)
        self.assertEqual(found, [1, 0.5])
        self.assertEqual(least, makespan([1, 0.5])([1, 0.5]))

    def test_a_machine_that_cannot_run_it_has_no_cost(self):
        self.assertIsNone(ratios.search_ratios(lambda given: None, [1, 0.5], 5)[1])


class Cheapest(unittest.TestCase):
    def test_a_lucky_run_does_not_win(self):
        steady = makespan([1, 1])
        won = 0
        for seed in range(100):
            generator = random.Random(seed)
            # One run in twenty is short by a third, whatever its ratios.
            def cost(given, generator=generator):
                return steady(given) * (0.66 if generator.random() < 0.05 else 1)
            searched, _ = ratios.search_ratios(cost, [1, 1], 7)
            won += steady(searched) > steady([1, 1]) * 1.05
            found = ratios.cheapest(cost, [[1, 1], searched], 5)
            self.assertLess(steady(found), steady([1, 1]) * 1.05, f"seed {seed}: {found}")
        self.assertGreater(won, 5)

    def test_takes_the_best_and_of_equals_the_first(self):
        cost = makespan([1, 0.5])
        self.assertEqual(ratios.cheapest(cost, [[1, 1], [1, 0.5], [1, 0.3]], 3), [1, 0.5])
        self.assertEqual(ratios.cheapest(lambda given: 1, [[1, 1], [1, 0.5]], 3), [1, 1])

    def test_what_cannot_be_run_is_not_the_best(self):
        cost = lambda given: None if given[1] == 1 else given[1]
        self.assertEqual(ratios.cheapest(cost, [[1, 1], [1, 0.5]], 3), [1, 0.5])
        self.assertEqual(ratios.cheapest(lambda given: None, [[1, 1], [1, 2]], 3), [1, 1])


if __name__ == "__main__":
    unittest.main()
