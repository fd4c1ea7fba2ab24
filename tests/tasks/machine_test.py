#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`amasia machine`, and a program of the installed tasks library on what it writes: the file fits
its schema, the picture is SVG, edits are honoured, mistakes are named, and a trace is JSON."""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

HERE = pathlib.Path(__file__).resolve().parent
SCHEMA = HERE.parent.parent / "docs" / "platform.schema.json"
OPTIONS = argparse.Namespace()
KINDS = {"object": dict, "array": list, "string": str, "integer": int}


def flaw(value, schema, at="file"):
    """What of the schema's language the platform's uses; None: the value fits."""
    if "const" in schema and value != schema["const"]:
        return f"{at} is not {schema['const']}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{at} is none of {schema['enum']}"
    if "type" in schema and (not isinstance(value, KINDS[schema["type"]])
                             or isinstance(value, bool)):
        return f"{at} is no {schema['type']}"
    if isinstance(value, int) and not (
            schema.get("minimum", value) <= value <= schema.get("maximum", value)):
        return f"{at} is out of range"
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            return f"{at} has {len(value)} items"
        if schema.get("uniqueItems") and len(set(value)) != len(value):
            return f"{at} has an item twice"
        found = (flaw(one, schema["items"], f"{at}[{n}]") for n, one in enumerate(value))
        return next((one for one in found if one), None)
    if isinstance(value, dict):
        for name in schema.get("required", []):
            if name not in value:
                return f"{at} lacks {name}"
        for name, one in value.items():
            if name not in schema["properties"]:
                return f"{at} has {name}"
            found = flaw(one, schema["properties"][name], f"{at}.{name}")
            if found:
                return found
    return None


class Machine(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.folder.name)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_command(self, *words, **environment):
        return subprocess.run([str(word) for word in words], capture_output=True, text=True,
                              timeout=120, env={**os.environ, **environment})

    def amasia(self, *words):
        return self.run_command(OPTIONS.amasia, "machine", *words)

    def edited(self, edit):
        platform = json.loads(self.amasia().stdout)
        edit(platform)
        path = self.root / "edited.json"
        path.write_text(json.dumps(platform, indent=1))
        return path

    def test_the_file_fits_its_schema(self):
        schema = json.loads(SCHEMA.read_text())
        platform = json.loads(self.amasia().stdout)
        self.assertIsNone(flaw(platform, schema))
        platform["places"][0]["type"] = "moon"
        self.assertIn("places[0].type is none of", flaw(platform, schema))

    def test_it_comes_back_as_it_was_written(self):
        path = self.root / "same.json"
        path.write_text(self.amasia().stdout)
        self.assertEqual(self.amasia(path).stdout, path.read_text())

    def test_the_picture_is_svg(self):
        path = self.root / "picture.svg"
        self.assertEqual(self.amasia("--draw", path).returncode, 0)
        root = xml.etree.ElementTree.parse(path).getroot()
        self.assertTrue(root.tag.endswith("svg"))
        self.assertIn("memory", [text.text for text in root.iter() if text.text])

    def test_edits_are_honoured(self):
        def edit(platform):
            platform["places"].append({"name": "attic", "type": "other"})
            for worker in platform["workers"]:
                worker["steal"].append("attic")
            platform["workers"] = platform["workers"][:1] * 3
        path = self.edited(edit)
        done = self.run_command(OPTIONS.program, AMASIA_TASKS_PLATFORM=str(path))
        said = done.stdout.splitlines()
        self.assertEqual(said[:2], ["workers 3", "copied 1"], done)
        self.assertIn("at attic", said)
        self.assertNotIn("at another place", said)

    def test_mistakes_are_named(self):
        def edit(platform):
            platform["workers"][0]["pop"][0] = "moon"
        path = self.edited(edit)
        line = 1 + path.read_text()[:path.read_text().index('"moon"')].count("\n")
        wanted = (f"the platform file '{path}', line {line}: workers[0].pop[0] is 'moon', and no "
                  "place has that name")
        done = self.run_command(OPTIONS.program, AMASIA_TASKS_PLATFORM=str(path))
        self.assertEqual((done.returncode, done.stdout), (2, wanted + "\n"))
        done = self.amasia(path)
        self.assertEqual(done.returncode, 2)
        self.assertIn(wanted, done.stderr)

    def test_a_trace_is_json(self):
        pattern = self.root / "trace-%p.json"
        done = self.run_command(OPTIONS.program, AMASIA_TASKS_TRACE=str(pattern))
        self.assertEqual(done.returncode, 0, done)
        traces = list(self.root.glob("trace-*.json"))
        self.assertEqual(len(traces), 1)
        events = json.loads(traces[0].read_text())["traceEvents"]
        names = [event["name"] for event in events]
        self.assertEqual(names.count("a task at a place"), 3)
        self.assertIn("task", names)

    def test_statistics_are_json(self):
        pattern = self.root / "statistics-%p.json"
        done = self.run_command(OPTIONS.program, AMASIA_TASKS_STATISTICS=str(pattern))
        self.assertEqual(done.returncode, 0, done)
        written = list(self.root.glob("statistics-*.json"))
        self.assertEqual(len(written), 1)
        counted = json.loads(written[0].read_text())
        self.assertEqual(sum(worker["run"] for worker in counted["workers"]),
                         sum(place["run"] for place in counted["places"]))
        self.assertIn("interconnect", [place["place"] for place in counted["places"]])
        done = self.run_command(OPTIONS.program, AMASIA_TASKS_STATISTICS="-")
        self.assertEqual(done.returncode, 0, done)
        self.assertIn("tasks run", done.stdout + done.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--amasia", required=True)
    parser.add_argument("--program", required=True)
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
