#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py with a launcher whose times are made up, so that its verdicts can be known beforehand."""

import contextlib
import io
import json
import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

import aims
import run

# Runs the program for its output and says how long it would have taken: nodes share one second of
# work by ratios, dynamic is wrong, hetprobe fails, hetprobe-i does not end.
LAUNCHER = """#!/usr/bin/env python3
import json, os, subprocess, sys, time
words = sys.argv[2:]
given = {}
while words and words[0].startswith("--"):
    name, equals, value = words.pop(0).partition("=")
    given[name] = value if equals else words.pop(0)
speeds = [float(word) for word in given["--emulate"].split(",")]
if len(speeds) > 1:
    speeds = [speed * 0.8 for speed in speeds]
    if "--log-level" in given:
        print("the nodes need more than there is; all run at 0.800 of it", file=sys.stderr)
ratios = [float(word) for word in given.get("--csr", given["--emulate"]).split(",")]
output = subprocess.run(words, capture_output=True, text=True, check=True).stdout
seconds = max(ratio / sum(ratios) / speed for ratio, speed in zip(ratios, speeds))
if "OMP_SCHEDULE" in os.environ:
    output = output.replace("1", "2").replace("7", "8")
if os.environ.get("NO_BASE") and "--csr" not in given and len(speeds) == 1:
    sys.exit("there is no single node")
if given.get("--schedule") == "hetprobe":
    sys.exit("there is no schedule 'hetprobe'")
if given.get("--schedule") == "hetprobe-i":
    time.sleep(600)
if "--stats" in given:
    regions = [{"csr": [2, 1], "elapsed_ns": 9, "loops": []},
               {"csr": [1, 1], "elapsed_ns": 5, "loops": []},
               {"csr": [], "elapsed_ns": 70, "loops": []},
               {"csr": [1, None], "elapsed_ns": 99, "loops": []}]
    open(given["--stats"], "w").write(json.dumps({"regions": regions}))
print(output, end="")
print("seconds %.6f" % seconds, file=sys.stderr)
# What the nodes lose is lost at the beginning.
print("settled %.6f" % (seconds / len(speeds)), file=sys.stderr)
"""


def benchmark(*words):
    """(exit code, what it printed, the result) of ep on two nodes under the made-up launcher."""
    with tempfile.TemporaryDirectory() as folder:
        launcher, results = pathlib.Path(folder) / "launcher", pathlib.Path(folder) / "r.json"
        launcher.write_text(LAUNCHER)
        launcher.chmod(0o755)
        words = ["run.py", "--amasia", str(launcher), "--quick", "--programs", "ep", "--machines",
                 "1.0,0.5", "--links", "none", "--compilers", "gcc", "--limit", "3", "--runs", "2",
                 "--confirm", "1", "--build", folder, "--json", str(results), *words]
        printed = io.StringIO()
        with mock.patch.object(sys, "argv", words), contextlib.redirect_stdout(printed):
            code = run.main()
        return code, printed.getvalue(), json.loads(results.read_text())["results"][0]


class WithoutBase(unittest.TestCase):
    def test_is_told_and_not_compared(self):
        with mock.patch.dict(os.environ, NO_BASE="1"):
            code, printed, result = benchmark("--configurations", "nodes,default")
        self.assertEqual(code, 1)
        self.assertIn("there is no single node", printed)
        self.assertIn("no base", printed)
        self.assertIsNone(result["oracle"])


class RunAgain(unittest.TestCase):
    def test_a_run_that_fails_then_is_told_and_fails_the_benchmark(self):
        failure = {"word": "WRONG", "sentence": "output line 1"}
        first, rounds = run.run_rounds, []

        def fails_the_second_time(*words):
            rows = first(*words)
            rounds.append(rows)
            if len(rounds) == 2:
                rows["default"]["failure"] = failure
            return rows
        with mock.patch.object(run, "run_rounds", fails_the_second_time):
            code, printed, result = benchmark("--configurations", "nodes,default")
        self.assertEqual(code, 1)
        self.assertIn("again: default WRONG: output line 1", printed)
        self.assertIsNone(result["confirmed"]["default"])


