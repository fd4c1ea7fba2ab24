# SPDX-License-Identifier: Apache-2.0
"""amasia doctor: a problem has advice and makes the exit code 1."""

import resource
import subprocess

from launcher import AMASIA, LaunchTest, PLAIN, PROGRAM, STATIC, main


class Doctor(LaunchTest):
    def doctor(self, *arguments, limits=()):
        def apply():
            for name, value in limits:
                resource.setrlimit(name, value)
        return subprocess.run([AMASIA, "doctor", *arguments], env=self.env(), text=True,
                              capture_output=True, preexec_fn=apply, check=False)

    def assert_problem(self, result, *parts):
        self.assertEqual(result.returncode, 1, result)
        lines = result.stdout.splitlines()
        at = next(i for i, line in enumerate(lines)
                  if line.startswith("PROBLEM") and all(part in line for part in parts))
        self.assertTrue(lines[at + 1].startswith("         -> "), result.stdout)

    def test_every_problem_has_advice(self):
        lines = self.doctor(PROGRAM).stdout.splitlines()
        for at, line in enumerate(lines):
            if line.startswith(("PROBLEM", "note")):
                self.assertIn("-> ", lines[at + 1])

    def test_what_it_looks_at(self):
        out = self.doctor(PROGRAM).stdout
        for thing in ("kernel: Linux", "userfaultfd", "address randomisation", "cores", "memory",
                      "overcommit", "ulimit -v", "ulimit -Hn", "ulimit -s", "/dev/shm", "UCX ",
                      "PMIx", "OpenMP runtime: libgomp", "hardware counters"):
            self.assertIn(thing, out)

    def test_limits(self):
        unlimited = resource.RLIM_INFINITY
        few = [(resource.RLIMIT_AS, (4 << 30, unlimited))]
        self.assert_problem(self.doctor(limits=few), "address space")
        few = [(resource.RLIMIT_NOFILE, (256, 1087))]
        self.assert_problem(self.doctor(limits=few), "open files", "1087", "1088")
        enough = [(resource.RLIMIT_NOFILE, (256, 1088))]
        self.assertIn("open files (ulimit -Hn): 1088", self.doctor(limits=enough).stdout)

    def test_programs(self):
        self.assert_problem(self.doctor("no-such-program"), "'no-such-program'")
        self.assert_problem(self.doctor(STATIC), "statically linked")
        self.assertIn("OpenMP runtime: none", self.doctor(PLAIN).stdout)

    def test_arguments(self):
        self.assertEqual(self.doctor("a", "b").returncode, 2)
        self.assertEqual(self.doctor("--what").returncode, 2)


if __name__ == "__main__":
    main()
