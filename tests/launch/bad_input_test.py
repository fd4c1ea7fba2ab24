# SPDX-License-Identifier: Apache-2.0
"""Bad input: one sentence that names the thing and what is allowed, exit code 2, nothing left."""

import os
import pathlib
import resource
import struct

from launcher import LaunchTest, PLAIN, PROGRAM, STATIC, amasia, main


class BadProgram(LaunchTest):
    def make(self, name, content, mode=0o755):
        path = pathlib.Path(self.folder.name) / name
        path.write_bytes(content)
        path.chmod(mode)
        return str(path)

    def test_not_on_path(self):
        self.assert_refused(self.run_amasia("run", "-n", "2", "no-such-program-here"),
                            "'no-such-program-here'", "no such program on PATH")

    def test_no_such_file(self):
        for nodes in ("1", "2"):
            self.assert_refused(self.run_amasia("run", "-n", nodes, "./not/there"),
                                "'./not/there'", "there is no such program")

    def test_folder(self):
        self.assert_refused(self.run_amasia("run", "-n2", self.folder.name), "is a folder")

    def test_not_executable(self):
        path = self.make("data", b"#!/bin/sh\n", 0o644)
        self.assert_refused(self.run_amasia("run", "-n2", path), path, "not executable", "chmod")

    def test_neither_program_nor_script(self):
        path = self.make("noise", bytes(range(256)))
        self.assert_refused(self.run_amasia("run", "-n2", path), path,
                            "neither a program nor a script")

    def test_other_machine(self):
        head = bytearray(pathlib.Path(PROGRAM).read_bytes()[:4096])
        other = 183 if os.uname().machine == "x86_64" else 62
        head[18:20] = struct.pack("<H", other)
        path = self.make("foreign", bytes(head))
        for nodes in ("1", "2"):
            self.assert_refused(self.run_amasia("run", "-n", nodes, path), path,
                                "is a program for", "this machine runs")

    def test_damaged(self):
        path = self.make("short", pathlib.Path(PROGRAM).read_bytes()[:80])
        self.assert_refused(self.run_amasia("run", "-n2", path), path, "damaged")

    def test_static(self):
        self.assert_refused(self.run_amasia("run", "-n2", STATIC), STATIC,
                            "statically linked", "-n 1")
        plain = self.run_amasia("run", "-n1", STATIC)
        self.assertEqual((plain.code, plain.out), (5, "plain\n"))

    def test_setuid(self):
        path = self.make("privileged", pathlib.Path(PROGRAM).read_bytes(), 0o4755)
        self.assert_refused(self.run_amasia("run", "-n2", path), path, "setuid")

    def test_without_openmp_runs_and_says_so_once(self):
        result = self.run_amasia("run", "-n", "3", PLAIN)
        self.assertEqual((result.code, result.out), (5, "plain\n"))
        self.assertEqual(result.err.count("origin alone"), 1, result)
        self.assertEqual(len(result.err.splitlines()), 1, result)


class BadOption(LaunchTest):
    def test_values(self):
        for arguments, parts in [
                (["-n", "0"], ["-n", "'0'", "from 1 to 64"]),
                (["-n", "65"], ["-n", "'65'", "from 1 to 64"]),
                (["--nodes=two"], ["--nodes", "'two'", "from 1 to 64"]),
                (["--timeout=0"], ["--timeout", "'0'", "from 1 to 86400"]),
                (["--transport=carrier"], ["--transport", "'carrier'", "auto, tcp or shm"]),
                (["--bootstrap=ssh"], ["--bootstrap", "'ssh'", "auto, fork or pmix"]),
                (["--bootstrap=pmix"], ["--bootstrap", "'pmix'", "mpirun"]),
                (["--no-such"], ["'--no-such'", "is not an option", "amasia options"]),
                (["--nodes"], ["--nodes", "missing"]),
                (["--library=/none.so", "-n2"], ["/none.so", "AMASIA_LIBRARY"])]:
            with self.subTest(arguments):
                tail = [] if arguments == ["--nodes"] else [PROGRAM]
                self.assert_refused(self.run_amasia("run", *arguments, *tail), *parts)

    def test_statistics_that_cannot_be_written(self):
        for path in (self.folder.name, "/proc/no/stats.json"):
            for nodes in ("1", "2"):
                # The program would print.
                self.assert_refused(self.run_amasia("run", "-n", nodes, f"--stats={path}", PROGRAM),
                                    "--stats", f"'{path}'")

    def test_limit_of_open_files(self):
        result = amasia("run", "-n", "2", PROGRAM, env=self.env(),
                        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20)))
        self.assert_refused(result, "ulimit -Hn", "20", "needs 1088")

    def test_variables(self):
        for name, value, part in [("AMASIA_NODES", "-1", "from 1 to 64"),
                                  ("AMASIA_BIND", "yes", "0 or 1"),
                                  ("AMASIA_LOG_LEVEL", "loud", "error, warning, info or debug"),
                                  ("AMASIA_START_TIMEOUT", "1.5", "from 1 to 86400")]:
            with self.subTest(name):
                self.assert_refused(self.run_amasia("run", PROGRAM, **{name: value}), name, value,
                                    part)

    def test_misspelt_variable_is_named_and_the_program_runs(self):
        result = self.run_amasia("run", PROGRAM, "print", "x", AMASIA_NODE="2")
        self.assertEqual((result.code, result.out), (0, "x\n"))
        self.assertIn("AMASIA_NODE is no option", result.err)

    def test_commands(self):
        self.assert_refused(self.run_amasia(), "which command?")
        self.assert_refused(self.run_amasia("ruin"), "'ruin'", "run, explain, calibrate, doctor")
        self.assert_refused(self.run_amasia("run"), "which program?")

    def test_preload_path_that_the_loader_cannot_take(self):
        path = pathlib.Path(self.folder.name) / "a b.so"
        path.write_bytes(b"")
        self.assert_refused(self.run_amasia("run", "-n2", PROGRAM, AMASIA_LIBRARY=str(path)),
                            "a space or a colon")


if __name__ == "__main__":
    main()