class WithMadeUpTimes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.code, cls.printed, cls.result = benchmark()
        cls.rows = cls.result["configurations"]

    def test_single_nodes_are_as_slow_as_they_are_together(self):
        self.assertEqual(self.result["scale"], 0.8)
        self.assertAlmostEqual(self.rows["node 0"]["seconds"]["median"], 1.25, places=5)

    def test_speed_ups_are_held_against_the_first_node(self):
        self.assertAlmostEqual(self.rows["node 0"]["speed_up"], 1)
        self.assertAlmostEqual(self.rows["node 1"]["speed_up"], 0.5, places=5)
        self.assertAlmostEqual(self.rows["even"]["speed_up"], 1, places=5)
        self.assertAlmostEqual(self.rows["default"]["speed_up"], 1.5, places=4)
        self.assertEqual(self.rows["default"]["seconds"]["n"], 2)

    def test_what_follows_the_second_run_of_each_loop_is_compared_by_itself(self):
        self.assertAlmostEqual(self.rows["default"]["settled_speed_up"], 3, places=4)
        self.assertAlmostEqual(self.result["settled_oracle"]["speed_up"], 3, places=1)
        self.assertIsNone(self.rows["hetprobe-i"]["settled_speed_up"])

    def test_other_output_is_wrong_and_fails_the_benchmark(self):
        self.assertEqual(self.rows["dynamic"]["failure"]["word"], "WRONG")
        self.assertIsNone(self.rows["dynamic"]["speed_up"])
        self.assertEqual(self.code, 1)
        self.assertIn("WRONG: output line 1", self.printed)

    def test_a_failed_run_is_told_with_its_sentence(self):
        self.assertIn("there is no schedule 'hetprobe'",
                      self.rows["hetprobe"]["failure"]["sentence"])

    def test_a_run_over_the_limit_counts_as_that_long_and_is_never_the_oracle(self):
        row = self.rows["hetprobe-i"]
        self.assertTrue(row["over_limit"])
        self.assertEqual(row["seconds"]["n"], 1)
        self.assertAlmostEqual(row["speed_up"], 1.25 / 3, places=4)

    def test_the_oracle_is_the_best_and_marked(self):
        self.assertAlmostEqual(self.result["oracle"]["speed_up"], 1.5, places=2)
        self.assertIn("1.50*", self.printed)

    def test_default_and_the_best_other_way_are_run_again(self):
        self.assertEqual(self.result["confirmed"]["part"], "settled")
        self.assertIn(self.result["confirmed"]["peer"], ("csr", "default-runtime", "profile"))
        self.assertAlmostEqual(self.result["confirmed"]["default"], 1, places=1)
        self.assertIn("again: default takes 1.0", self.printed)

    def test_ratios_are_searched_and_read_of_the_longest_loop(self):
        self.assertAlmostEqual(self.result["ratios"]["searched"][1], 0.5, delta=0.05)
        self.assertEqual(self.result["ratios"]["found"]["default"], [1, 0.5])


def made_up(kind="well", found=(1, 0.5), **speed_ups):
    """A result with given speed-ups; names have _ for a blank or a hyphen."""
    rows = {name.replace("node_", "node ").replace("_", "-"): {"speed_up": value}
            for name, value in speed_ups.items()}
    best, name = max((row["speed_up"], name) for name, row in rows.items())
    return {"program": "made up", "kind": kind, "configurations": rows,
            "oracle": {"configuration": name, "speed_up": best},
            "ratios": {"searched": [1, 0.5], "found": {"default": list(found)}}}


class FoundRatios(unittest.TestCase):
    @staticmethod
    def loop(form, elapsed, *ratios):
        return {"form": form, "elapsed_ns": elapsed,
                "per_node": [{"id": node, "csr": ratio} for node, ratio in enumerate(ratios)]}

    def found(self, *loops, csr=(1, 0.8)):
        return run.longest_loop_ratios({"regions": [
            {"csr": list(csr), "elapsed_ns": 7, "loops": list(loops)}]}, 2)

    def test_are_the_loops_own_where_it_is_handed_out_at_run_time(self):
        self.assertEqual(self.found(self.loop("pool", 5, 0.5, 0.25)), [1, 0.5])
        self.assertEqual(self.found(self.loop("pool", 5, 0.5, 0.25), self.loop("pool", 6, 1, 0.4)),
                         [1, 0.4])

    def test_are_else_the_regions(self):
        self.assertEqual(self.found(), [1, 0.8])
        self.assertEqual(self.found(self.loop("blocks", None, 1, 0.1)), [1, 0.8])
        self.assertEqual(self.found(self.loop("pool", 5, 1, None)), [1, 0.8])

    def test_are_none_where_not_all_nodes_share(self):
        self.assertIsNone(self.found(csr=(1, None)))
        self.assertIsNone(self.found(csr=(None, 1)))


