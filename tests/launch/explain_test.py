# SPDX-License-Identifier: Apache-2.0
"""What a real program's --stats tell, and `amasia explain` of them."""

import json
import pathlib
import re
import subprocess

from launcher import BUILD, LaunchTest, main

PROGRAM = str(BUILD / "bin" / "launch_test_explained")
PROGRAMS = pathlib.Path(__file__).resolve().parents[1] / "programs" / "c"


class Explained(LaunchTest):
    def statistics(self, *options):
        """The region's statistics, and their file."""
        file = pathlib.Path(self.folder.name) / "stats.json"
        result = self.run_amasia("run", *options, f"--stats={file}", PROGRAM, AMASIA_LIBRARY=None)
        self.assertEqual((result.code, result.out, result.err), (0, "499500\n", ""))
        return json.loads(file.read_text()), str(file)

    def explain(self, file):
        result = self.run_amasia("explain", file)
        self.assertEqual((result.code, result.err), (0, ""), result)
        return result.out

    def test_a_region_on_two_nodes(self):
        stats, file = self.statistics("-n2", "-t1", "--share=always")
        self.assertEqual(len(stats["nodes"]), 2)
        (region,) = stats["regions"]
        self.assertEqual((region["runs"], region["nodes"], region["phase"], region["rule"]),
                         (10, 2, "shared", "always"))
        self.assertEqual([node["id"] for node in region["per_node"]], [0, 1])
        self.assertAlmostEqual(sum(node["work"] for node in region["per_node"]), 1, places=3)
        for node in region["per_node"]:
            self.assertFalse(node["dropped"])
            self.assertGreaterEqual(node["threads"], 1)
            self.assertGreater(node["busy_ns"], 0)
        self.assertEqual((len(region["csr"]), max(region["csr"])), (2, 1))
        self.assertEqual((region["shared"]["runs"], region["shared"]["settled_runs"]), (10, 9))
        self.assertEqual(region["shared"]["elapsed_ns"], region["elapsed_ns"])
        self.assertGreater(region["predicted_alone_ns"], 0)
        self.assertRegex(region["reason"], r"^shared 0\.\d\d : 0\.\d\d whatever it costs: .* a run,"
                         r" where node 0 alone would take .* \(predicted\)$")
        told = self.explain(file)
        self.assertIn(f"{region['site']}\n", told)
        self.assertIn(f"  {region['reason']}\n", told)
        self.assertIn("10 runs: 10 shared, 0 on node 0 alone\n", told)
        self.assertRegex(told, r"(?m)^ +shared( +[\d.]+ [mun]?s){2} +[-+][\d.]+ %  9 runs$")
        nodes = re.findall(r"(?m)^ +[01] +\d+ +0\.\d\d .*[01]\.\d\d$", told)
        self.assertEqual(len(nodes), 2, told)

    def test_by_default_the_sentence_fits_what_came_of_it(self):
        stats, file = self.statistics("-n2", "-t1")
        (region,) = stats["regions"]
        self.assertEqual(region["shared"]["runs"] + region["alone"]["runs"], 10)
        self.assertGreater(region["shared"]["runs"], 0)
        starts = {"shared": "shared ", "warm": "shared ", "trial": "on trial on node 0: ",
                  "alone": "on node 0 only: ", "cold": "to be shared again"}
        self.assertTrue(region["reason"].startswith(starts[region["phase"]]), region)
        self.assertIn(f"  {region['reason']}\n", self.explain(file))

    def test_rows_of_a_triangle_are_shared_by_their_work(self):
        source = str(PROGRAMS / "for_triangle.c")
        program = str(pathlib.Path(self.folder.name) / "triangle")
        subprocess.run(["clang-19", "-O2", "-fopenmp", source, "-o", program], check=True)
        file = str(pathlib.Path(self.folder.name) / "stats.json")

        def part_of_first_half():
            result = self.run_amasia("run", "-n2", "-t1", f"--stats={file}", program, "6000", "6",
                                     AMASIA_LIBRARY=None)
            self.assertEqual((result.code, result.err), (0, ""), result)
            (region,) = json.loads(pathlib.Path(file).read_text())["regions"]
            return region["work_of_first_half"]

        # A quarter. Beside other programs a first execution may be too disturbed to tell.
        parts = []
        while len(parts) < 20 and sum(part is not None for part in parts) < 3:
            parts.append(part_of_first_half())
        known = [part for part in parts if part is not None]
        self.assertEqual(len(known), 3, parts)
        self.assertGreater(min(known), 0.1, parts)
        self.assertLess(max(known), 0.4, parts)
        self.assertRegex(self.explain(file),
                         r"\n  its iterations are unlike: the first half is 0\.\d\d of the work\n")

    def test_a_region_that_has_to_stay(self):
        stats, file = self.statistics("-n2", "--share=never")
        (region,) = stats["regions"]
        self.assertEqual((region["phase"], region["csr"], region["per_node"]), (None, [], []))
        self.assertEqual(region["reason"], "on node 0 only: --share=never")
        self.assertIn("  on node 0 only: --share=never\n", self.explain(file))

    def test_the_table_has_shares_and_sentence(self):
        result = self.run_amasia("run", "-n2", "-t1", "--share=always", "--stats", PROGRAM,
                                 AMASIA_LIBRARY=None)
        self.assertEqual((result.code, result.out), (0, "499500\n"), result)
        self.assertRegex(result.err, r"(?m)^\S.*  0\.\d\d : 0\.\d\d\n"
                         r"    shared 0\.\d\d : 0\.\d\d whatever it costs: ")
        for line in result.err.splitlines():
            self.assertLessEqual(len(line), 120, line)


