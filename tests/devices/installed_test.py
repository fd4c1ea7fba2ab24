#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installs the devices library under a prefix that the build did not know, and uses it there as a
user does: pkg-config, C, C++, minos.h, a policy, Python, the daemon, the tools."""

import argparse
import os
import pathlib
import re
import select
import shlex
import signal
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
OPTIONS = argparse.Namespace()
LIMIT = 240  # seconds after which something hangs


def output_of(*command, **keywords):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          timeout=LIMIT, check=False, **keywords)
    if done.returncode != 0:
        raise AssertionError(f"{command} ends with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.folder.name)
        first, cls.prefix = cls.root / "installed", cls.root / "moved"
        output_of("cmake", "--install", OPTIONS.build, "--component", "devices", "--prefix", first)
        cls.service = (first / "lib/systemd/user/amasia-deviced.service").read_text()
        cls.said_daemon = first / "bin" / "amasia-deviced"
        cls.daemon_was_there = os.access(cls.said_daemon, os.X_OK)
        first.rename(cls.prefix)  # what programs are built with does not name the prefix
        cls.libraries = next(cls.prefix.rglob("libamasia-devices.so")).parent
        cls.socket = cls.root / "run" / "devices.sock"
        cls.environment = {name: value for name, value in os.environ.items()
                           if not name.startswith("AMASIA_")}
        cls.environment.update(AMASIA_DEVICES_SOCKET=str(cls.socket),
                               AMASIA_DEVICES_BACKENDS="host",
                               LD_LIBRARY_PATH=str(cls.libraries))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def tearDown(self):
        """Ends the daemon that a program has started."""
        text = output_of(self.prefix / "bin" / "amasia", "devices", env=self.environment)
        found = re.search(r"^amasia-deviced (\d+),", text, re.MULTILINE)
        if found:
            daemon = int(found[1])
            self.assertEqual(pathlib.Path(f"/proc/{daemon}/exe").resolve(),
                             self.prefix.resolve() / "bin" / "amasia-deviced")
            watch = os.pidfd_open(daemon)
            os.kill(daemon, signal.SIGTERM)
            self.assertTrue(select.select([watch], [], [], LIMIT)[0], "the daemon does not end")
            os.close(watch)
        self.assertFalse(self.socket.parent.exists(), "the daemon leaves its socket")

    def flags(self, *which):
        return shlex.split(output_of(
            "pkg-config", *which, "amasia-devices",
            env={**os.environ, "PKG_CONFIG_PATH": str(self.libraries / "pkgconfig")}))

    def build(self, compiler, source, *more):
        program = self.root / source.replace(".", "_")
        output_of(compiler, "-O1", "-Wall", "-Wextra", "-Werror", *more, HERE / "package" / source,
                  "-o", program, *self.flags("--cflags", "--libs"))
        return output_of(program, env=self.environment)

    def test_a_c_program(self):
        for standard in ("c99", "c11"):
            said = self.build(OPTIONS.cc, "saxpy.c", f"-std={standard}", "-pedantic")
            self.assertEqual(said, "sum 5000\n")

    def test_a_program_of_the_original_library(self):
        self.assertEqual(self.build(OPTIONS.cc, "compatible.c"), "0\n")

    def test_a_cpp_program(self):
        self.assertEqual(self.build(OPTIONS.cxx, "saxpy.cpp", "-std=c++20"), "sum 5000\n")

    def test_a_policy(self):
        plugin = self.root / "shortest_first.so"
        output_of(OPTIONS.cc, "-shared", "-fPIC", *self.flags("--cflags"), "-o", plugin,
                  HERE.parent / "devices_policy" / "shortest_first.c")
        with subprocess.Popen([self.prefix / "bin" / "amasia-deviced", "--policy", plugin],
                              env=self.environment, stderr=subprocess.PIPE, text=True) as daemon:
            while not self.socket.exists() and daemon.poll() is None:
                pass
            self.assertEqual(self.build(OPTIONS.cc, "saxpy.c"), "sum 5000\n")
            daemon.terminate()
            self.assertEqual(daemon.communicate(timeout=LIMIT)[1], "")

    def test_python(self):
        interpreter = "/usr/bin/python3"
        if subprocess.run([interpreter, "-c", "import numpy"], capture_output=True,
                          check=False).returncode != 0:
            self.skipTest("needs Debian's python3-numpy")
        code = ("import numpy, amasia_devices as d\n"
                "with d.Session(workers=1) as s:\n"
                " s.add_host_kernel('nothing', lambda begin, end, addresses: None)\n"
                " x = numpy.zeros(4); s.run('nothing', 4, d.InOut(x)).get(); print(len(s.devices))")
        self.assertEqual(output_of(interpreter, "-B", "-c", code, env={
            **self.environment, "PYTHONPATH": str(SOURCE / "python")}), "1\n")

    def test_units_name_the_daemon_that_was_installed(self):
        self.assertTrue(self.daemon_was_there)
        self.assertIn(f'\nExecStart="{self.said_daemon}"\n', self.service)
        socket = (self.prefix / "lib/systemd/user/amasia-deviced.socket").read_text()
        self.assertIn("\nListenSequentialPacket=%t/amasia/devices.sock\n", socket)

    def test_the_tools(self):
        self.assertIn("no daemon runs", output_of(self.prefix / "bin" / "amasia", "devices",
                                                  env=self.environment))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--cc", required=True)
    parser.add_argument("--cxx", required=True)
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
