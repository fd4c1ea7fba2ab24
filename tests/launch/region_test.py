# SPDX-License-Identifier: Apache-2.0
"""What is said of nodes of the real runtime that die or stop in a region."""

import json
import os
import pathlib
import re
import signal
import subprocess
import time

from launcher import (AMASIA, BUILD, LaunchTest, finish, main, nodes_of, start,
                      started_at, wait_until)

PROGRAM = str(BUILD / "bin" / "launch_test_region")
REGION = r"in region \S+[^,;\n]*"


class Regions(LaunchTest):
    def tearDown(self):
        self.assert_nothing_left()

    def enter(self, what, *options, nodes=2):
        """A job whose last node stays in a region; its nodes' processes, by number."""
        began = time.monotonic()
        process = start("run", "-n", str(nodes), "--threads=1", *options, PROGRAM, what,
                        env=self.env(AMASIA_LIBRARY=None))
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "in a region\n")
        found = nodes_of(self.mark, PROGRAM)
        self.assertEqual(len(found), nodes)
        return process, began, sorted(found, key=started_at)

    def assert_lost(self, process, node, number, how):
        killed = time.monotonic()
        result = finish(process, killed)
        self.assertLess(result.seconds, 5)
        self.assertRegex(result.err, rf"(?m)^amasia: node {node} \(process {number}\) was killed "
                                     rf"by {how}(, waiting for [^;]*)?; the job ends$")
        return result

    def test_a_node_killed_in_a_region(self):
        for number in (signal.SIGKILL, signal.SIGSEGV):
            process, _, nodes = self.enter("stay", nodes=3)
            os.kill(nodes[2], number)
            result = self.assert_lost(process, 2, nodes[2], f"{number.name} while it was {REGION}")
            # What takes a node away is not the program's end; a fault is, wherever it came from.
            expected = 125 if number == signal.SIGKILL else -number
            self.assertEqual(result.code, expected, result)
            self.assert_nothing_left()

    def regions_of(self, name, compiler, *options):
        """What --stats says of a program of the corpus."""
        sources = pathlib.Path(__file__).resolve().parents[1] / "programs" / "c"
        folder = pathlib.Path(self.folder.name)
        program, stats = folder / f"{name}-{compiler}", folder / "stats.json"
        subprocess.run([compiler, "-O1", "-fopenmp", str(sources / f"{name}.c"), "-o",
                        str(program)], check=True)
        result = finish(start("run", "-n2", "--threads=2", f"--stats={stats}", *options,
                              str(program), env=self.env(AMASIA_LIBRARY=None)), time.monotonic())
        self.assertEqual((result.code, result.err), (0, ""), result)
        return json.loads(stats.read_text())["regions"]

    def test_a_program_that_executes_another_one_is_told_that_it_runs_alone(self):
        sources = pathlib.Path(__file__).resolve().parents[1] / "programs" / "c"
        program = pathlib.Path(self.folder.name) / "process_exec"
        subprocess.run(["gcc-12", "-O1", "-fopenmp", str(sources / "process_exec.c"), "-o",
                        str(program)], check=True)
        for nodes, said in ((1, ""), (3, "the program has executed '/bin/sh' in its own place "
                                         "(exec): the job of 3 nodes ends, and what follows runs "
                                         "on node 0 alone")):
            result = finish(start("run", f"-n{nodes}", str(program),
                                  env=self.env(AMASIA_LIBRARY=None)), time.monotonic())
            self.assertEqual((result.code, result.out), (5, "6\nreplaced\n"), result)
            self.assertEqual(re.sub(r"^amasia\S* ", "", result.err).strip(), said)

    def test_a_task_before_any_region_leaves_teams_their_size(self):
        for compiler in ("clang-19", "gcc-12"):
            regions = self.regions_of("task_forks_region", compiler)
            reasons = [region["single_node_reason"] for region in regions]
            self.assertEqual(len(reasons), 3)
            self.assertNotIn("it has one thread", reasons, compiler)

    def test_threads_stand_in_for_a_team_that_the_program_has_asked_for(self):
        # Loops that are too brief to be shared: four threads would take turns on a core.
        sources = pathlib.Path(__file__).resolve().parents[1] / "programs" / "c"
        program = pathlib.Path(self.folder.name) / "team_asked_for"
        subprocess.run(["gcc-12", "-O1", "-fopenmp", str(sources / "team_asked_for.c"), "-o",
                        str(program)], check=True)
        result = finish(start("run", "--emulate", "1.0,1.0", str(program),
                              env=self.env(AMASIA_LIBRARY=None, TELL_WAITS="1")),
                        time.monotonic())
        self.assertEqual((result.code, result.err), (0, ""), result)
        told = re.fullmatch(r"(\d+) waits in 800 regions\nas expected\n", result.out)
        self.assertTrue(told, result)
        self.assertLess(int(told[1]), 800)  # some 4800 where they take turns

    def test_regions_stay_only_while_the_program_has_mapped_memory(self):
        for compiler in ("clang-19", "gcc-12"):
            regions = self.regions_of("memory_mapped", compiler, "--share=always")
            stayed = [(region["runs"], region["single_node_runs"]) for region in regions]
            # Filled twice of four times while something is mapped, added up six times of eight.
            self.assertEqual(sorted(stayed), [(4, 2), (8, 6)], compiler)
            for region in regions:
                self.assertIn("mapped memory by itself", region["single_node_reason"])

    def run_region(self, what):
        began = time.monotonic()
        return finish(start("run", "-n2", "--threads=1", PROGRAM, what,
                            env=self.env(AMASIA_LIBRARY=None)), began)

    def run_plain(self, what):
        return subprocess.run([PROGRAM, what], env=self.env(OMP_NUM_THREADS="2"), text=True,
                              capture_output=True, check=False)

    def test_the_programs_own_signal_on_another_node_is_that_of_the_job(self):
        for what in ("crash", "abort", "assert", "raise", "kill"):
            result = self.run_region(what)
            plain = self.run_plain(what)
            self.assertLess(plain.returncode, 0, what)
            self.assertEqual(result.code, plain.returncode, result)
            name = signal.Signals(-plain.returncode).name
            said = (rf"^amasia: node 1 \(process \d+\) was killed by {name} while it was "
                    rf"{REGION}; the job ends\n$")
            self.assertRegex(result.err.removeprefix(plain.stderr), said)
            self.assertTrue(result.err.startswith(plain.stderr), result)
            self.assert_nothing_left()

    def test_what_a_node_has_written_is_not_lost_with_it(self):
        for _ in range(5):
            result = self.run_region("talk")
            self.assertEqual(result.code, -signal.SIGSEGV, result)
            for stream, first in ((result.out, 0), (result.err, 1)):
                found = [line for line in stream.splitlines() if line.startswith("line ")]
                self.assertEqual(found, [f"line {i}" for i in range(first, 2000, 2)])
            self.assert_nothing_left()

    def test_who_reads_what_a_program_of_a_script_writes_sees_its_end(self):
        for nodes in (1, 2):
            with self.subTest(nodes=nodes):
                result = self.run_amasia("run", "-n", str(nodes), "sh", "-c",
                                         f"{PROGRAM} leave | cat; echo and on",
                                         AMASIA_LIBRARY=None, OMP_NUM_THREADS="2")
                self.assertEqual((result.code, result.out), (0, "in a region\nand on\n"), result)

    def test_a_line_that_a_lost_node_had_begun_is_whole(self):
        result = self.run_region("begin")
        self.assertEqual(result.code, -signal.SIGSEGV, result)
        self.assertEqual(result.out.removeprefix("in a region\n"), "half a line")

    def test_a_program_that_another_node_may_not_start_is_refused_with_a_sentence(self):
        def told(text):
            return [line for line in text.splitlines() if line != "in a region"]

        result = self.run_region("start")
        self.assertEqual(result.code, 7, result)
        self.assertEqual(told(result.out), ["system -1 EPERM", "a shell: 0", "posix_spawnp EPERM",
                                            "posix_spawn EPERM", "vfork 1 EPERM"])
        for call in ("system", "posix_spawnp", "posix_spawn", "vfork"):
            said = rf"(?m)^amasia\[1\]: {call} is possible on node 0 only and fails here"
            self.assertRegex(result.err, said)
        self.assertEqual(told(self.run_plain("start").stdout),
                         ["system 768 0", "a shell: 1", "posix_spawnp 0", "posix_spawn 0",
                          "vfork 0 0"])

    def test_an_exit_on_another_node_is_that_of_the_job(self):
        for what in ("exit", "quick", "_exit"):
            result = self.run_region(what)
            self.assertEqual((result.code, result.err), (7, ""), what)

    def test_an_exit_ends_nodes_that_compute_and_keeps_what_they_printed(self):
        result = self.run_region("busy")
        self.assertEqual((result.code, result.err), (5, ""), result)
        self.assertEqual(sorted(result.out.splitlines()), ["computes", "in a region"])

    def test_a_limited_address_space_is_refused_with_what_is_needed(self):
        began = time.monotonic()
        limited = ["prlimit", "--as=4000000000", AMASIA, "run", "-n2", PROGRAM, "leave"]
        result = finish(subprocess.Popen(limited, env=self.env(AMASIA_LIBRARY=None), text=True,
                                         stdout=subprocess.PIPE, stderr=subprocess.PIPE), began)
        self.assertEqual((result.code, result.out), (2, ""), result)
        self.assertRegex(result.err, r"^amasia: node \d: cannot map managed memory .*"
                                     r"ulimit -v unlimited is needed\)\n$")

    def test_the_origin_killed_while_it_waits(self):
        process, _, nodes = self.enter("stay")
        os.kill(nodes[0], signal.SIGSEGV)
        result = self.assert_lost(process, 0, nodes[0], f"SIGSEGV while it was {REGION}")
        self.assertEqual(result.code, -signal.SIGSEGV, result)

    def watched(self, what, then=None):
        """The watchdog's sentence about each node."""
        process, began, nodes = self.enter(what, "--watchdog=1")
        if then is not None:
            os.kill(nodes[1], then)
        seen = ""
        while not re.search(r"(?m)^amasia: node 1 \(.*\n", seen):
            seen += process.stderr.readline()
        os.kill(nodes[0], signal.SIGKILL)
        finish(process, began)
        self.assertIn("no node has shown progress for 1 seconds", seen)
        return [re.search(rf"(?m)^amasia: node {node} \(process {nodes[node]}\) is (.*)$", seen)[1]
                for node in range(2)]

    def test_the_watchdog_names_a_stopped_node_and_who_waits_for_it(self):
        origin, other = self.watched("stay", signal.SIGSTOP)
        self.assertRegex(origin, rf"^{REGION}, waiting for the arrival at a barrier of node 1$")
        self.assertRegex(other, rf"^{REGION}, stopped by a signal$")

    def test_the_watchdog_names_a_lock(self):
        origin, other = self.watched("lock")
        self.assertRegex(origin, rf"^{REGION}, waiting for the lock .* at 0x[0-9a-f]+$")
        self.assertRegex(other, rf"^{REGION}$")


if __name__ == "__main__":
    main()