class Profile(LaunchTest):
    def setUp(self):
        super().setUp()
        self.file = pathlib.Path(self.folder.name) / "stats.json"

    def run_once(self, *options):
        result = self.run_amasia("run", "-t1", f"--stats={self.file}", *options, PROGRAM, "1",
                                 AMASIA_LIBRARY=None)
        self.assertEqual((result.code, result.out), (0, "499500\n"), result)
        return json.loads(self.file.read_text())["regions"][0], result.err

    def skew(self):
        """What an earlier run has written: node 0 was three times as fast."""
        stats = json.loads(self.file.read_text())
        (region,) = stats["regions"]
        for node, (work, busy) in zip(region["per_node"], ((0.5, 1000), (0.5, 3000))):
            node.update(work=work, busy_ns=busy, stall_ns=0)
        path = pathlib.Path(self.folder.name) / "earlier.json"
        path.write_text(json.dumps(stats))
        return str(path)

    def test_a_region_begins_with_the_shares_of_an_earlier_run(self):
        before, err = self.run_once("-n2", "--profile", str(self.file))
        self.assertEqual(err, "", "the file that --stats writes need not be there yet")
        self.assertFalse(before["profiled"])
        self.assertEqual(before["csr"], [1, 1])
        # Nothing is handed out then, so that it ends as it begins.
        after, err = self.run_once("-n2", "--schedule=static", "--profile", self.skew())
        self.assertEqual(err, "")
        self.assertTrue(after["profiled"])
        self.assertAlmostEqual(after["csr"][1], 1 / 3, places=3)
        self.assertIn("it began as an earlier run had found (--profile)", after["reason"])
        # gcc's code divides its loops by threads then, of which each node has one.
        work = [node["work"] for node in after["per_node"]]
        self.assertIn(round(work[0], 1), (0.8, 0.5), "three parts of four, by pages")
        again, err = self.run_once("-n2", "--profile", str(self.file))
        self.assertEqual((again["profiled"], err), (True, ""))
        given, _ = self.run_once("-n2", "--profile", self.skew(), "--csr", "1,0.5")
        self.assertFalse(given["profiled"])
        self.assertEqual(given["csr"], [1, 0.5])

    def test_a_region_goes_on_alone_as_an_earlier_run_had(self):
        self.run_once("-n2")
        stats = json.loads(self.file.read_text())
        until = 10**12
        stats["regions"][0].update(phase="alone", until_retried_ns=until)
        self.file.write_text(json.dumps(stats))
        result = self.run_amasia("run", "-n2", "-t1", f"--stats={self.file}", "--profile",
                                 str(self.file), PROGRAM, AMASIA_LIBRARY=None)
        self.assertEqual((result.code, result.out, result.err), (0, "499500\n", ""))
        (region,) = json.loads(self.file.read_text())["regions"]
        self.assertEqual((region["phase"], region["alone"]["runs"], region["shared"]["runs"]),
                         ("alone", 10, 0))
        self.assertTrue(region["profiled"])
        self.assertAlmostEqual(until - region["until_retried_ns"], region["elapsed_ns"],
                               delta=10**6, msg="all of its executions count")
        self.assertIn("as an earlier run has found (--profile)", region["reason"])

    def test_one_that_is_of_no_use_is_told(self):
        self.run_once("-n2")
        region, err = self.run_once("-n3", "--profile", self.skew())
        self.assertFalse(region["profiled"])
        self.assertIn("is of a run on 2 nodes, not 3; regions begin as without", err)
        rubbish = pathlib.Path(self.folder.name) / "rubbish"
        rubbish.write_text("{}")
        for nodes in ("-n1", "-n2"):
            for path, why in ((str(rubbish), "is not what --stats=FILE writes: nodes is missing"),
                              ("/proc/no", "cannot read the statistics in '/proc/no'")):
                result = self.run_amasia("run", nodes, "--profile", path, PROGRAM,
                                         AMASIA_LIBRARY=None)
                self.assertEqual((result.code, result.out), (2, ""), result)
                self.assertIn("--profile: ", result.err)
                self.assertIn(why, result.err)
                self.assertEqual(result.err.count("\n"), 1)


