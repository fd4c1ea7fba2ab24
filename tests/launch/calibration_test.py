# SPDX-License-Identifier: Apache-2.0
"""What a job knows of its nodes: the brief calibration of a run, and `amasia calibrate`."""

import json
import os
import pathlib

from launcher import BUILD, LaunchTest, main

PROGRAM = str(BUILD / "bin" / "launch_test_program")
FIGURES = {"core_ops_per_s", "fault_latency_ns", "page_stream_ns", "break_even_ops_per_byte",
           "break_even_ns_per_fault"}


class Calibrating(LaunchTest):
    def setUp(self):
        super().setUp()
        self.file = pathlib.Path(self.folder.name, "sub", "calibration.json")

    def tearDown(self):
        self.assert_nothing_left()

    def amasia(self, *arguments, **changes):
        return self.run_amasia(*arguments, AMASIA_LIBRARY=None,
                               **{"AMASIA_CALIBRATION": str(self.file), **changes})

    def stored(self):
        document = json.loads(self.file.read_text())
        self.assertEqual(document["amasia_calibration"], 1)
        return document["calibrations"]

    def assert_complete(self, calibration, nodes, method):
        self.assertEqual(calibration["method"], method)
        self.assertEqual(len(calibration["identity"]["nodes"]), nodes)
        self.assertEqual(len(calibration["nodes"]), nodes)
        for number, node in enumerate(calibration["nodes"]):
            self.assertEqual(set(node), FIGURES)
            self.assertGreater(node["core_ops_per_s"], 1e6)
            for name in FIGURES - {"core_ops_per_s"}:
                (self.assertGreater if number > 0 else self.assertEqual)(node[name], 0)


class Brief(Calibrating):
    def run_on(self, nodes, *options, **changes):
        result = self.amasia("run", f"-n{nodes}", *options, PROGRAM, "parallel", **changes)
        self.assertEqual(result.code, 0, result)
        return result

    def test_a_run_measures_what_is_not_known_and_keeps_it(self):
        self.assertEqual(self.run_on(2).err, "")
        self.assert_complete(self.stored()[0], 2, "brief")
        before = self.file.read_bytes()
        self.run_on(2)
        self.assertEqual(self.file.read_bytes(), before)
        # Other nodes and links are others' figures.
        self.run_on(3)
        self.run_on(2, "--transport=tcp")
        found = self.stored()
        self.assertEqual([len(each["nodes"]) for each in found], [2, 3, 2])
        self.assertEqual(found[0]["identity"]["settings"], {"AMASIA_TRANSPORT": "tcp"})

    def test_one_with_care_that_does_not_fit_is_told_of(self):
        self.run_on(2)
        document = json.loads(self.file.read_text())
        document["calibrations"][0]["method"] = "full"
        self.file.write_text(json.dumps(document))
        self.assertEqual(self.run_on(2).err, "")
        result = self.run_on(3)
        self.assertIn(f"'{self.file}' has no calibration of this job (3 nodes on ", result.err)
        self.assertEqual(len(result.err.splitlines()), 1, result)

    def test_a_damaged_file_is_told_of_and_left(self):
        self.file.parent.mkdir()
        self.file.write_text("my thesis")
        result = self.run_on(2)
        self.assertIn(f"'{self.file}' is no JSON from byte 1 on; remove it", result.err)
        self.assertEqual(len(result.err.splitlines()), 1, result)
        self.assertEqual(self.file.read_text(), "my thesis")

    def test_a_place_that_cannot_be_written_is_told_of(self):
        self.file = pathlib.Path("/proc/no/calibration.json")
        self.assertIn("cannot make the folder '/proc/no'", self.run_on(2).err)
        # Where the user did not name it, the run goes on without a word.
        self.assertEqual(self.run_on(2, AMASIA_CALIBRATION=None, XDG_CONFIG_HOME="/proc/no").err,
                         "")

    def test_off_measures_nothing(self):
        home = self.folder.name
        self.run_on(2, AMASIA_CALIBRATION="off", XDG_CONFIG_HOME=home)
        self.assertEqual(os.listdir(home), [])