class Aims(unittest.TestCase):
    def test_what_is_met_is_not_told(self):
        self.assertEqual(list(aims.misses(made_up(node_0=1, csr=1.5, default=1.46))), [])
        self.assertEqual(list(aims.misses(made_up("once", node_0=1, csr=1.5, default=1.39))), [])

    def test_each_miss_is_told(self):
        self.assertIn("1.034 of csr's time",
                      *aims.misses(made_up(node_0=1, csr=1.5, default=1.45)))
        self.assertIn("6 % off", *aims.misses(made_up(found=(1, 0.53), node_0=1, csr=1.5,
                                                     default=1.5)))
        self.assertIn("hetprobe-i takes 1.000", *aims.misses(
            made_up("irregular", node_0=1, csr=1.5, hetprobe=1.2, hetprobe_i=1.2)))

    def test_the_aim_is_of_the_part_in_which_every_loop_has_run_twice(self):
        result = made_up(node_0=1, csr=1.5, default=1.4)
        result["configurations"]["default"]["settled_speed_up"] = 1.5
        result["settled_oracle"] = {"configuration": "csr", "speed_up": 1.52}
        self.assertEqual(list(aims.misses(result)), [])
        result["settled_oracle"]["speed_up"] = 1.56
        self.assertIn("1.040 of csr's time", *aims.misses(result))
        result["kind"] = "once"
        self.assertEqual(list(aims.misses(result)), [])

    def test_runs_of_their_own_judge_where_there_are_some(self):
        result = made_up("irregular", node_0=1, csr=1.5, default=1.4, hetprobe=1.2, hetprobe_i=1.1)
        result["confirmed"] = {"peer": "csr", "default": 1.01, "hetprobe-i": 0.99}
        self.assertEqual(list(aims.misses(result)), [])
        result["confirmed"] = {"peer": "csr", "default": 1.04, "hetprobe-i": 1.02}
        self.assertEqual([sentence[:26] for sentence in aims.misses(result)],
                         ["default takes 1.040 of csr", "hetprobe-i takes 1.020 of "])
        result["confirmed"] = {"peer": "csr", "default": 0.97, "hetprobe-i": None}
        self.assertEqual(aims.judged(result)[0], 1)
        self.assertIn("hetprobe-i takes 1.091", *aims.misses(result))

    def test_ratios_do_not_matter_where_sharing_does_not_pay(self):
        result = made_up(found=(1, 0.1), node_0=1, csr=0.2, default=1)
        self.assertEqual(list(aims.misses(result)), [])

    def test_probing_is_held_against_the_ratios_where_sharing_pays_else_the_best_node(self):
        results = [made_up(node_0=1, node_1=0.5, csr=1.5, dynamic=1.8, hetprobe=1.2),
                   made_up(node_0=1, node_1=1.1, csr=0.2, hetprobe=1)]
        costs = list(aims.probing_costs(results))
        self.assertEqual([(words, count) for words, count, _ in costs],
                         [("sharing pays", 1), ("sharing does not pay", 1)])
        self.assertAlmostEqual(costs[0][2], 0.25)
        self.assertAlmostEqual(costs[1][2], 0.1)


class Mistakes(unittest.TestCase):
    def refused(self, *words):
        said = io.StringIO()
        arguments = ["run.py", "--amasia", sys.executable, *words]
        with mock.patch.object(sys, "argv", arguments), contextlib.redirect_stderr(said):
            self.assertEqual(run.main(), 2)
        return said.getvalue()

    def test_each_is_one_sentence_that_names_the_value(self):
        for words in [("--programs", "ep,lud"), ("--programs", "irregular-random-101"),
                      ("--machines", "1.0,2.0"), ("--machines", "1.0"), ("--machines", "n1"),
                      ("--compilers", "icc"), ("--configurations", "csr,best"),
                      ("--runs", "0"), ("--confirm", "-1"),
                      ("--links", "fast"), ("--amasia", os.devnull)]:
            said = self.refused(*words)
            self.assertEqual(said.count("\n"), 1, words)
            self.assertIn(words[1].split(",")[-1], said, words)


if __name__ == "__main__":
    unittest.main()
