#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installs the tasks library, and builds and runs the example of docs/tasks.md against it: with
pkg-config and with CMake. The page's text is the example's."""

import argparse
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
EXAMPLE = HERE / "package" / "example.cpp"
OPTIONS = argparse.Namespace()


def output_of(*command, **keywords):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True,
                          text=True, timeout=120, **keywords).stdout


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.folder.name)
        cls.prefix = cls.root / "prefix"
        for component in ("tasks", "run"):
            output_of("cmake", "--install", OPTIONS.build, "--component", component,
                      "--prefix", cls.prefix)
        cls.libraries = next(cls.prefix.rglob("libamasia-tasks.so")).parent

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def check(self, program):
        said = output_of(program, env={**os.environ, "LD_LIBRARY_PATH": str(self.libraries)})
        self.assertEqual(sorted(said.splitlines()),
                         ["a task failed", "sum 4999950000", "twice 9999900000"])

    def build_with_pkg_config(self, source, package):
        flags = output_of("pkg-config", "--cflags", "--libs", package,
                          env={**os.environ,
                               "PKG_CONFIG_PATH": str(self.libraries / "pkgconfig")})
        program = self.root / source.stem
        output_of(OPTIONS.compiler, "-O1", "-Wall", "-Wextra", "-Werror", source, "-o", program,
                  *shlex.split(flags))
        return program

    def test_with_pkg_config(self):
        self.check(self.build_with_pkg_config(EXAMPLE, "amasia-tasks"))

    def test_a_program_of_ranks(self):
        if not (self.libraries / "pkgconfig" / "amasia-tasks-mpi.pc").exists():
            self.skipTest("the module mpi is not built here")
        program = self.build_with_pkg_config(HERE / "package" / "ring.cpp", "amasia-tasks-mpi")
        said = output_of(sys.executable, "-B", HERE.parent / "modules" / "ranks.py", "3", program,
                         env={**os.environ, "LD_LIBRARY_PATH": str(self.libraries)})
        self.assertEqual(said, "sum 4 of 3 ranks\n")

    def test_a_program_of_nodes(self):
        program = self.build_with_pkg_config(HERE / "package" / "nodes.cpp", "amasia-tasks-nodes")
        env = {**os.environ, "LD_LIBRARY_PATH": str(self.libraries)}
        primes = "78498 primes\n"
        self.assertEqual(output_of(program, env=env),
                         f"node 0 says 0\n{primes}a task failed\n")
        env.pop("AMASIA_LIBRARY", None)  # the installed command finds its library by itself
        amasia = self.prefix / "bin" / "amasia"
        self.assertEqual(output_of(amasia, "run", "-n", "3", program, env=env),
                         "node 0 says 0\nnode 1 says 10\nnode 2 says 20\n"
                         f"{primes}node 2: a task failed\n")
        code = (HERE / "package" / "nodes.cpp").read_text().split("\n", 1)[1]
        self.assertIn(code, (HERE.parent.parent / "docs" / "nodes.md").read_text())

    def test_what_cannot_travel_does_not_compile(self):
        flags = output_of("pkg-config", "--cflags", "amasia-tasks-nodes",
                          env={**os.environ,
                               "PKG_CONFIG_PATH": str(self.libraries / "pkgconfig")})
        for statement, sentence in (
                ("nodes::async_at(nodes::at(0), [n] { (void)n; })", None),
                ("nodes::async_at(nodes::at(0), [text] { (void)text; })",
                 "a callable that other nodes may run travels as bytes"),
                ("nodes::async_any(function)", "a pointer to a function means nothing on another"),
                ("nodes::async_future_any([] { return std::string(); })",
                 "the result of a callable that other nodes may run travels as bytes")):
            source = self.root / "travels.cpp"
            source.write_text("#include <amasia/nodes.hpp>\n#include <string>\n"
                              "namespace nodes = amasia::nodes;\nvoid function();\n"
                              "void send(int n, std::string text) {\n"
                              f"  (void)n; (void)text; {statement};\n}}\n")
            done = subprocess.run([OPTIONS.compiler, "-fsyntax-only", *shlex.split(flags), source],
                                  capture_output=True, text=True, timeout=120, check=False)
            self.assertEqual(done.returncode == 0, sentence is None, done.stderr)
            self.assertIn(sentence or "", done.stderr)

    def test_the_schema_of_platforms_is_there(self):
        schema = json.loads((self.prefix / "share" / "amasia" / "platform.schema.json").read_text())
        self.assertIn("workers", schema["properties"])

    def test_places(self):
        program = self.build_with_pkg_config(HERE / "package" / "places.cpp", "amasia-tasks")
        said = output_of(program, env={**os.environ, "LD_LIBRARY_PATH": str(self.libraries)})
        self.assertIn("copied 1\n", said)
        self.assertIn("at interconnect\n", said)

    def test_with_cmake(self):
        build = self.root / "with_cmake"
        output_of("cmake", "-G", "Ninja", "-S", HERE / "package", "-B", build,
                  f"-DCMAKE_PREFIX_PATH={self.prefix}", f"-DCMAKE_CXX_COMPILER={OPTIONS.compiler}")
        output_of("cmake", "--build", build)
        self.check(build / "example")

    def configure_modules(self, build, prefix, *modules):
        return subprocess.run(
            ["cmake", "-G", "Ninja", "-S", HERE / "package" / "modules", "-B", build,
             f"-DMODULES={';'.join(modules)}", f"-DCMAKE_PREFIX_PATH={prefix}",
             f"-DCMAKE_CXX_COMPILER={OPTIONS.compiler}"],
            text=True, capture_output=True, timeout=120, check=False)

    def test_modules_with_cmake(self):
        package = self.libraries / "cmake" / "amasia-tasks"
        modules = sorted(file.name.removeprefix("amasia-tasks-").removesuffix("Targets.cmake")
                         for file in package.glob("amasia-tasks-*Targets.cmake"))
        self.assertIn("nodes", modules)
        for module in modules:
            with self.subTest(module=module):
                package_file = self.libraries / "pkgconfig" / f"amasia-tasks-{module}.pc"
                self.assertTrue(package_file.exists())
        # Moved after it was installed: nothing in there may name where it was.
        output_of("cmake", "--install", OPTIONS.build, "--component", "devices",
                  "--prefix", self.root / "first")
        for component in ("tasks", "run"):
            output_of("cmake", "--install", OPTIONS.build, "--component", component,
                      "--prefix", self.root / "first")
        prefix = (self.root / "first").rename(self.root / "moved")
        build = self.root / "modules_with_cmake"
        done = self.configure_modules(build, prefix, *modules)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        output_of("cmake", "--build", build)
        self.assertIn("78498 primes\n", output_of(build / "nodes"))
        if "storage" in modules:
            self.assertEqual(output_of(build / "begins_storage"), "storage\n")
        if "mpi" in modules:
            said = output_of(sys.executable, "-B", HERE.parent / "modules" / "ranks.py", "2",
                             build / "ring")
            self.assertEqual(said, "sum 2 of 2 ranks\n")

    def test_what_is_missing_is_named(self):
        done = self.configure_modules(self.root / "missing", self.prefix, "nonsense")
        self.assertNotEqual(done.returncode, 0)
        message = " ".join(done.stderr.split())
        self.assertIn("there is no component 'nonsense' in this installation, which has: ", message)
        self.assertIn("nodes", message)
        # The component devices of this module's library is not installed here.
        done = self.configure_modules(self.root / "missing", self.prefix, "devices")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("the component 'devices' needs the component devices of Amasia to be "
                      "installed, too", " ".join(done.stderr.split()))

    def test_the_page_shows_the_example(self):
        code = EXAMPLE.read_text().split("\n", 1)[1]
        self.assertIn(code, (HERE.parent.parent / "docs" / "tasks.md").read_text())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--compiler", required=True)
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