class Calibrate(Calibrating):
    def calibrate(self, *arguments, **changes):
        return self.amasia("calibrate", "--quick", *arguments, **changes)

    def test_two_nodes_with_table_file_and_plot(self):
        plot = pathlib.Path(self.folder.name, "curve's.png")
        # What is set for programs is not for this one.
        result = self.calibrate("-n", "2", "--plot", str(plot), OMP_NUM_THREADS="1")
        self.assertEqual(result.code, 0, result)
        self.assertEqual(result.err, "")
        heads, nodes, curves, end = result.out.split("\n\n")[:4]
        self.assertRegex(heads, r"^2 nodes on '.+'$")
        # Node 1: all figures, none of which is 0.
        figures = nodes.splitlines()[3].split()
        self.assertEqual(figures[0], "1")
        for figure in figures[2:7]:
            self.assertGreater(float(figure), 0)
        rows = [[float(word) for word in line.split()] for line in curves.splitlines()[2:]]
        self.assertGreaterEqual(len(rows), 6)
        for number, row in enumerate(rows):
            self.assertEqual(row[0], 4 ** number)
            self.assertTrue(all(figure > 0 for figure in row))
        self.assertIn(f"kept in '{self.file}'", end)
        self.assert_complete(self.stored()[0], 2, "quick")
        self.assertEqual(plot.read_bytes()[:8], b"\x89PNG\r\n\x1a\n")
        # A run finds it, and measures nothing.
        before = self.file.read_bytes()
        self.assertEqual(self.amasia("run", "-n2", PROGRAM, "parallel").err, "")
        self.assertEqual(self.file.read_bytes(), before)

    def test_a_core_has_one_thread_whatever_its_speed_is_said_to_be(self):
        result = self.calibrate("-n2", "--csr=1,0.25")
        self.assertEqual(result.code, 0, result)
        rows = result.out.split("\n\n")[1].splitlines()[2:4]
        cores = [node["cores"] for node in self.stored()[0]["identity"]["nodes"]]
        self.assertEqual([int(row.split()[1]) for row in rows], cores, result)

    def test_one_node_has_the_speed_of_its_cores_only(self):
        result = self.calibrate()
        self.assertEqual(result.code, 0, result)
        self.assertIn("one node has no link: only the speed of its cores was measured", result.out)
        self.assert_complete(self.stored()[0], 1, "quick")

    def test_without_gnuplot_all_else_is_there(self):
        plot = pathlib.Path(self.folder.name, "curve.png")
        result = self.calibrate("--plot", str(plot), PATH=self.folder.name)
        self.assertEqual(result.code, 1, result)
        self.assertIn("gnuplot is not installed (apt install gnuplot-nox)", result.err)
        self.assertIn("kept in", result.out)
        self.assertFalse(plot.exists())

    def test_bad_input(self):
        self.assert_refused(self.calibrate("--what"), "'--what' is not an option")
        self.assert_refused(self.calibrate("-n", "0"), "-n", "'0'", "1 to")
        self.assert_refused(self.calibrate(PROGRAM), f"'{PROGRAM}' is too much")
        self.assert_refused(self.calibrate("--plot"), "--plot: the value is missing")
        self.assert_refused(self.calibrate("--plot=/proc/no.png"), "--plot", "'/proc/no.png'")
        self.assert_refused(self.calibrate("--calibration=off"), "--calibration", "'off'")
        self.assert_refused(self.calibrate("--calibration=/proc/no/c"), "'/proc/no'")
        self.assert_refused(self.calibrate(AMASIA_CALIBRATION=None, HOME=None,
                                           XDG_CONFIG_HOME=None), "HOME", "--calibration")
        self.file.parent.mkdir(exist_ok=True)
        self.file.write_text("{}")
        self.assert_refused(self.calibrate(), f"'{self.file}' has no number", "remove it")


if __name__ == "__main__":
    main()
