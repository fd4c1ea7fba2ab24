# SPDX-License-Identifier: Apache-2.0
"""Nothing is left behind, whoever ends first."""

import os
import pathlib
import signal
import time

from launcher import LaunchTest, PROGRAM, finish, main, nodes_of, processes, start, wait_until


class Leftovers(LaunchTest):
    def tearDown(self):
        self.assert_nothing_left()

    def test_children_of_the_program(self):
        result = self.run_amasia("run", "-n2", PROGRAM, "spawn", "sleep 1000", "spawn",
                                 "setsid sleep 1000", "print", "x")
        self.assertEqual((result.code, result.out), (0, "x\n"))

    def test_a_program_left_in_the_background_by_a_shell(self):
        result = self.run_amasia("run", "-n2", "sh", "-c", f"{PROGRAM} sleep 1000 & sleep 0.3")
        self.assertEqual(result.code, 0, result)

    def killed(self, *command):
        began = time.monotonic()
        process = start("run", *command, env=self.env())
        self.assertEqual(process.stdout.readline(), "up\n")
        process.kill()
        self.assertEqual(finish(process, began).code, -signal.SIGKILL)
        self.assert_nothing_left()
        self.assertLess(time.monotonic() - began, 10)

    def test_a_killed_launcher(self):
        self.killed("-n3", PROGRAM, "print", "up", "sleep", "1000")

    def test_a_killed_launcher_below_a_shell_and_above_children(self):
        self.killed("-n2", "sh", "-c",
                    f"sleep 1000 & setsid sleep 1000 & {PROGRAM} print up sleep 1000; true")

    def test_launcher_and_keeper_killed_together(self):
        process = start("run", "-n3", "sh", "-c", f"{PROGRAM} print up sleep 1000; true",
                        env=self.env())
        self.assertEqual(process.stdout.readline(), "up\n")
        nodes = nodes_of(self.mark)
        self.assertEqual(len(nodes), 3)
        for child in processes(self.mark):
            if pathlib.Path(f"/proc/{child}/comm").read_text() == "amasia-keeper\n":
                os.kill(child, signal.SIGKILL)
        process.kill()
        process.communicate()

    def test_a_killed_origin(self):
        began = time.monotonic()
        process = start("run", "-n3", "sh", "-c", f"{PROGRAM} print up sleep 1000; exit $?",
                        env=self.env())
        self.assertEqual(process.stdout.readline(), "up\n")
        origin = [p for p in nodes_of(self.mark)
                  if os.getpgid(p) != p]  # peers have a process group of their own
        self.assertEqual(len(origin), 1)
        os.kill(origin[0], signal.SIGKILL)
        self.assertEqual(finish(process, began).code, 128 + signal.SIGKILL)

    def segments_of(self, result):
        return [line.split()[1] for line in result.err.splitlines() if line.startswith("segment")]

    def test_segments_of_the_openmp_runtime(self):
        for words in (["exit", "0"], ["kill", "9"]):
            result = self.run_amasia("run", "-n3", PROGRAM, *words, TEST_SEGMENTS="1")
            self.assertEqual(len(self.segments_of(result)), 3, result)
            for name in self.segments_of(result):
                self.assertFalse(os.path.exists("/dev/shm/" + name), result)

    def test_segments_after_a_killed_launcher(self):
        process = start("run", "-n2", PROGRAM, "print", "up", "sleep", "1000",
                        env=self.env(TEST_SEGMENTS="1"))
        self.assertEqual(process.stdout.readline(), "up\n")
        process.kill()
        result = finish(process, time.monotonic())
        self.assertEqual(len(self.segments_of(result)), 2, result)
        for name in self.segments_of(result):
            wait_until(lambda n=name: not os.path.exists("/dev/shm/" + n), f"{name} is removed")

    def test_many_short_jobs(self):
        for _ in range(20):
            self.assertEqual(self.run_amasia("run", "-n4", PROGRAM).code, 0)


if __name__ == "__main__":
    main()
