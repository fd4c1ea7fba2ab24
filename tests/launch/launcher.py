# SPDX-License-Identifier: Apache-2.0
"""Runs `amasia` for the tests and looks at what it leaves behind."""

import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

BUILD = pathlib.Path(os.environ["AMASIA_BUILD"])
AMASIA = str(BUILD / "bin" / "amasia")
PROGRAM = str(BUILD / "bin" / "launch_test_program")
STATIC = str(BUILD / "bin" / "launch_test_static")
PLAIN = str(BUILD / "bin" / "launch_test_plain")
LIBRARY = str(BUILD / "lib" / "liblaunch_test_node.so")
PATIENCE = 60  # seconds: only a broken build takes so long


def environment(**changes):
    """Ours without AMASIA_ variables, with the stand-in for the runtime; None removes."""
    out = {name: value for name, value in os.environ.items() if not name.startswith("AMASIA_")}
    out["AMASIA_LIBRARY"] = LIBRARY
    out["PYTHONDONTWRITEBYTECODE"] = "1"
    for name, value in changes.items():
        out.pop(name, None)
        if value is not None:
            out[name] = value
    return out


class Result:
    def __init__(self, code, out, err, seconds):
        self.code, self.out, self.err, self.seconds = code, out, err, seconds

    def __repr__(self):
        return f"code {self.code}, {self.seconds:.1f} s\n--- out\n{self.out}--- err\n{self.err}"


def start(*arguments, env=None, **settings):
    settings.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.Popen([AMASIA, *arguments], env=env or environment(), text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            start_new_session=True, **settings)


def finish(process, began, text=None):
    try:
        out, err = process.communicate(text, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"{process.args} does not end\n{out}\n{err}") from None
    return Result(process.returncode, out, err, time.monotonic() - began)


def amasia(*arguments, env=None, text=None, **settings):
    began = time.monotonic()
    if text is not None:
        settings["stdin"] = subprocess.PIPE
    return finish(start(*arguments, env=env, **settings), began, text)


def processes(needle):
    """Process ids whose command line or environment has the text; not ours."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            text = pathlib.Path(f"/proc/{entry}/cmdline").read_bytes()
            text += pathlib.Path(f"/proc/{entry}/environ").read_bytes()
        except OSError:
            continue
        if needle.encode() in text:
            found.append(int(entry))
    return found


def nodes_of(mark, program=PROGRAM):
    """Process ids of running test programs that carry the mark."""
    return [p for p in processes(mark)
            if os.readlink(f"/proc/{p}/exe").endswith(pathlib.Path(program).name)]


def started_at(process):
    """To sort by: nodes are started in the order of their numbers."""
    stat = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return int(stat[19]), process


def wait_until(condition, what):
    """For things that must happen, however slow the machine is."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        value = condition()
        if value:
            return value
        time.sleep(0.005)
    raise AssertionError(f"never happened: {what}")


class LaunchTest(unittest.TestCase):
    """Each test has a mark in the environment, by which leftovers are told."""

    def setUp(self):
        self.mark = f"TEST_MARK={self.id()}-{os.getpid()}"
        self.shared = set(os.listdir("/dev/shm"))
        self.folder = tempfile.TemporaryDirectory(prefix="amasia-test-")
        self.addCleanup(self.folder.cleanup)

    def env(self, **changes):
        name, value = self.mark.split("=")
        return environment(**{name: value, **changes})

    def run_amasia(self, *arguments, text=None, cwd=None, **changes):
        return amasia(*arguments, env=self.env(**changes), text=text, cwd=cwd)

    def assert_nothing_left(self):
        wait_until(lambda: not processes(self.mark), f"processes end: {processes(self.mark)}")
        left = {name for name in os.listdir("/dev/shm") if name.startswith("amasia")}
        self.assertEqual(left - self.shared, set())

    def assert_refused(self, result, *parts):
        """One sentence that names the thing, and exit code 2."""
        self.assertEqual(result.code, 2, result)
        self.assertEqual(len(result.err.strip().splitlines()), 1, result)
        self.assertTrue(result.err.startswith("amasia: "), result)
        for part in parts:
            self.assertIn(part, result.err)
        self.assertEqual(result.out, "")


def main():
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    unittest.main(verbosity=2)
