#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tasks through this project's library, through the original MCL and with OpenCL itself, in turns.

  beside_original.py BUILD PREFIX [--rounds N] [--devices gpu]

BUILD is the build folder, such as build/gcc; PREFIX is where the original was installed (bin,
include, lib). The same source, minos_session.c, is built with either. A round asks each of the
three once, while the processes of the others are stopped, since the original's client and
scheduler use a core each when they have nothing to do. Median of microseconds a task, and the
median of the ratios of one round. The original's scheduler and files are gone afterwards."""

import argparse
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
REQUESTS = (("noop", 2000, 0), ("waited", 500, 0), ("gemm", 512, 64), ("gemm", 64, 128),
            ("gemm", 16, 256))
ORIGINAL_FILES = ("/dev/shm/mcl_shm", "/tmp/mcl_sched_sock")


class Session:
    """Processes that answer requests; stopped but while they answer."""

    def __init__(self, command, environment, helper=None):
        self.helper, self.wrong = None, ""
        if helper is not None:
            self.helper = subprocess.Popen(helper, env=environment, start_new_session=True,
                                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(1)  # it does not say when it is ready
        self.process = subprocess.Popen(command, env=environment, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        start_new_session=True)
        ready = self.read_until("ready")
        if ready != "ready":
            sys.exit(f"{command[0]}: {ready}")
        self.signal(signal.SIGSTOP)

    def processes(self):
        return [one for one in (self.helper, self.process) if one is not None]

    def signal(self, number):
        for process in self.processes():
            if process.poll() is None:
                process.send_signal(number)

    def read_until(self, word):
        """The original's library prints lines of its own."""
        for line in self.process.stdout:
            if line.startswith("wrong") or line.strip() == word or \
                    (word is None and line.strip().isdigit()):
                return line.strip()
        return "ended without an answer"

    def ask(self, request):
        """Nanoseconds, or None where it cannot do that, or nothing any more."""
        if self.wrong:
            return None
        self.signal(signal.SIGCONT)
        self.process.stdin.write(" ".join(map(str, request)) + "\n")
        self.process.stdin.flush()
        answer = self.read_until(None)
        self.signal(signal.SIGSTOP)
        if answer.isdigit():
            return int(answer)
        self.wrong = answer
        print(f"{self.process.args[0]}: {' '.join(map(str, request))}: {answer}", file=sys.stderr)
        return None

    def end(self):
        self.signal(signal.SIGCONT)
        self.process.stdin.close()
        for process, number in ((self.process, None), (self.helper, signal.SIGTERM)):
            if process is None:
                continue
            if number is not None:
                process.send_signal(number)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def build(folder, name, include, library, libraries):
    program = folder / name
    subprocess.run([os.environ.get("CC", "cc"), "-O2", "-w", "-D_GNU_SOURCE",
                    "-DCL_TARGET_OPENCL_VERSION=120", HERE / "minos_session.c", "-o", program,
                    *[f"-I{path}" for path in include], f"-L{library}", f"-Wl,-rpath,{library}",
                    *[f"-l{one}" for one in libraries]], check=True)
    return program


def measure(sessions, rounds):
    print("| question | " + " | ".join(f"{name}, us" for name in sessions) +
          " | ours by original | ours by waiting | ours by queue |")
    print("|---" * (len(sessions) + 4) + "|")
    for kind, tasks, size in REQUESTS:
        own = (kind, tasks) + ((size,) if size else ())
        # OpenCL that waits for each: `waited`, or gemmwaited.
        waits = (("gemmwaited" if size else "waited"), *own[1:])
        ways = {"ours": ("ours", own), "original": ("original", own), "waits": ("raw", waits)}
        if kind != "waited":
            ways["queue"] = ("raw", own)
        times = {name: [] for name in ways}
        for turn in range(rounds + 1):
            for name, (session, request) in ways.items():
                took = sessions[session].ask(request)
                if turn != 0 and took is not None:  # the first is to warm up
                    times[name].append(took / tasks / 1000)
        cells = [f"{statistics.median(times[name]):.1f}" if times[name] else "fails"
                 for name in ("ours", "original")]
        cells.append(" / ".join(f"{statistics.median(times[name]):.1f}" for name in ways
                                if ways[name][0] == "raw"))
        for other in ("original", "waits", "queue"):
            cells.append("" if not times.get(other) else "{:.2f}".format(statistics.median(
                a / b for a, b in zip(times["ours"], times[other]))))
        question = " ".join(map(str, (kind, size))) if size else kind
        print(f"| {question}, {tasks} | " + " | ".join(cells) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("prefix", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--devices", default="pthread",
                        help="POCL_DEVICES; or gpu, by OpenCL; or cuda, the original by OpenCL")
    options = parser.parse_args()
    for path in ORIGINAL_FILES:
        if os.path.exists(path):
            sys.exit(f"{path} is there already: another scheduler of the original runs, or was "
                     "killed (end it, or remove the file)")
    bin_folder, prefix = options.build.resolve() / "bin", options.prefix.resolve()
    sessions = {}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        kernels, by_cuda = folder / "kernels", options.devices == "cuda"
        environment = {**os.environ, "AMASIA_DEVICES_BACKENDS": "cuda" if by_cuda else "opencl"}
        gpus = [options.devices] if options.devices in ("gpu", "cuda") else []
        if not gpus:
            environment["POCL_DEVICES"] = options.devices
        library = options.build.resolve() / "lib"
        include = HERE.parents[1] / "include"
        ours = build(folder, "ours", [include, include / "amasia/compat"], library,
                     ["amasia-devices"])
        original = build(folder, "original", [prefix / "include"], prefix / "lib",
                         ["mcl", "OpenCL", "m", "pthread", "rt"])
        try:
            arguments = [kernels, str(options.workers), *gpus]
            if by_cuda:  # the original has its kernels in OpenCL C
                Session([bin_folder / "raw_session", folder / "kernels.cl", "gpu"],
                        environment).end()
            sessions["raw"] = Session([bin_folder / "raw_session", kernels, *gpus], environment)
            sessions["ours"] = Session([ours, *arguments], environment)
            if by_cuda:
                arguments[0] = folder / "kernels.cl"
            sessions["original"] = Session([original, *arguments], environment,
                                           [prefix / "bin" / "mcl_sched"])
            measure({one: sessions[one] for one in ("ours", "original", "raw")}, options.rounds)
        finally:
            for session in sessions.values():
                session.end()
            for path in ORIGINAL_FILES:
                pathlib.Path(path).unlink(missing_ok=True)
            client = sessions.get("original")
            if client is not None:
                pathlib.Path(f"/tmp/mcl_client.{client.process.pid}").unlink(missing_ok=True)


main()
