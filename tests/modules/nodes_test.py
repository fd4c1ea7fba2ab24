# SPDX-License-Identifier: Apache-2.0
"""Programs of the nodes module as jobs: of one to four nodes, under mpirun, in network namespaces;
what is said when a node dies, leaves, or is of another build; and that idle nodes use no CPU."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "launch"))

from launcher import AMASIA, BUILD, LaunchTest, PATIENCE, main, start  # noqa: E402

PROGRAM = str(BUILD / "bin" / "nodes_module_program")
MPIRUN = ["mpirun", "--oversubscribe", "--allow-run-as-root", "--bind-to", "none"]
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def cpu_seconds(process):
    fields = pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


class Job(LaunchTest):
    def tearDown(self):
        self.assert_nothing_left()

    def env(self, **changes):
        return super().env(AMASIA_LIBRARY=None, **changes)

    def job(self, nodes, *arguments, options=(), **changes):
        return self.run_amasia("run", "-n", str(nodes), *options, PROGRAM, *arguments, **changes)

    def test_any_number_of_nodes(self):
        for nodes in (1, 2, 3, 4):
            for workers in ("1", "2"):
                with self.subTest(nodes=nodes, workers=workers):
                    result = self.job(nodes, "tests", workers, NODES=str(nodes))
                    self.assertEqual((result.code, result.out, result.err),
                                     (0, f"0 failures on {nodes} nodes\n", ""), result)

    def test_without_amasia_run(self):
        done = subprocess.run([PROGRAM, "tests", "2"], env=self.env(NODES="1"), text=True,
                              capture_output=True, timeout=PATIENCE, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, "0 failures on 1 nodes\n"), done)

    @unittest.skipUnless(shutil.which("mpirun"), "no mpirun here")
    def test_ranks_of_mpirun(self):
        for ranks in (1, 2, 4):
            done = subprocess.run([*MPIRUN, "-np", str(ranks), AMASIA, "run", PROGRAM, "tests"],
                                  env=self.env(NODES=str(ranks)), text=True, capture_output=True,
                                  stdin=subprocess.DEVNULL, timeout=PATIENCE, check=False)
            self.assertEqual((done.returncode, done.stdout),
                             (0, f"0 failures on {ranks} nodes\n"), done)

    def test_hosts_of_their_own(self):
        result = self.job(3, "tests", options=["--netns"], NODES="3")
        if result.code == 2 and "--netns" in result.err:
            self.skipTest(result.err.strip())
        self.assertEqual((result.code, result.out), (0, "0 failures on 3 nodes\n"), result)

    def test_slower_links(self):
        result = self.job(2, "tests", options=["--link=200"], NODES="2")
        self.assertEqual((result.code, result.out), (0, "0 failures on 2 nodes\n"), result)

    def test_idle_nodes_use_no_cpu_and_a_killed_one_ends_the_job(self):
        for victim in (0, 1, 2):
            job = start("run", "-n", "3", PROGRAM, "wait", env=self.env())
            processes = []
            for node in range(3):
                line = job.stdout.readline().split()
                self.assertEqual(line[:3], ["node", str(node), "is"])
                processes.append(int(line[3]))
            before = [cpu_seconds(process) for process in processes]
            time.sleep(1)
            used = [cpu_seconds(now) - then for now, then in zip(processes, before)]
            self.assertLess(max(used), 0.1)
            os.kill(processes[victim], signal.SIGKILL)
            _, errors = job.communicate(timeout=PATIENCE)
            self.assertEqual(job.returncode, 125 if victim != 0 else -signal.SIGKILL, errors)
            self.assertIn(f"node {victim} (process {processes[victim]}) was killed by SIGKILL",
                          errors)

    def test_a_crash_is_named(self):
        result = self.job(3, "crash")
        self.assertEqual(result.code, -signal.SIGSEGV, result)
        self.assertIn("node 1 (process", result.err)
        self.assertIn("was killed by SIGSEGV", result.err)
        self.assertEqual(len(result.err.strip().splitlines()), 1, result)

    def test_a_deadlock_is_reported_with_who_waits_where(self):
        for nodes, workers in ((1, 1), (2, 2), (3, 1)):
            with self.subTest(nodes=nodes, workers=workers):
                result = self.job(nodes, "deadlock", str(workers))
                self.assertEqual(result.code, -signal.SIGABRT, result)
                self.assertIn("deadlock: no task ", result.err)
                self.assertIn("1 task waits\n", result.err)
                self.assertIn("a task waits for a future at ", result.err)
                self.assertIn("nodes_program.cpp:", result.err)

    def test_a_deadlock_of_tasks_on_different_nodes(self):
        result = self.job(3, "deadlock-away", "2")
        self.assertEqual(result.code, -signal.SIGABRT, result)
        self.assertIn("deadlock: no task on any of 3 nodes can run, and 3 tasks wait", result.err)
        for line in ("node 0: a task waits in finish at ", "node 0: a task waits for a future at ",
                     "node 2: a task waits for a future at "):
            self.assertEqual(result.err.count(line), 1, result)

    def test_who_hears_of_a_deadlock_may_end_it(self):
        for nodes in (1, 2, 4):
            with self.subTest(nodes=nodes):
                result = self.job(nodes, "deadlock-ended", "2")
                self.assertEqual((result.code, result.out, result.err),
                                 (0, f"0 failures on {nodes} nodes\n", ""), result)

    def test_a_node_that_leaves_is_named(self):
        result = self.job(2, "leave")
        self.assertEqual(result.code, 125, result)
        self.assertIn("ended with exit code 3", result.err)

    def test_the_origin_may_exit(self):
        result = self.job(3, "exit")
        self.assertEqual((result.code, result.out, result.err), (4, "", ""), result)

    def test_what_is_thrown_leaves_run(self):
        result = self.job(2, "throw")
        self.assertEqual((result.code, result.out), (0, "thrown\n0 failures on 2 nodes\n"), result)

    def test_other_builds_are_refused(self):
        folder = pathlib.Path(self.folder.name)
        library = folder / "libnodes_test_library.so"
        for nodes in (1, 2):
            shutil.copy(BUILD / "lib" / "libnodes_test_library.so", library)
            shutil.copy(BUILD / "lib" / "libnodes_test_library_other.so", folder / "other.so")
            result = self.job(nodes, "swap", str(folder / "other.so"), str(library),
                              LD_LIBRARY_PATH=str(folder))
            if nodes == 1:
                self.assertEqual((result.code, result.out), (0, "1 nodes, 1\n"), result)
                continue
            self.assert_refused(result, "node 1: the nodes are not of one program",
                                "'libnodes_test_library.so' has build id", "on node 0")


if __name__ == "__main__":
    main()
