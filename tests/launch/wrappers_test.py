# SPDX-License-Identifier: Apache-2.0
"""Shells and wrappers around the program run once; the program below them runs across nodes."""

import os
import pathlib
import sys

from launcher import LaunchTest, PROGRAM, main


class Wrappers(LaunchTest):
    def tearDown(self):
        self.assert_nothing_left()

    def nodes_seen(self, result):
        return sorted(line.split()[1] for line in result.err.splitlines()
                      if line.startswith("node "))

    def test_each_wrapper(self):
        script = os.path.join(self.folder.name, "script")
        with open(script, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\necho begin\n"{PROGRAM}" "$@"\n')
        os.chmod(script, 0o755)
        bare = os.path.join(self.folder.name, "bare")  # no #! line
        with open(bare, "w", encoding="utf-8") as file:
            file.write(f'"{PROGRAM}" "$@"\n')
        os.chmod(bare, 0o755)
        python = ("import subprocess, sys; "
                  f"sys.exit(subprocess.run([{PROGRAM!r}] + sys.argv[1:]).returncode)")
        words = ["print", "x", "exit", "9"]
        for wrapper, out in [(["timeout", "20", PROGRAM], "x\n"),
                             (["env", "A=b", PROGRAM], "x\n"),
                             (["nice", "-n", "1", PROGRAM], "x\n"),
                             (["bash", "-c", f'{PROGRAM} "$@"', "bash"], "x\n"),
                             ([sys.executable, "-c", python], "x\n"),
                             ([script], "begin\nx\n"), ([bare], "x\n")]:
            with self.subTest(wrapper):
                result = self.run_amasia("run", "-n2", *wrapper, *words, TEST_REPORT="1")
                self.assertEqual((result.code, result.out), (9, out), result)
                self.assertEqual(self.nodes_seen(result), ["0", "1"], result)

    def test_side_effects_happen_once(self):
        path = os.path.join(self.folder.name, "effects")
        result = self.run_amasia("run", "-n3", "bash", "-c",
                                 f"echo once >> {path}; {PROGRAM} print x; echo twice >> {path}")
        self.assertEqual((result.code, result.out), (0, "x\n"))
        self.assertEqual(pathlib.Path(path).read_text(encoding="utf-8"), "once\ntwice\n")

    def test_one_program_after_another(self):
        result = self.run_amasia("run", "-n3", "sh", "-c",
                                 f"{PROGRAM} print a exit 3; {PROGRAM} print b exit 4",
                                 TEST_REPORT="1")
        self.assertEqual((result.code, result.out), (4, "a\nb\n"))
        self.assertEqual(self.nodes_seen(result), ["0", "0", "1", "1", "2", "2"], result)

    def test_a_program_that_becomes_another_one(self):
        result = self.run_amasia("run", "-n2", PROGRAM, "print", "a", "exec",
                                 f"exec {PROGRAM} print b exit 6", TEST_REPORT="1")
        self.assertEqual((result.code, result.out), (6, "a\nb\n"))
        self.assertEqual(self.nodes_seen(result), ["0", "0", "1", "1"], result)

    def test_programs_started_by_the_origin_run_alone(self):
        result = self.run_amasia("run", "-n2", PROGRAM, "run", f"{PROGRAM} print inner",
                                 "print", "outer", TEST_REPORT="1")
        self.assertEqual((result.code, result.out), (0, "inner\nouter\n"))
        self.assertEqual(self.nodes_seen(result), ["0", "1"], result)

    def test_programs_side_by_side(self):
        result = self.run_amasia("run", "-n2", "sh", "-c",
                                 f"{PROGRAM} print a sleep 1 & {PROGRAM} print b sleep 1 & wait")
        self.assertEqual(result.code, 0, result)
        self.assertEqual(sorted(result.out.split()), ["a", "b"])

    def test_a_launcher_below_a_launcher(self):
        from launcher import AMASIA
        result = self.run_amasia("run", "-n2", AMASIA, "run", "-n3", PROGRAM, "exit", "8",
                                 TEST_REPORT="1")
        self.assertEqual(result.code, 8, result)
        self.assertIn("node 2 of 3", result.err)

    def test_the_stack_limit_of_a_wrapper_is_every_nodes(self):
        result = self.run_amasia("run", "-n2", "sh", "-c", f"ulimit -s 16384; umask 077; {PROGRAM}")
        self.assertEqual(result.code, 0, result)

    def test_a_command_that_fails_to_start_the_program(self):
        result = self.run_amasia("run", "-n2", "sh", "-c", "/not/there")
        self.assertEqual(result.code, 127)
        self.assertNotIn("origin alone", result.err)


if __name__ == "__main__":
    main()
