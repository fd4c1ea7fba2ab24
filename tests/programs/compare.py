# SPDX-License-Identifier: Apache-2.0
"""Running a command as a user would and comparing two runs: for the runners under tests/."""

import dataclasses
import os
import pathlib
import re
import shlex
import signal
import subprocess
import time


@dataclasses.dataclass
class Outcome:
    """What a user sees of one run. `trouble` is a sentence if the run did not end by itself."""
    stdout: bytes
    stderr: bytes
    code: int
    seconds: float
    trouble: str = ""


def run(command, env, stdin, timeout, folder):
    """Runs a command in a process group of its own, which is gone afterwards, whatever happened."""
    started = time.monotonic()
    process = subprocess.Popen(command, env=env, cwd=folder, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               start_new_session=True)
    trouble = ""
    try:
        stdout, stderr = process.communicate(stdin, timeout=timeout)
    except subprocess.TimeoutExpired:
        trouble = f"did not end within {timeout:g} s{what_threads_do(process.pid)}"
        stop_group(process.pid)
        try:
            stdout, stderr = process.communicate(timeout=5)
        except subprocess.TimeoutExpired:
            stdout, stderr = b"", b""
    # What is left of the group now is a process the run should have taken down itself.
    if group_exists(process.pid):
        stop_group(process.pid)
        trouble = trouble or "left a process behind"
    return Outcome(stdout, stderr, process.returncode, time.monotonic() - started, trouble)


def what_threads_do(session):
    """For each process of a session: name, and of each thread the state and what it sleeps in."""
    told = []
    for process in sorted(pathlib.Path("/proc").glob("[0-9]*"), key=lambda path: int(path.name)):
        try:
            if os.getsid(int(process.name)) != session:
                continue
            threads = [thread.joinpath("stat").read_text().rpartition(")")[2].split()[0] + " "
                       + thread.joinpath("wchan").read_text()
                       for thread in process.joinpath("task").iterdir()]
            told.append(f"; {process.joinpath('comm').read_text().strip()}: {', '.join(threads)}")
        except OSError:
            pass  # it has ended
    return "".join(told)


def group_exists(group):
    for _ in range(20):
        try:
            os.killpg(group, 0)
        except (ProcessLookupError, PermissionError):
            return False
        time.sleep(0.01)
    return True


def stop_group(group):
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(group, number)
        except (ProcessLookupError, PermissionError):
            return
        time.sleep(0.3)


def as_compared(data, mode):
    lines = data.split(b"\n")
    if mode == "distinct":
        lines = set(lines)
    return lines if mode == "exact" else sorted(lines)


def exit_name(code):
    if code is None:
        return "no exit code"
    if code < 0:
        return f"signal {-code}"
    # A launcher that passes a signal on as a shell does ends with 128 + the signal's number.
    return f"exit {code}"


def same_exit(plain, launched):
    return launched == plain or (plain < 0 and launched == 128 - plain)


def first_difference(plain, launched, what):
    for number, (left, right) in enumerate(zip(plain, launched), 1):
        if left != right:
            return f"{what} line {number}: plain {left[:120]!r}, launched {right[:120]!r}"
    return f"{what}: plain {len(plain)} lines, launched {len(launched)} lines"


def environment(threads, settings):
    """The caller's environment without OpenMP settings of its own, with the test's. `threads` may
    be "unset"."""
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("OMP_", "KMP_", "GOMP_"))}
    if threads != "unset":
        env["OMP_NUM_THREADS"] = str(threads)
    # Waiting threads that spin would measure the machine, not the program: it has few cores.
    env["OMP_WAIT_POLICY"] = "passive"
    env.update(settings)
    return env


def split_template(template, nodes):
    """'A=1 tool run -n {nodes}' -> ({'A': '1'}, ['tool', 'run', '-n', '2'])."""
    words = shlex.split(template.replace("{nodes}", str(nodes)))
    env = {}
    while words and re.match(r"[A-Za-z_][A-Za-z0-9_]*=", words[0]):
        name, _, value = words.pop(0).partition("=")
        env[name] = value
    return env, words
