#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants each fault that tidy.py exists to find, one at a time, and asks that it is found."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

TIDY = pathlib.Path(__file__).with_name("tidy.py")
SPDX = "// SPDX-License-Identifier: Apache-2.0\n"


def findings(files):
    """The lines that tidy.py prints for a tree of two layers, `low` and `high`, plus `files`."""
    with tempfile.TemporaryDirectory() as root:
        tree = {"src/LAYERS": "low:\nhigh: low\n",
                "src/low/low.hpp": SPDX, "src/low/a.cpp": SPDX,
                "src/high/high.hpp": SPDX, "src/high/b.cpp": SPDX + '#include "low/low.hpp"\n'}
        tree.update(files)
        for name, text in tree.items():
            path = pathlib.Path(root, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            if text is not None:
                path.write_text(text)
        subprocess.run(["git", "init", "-q", root], check=True)
        run = subprocess.run([sys.executable, TIDY, root], capture_output=True, text=True)
        lines = run.stdout.splitlines()
        assert run.stderr == "", run.stderr
        assert (run.returncode == 1) == bool(lines)
        return lines


class Tidy(unittest.TestCase):
    def found(self, name, text, expected):
        lines = findings({name: text})
        self.assertEqual(len(lines), 1, lines)
        self.assertIn(expected, lines[0])

    def test_clean_tree(self):
        self.assertEqual(findings({}), [])

    def test_upward_include(self):
        self.found("src/low/a.cpp", SPDX + '#include "high/high.hpp"\n', "a.cpp:2: layer 'low'")

    def test_include_past_the_door(self):
        self.found("src/high/b.cpp", SPDX + '#include "low/inner.hpp"\n',
                   'only door is "low/low.hpp"')

    def test_folder_that_is_no_layer(self):
        self.found("src/other/c.cpp", SPDX, "not a layer")

    def test_missing_door(self):
        self.found("src/low/low.hpp", None, "no door header")

    def test_long_file(self):
        self.found("src/low/a.cpp", SPDX + "\n" * 800, "file of 801 lines")

    def test_long_line(self):
        self.found("src/low/a.cpp", SPDX + "//" + "x" * 99 + "\n", "line of 101 columns")

    def test_no_licence(self):
        self.found("src/low/a.cpp", "int x;\n", "no SPDX")

    def test_long_function(self):
        body = "void f() {\n" + "  g();\n" * 69 + "}\n"
        self.found("src/low/a.cpp", SPDX + "namespace n {\n" + body + "}\n",
                   "a.cpp:3: function of 71 lines")

    def test_longest_allowed_function(self):
        body = "void f() noexcept {\n" + "  if (x) { g('{', \"{\"); }  // {\n" * 68 + "}\n"
        self.assertEqual(findings({"src/low/a.cpp": SPDX + "struct S {\n" + body + "};\n"}), [])


if __name__ == "__main__":
    unittest.main()
