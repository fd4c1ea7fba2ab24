#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Question: how near do two nodes of one core come to one node of two cores?

Runs each program of bench/programs in four ways, one after the other, round by round, so that what
else the machine does falls on all of them alike:

  plain-1   the plain program with one thread
  plain-2   the plain program with two threads: the peer
  one-node  the launcher with one node and two threads (aim: within 1 % of plain-2)
  two-node  the launcher with two nodes, one thread on each (aim: 1.05 x plain-2)

Prints median, MAD (median absolute deviation), min and n of the seconds that a program measures for
its parallel part, then the ratio to each peer: the median of the ratios of runs of one round.
--json FILE writes the same. A run that is not "verified" is an error: exit code 1.
"""

import argparse
import json
import os
import pathlib
import platform
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = ["ep", "kmeans", "vector_sum", "jacobi"]
COMPILERS = {"clang": "clang-19", "gcc": "gcc-12"}
AIMS = {("one-node", "plain-2"): 1.01, ("two-node", "plain-2"): 1.05}


def build(program, compiler, folder):
    folder.mkdir(parents=True, exist_ok=True)
    out = folder / f"{program}-{compiler}"
    source = HERE / "programs" / f"{program}.c"
    if not out.exists() or out.stat().st_mtime < source.stat().st_mtime:
        subprocess.run([COMPILERS[compiler], "-O2", "-fopenmp", str(source), "-o", str(out), "-lm"],
                       check=True)
    return out


def launched(template, nodes):
    """'A=1 tool -n {nodes}' -> ({'A': '1'}, ['tool', '-n', '2'])."""
    words, env = shlex.split(template.replace("{nodes}", str(nodes))), {}
    while words and re.match(r"[A-Za-z_]\w*=", words[0]):
        name, _, value = words.pop(0).partition("=")
        env[name] = value
    return env, words


def ways_to_run(options):
    """Name -> (threads, environment, command prefix)."""
    one_env, one = launched(options.launcher, 1)
    two_env, two = launched(options.launcher, 2)
    ways = {"plain-1": (1, {}, []), "plain-2": (2, {}, []),
            "one-node": (2, one_env, one), "two-node": (2, two_env, two)}
    if not options.launcher:
        del ways["one-node"], ways["two-node"]
    return ways


def run_once(executable, way, timeout):
    """(seconds of the parallel part, seconds of the whole process), or a sentence of failure."""
    threads, settings, prefix = way
    env = {**os.environ, "OMP_NUM_THREADS": str(threads), **settings}
    started = time.monotonic()
    try:
        done = subprocess.run([*prefix, str(executable)], env=env, capture_output=True, text=True,
                              timeout=timeout)
    except subprocess.TimeoutExpired:
        return f"did not end within {timeout:g} s"
    whole = time.monotonic() - started
    found = re.search(r"^seconds ([0-9.]+)$", done.stdout, re.M)
    if done.returncode != 0 or "verified" not in done.stdout or not found:
        return f"exit {done.returncode}: {(done.stdout + done.stderr).strip()[-400:]}"
    return float(found[1]), whole


def summary(values):
    middle = statistics.median(values)
    return {"median": middle, "mad": statistics.median(abs(value - middle) for value in values),
            "min": min(values), "n": len(values)}


def measure(program, compiler, options):
    executable = build(program, compiler, options.build)
    ways = ways_to_run(options)
    seconds, whole = {way: [] for way in ways}, {way: [] for way in ways}
    for round_number in range(options.warm_up + options.runs):
        for way, how in ways.items():
            outcome = run_once(executable, how, options.timeout)
            if isinstance(outcome, str):
                return {"program": program, "compiler": compiler, "failure": f"{way}: {outcome}"}
            if round_number >= options.warm_up:
                seconds[way].append(outcome[0])
                whole[way].append(outcome[1])
    ratios = {}
    for way in ways:
        for peer in ("plain-1", "plain-2"):
            if way != peer:
                pairs = zip(seconds[way], seconds[peer])
                ratios[f"{way}/{peer}"] = statistics.median(left / right for left, right in pairs)
    return {"program": program, "compiler": compiler,
            "seconds": {way: summary(values) for way, values in seconds.items()},
            "process_seconds": {way: summary(values) for way, values in whole.items()},
            "ratios": ratios}


def print_result(result):
    print(f"{result['program']} ({result['compiler']})")
    if "failure" in result:
        print(f"  {result['failure']}")
        return
    for way, one in result["seconds"].items():
        ratios = "  ".join(f"{peer} x{result['ratios'][f'{way}/{peer}']:.3f}"
                           for peer in ("plain-1", "plain-2") if way != peer)
        aims = [f"aim x{aim:.2f} of {peer}" for (name, peer), aim in AIMS.items() if name == way]
        process = result["process_seconds"][way]["median"]
        print(f"  {way:9} median {one['median']:8.4f} s  MAD {one['mad']:7.4f}  "
              f"min {one['min']:8.4f}  n {one['n']}  process {process:7.3f} s  {ratios}  "
              f"{' '.join(aims)}".rstrip(), flush=True)


def machine():
    model = re.search(r"model name\s*:\s*(.*)", pathlib.Path("/proc/cpuinfo").read_text())
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=HERE, text=True,
                            capture_output=True).stdout.strip()
    return {"cpu": model[1] if model else platform.machine(), "cores": os.cpu_count(),
            "kernel": platform.release(), "commit": commit, "load": os.getloadavg()[0]}


def parse_options():
    parser = argparse.ArgumentParser(description="Speed on two nodes against two threads.")
    parser.add_argument("--launcher", default="amasia run -n {nodes}",
                        help="command template, environment assignments first; '' for plain only")
    parser.add_argument("--programs", default=",".join(PROGRAMS))
    parser.add_argument("--compilers", default="clang,gcc")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--warm-up", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=120, help="seconds for one run")
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build" / "bench")
    parser.add_argument("--json", type=pathlib.Path)
    return parser.parse_args()


def main():
    options = parse_options()
    launcher = launched(options.launcher, 1)[1]
    if launcher and not shutil.which(launcher[0]):
        print(f"there is no launcher '{launcher[0]}' (--launcher, or put it in PATH)",
              file=sys.stderr)
        return 2
    where = machine()
    print("  ".join(f"{name} {value}" for name, value in where.items()))
    results = []
    for program in options.programs.split(","):
        for compiler in options.compilers.split(","):
            results.append(measure(program, compiler, options))
            print_result(results[-1])
    if options.json:
        options.json.write_text(json.dumps({"machine": where, "results": results}, indent=1) + "\n")
    return 1 if any("failure" in result for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
