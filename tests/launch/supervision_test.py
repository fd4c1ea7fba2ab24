# SPDX-License-Identifier: Apache-2.0
"""Exit codes, signals, standard files, lost nodes."""

import os
import pathlib
import pty
import signal
import time
import unittest

from launcher import AMASIA, LaunchTest, PROGRAM, finish, main, nodes_of, start, wait_until


class Ends(LaunchTest):
    def tearDown(self):
        self.assert_nothing_left()

    def test_exit_code_is_the_programs(self):
        for nodes in ("1", "2", "5"):
            for code in (0, 1, 42, 255):
                result = self.run_amasia("run", "-n", nodes, PROGRAM, "print", "x", "exit",
                                         str(code))
                self.assertEqual((result.code, result.out, result.err), (code, "x\n", ""), nodes)

    def test_one_node_runs_under_the_launcher_for_statistics(self):
        result = self.run_amasia("run", "-n1", "--stats", PROGRAM, "exit", "7", TEST_REPORT="1")
        self.assertEqual(result.code, 7)
        self.assertIn("node 0 of 1", result.err)

    def test_signal_is_the_programs(self):
        for nodes in ("1", "2"):
            for number in (signal.SIGTERM, signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL):
                result = self.run_amasia("run", "-n", nodes, PROGRAM, "kill", str(number.value))
                self.assertEqual(result.code, -number, result)
                named = nodes == "2" and number != signal.SIGTERM
                self.assertEqual(number.name in result.err, named, result)

    def test_all_nodes_start_alike(self):
        result = self.run_amasia("run", "-n3", PROGRAM, cwd=self.folder.name, TEST_REPORT="1")
        self.assertEqual(result.code, 0, result)
        for node in range(3):
            self.assertIn(f"node {node} of 3 in {os.path.realpath(self.folder.name)} ", result.err)

    def test_input_goes_to_the_origin(self):
        text = "line\n" * 10000
        result = self.run_amasia("run", "-n3", PROGRAM, "cat", text=text)
        self.assertEqual((result.code, result.out), (0, text))

    def test_output_after_redirection_by_a_shell(self):
        path = os.path.join(self.folder.name, "out")
        result = self.run_amasia("run", "-n2", "sh", "-c", f"{PROGRAM} print x > {path} 2>&1",
                                 TEST_REPORT="1")
        self.assertEqual((result.code, result.out, result.err), (0, "", ""))
        written = pathlib.Path(path).read_text(encoding="utf-8")
        self.assertIn("node 0 of 2", written)
        self.assertIn("node 1 of 2", written)
        self.assertIn("x\n", written)


@unittest.skipUnless(os.geteuid() == 0, "network namespaces need root")
class Namespaces(LaunchTest):
    def tearDown(self):
        self.assert_nothing_left()

    def test_nodes_do_not_see_each_others_network(self):
        links = set(os.listdir("/sys/class/net"))
        result = self.run_amasia("run", "-n3", "--netns", "sh", "-c",
                                 f"ip -o -4 address show dev eth0; {PROGRAM} exit 4",
                                 TEST_REPORT="1")
        self.assertEqual(result.code, 4, result)
        self.assertIn("10.96.0.1/24", result.out)
        self.assertIn("node 2 of 3", result.err)
        self.assertEqual(set(os.listdir("/sys/class/net")), links)


class LostNodes(LaunchTest):
    def tearDown(self):
        self.assert_nothing_left()

    def test_a_crash_names_node_process_signal_and_region(self):
        result = self.run_amasia("run", "-n3", PROGRAM, "sleep", "100", TEST_NODE="1:crash")
        self.assertEqual(result.code, -signal.SIGSEGV, result)
        self.assertLess(result.seconds, 5)
        self.assertRegex(result.err, r"^amasia: node 1 \(process \d+\) was killed by SIGSEGV while "
                                     r"it was in region program.c:12, waiting for barrier of node "
                                     r"0; the job ends\n$")

    def test_a_node_that_leaves(self):
        result = self.run_amasia("run", "-n3", PROGRAM, "sleep", "100", TEST_NODE="2:exit3")
        self.assertEqual(result.code, 125, result)
        self.assertLess(result.seconds, 5)
        self.assertIn("node 2 ", result.err)
        self.assertIn("exit code 3", result.err)

    def test_a_killed_node(self):
        began = time.monotonic()
        process = start("run", "-n2", PROGRAM, "print", "up", "sleep", "100", env=self.env())
        self.assertEqual(process.stdout.readline(), "up\n")
        nodes = nodes_of(self.mark)
        self.assertEqual(len(nodes), 2)
        worker = next(node for node in nodes if is_younger(node))
        os.kill(worker, signal.SIGKILL)
        result = finish(process, began)
        self.assertEqual(result.code, 125, result)
        self.assertIn(f"(process {worker}) was killed by SIGKILL", result.err)

    def test_a_node_that_refuses(self):
        result = self.run_amasia("run", "-n3", PROGRAM, "sleep", "100", TEST_NODE="2:refuse")
        self.assert_refused(result, "node 2: its files differ")
        self.assertLess(result.seconds, 5)

    def test_nodes_that_all_refuse_and_end_at_once(self):
        for _ in range(10):
            result = self.run_amasia("run", "-n2", PROGRAM, TEST_NODE="all:refuse")
            self.assert_refused(result, ": its files differ")

    def test_a_node_that_is_not_ready_in_time(self):
        result = self.run_amasia("run", "-n3", "--timeout=1", PROGRAM, TEST_NODE="2:late")
        self.assert_refused(result, "node 2 (process", "within 1 seconds", "AMASIA_START_TIMEOUT")
        self.assertNotIn("node 1", result.err)

    def test_a_node_that_does_not_start(self):
        first = os.path.join(self.folder.name, "first")
        result = self.run_amasia("run", "-n2", "--timeout=1", PROGRAM,
                                 TEST_ONLY_FIRST_JOINS=first)
        self.assert_refused(result, "node 1 (process", "has not started within 1 seconds")

    def test_a_node_that_does_not_leave(self):
        # The origin waits for it at its last fence; Ctrl-C must still work.
        began = time.monotonic()
        process = start("run", "-n2", PROGRAM, "print", "up", env=self.env(TEST_NODE="1:hang"))
        self.assertEqual(process.stdout.readline(), "up\n")
        process.send_signal(signal.SIGINT)
        self.assertEqual(finish(process, began).code, -signal.SIGINT)

    def test_the_watchdog_says_what_nodes_do(self):
        result = self.run_amasia("run", "-n2", "--watchdog=1", PROGRAM, "sleep", "3")
        self.assertEqual(result.code, 0, result)
        self.assertEqual(result.err.count("no node has shown progress for 1 seconds"), 1, result)
        self.assertRegex(result.err, r"node 1 \(process \d+\) is in region program.c:12")


