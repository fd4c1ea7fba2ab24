#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A storm around the device daemon, of a seed: programs come, work and go; others are killed, or
stopped for a while, at any moment; broken ones write rubbish into their rings and sockets; the
daemon is killed, drained and started again. A few steady programs live through all of it and check
every result. Then nothing may be held in the daemon, and no process and no file may be left.

    storm_test.py --daemon D --client C --peer P [--steady N] [--steps N] [--seed S] [--seconds S]

A failure prints the line that runs the same storm again; what happens when is up to the machine, so
that may take several runs. It runs in a mount and process namespace of its own where that is
allowed, which is what tells that nothing is left in /dev/shm, /run and /tmp."""

import argparse
import collections
import json
import os
import pathlib
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

LIMIT = 120  # seconds after which something hangs; far above what it takes under load
INSIDE = "AMASIA_STORM_INSIDE"  # set in the namespace
PUBLIC = [pathlib.Path(path) for path in ("/dev/shm", "/run", "/tmp")]
POLICIES = ("", "priority", "first-fit+delay", "priority+hybrid+cost", "earliest-finish",
            "first-device")
# Of a daemon that is told to end: there was another one already, which the log tells; or SIGTERM
# came before it had said what that means to it.
ENDS = (0, 1, -signal.SIGTERM)


class Failure(Exception):
    """What the storm has found."""


def expect(holds, sentence):
    if not holds:
        raise Failure(sentence)


def enter_namespace(options):
    """Runs this script again in a namespace, as the child of a shell that reaps orphans."""
    if os.environ.get(INSIDE) or shutil.which("unshare") is None:
        return
    hides = [path for path in PUBLIC if not any(
        pathlib.Path(file).resolve().is_relative_to(path)
        for file in (options.daemon, options.client, options.peer, __file__, sys.executable))]
    mounts = " && ".join(f"mount -t tmpfs -o mode=1777 none {path}" for path in hides)
    own = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]
    if os.geteuid() != 0:
        own.insert(1, "--map-root-user")
    tried = subprocess.run([*own, "sh", "-c", mounts], stderr=subprocess.DEVNULL, check=False)
    if tried.returncode != 0:
        print("storm: no namespaces here: files in /dev/shm and /run are not looked at")
        return
    names = ":".join(map(str, hides))
    done = subprocess.run([*own, "sh", "-c", f'{mounts} && "$@"; exit $?', "sh", sys.executable,
                           "-B", *sys.argv], env={**os.environ, INSIDE: names}, check=False)
    sys.exit(done.returncode)


def files_of(folders):
    return {file for folder in folders for file in folder.iterdir()}


def daemons_of(socket):
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


def signal_daemons(socket, number):
    """How many: one, or none, as it is just coming (then its parent is going) or has ended."""
    count = 0
    for process in daemons_of(socket):
        try:
            os.kill(process, number)
            count += 1
        except ProcessLookupError:
            continue
    return count


def held_by(process):
    """Its sockets and shared memory."""
    folder = pathlib.Path(f"/proc/{process}")
    found = [line for line in (folder / "maps").read_text().splitlines() if "memfd:" in line]
    for file in (folder / "fd").iterdir():
        try:
            target = os.readlink(file)
        except OSError:
            continue
        if target.startswith(("socket:", "/memfd:")):
            found.append(target)
    return found


def others_here():
    """The processes of this namespace, but for this one and the shell."""
    found = {}
    for folder in pathlib.Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) not in (1, os.getpid()):
            try:
                found[int(folder.name)] = (folder / "stat").read_text()
            except OSError:
                continue
    return found


def stacks_of(process):
    lines = []
    for task in pathlib.Path(f"/proc/{process}/task").iterdir():
        try:
            lines.append(f"  {task.name} {(task / 'comm').read_text().strip()} "
                         f"{(task / 'wchan').read_text()} {(task / 'syscall').read_text().strip()}")
        except OSError:
            continue
    return "\n".join(lines)


class Storm:
    def __init__(self, options, folder):
        self.options = options
        self.random = random.Random(options.seed)
        self.folder = pathlib.Path(folder)
        self.socket = self.folder / "run" / "devices.sock"
        self.log = open(self.folder / "daemons.log", "a+", encoding="utf-8")
        self.environment = {**os.environ, "TMPDIR": folder, "AMASIA_DEVICES_BACKENDS": "host",
                            "AMASIA_DEVICES_SOCKET": str(self.socket),
                            "AMASIA_DEVICED": str(self.wrapper())}
        self.daemon = None  # started by hand, and not told to end
        self.steady, self.victims, self.guests, self.broken = [], [], [], []
        self.count = collections.Counter()
        self.lost = 0

    def wrapper(self):
        """What programs start: the daemon, with its log where we see it."""
        path = self.folder / "deviced"
        path.write_text(f'#!/bin/sh\nexec "{self.options.daemon}" "$@" 2>>"{self.log.name}"\n')
        path.chmod(0o755)
        return path

    def start(self, program, *arguments):
        return subprocess.Popen([program, *map(str, arguments)], env=self.environment, text=True,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def seed(self):
        return self.random.getrandbits(32)

    # What may happen.
    def come_to_be_killed(self):
        if len(self.victims) >= self.options.steady + 2:
            self.kill_a_program()
        self.victims.append(self.start(self.options.client, "for-ever", self.seed()))

    def kill_a_program(self):
        if not self.victims:
            return
        victim = self.victims.pop(self.random.randrange(len(self.victims)))
        if self.random.random() < 0.5:  # at work; else perhaps before it has come
            select.select([victim.stdout], [], [], 0.2)
        self.kill(victim)

    def kill(self, victim):
        victim.kill()
        out, _ = victim.communicate(timeout=LIMIT)
        expect(victim.returncode == -signal.SIGKILL, f"it has ended before it was killed: {out}")
        self.count["kills"] += 1

    def stop_a_program(self):
        if not self.victims:
            return
        victim = self.random.choice(self.victims)
        victim.send_signal(signal.SIGSTOP)
        time.sleep(self.random.uniform(0, 0.05))
        if self.random.random() < 0.7:
            victim.send_signal(signal.SIGCONT)
        else:  # as it is; until then it may hold a device, and others wait for it
            self.victims.remove(victim)
            self.kill(victim)

    def break_something(self):
        self.collect(self.broken, 4)
        self.broken.append(self.start(self.options.peer, "rubbish", self.seed()))
        self.count["broken"] += 1

    def come_and_go(self):
        self.collect(self.guests, 3)
        self.guests.append(self.start(self.options.client, "rounds", self.seed(), 3))
        self.count["guests"] += 1

    def kill_the_daemon(self):
        self.count["daemons killed"] += signal_daemons(self.socket, signal.SIGKILL)
        self.reap_daemon()
        self.perhaps_start_daemon()

    def drain_the_daemon(self):
        self.count["daemons drained"] += signal_daemons(self.socket, signal.SIGTERM)
        self.reap_daemon(*ENDS)
        self.perhaps_start_daemon()

    def reap_daemon(self, *allowed):
        if self.daemon is not None:
            status = self.ends(self.daemon, "the daemon")
            expect(not allowed or status in allowed, f"the daemon ends with {status}")
        self.daemon = None

    def perhaps_start_daemon(self):
        if self.random.random() < 0.6:  # else a program does
            policy = self.random.choice(POLICIES)
            arguments = ["--policy", policy] if policy else []
            self.daemon = subprocess.Popen([self.options.daemon, "--drain", "5", *arguments],
                                           env=self.environment, stderr=self.log)

    def step(self):
        happens = ((self.come_to_be_killed, 26), (self.kill_a_program, 22),
                   (self.stop_a_program, 8), (self.break_something, 16), (self.come_and_go, 10),
                   (self.kill_the_daemon, 4), (self.drain_the_daemon, 3))
        actions, weights = zip(*happens)
        self.random.choices(actions, weights)[0]()
        time.sleep(self.random.choice((0, 0.002, 0.01, 0.04)) * self.random.random())
        if self.daemon is not None and self.daemon.poll() is not None:
            # A program may have started one first; if not, the log tells.
            expect(self.daemon.returncode == 1, f"the daemon ends with {self.daemon.returncode}")
            self.daemon = None
        for client in self.steady:
            expect(client.poll() is None or self.finish(client), "a steady program has ended")

    # Ends.
    def ends(self, process, what):
        try:
            return process.wait(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            raise Failure(f"{what} (process {process.pid}) does not end\n"
                          f"{stacks_of(process.pid)}") from None

    def collect(self, processes, most):
        while len(processes) > most:
            self.finish(processes.pop(0))

    def finish(self, process):
        if not process.stdin.closed:
            process.stdin.close()
        status = self.ends(process, " ".join(process.args))
        said = process.stdout.read()
        process.stdout.close()
        expect(status == 0, f"{' '.join(process.args)} ends with {status}: {said}")
        if said.startswith("storm: "):
            rounds, tasks, lost = (int(word) for word in said.split() if word.isdigit())
            expect(rounds > 0 and tasks > lost, f"it has done nothing: {said}")
            self.count["tasks"] += tasks
            self.count["tasks lost with a daemon"] += lost

    def run(self):
        self.steady = [self.start(self.options.client, "until-told", self.seed())
                       for _ in range(self.options.steady)]
        until = time.monotonic() + self.options.seconds
        for _ in range(self.options.steps):
            self.step()
            self.count["steps"] += 1
            if time.monotonic() > until:
                break
        while self.victims:
            self.kill_a_program()
        for processes in (self.steady, self.guests, self.broken):
            self.collect(processes, 0)
        self.nothing_is_held()
        self.nothing_is_left()

    def state(self):
        done = subprocess.run([self.options.peer, "state"], env=self.environment, text=True,
                              stdout=subprocess.PIPE, timeout=LIMIT, check=True)
        return json.loads(done.stdout)

    def nothing_is_held(self):
        """By a daemon that has lived through a part of the storm, or by a new one."""
        self.finish(self.start(self.options.client, "rounds", self.seed(), 1))
        until = time.monotonic() + LIMIT
        while len(processes := daemons_of(self.socket)) > 1 and time.monotonic() < until:
            pass  # one that was told to end in the last steps is about to
        expect(len(processes) == 1, f"there are daemons {processes}")
        # The ends of processes are told one after the other.
        while len((state := self.state())["clients"]) > 1 and time.monotonic() < until:
            pass
        expect(len(state["clients"]) == 1, f"clients stay: {state['clients']}")
        for device in state["devices"]:
            held = {key: device[key] for key in ("clients", "running", "resident") if device[key]}
            expect(not held, f"held of device {device['identity']}: {held}")
        while len(held := held_by(processes[0])) > 1 and time.monotonic() < until:
            pass  # the observer's connection
        expect(len(held) == 1, f"the daemon holds more than its socket: {held}")

    def nothing_is_left(self):
        for process in daemons_of(self.socket):
            watch = os.pidfd_open(process)
            os.kill(process, signal.SIGTERM)
            expect(select.select([watch], [], [], LIMIT)[0], "the daemon does not drain")
            os.close(watch)
        self.reap_daemon(*ENDS)
        expect(not self.socket.parent.exists(), "the daemon's socket is left")
        allowed = ("is disconnected: ", "tasks are left after", "a daemon listens at")
        self.log.flush()
        self.log.seek(0)
        odd = [line for line in self.log if not any(part in line for part in allowed)]
        expect(not odd, f"daemons say: {''.join(odd[:20])}")
        self.log.close()
        left = sorted(path.name for path in self.folder.iterdir())
        expect(left == ["daemons.log", "deviced"], f"left in the folder: {left}")
        if os.environ.get(INSIDE):
            # The shell takes leave of orphans when it gets to it.
            until = time.monotonic() + LIMIT
            while (others := others_here()) and time.monotonic() < until:
                pass
            expect(not others, f"processes are left: {others}")

    def clean_up(self):
        for process in [*self.steady, *self.victims, *self.guests, *self.broken]:
            process.kill()
            process.wait()
        signal_daemons(self.socket, signal.SIGKILL)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--daemon", required=True, type=os.path.abspath)
    parser.add_argument("--client", required=True, type=os.path.abspath)
    parser.add_argument("--peer", required=True, type=os.path.abspath)
    parser.add_argument("--steady", type=int, default=2)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=10, help="ends earlier after so long")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    enter_namespace(options)
    public = [pathlib.Path(path) for path in os.environ.get(INSIDE, "").split(":") if path]
    before = files_of(public)
    with tempfile.TemporaryDirectory(prefix="amasia-storm-") as folder:
        storm = Storm(options, folder)
        try:
            storm.run()
        except Failure as failure:
            print(f"storm: {failure}\nagain with: {sys.argv[0]} --seed {options.seed} --steady "
                  f"{options.steady} --steps {options.steps} --seconds {options.seconds}")
            sys.stdout.flush()
            return 1
        finally:
            storm.clean_up()
    if (left := files_of(public) - before):
        print(f"storm: files are left: {sorted(map(str, left))}")
        return 1
    print("storm: all is well:", ", ".join(f"{number} {what}" for what, number in
                                           storm.count.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