class AtRunTime(LaunchTest):
    """schedule(runtime) loops, of both compilers: libomp's are static where nobody has asked for
    anything, libgomp's dynamic."""

    def loop(self, compiler, *options, arguments=(), **environment):
        program = pathlib.Path(self.folder.name) / compiler
        source = pathlib.Path(__file__).with_name("at_run_time.c")
        subprocess.run([compiler, "-O1", "-fopenmp", source, "-o", program], check=True)
        file = pathlib.Path(self.folder.name) / "stats.json"
        result = self.run_amasia("run", "-n2", "-t1", "--share=always", *options,
                                 f"--stats={file}", str(program), *arguments,
                                 AMASIA_LIBRARY=None, **environment)
        self.assertEqual((result.code, result.out), (0, "499500\n"), result)
        (region,) = json.loads(file.read_text())["regions"]
        (loop,) = region["loops"]
        return loop

    def schedule(self, *arguments, **environment):
        return self.loop(*arguments, **environment)["schedule"]

    def test_what_was_asked_for_counts(self):
        for compiler, default in (("clang-19", "static"), ("gcc-12", "dynamic")):
            with self.subTest(compiler):
                self.assertEqual(self.schedule(compiler), default)
                self.assertEqual(self.schedule(compiler, OMP_SCHEDULE="guided"), "guided")
                self.assertEqual(self.schedule(compiler, OMP_SCHEDULE="hetprobe"), "hetprobe")

    def test_what_nobody_has_set_is_handed_out_once(self):
        for arguments, asked, form in ((("1",), None, "parts"), (("1",), "static", "blocks"),
                                       (("1", "itself"), None, "blocks")):
            with self.subTest(arguments=arguments, asked=asked):
                loop = self.loop("clang-19", "--share=auto", arguments=arguments,
                                 OMP_SCHEDULE=asked)
                self.assertEqual(loop["form"], form)

    def test_the_option_comes_first(self):
        for compiler in ("clang-19", "gcc-12"):
            for asked in (None, "static", "static,16", "dynamic", "hetprobe"):
                with self.subTest(compiler=compiler, asked=asked):
                    self.assertEqual(self.schedule(compiler, "--schedule=hetprobe-i",
                                                   OMP_SCHEDULE=asked), "hetprobe-i")


class Refused(LaunchTest):
    def file(self, text):
        path = pathlib.Path(self.folder.name) / "other.json"
        path.write_bytes(text)
        return str(path)

    def test_arguments(self):
        for arguments in ((), ("a", "b")):
            self.assert_refused(self.run_amasia("explain", *arguments), "explain takes one file",
                                f"not {len(arguments)}")

    def test_no_file(self):
        self.assert_refused(self.run_amasia("explain", "not-there.json"), "'not-there.json'",
                            "No such file")
        self.assert_refused(self.run_amasia("explain", self.folder.name), self.folder.name,
                            "Is a directory")

    def test_what_is_none_of_ours(self):
        for text, part in ((b"", "is not JSON"), (b"\x7fELF", "is not JSON"),
                           (b"[1, 2]", "the whole is not an object"),
                           (b'{"nodes": []}', "regions is missing"),
                           (b'{"nodes": [], "regions": [{"site": "x"}]}',
                            "regions[0].runs is missing")):
            with self.subTest(text):
                path = self.file(text)
                self.assert_refused(self.run_amasia("explain", path), f"'{path}'", part)


if __name__ == "__main__":
    main()
