#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real processes around a daemon of their own: several clients, clients that are killed, daemons
that are killed, start and end. Nothing may be left behind."""

import argparse
import contextlib
import grp
import os
import pathlib
import random
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

OPTIONS = argparse.Namespace()
LIMIT = 240  # seconds after which something hangs; far above what it takes under load


def processes_of(socket):
    """Daemons whose environment names this socket."""
    found = []
    for folder in pathlib.Path("/proc").iterdir():
        try:
            name = (folder / "comm").read_text().strip()
            environment = (folder / "environ").read_bytes().split(b"\0")
        except (OSError, ValueError):
            continue
        if name == "amasia-deviced" and f"AMASIA_DEVICES_SOCKET={socket}".encode() in environment:
            found.append(int(folder.name))
    return found


def state_of(process):
    """What each thread of a process does, as far as the system tells."""
    text = f"process {process}\n"
    try:
        for task in sorted(pathlib.Path(f"/proc/{process}/task").iterdir()):
            name = (task / "comm").read_text().strip()
            state = (task / "stat").read_text().rsplit(")", 1)[1].split()[0]
            text += f"  {task.name} {name}: {state}"
            for file in ("wchan", "syscall", "stack"):
                with contextlib.suppress(OSError):  # not everybody may
                    text += f", {file} {' '.join((task / file).read_text().split())}"
            text += "\n"
    except OSError as gone:
        text += f"  {gone}\n"
    return text


class Processes(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.socket = pathlib.Path(self.folder.name) / "run" / "devices.sock"
        self.environment = {**os.environ, "AMASIA_DEVICES_SOCKET": str(self.socket),
                            "AMASIA_DEVICES_BACKENDS": "host",
                            "AMASIA_DEVICED": str(OPTIONS.daemon)}

    def tearDown(self):
        for process in processes_of(self.socket):
            watch = os.pidfd_open(process)
            os.kill(process, signal.SIGTERM)
            self.wait_for_end(watch)
        self.assertFalse(self.socket.parent.exists(), "the daemon leaves its socket")
        self.folder.cleanup()

    def wait_for_end(self, watch):
        self.assertTrue(select.select([watch], [], [], LIMIT)[0], "a process does not end")
        os.close(watch)

    def daemon(self, *arguments):
        """By hand; returns when it listens."""
        process = subprocess.Popen([OPTIONS.daemon, *arguments], env=self.environment,
                                   stderr=subprocess.PIPE, text=True)
        while not self.socket.exists():
            self.assertIsNone(process.poll(), "the daemon has ended")
        return process

    def client(self, *arguments):
        return subprocess.Popen([OPTIONS.client, *arguments], env=self.environment, text=True,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def check(self, process, said):
        out, _ = process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 0, out)
        self.assertIn(said, out)

    def test_the_interface_with_a_daemon_that_starts_by_itself(self):
        log = self.log_of_daemons()
        program = subprocess.Popen([OPTIONS.tasks], env=self.environment, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        hangs = ""
        try:
            out, errors = program.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            hangs = f"hangs; it and its daemons:\n{state_of(program.pid)}"
            hangs += "".join(state_of(process) for process in processes_of(self.socket))
            program.kill()
            out, errors = program.communicate(timeout=LIMIT)
        daemons = processes_of(self.socket)
        scene = (f"the program {hangs or 'ended'} ({program.returncode}); it said:\n{out}"
                 f"on its way:\n{errors}daemons: {daemons}\n{''.join(map(state_of, daemons))}"
                 f"what they said:\n{log.read_text() if log.exists() else ''}")
        self.assertEqual((program.returncode, out), (0, "tasks: all is well\n"), scene)
        self.assertEqual(len(daemons), 1, scene)
        self.assertRegex(log.read_text(), r"\Astarts: \d+\n\Z", scene)

    def log_of_daemons(self):
        """Where those that programs start say what they have to: elsewhere they say it to nobody.
        A line for each start."""
        log = pathlib.Path(self.folder.name) / "daemons.log"
        starts = pathlib.Path(self.folder.name) / "amasia-deviced"
        starts.write_text(f'#!/bin/sh\nexec 2>>"{log}"\necho "starts: $$" >&2\n'
                          f'exec "{OPTIONS.daemon}" "$@"\n')
        starts.chmod(0o700)
        self.environment["AMASIA_DEVICED"] = str(starts)
        return log

    def test_eight_first_programs_start_one_daemon(self):
        clients = [self.client("work", "20") for _ in range(8)]
        for client in clients:
            self.check(client, "client: 20 rounds")
        self.assertEqual(len(processes_of(self.socket)), 1)

    def test_killed_programs_disturb_nobody(self):
        daemon = self.daemon()
        steady = [self.client("work", "300") for _ in range(2)]
        seeded = random.Random(7)
        for _ in range(OPTIONS.kills // 4):
            victims = [self.client("for-ever") for _ in range(4)]
            for victim in victims:
                # Before it is connected, while it is, or at work.
                if seeded.random() < 0.7:
                    victim.stdout.readline()
                victim.kill()
            for victim in victims:
                victim.communicate(timeout=LIMIT)
        for client in steady:
            self.check(client, "client: 300 rounds")
        self.check(self.client("work", "5"), "client: 5 rounds")
        daemon.terminate()
        _, errors = daemon.communicate(timeout=LIMIT)
        self.assertEqual((daemon.returncode, errors), (0, ""))

    def test_more_programs_than_the_soft_limit_of_open_files_allows(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (30, hard))
        daemon = self.daemon()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        clients = [self.client("idle") for _ in range(12)]
        for client in clients:
            self.addCleanup(client.kill)
            self.assertTrue(select.select([client.stdout], [], [], LIMIT)[0], "nobody answers")
            self.assertEqual(client.stdout.readline(), "client: 1 rounds\n")
        for client in clients:
            self.check_input(client, "")
        daemon.terminate()
        _, errors = daemon.communicate(timeout=LIMIT)
        self.assertEqual((daemon.returncode, errors), (0, ""))

    def test_others_go_on_while_a_program_is_stopped(self):
        daemon = self.daemon()
        stopped = self.client("lost")  # all of the host's places are taken by tasks of its
        self.assertEqual(stopped.stdout.readline(), "ready\n")
        stopped.send_signal(signal.SIGSTOP)
        self.check(self.client("work", "20"), "client: 20 rounds")
        stopped.send_signal(signal.SIGCONT)
        self.check(self.client("work", "20"), "client: 20 rounds")
        stopped.kill()
        stopped.communicate(timeout=LIMIT)
        daemon.terminate()
        _, errors = daemon.communicate(timeout=LIMIT)
        self.assertEqual((daemon.returncode, errors), (0, ""))

    def test_tasks_fail_when_the_daemon_is_killed_and_later_ones_work(self):
        daemon = self.daemon()
        client = self.client("lost")
        self.assertEqual(client.stdout.readline(), "ready\n")
        daemon.kill()
        daemon.communicate(timeout=LIMIT)
        self.check_input(client, "client: 3 rounds")

    def check_input(self, client, said):
        out, _ = client.communicate("go\n", timeout=LIMIT)
        self.assertEqual(client.returncode, 0, out)
        self.assertIn(said, out)

    def test_an_idle_program_and_its_daemon_use_no_core(self):
        self.daemon_process = self.daemon()
        client = self.client("idle")
        self.assertEqual(client.stdout.readline(), "client: 1 rounds\n")
        self.assertEqual(client.stdout.readline(), "ready\n")

        def switches():
            """How often a thread of both was running and went to sleep: the order of it."""
            counts = {}
            for process in (self.daemon_process.pid, client.pid):
                for task in pathlib.Path(f"/proc/{process}/task").iterdir():
                    for line in (task / "status").read_text().splitlines():
                        if line.startswith("voluntary_ctxt_switches"):
                            counts[task.name] = int(line.split()[1])
            return counts

        # What is asleep for good stays so: looked at until nothing has changed for a while.
        before, same = switches(), 0
        for _ in range(1000):
            subprocess.run(["sleep", "0.02"], check=True)
            now = switches()
            same = same + 1 if now == before else 0
            before = now
            if same == 20:
                break
        self.assertEqual(same, 20, "a thread wakes up again and again")
        self.check_input(client, "")
        self.daemon_process.terminate()
        self.daemon_process.communicate(timeout=LIMIT)

    def test_processes_share_buffers_and_tasks(self):
        owner = self.client("sharing", "field")
        _, process, task = owner.stdout.readline().split()
        other = self.client("shared", "field", process, task)
        owner.stdin.write("go\n")
        owner.stdin.flush()
        self.check(other, "client: shared")
        owner.stdin.write("free\n")
        owner.stdin.flush()
        self.assertEqual(owner.stdout.readline(), "freed\n")
        self.check(self.client("shared", "field", process, task), "client: shared")
        self.check_input(owner, "")

    def test_a_daemon_without_programs_ends(self):
        daemon = self.daemon("--idle-end", "1")
        self.check(self.client("work", "1"), "client: 1 rounds")
        _, errors = daemon.communicate(timeout=LIMIT)
        self.assertEqual((daemon.returncode, errors), (0, ""))
        self.assertFalse(self.socket.parent.exists())

    def test_a_policy_of_ones_own_that_breaks_the_rules_is_dismissed_once(self):
        for option, lines in (("", 0), (":idle", 1)):  # idle: it starts nothing
            daemon = self.daemon("--policy", f"{OPTIONS.plugin}{option}")
            clients = [self.client("work", "20") for _ in range(2)]
            for client in clients:
                self.check(client, "client: 20 rounds")
            daemon.terminate()
            _, errors = daemon.communicate(timeout=LIMIT)
            self.assertEqual((daemon.returncode, errors.count("\n")), (0, lines), errors)
            self.assertEqual(errors.count("the policy is dismissed: "), lines)

    def test_devices_are_listed_with_and_without_a_daemon(self):
        def listed():
            return subprocess.run([OPTIONS.amasia, "devices"], env=self.environment, text=True,
                                  timeout=LIMIT, stdout=subprocess.PIPE, check=True).stdout

        def loaded(text):
            """Of each device of the host: whether a daemon knows its load."""
            return [" 0/" in line for line in text.splitlines() if " host " in line]

        before = listed()
        self.assertIn("no daemon runs", before)
        self.assertEqual(loaded(before), [False], before)
        daemon = self.daemon()
        client = self.client("idle")  # announces the device
        self.assertEqual(client.stdout.readline(), "client: 1 rounds\n")
        now = listed()
        self.assertIn(f"amasia-deviced {daemon.pid}, ", now)
        self.assertEqual(loaded(now), [True], now)
        self.check_input(client, "")
        daemon.terminate()
        daemon.communicate(timeout=LIMIT)

    def test_a_daemon_that_is_told_to_end_at_once_leaves_nothing(self):
        for _ in range(30):
            daemon = self.daemon()  # its socket is there, perhaps nothing else yet
            daemon.terminate()
            _, errors = daemon.communicate(timeout=LIMIT)
            self.assertEqual((daemon.returncode, errors), (0, ""))
            self.assertFalse(self.socket.parent.exists())

    def test_there_is_one_daemon_a_socket(self):
        daemon = self.daemon()
        self.second_daemon_is_refused()
        daemon.terminate()
        daemon.communicate(timeout=LIMIT)

    def test_a_killed_daemons_socket_is_taken_over(self):
        first = self.daemon()
        first.kill()
        first.communicate(timeout=LIMIT)
        self.assertTrue(self.socket.exists())
        self.check(self.client("work", "1"), "client: 1 rounds")

    def test_a_stopped_daemons_socket_is_left_alone(self):
        daemon = self.daemon()
        daemon.send_signal(signal.SIGSTOP)
        try:
            before = self.socket.stat()
            self.second_daemon_is_refused()
            client = self.client("work", "3")
            self.wait_for_a_socket(client)
            self.assertEqual(self.socket.stat(), before, "another socket is in its place")
            self.assertIsNone(client.poll(), "it does not wait for the daemon")
        finally:
            daemon.send_signal(signal.SIGCONT)  # it can be told to end then
        self.check(client, "client: 3 rounds")
        self.assertEqual(processes_of(self.socket), [daemon.pid], "another one was started")
        daemon.terminate()
        _, errors = daemon.communicate(timeout=LIMIT)
        self.assertEqual((daemon.returncode, errors), (0, ""))

    def test_a_socket_whose_queue_is_full_is_left_alone(self):
        """As one of a daemon that has been stopped for long, where many have come since."""
        self.socket.parent.mkdir(mode=0o700)
        with contextlib.ExitStack() as open_sockets:
            def local_socket():
                return open_sockets.enter_context(
                    socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))

            listening = local_socket()
            listening.bind(str(self.socket))
            listening.listen(0)
            with self.assertRaises(BlockingIOError):
                for _ in range(10):
                    one = local_socket()
                    one.setblocking(False)
                    one.connect(str(self.socket))
            before = self.socket.stat()
            self.second_daemon_is_refused()
            out, _ = self.client("work", "1").communicate(timeout=LIMIT)
            self.assertIn("takes nobody in, and may be stopped", out)
            self.assertEqual(self.socket.stat(), before, "another socket is in its place")
            self.assertEqual(processes_of(self.socket), [], "a daemon was started")
        self.socket.unlink()
        self.socket.parent.rmdir()

    def second_daemon_is_refused(self):
        second = subprocess.run([OPTIONS.daemon], env=self.environment, text=True, timeout=LIMIT,
                                stderr=subprocess.PIPE, check=False)
        self.assertEqual(second.returncode, 1)
        self.assertIn("a daemon listens at", second.stderr)

    def wait_for_a_socket(self, process):
        """Until the process has one: it is about to connect, or has done so."""
        for _ in range(100 * LIMIT):
            with contextlib.suppress(OSError):  # descriptors come and go
                for number in pathlib.Path(f"/proc/{process.pid}/fd").iterdir():
                    if os.readlink(number).startswith("socket:"):
                        return
            subprocess.run(["sleep", "0.01"], check=True)
        self.fail("it has not made a socket")

    def test_a_quota_is_told_as_one(self):
        daemon = self.daemon("--policy-settings", "quota-memory=1K")
        client = self.client("work", "1")
        out, _ = client.communicate(timeout=LIMIT)
        self.assertEqual(client.returncode, 1)
        self.assertIn("more memory on a device than the daemon grants one program", out)
        daemon.terminate()
        daemon.communicate(timeout=LIMIT)

    def test_the_socket_may_be_systemds(self):
        self.socket.parent.mkdir()
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
            listening.bind(str(self.socket))
            listening.listen()
            number = listening.fileno()
            # The one descriptor is 3, for the process that the shell becomes.
            daemon = subprocess.Popen(
                ["sh", "-c", f'LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" 3<&{number}', OPTIONS.daemon],
                env=self.environment, pass_fds=[number], stderr=subprocess.PIPE, text=True)
            self.check(self.client("work", "3"), "client: 3 rounds")
            self.assertEqual(processes_of(self.socket), [daemon.pid], "another one was started")
            daemon.terminate()
            _, errors = daemon.communicate(timeout=LIMIT)
            self.assertEqual((daemon.returncode, errors), (0, ""))
        self.assertTrue(self.socket.exists(), "it is not the daemon's to remove")
        self.socket.unlink()
        self.socket.parent.rmdir()

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "needs root and setpriv")
    def test_a_group_is_let_in_and_nobody_else(self):
        os.chmod(self.folder.name, 0o711)
        inside = grp.getgrall()[-1]
        daemon = self.daemon("--group", inside.gr_name)

        def come(group, user=54321):
            done = subprocess.run(
                ["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups", OPTIONS.client,
                 "work", "1"], env=self.environment, text=True, timeout=LIMIT, check=False,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            if done.returncode not in (0, 1):
                self.skipTest(f"other users cannot run the program: {done.stderr}")
            return done.stdout

        self.assertIn("client: 1 rounds", come(inside.gr_gid))
        self.assertIn("ermission denied", come(54322))
        # The folder and the socket keep them out; and so does the daemon, by who they are.
        os.chmod(self.socket.parent, 0o755)
        os.chmod(self.socket, 0o666)
        self.assertIn("this daemon serves user 0, not user 54321", come(54322))
        self.assertIn("client: 1 rounds", come(inside.gr_gid))
        daemon.terminate()
        _, errors = daemon.communicate(timeout=LIMIT)
        self.assertEqual(daemon.returncode, 0)
        self.assertIn("of user 54321 is refused", errors)

    def test_what_is_wrong_is_said(self):
        def first_line(**changes):
            done = subprocess.run([OPTIONS.client, "work", "1"], text=True, timeout=LIMIT,
                                  env={**self.environment, **changes}, check=False,
                                  stdout=subprocess.PIPE)
            self.assertEqual(done.returncode, 1)
            return done.stdout

        long_path = f"{self.folder.name}/{'x' * 120}/devices.sock"
        self.assertIn("(allowed: 1 … 107)", first_line(AMASIA_DEVICES_SOCKET=long_path))
        self.assertIn("no daemon listens at", first_line(AMASIA_DEVICES_START="0"))
        self.assertIn("cannot start the daemon", first_line(AMASIA_DEVICED="/nowhere/deviced"))
        self.assertIn("AMASIA_DEVICES_WEIGHT is '-1'", first_line(AMASIA_DEVICES_WEIGHT="-1"))
        self.assertFalse(self.socket.parent.exists(), "an empty folder is left")
        for arguments in (["--spin", "soon"], ["--group", "nobody-of-this-name"], ["--frob"],
                          ["--policy", "no-such-policy"], ["--policy", "./no_such_policy.so"],
                          ["--trace", "/nowhere/trace.json"]):
            done = subprocess.run([OPTIONS.daemon, *arguments], env=self.environment, text=True,
                                  stderr=subprocess.PIPE, timeout=LIMIT, check=False)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(arguments[-1], done.stderr)

    def test_a_file_where_the_socket_would_be_stays(self):
        self.socket.parent.mkdir(mode=0o700, exist_ok=True)
        self.socket.write_text("of the user")
        for command in ([OPTIONS.daemon], [OPTIONS.client, "work", "1"]):
            done = subprocess.run(command, env=self.environment, text=True, timeout=LIMIT,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertIn(f"'{self.socket}' is there, and is no socket", done.stdout)
        self.assertEqual(self.socket.read_text(), "of the user")
        self.socket.unlink()
        self.socket.parent.rmdir()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--daemon", required=True)
    parser.add_argument("--client", required=True)
    parser.add_argument("--tasks", required=True)
    parser.add_argument("--plugin", required=True)
    parser.add_argument("--amasia", required=True)
    parser.add_argument("--kills", type=int, default=60)
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
