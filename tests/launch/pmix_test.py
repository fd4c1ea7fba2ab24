# SPDX-License-Identifier: Apache-2.0
"""Under mpirun each rank is a launcher, and rank k starts node k. And programs that use MPI
themselves: the job is one rank of theirs, whose first node calls MPI."""

import shutil
import subprocess
import unittest

from launcher import AMASIA, BUILD, LaunchTest, PATIENCE, PLAIN, PROGRAM, amasia, main

REGION_PROGRAM = str(BUILD / "bin" / "launch_test_region")
HYBRID = BUILD / "bin" / "launch_test_hybrid"
MPIRUN = ["mpirun", "--oversubscribe", "--allow-run-as-root", "--bind-to", "none"]


@unittest.skipUnless(shutil.which("mpirun"), "no mpirun here")
class UnderMpirun(LaunchTest):
    def tearDown(self):
        self.assert_nothing_left()

    def mpirun(self, ranks, *arguments, **changes):
        return subprocess.run([*MPIRUN, "-np", str(ranks), AMASIA, "run", *arguments],
                              env=self.env(**changes), text=True, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=PATIENCE, check=False)

    def test_ranks_are_nodes(self):
        for ranks in (1, 2, 3):
            result = self.mpirun(ranks, "--stats", PROGRAM, "print", "x", TEST_REPORT="1")
            self.assertEqual((result.returncode, result.stdout), (0, "x\n"), result)
            for node in range(ranks):
                self.assertIn(f"node {node} of {ranks} ", result.stderr)

    def test_the_exit_code_is_the_programs(self):
        result = self.mpirun(3, PROGRAM, "exit", "7")
        self.assertEqual(result.returncode, 7, result)

    def test_a_shell_runs_on_the_origin_only(self):
        result = self.mpirun(2, "sh", "-c", f"echo begin; {PROGRAM} print x", TEST_REPORT="1")
        self.assertEqual((result.returncode, result.stdout), (0, "begin\nx\n"), result)
        self.assertIn("node 1 of 2 ", result.stderr)

    def test_without_openmp(self):
        result = self.mpirun(2, PLAIN)
        self.assertEqual((result.returncode, result.stdout), (5, "plain\n"), result)
        self.assertEqual(result.stderr.count("origin alone"), 1, result)

    def test_a_lost_node_ends_the_job(self):
        command = [*MPIRUN, "-np", "3", AMASIA, "run", PROGRAM, "sleep", "1000"]
        with subprocess.Popen(command, env=self.env(TEST_NODE="1:crash"), text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as mpirun:
            try:
                _, errors = mpirun.communicate(timeout=15)
            except subprocess.TimeoutExpired:
                # Open MPI 4.1 now and then hangs in PMIx_server_finalize() after an abort, when
                # all its ranks have ended: that is what is asked for here.
                states = subprocess.run(["ps", "-o", "state=", "--ppid", str(mpirun.pid)],
                                        text=True, capture_output=True, check=False).stdout
                mpirun.kill()
                _, errors = mpirun.communicate()
                self.assertEqual(set(states.split()) - {"Z"}, set(), errors)
        self.assertNotEqual(mpirun.returncode, 0)
        self.assertIn("was killed by SIGSEGV while it was in region program.c:12", errors)

    def test_a_program_that_leaves_in_a_region(self):
        # A launcher on another host learns of that later than its node does.
        result = self.mpirun(3, "--threads=1", REGION_PROGRAM, "leave", AMASIA_LIBRARY=None)
        self.assertEqual((result.returncode, result.stdout), (5, "in a region\n"), result)
        self.assertNotIn("amasia[", result.stderr)

    def test_another_number_of_nodes_is_refused(self):
        result = self.mpirun(2, "-n3", PROGRAM)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("it takes 2, the size of its job", result.stderr)

    def test_fork_starts_nodes_below_one_rank(self):
        result = self.mpirun(1, "--bootstrap=fork", "-n2", PROGRAM, TEST_REPORT="1")
        self.assertEqual(result.returncode, 0, result)
        self.assertIn("node 1 of 2 ", result.stderr)


@unittest.skipUnless(HYBRID.exists(), "built without MPI")
class ProgramsWithMpi(LaunchTest):
    def tearDown(self):
        self.assert_nothing_left()

    def run_hybrid(self, nodes, *arguments):
        result = amasia("run", "-n", nodes, "--share=always", "--stats", str(HYBRID), *arguments,
                        env=self.env(AMASIA_LIBRARY=None))
        self.assertEqual((result.code, result.out), (0, "1 499500\n"), result)
        return result

    def test_run_as_a_single_rank(self):
        for nodes in ("1", "2", "3"):
            result = self.run_hybrid(nodes)
            self.assertIn("shares" if nodes == "1" else "whatever it costs", result.err)

    def test_that_may_call_mpi_on_any_thread_stay(self):
        result = self.run_hybrid("2", "multiple")
        self.assertIn("on node 0 only: its code may use what was loaded after", result.err)

    @unittest.skipUnless(shutil.which("mpirun"), "no mpirun here")
    def test_run_on_the_first_node_of_a_job_of_mpirun(self):
        result = subprocess.run([*MPIRUN, "-np", "2", AMASIA, "run", str(HYBRID)],
                                env=self.env(AMASIA_LIBRARY=None), text=True, capture_output=True,
                                stdin=subprocess.DEVNULL, timeout=PATIENCE, check=False)
        self.assertEqual((result.returncode, result.stdout), (0, "1 499500\n"), result)

    @unittest.skipUnless(shutil.which("mpirun"), "no mpirun here")
    def test_of_several_ranks_have_a_job_each(self):
        result = subprocess.run([*MPIRUN, "-np", "2", AMASIA, "run", "--bootstrap=fork", "-n", "2",
                                 str(HYBRID)], env=self.env(AMASIA_LIBRARY=None), text=True,
                                capture_output=True, stdin=subprocess.DEVNULL, timeout=PATIENCE,
                                check=False)
        self.assertEqual((result.returncode, result.stdout), (0, "2 999000\n2 999000\n"), result)


if __name__ == "__main__":
    main()
