# SPDX-License-Identifier: Apache-2.0
"""What is said of nodes of the real runtime that die or stop in a region."""

import os
import pathlib
import re
import signal
import time

from launcher import BUILD, LaunchTest, finish, main, processes, start, wait_until

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
        found = [p for p in processes(self.mark) if os.readlink(f"/proc/{p}/exe") == PROGRAM]
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
            self.assertEqual(result.code, 125, result)
            self.assert_nothing_left()

    def test_a_node_whose_program_crashes(self):
        for what, signal_name in (("crash", "SIGSEGV"), ("abort", "SIGABRT")):
            began = time.monotonic()
            result = finish(start("run", "-n2", "--threads=1", PROGRAM, what,
                                  env=self.env(AMASIA_LIBRARY=None)), began)
            self.assertEqual(result.code, 125, result)
            self.assertRegex(result.err, rf"node 1 \(process \d+\) was killed by {signal_name} "
                                         rf"while it was {REGION}; the job ends")

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


def started_at(process):
    stat = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return int(stat[19]), process


if __name__ == "__main__":
    main()
