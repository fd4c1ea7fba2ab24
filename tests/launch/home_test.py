# SPDX-License-Identifier: Apache-2.0
"""Programs whose only region does not pay: their threads come home in the middle of it, at a
barrier of its time loop, or out of a loop, or sections, that come to none."""

import json
import os
import pathlib
import signal
import subprocess
import time

from launcher import BUILD, LaunchTest, finish, main, nodes_of, start, started_at, wait_until

SOURCE = pathlib.Path(__file__).resolve().parents[1] / "programs" / "c" / "time_loop_inside.c"
PROGRAM = str(BUILD / "bin" / "launch_test_time_loop")
# As all counts below, so much that most of the program is still to come when sharing has cost what
# it may: one second where it is shared, half of that alone; several where memory is slow.
ADDITIONS = "100000000"
SCATTER = (str(BUILD / "bin" / "launch_test_scatter"), ADDITIONS)
HANDED_OUT = str(BUILD / "bin" / "launch_test_handed_out")
SLOW = "--link=100,200"


class Home(LaunchTest):
    def tearDown(self):
        self.assert_nothing_left()

    def build(self, name, compiler, *flags):
        program = str(pathlib.Path(self.folder.name) / f"{name}-{compiler}{''.join(flags)}")
        source = str(SOURCE.parent / f"{name}.c")
        subprocess.run([compiler, "-O2", "-fopenmp", *flags, source, "-o", program], check=True)
        return program

    def all_statistics(self, *options, threads, command):
        file = pathlib.Path(self.folder.name) / "stats.json"
        result = self.run_amasia("run", *options, f"--stats={file}", *command,
                                 AMASIA_LIBRARY=None, OMP_NUM_THREADS=str(threads))
        plain = subprocess.run(command, env=self.env(OMP_NUM_THREADS=str(threads)),
                               text=True, capture_output=True, check=True)
        self.assertEqual((result.code, result.out, result.err), (0, plain.stdout, ""))
        return json.loads(file.read_text())["regions"], str(file)

    def statistics(self, *options, threads, command=(PROGRAM, "3000")):
        (region,), file = self.all_statistics(*options, threads=threads, command=command)
        return region, file

    def test_it_goes_on_with_all_its_threads(self):
        for nodes, threads in ((2, 2), (3, 7)):
            region, file = self.statistics(f"-n{nodes}", threads=threads)
            self.assertEqual((region["runs"], region["nodes"], region["phase"]),
                             (1, nodes, "alone"))
            self.assertEqual(region["runs_come_home"], 1)
            self.assertGreater(region["lost_before_home_ns"], 0)
            self.assertLess(region["lost_before_home_ns"], region["elapsed_ns"])
            self.assertRegex(region["reason"], r"^brought home to node 0 on the way, as sharing "
                             r"had cost [\d.]+ m?s by then$")
            told = self.run_amasia("explain", file)
            self.assertIn(f"  {region['reason']}\n", told.out)

    def test_it_goes_on_in_the_middle_of_a_loop(self):
        for threads in (2, 4):
            region, _ = self.statistics("-n2", SLOW, threads=threads, command=SCATTER)
            self.assertEqual((region["runs"], region["phase"], region["runs_come_home"]),
                             (1, "alone", 1))
            self.assertGreater(region["lost_before_home_ns"], 0)

    def test_it_goes_on_in_the_middle_of_what_is_handed_out(self):
        for construct in ("loop", "guided", "sections"):
            region, _ = self.statistics("-n2", SLOW, threads=2,
                                        command=(HANDED_OUT, construct, ADDITIONS))
            self.assertEqual((region["phase"], region["runs_come_home"]), ("alone", 1), construct)

    def test_it_goes_on_in_the_middle_of_a_part(self):
        for compiler, constructs in (("clang-19", ("plain", "sum")), ("gcc-12", ("plain",))):
            program = self.build("scatter_in_parts", compiler)
            for construct in constructs:
                region, _ = self.statistics("-n2", SLOW, threads=2,
                                            command=(program, construct, ADDITIONS))
                self.assertEqual([loop["form"] for loop in region["loops"]], ["parts"])
                self.assertEqual((region["phase"], region["runs_come_home"]), ("alone", 1),
                                 (compiler, construct))

    def test_it_goes_on_between_calls_that_node_0_makes_for_it(self):
        for compiler in ("clang-19", "gcc-12"):
            program = self.build("lines_to_files", compiler)
            for threads in (2, 4):
                region, _ = self.statistics("-n2", SLOW, threads=threads,
                                            command=(program, "100000"))
                self.assertEqual((region["phase"], region["runs_come_home"]), ("alone", 1),
                                 (compiler, threads))

    def test_it_goes_on_where_threads_spin_on_what_others_write(self):
        for compiler in ("clang-19", "gcc-12"):
            program = self.build("wavefront_flags", compiler)
            for nodes in (2, 3):
                region, _ = self.statistics(f"-n{nodes}", threads=nodes, command=(program, "200"))
                self.assertEqual((region["phase"], region["runs_come_home"]), ("alone", 1),
                                 (compiler, nodes))

    def test_it_goes_on_where_threads_wait_for_each_other_in_calls(self):
        for name, iterations in (("doacross_sweep", "400"), ("ordered_chain", "200000"),
                                 ("lock_histogram", "10000000")):
            program = self.build(name, "clang-19")
            for nodes in (2, 3):
                region, _ = self.statistics(f"-n{nodes}", threads=nodes,
                                            command=(program, iterations))
                self.assertEqual((region["phase"], region["runs_come_home"]), ("alone", 1),
                                 (name, nodes))

    def test_it_goes_on_where_thread_local_variables_are_left_alone(self):
        for compiler in ("clang-19", "gcc-12"):
            program = self.build("threadprivate_waits", compiler)
            for nodes in (2, 3):
                regions, _ = self.all_statistics(f"-n{nodes}", threads=nodes,
                                                 command=(program, "6000"))
                come_home = [region["runs_come_home"] for region in regions]
                self.assertEqual(sorted(come_home), [0, 0, 1], (compiler, nodes))

    def test_it_goes_on_with_thread_local_variables(self):
        for compiler in ("clang-19", "gcc-12"):
            program = self.build("threadprivate_follows", compiler)
            for nodes in (2, 3):
                regions, _ = self.all_statistics(f"-n{nodes}", threads=nodes,
                                                 command=(program, "6000"))
                come_home = [region["runs_come_home"] for region in regions]
                self.assertEqual(sorted(come_home), [0, 1], (compiler, nodes))

    def test_it_stays_where_an_address_of_a_thread_local_variable_may_be_anywhere(self):
        for compiler in ("clang-19", "gcc-12"):
            program = self.build("threadprivate_follows", compiler, "-DTAKES_ADDRESS")
            regions, _ = self.all_statistics("-n2", threads=2, command=(program, "1000"))
            self.assertEqual([region["runs_come_home"] for region in regions], [0, 0], compiler)

    def test_it_stays_where_that_is_asked_for(self):
        for options in (("--share=always",), ("--share=threshold",)):
            region, _ = self.statistics("-n2", *options, threads=2)
            self.assertEqual(region["runs_come_home"], 0, options)

    def test_a_thread_that_has_come_may_end_the_program(self):
        program = str(pathlib.Path(self.folder.name) / "time_loop")
        # libomp's own end counts on being called by a thread that it knows.
        subprocess.run(["clang-19", "-O1", "-fopenmp", str(SOURCE), "-o", program, "-lm"],
                       check=True)
        result = self.run_amasia("run", "-n2", "--log-level=debug", program, "3000", "2500",
                                 AMASIA_LIBRARY=None, OMP_NUM_THREADS="4")
        self.assertEqual((result.code, result.out), (7, ""), result)
        self.assertIn("threads of other nodes come home", result.err)

    def test_a_thread_that_has_come_out_of_a_loop_may_end_the_program(self):
        result = self.run_amasia("run", "-n2", SLOW, "--log-level=debug", SCATTER[0],
                                 "400000000", "199999999", AMASIA_LIBRARY=None, OMP_NUM_THREADS="2")
        self.assertEqual((result.code, result.out), (7, ""), result)
        self.assertIn("threads of other nodes come home", result.err)

    def test_a_node_may_be_lost_at_any_time(self):
        for node, after in ((1, 0.2), (1, 0.5), (1, 1.5), (0, 1.5)):
            self.check_that_a_node_may_be_lost(node, after, (PROGRAM, "100000000"))

    def test_a_node_may_be_lost_in_a_loop(self):
        for node, after in ((1, 0.4), (1, 0.7), (1, 1.2), (0, 0.7)):
            self.check_that_a_node_may_be_lost(node, after, (SLOW, SCATTER[0], "4000000000"))

    def check_that_a_node_may_be_lost(self, node, after, command):
        program = next(word for word in command if word.startswith("/"))
        process = start("run", "-n2", *command,
                        env=self.env(AMASIA_LIBRARY=None, OMP_NUM_THREADS="4"))
        self.addCleanup(process.kill)
        wait_until(lambda: len(nodes_of(self.mark, program)) == 2, "both nodes run")
        lost = sorted(nodes_of(self.mark, program), key=started_at)[node]
        time.sleep(after)
        os.kill(lost, signal.SIGKILL)
        result = finish(process, time.monotonic())
        # As of a node that goes, and of a program that is killed.
        self.assertEqual(result.code, 125 if node == 1 else -signal.SIGKILL, result)
        self.assertIn(f"amasia: node {node} (process {lost}) was killed by SIGKILL", result.err)
        self.assertLess(result.seconds, 10)
        self.assert_nothing_left()


if __name__ == "__main__":
    main()