def is_younger(process):
    """Peers are started after the origin."""
    parent = int(stat_of(process)[1])
    siblings = pathlib.Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return process != next(int(child) for child in siblings if int(child) in nodes_of("TEST_MARK="))


class Signals(LaunchTest):
    def tearDown(self):
        self.assert_nothing_left()

    def test_a_signal_reaches_the_program_once(self):
        for nodes in ("1", "2"):
            began = time.monotonic()
            process = start("run", "-n", nodes, PROGRAM, "count-interrupts", env=self.env())
            self.assertEqual(process.stdout.readline(), "counting\n")
            process.send_signal(signal.SIGINT)
            time.sleep(0.3)  # a second delivery would have come by then; nothing waits for it
            process.send_signal(signal.SIGTERM)
            result = finish(process, began)
            self.assertEqual((result.code, result.out), (0, "interrupts 1\n"))

    def test_a_signal_to_the_whole_group_reaches_it_once(self):
        began = time.monotonic()
        process = start("run", "-n2", PROGRAM, "count-interrupts", env=self.env())
        self.assertEqual(process.stdout.readline(), "counting\n")
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(finish(process, began).out, "interrupts 1\n")

    def at_terminal(self, *arguments):
        child, terminal = pty.fork()
        if child == 0:
            os.execvpe(arguments[0], arguments, self.env())
        return child, terminal

    def read_until(self, terminal, text):
        seen = ""
        while text not in seen:
            seen += os.read(terminal, 1000).decode()
        return seen

    def test_ctrl_c_at_a_terminal_reaches_it_once(self):
        child, terminal = self.at_terminal(AMASIA, "run", "-n2", PROGRAM, "count-interrupts")
        self.read_until(terminal, "counting")
        os.write(terminal, b"\x03")
        time.sleep(0.3)
        os.kill(child, signal.SIGTERM)
        self.assertIn("interrupts 1", self.read_until(terminal, "interrupts"))
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        os.close(terminal)

    def test_ctrl_c_ends_a_program_that_does_not_care(self):
        child, terminal = self.at_terminal(AMASIA, "run", "-n3", PROGRAM, "print", "up",
                                           "sleep", "100")
        self.read_until(terminal, "up")
        os.write(terminal, b"\x03")
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), -signal.SIGINT)
        os.close(terminal)

    def test_ctrl_z_stops_all_and_fg_goes_on(self):
        # A shell with job control: the kernel stops nothing where no shell could continue it.
        script = (f"set -m; {AMASIA} run -n2 {PROGRAM} print up sleep 1 print down; "
                  "echo stopped $?; read line; fg; echo done $?")
        child, terminal = self.at_terminal("bash", "-c", script)
        self.read_until(terminal, "up")
        os.write(terminal, b"\x1a")
        self.read_until(terminal, f"stopped {128 + signal.SIGTSTP}")
        wait_until(lambda: {state_of(p) for p in nodes_of(self.mark)} == {"T"}, "all stopped")
        os.write(terminal, b"\n")
        self.assertIn("down", self.read_until(terminal, "done 0"))
        os.waitpid(child, 0)
        os.close(terminal)

    def test_a_terminal_can_be_read(self):
        child, terminal = self.at_terminal(AMASIA, "run", "-n2", PROGRAM, "cat")
        os.write(terminal, b"typed\n")
        seen = self.read_until(terminal, "typed\r\ntyped\r\n")  # its echo, and ours
        self.assertIn("typed", seen)
        os.write(terminal, b"\x04")
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        os.close(terminal)


def stat_of(process):
    return pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()


def state_of(process):
    return stat_of(process)[0]


if __name__ == "__main__":
    main()
