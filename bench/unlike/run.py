#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Question: on unlike nodes, how near does the runtime's own choice come to the best of all ways
to share a program's loops, among them not to share?

Runs each program of programs.py on each machine (nodes of one core, slowed to a share of it) with a
fast and a slow link, in these configurations, one after the other, round by round, so that what
else the machine does falls on all of them alike:

  node K           the program on that node alone: what sharing is held against
  even             every loop shared evenly by all nodes
  csr              shared by fixed core speed ratios, which a search finds beforehand
  dynamic          hierarchical dynamic: a pool for each node
  hetprobe, hetprobe-i   the paper's schedules
  default          no option at all; default-runtime: the same of the build with schedule(runtime)
  profile          as default, but beginning with the shares that two runs of it had found before

Static builds where nothing else is said; dynamic, hetprobe and hetprobe-i need loops that come back
for more and so run the build with schedule(runtime). The oracle is the best configuration of each
program. Aims: default within 3 % of it once every loop has run twice (8 % of the whole for the
-once programs), its core speed ratios within 5 % of the searched ones, hetprobe-i ahead of
hetprobe on irregular programs. The peer is figure 7 of the paper on libHetMP: hetprobe +41 % where
the oracle has +60 %, and its cost of probing, 5.5 % where sharing pays and 6.1 % where it does not.

The best of nine figures is better than it is, by chance. So it and default run --confirm more
times in turns (hetprobe and hetprobe-i, too, where the program is irregular), and the aims are
judged by these runs.

Prints median, MAD (median absolute deviation), min and n of the seconds that a program measures for
its parallel part, and the speed-up: the median of the ratios of runs of one round, and the same of
the part after every loop has run twice ("settled"); then figure 7 as a table. --png DIR draws it,
--json FILE writes all. A run that does not print what the plain program does is WRONG; such a run,
or one that fails: exit code 1. One that takes longer than --limit counts as that long, and is not
tried again.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

import aims
import configurations
import figure
import programs
import ratios

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parents[1] / "tests" / "programs"))
import compare  # noqa: E402  (running a command so that nothing of it is left behind)

CANDIDATE_ROUNDS = 3  # runs of each candidate for the ideal core speed ratios
MACHINES = ["1.0,1.0", "1.0,0.5", "1.0,0.33", "1.0,0.5,0.33,0.25"]


class Failure(Exception):
    """A run that is of no use: a word for the table and a sentence."""

    def __init__(self, word, sentence):
        super().__init__(sentence)
        self.word = word


class OverLimit(Exception):
    pass


def environment(settings):
    """The caller's, without OpenMP's or this project's own settings: the options say it all."""
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("OMP_", "KMP_", "GOMP_", "AMASIA_"))}
    return {**env, **dict(settings)}


@dataclasses.dataclass(frozen=True)
class Run:
    """What a program printed, and seconds: its own; those since every loop had run twice, or None;
    of the whole process."""
    stdout: bytes
    seconds: float
    settled: float
    wall: float


def run_once(command, settings, limit, expected=None):
    with tempfile.TemporaryDirectory(prefix="unlike-") as folder:
        outcome = compare.run([str(word) for word in command], environment(settings), b"", limit,
                              folder)
    if outcome.trouble.startswith("did not end"):
        raise OverLimit
    said = outcome.stderr.decode(errors="replace").strip()
    if outcome.trouble or outcome.code != 0:
        raise Failure("failed", f"{outcome.trouble or compare.exit_name(outcome.code)}: "
                                f"{said[-400:]}")
    times = dict(re.findall(r"^(seconds|settled) ([0-9.]+)$", said, re.M))
    if "seconds" not in times:
        raise Failure("failed", f"it printed no seconds: {said[-400:]}")
    if expected is not None and outcome.stdout != expected:
        raise Failure("WRONG", compare.first_difference(expected.split(b"\n"),
                                                        outcome.stdout.split(b"\n"), "output"))
    settled = float(times["settled"]) if "settled" in times else None
    return Run(outcome.stdout, float(times["seconds"]), settled, outcome.seconds)


class Case:
    """One program, built by one compiler, on one machine."""

    def __init__(self, program, compiler, machine, options):
        self.program, self.compiler, self.machine = program, compiler, machine
        self.options = options
        self.arguments = [str(word) for word in
                          (program.quick if options.quick else program.arguments)]
        self.built = {schedule: programs.build(program, compiler, schedule, options.build)
                      for schedule in ("static", "runtime")}
        plain = [self.built["static"], *self.arguments]
        self.expected = run_once(plain, (("OMP_NUM_THREADS", "1"),), options.limit).stdout

    def run(self, configuration, *more):
        command = [self.options.amasia, "run", *configuration.options, *more,
                   self.built[configuration.build], *self.arguments]
        return run_once(command, configuration.environment, self.options.limit, self.expected)

    def search(self):
        """The ideal core speed ratios: the best of what a search finds, the speeds themselves, and
        what the runtime comes to."""
        def cost(tried):
            try:
                return self.run(configurations.with_ratios(self.machine, tried)).seconds
            except (Failure, OverLimit):
                return None
        speeds = [speed / self.machine.speeds[0] for speed in self.machine.speeds]
        found, seconds = ratios.search_ratios(cost, self.machine.speeds, self.options.search_steps)
        # What cannot be run with the speeds themselves is run with them once more, and said.
        if seconds is None:
            return speeds
        candidates = [speeds, found, self.found_ratios(configurations.default(self.machine))]
        return ratios.cheapest(cost, [one for one in candidates if one], CANDIDATE_ROUNDS)

    def make_profile(self, file):
        """What two runs find, one after the other; None: they fail."""
        try:
            for _ in range(2):
                self.run(configurations.default(self.machine), f"--stats={file}", "--profile", file)
        except (Failure, OverLimit):
            return None
        return str(file)

    def found_ratios(self, configuration):
        """The core speed ratios that the runtime itself came to, of the loop that took longest."""
        with tempfile.TemporaryDirectory(prefix="unlike-") as folder:
            file = pathlib.Path(folder) / "stats.json"
            try:
                self.run(configuration, f"--stats={file}")
                return longest_loop_ratios(json.loads(file.read_text()), len(self.machine.speeds))
            except (Failure, OverLimit, OSError, ValueError):
                return None


def ratios_of_loop(loop, nodes):
    """Of a loop that was handed out at run time, which has ratios of its own; else None."""
    given = {part["id"]: part["csr"] for part in loop["per_node"]}
    if loop["form"] != "pool" or any(not given.get(node) for node in range(nodes)):
        return None
    return [given[node] for node in range(nodes)]


def longest_loop_ratios(stats, nodes):
    """Of `--stats=FILE`: the core speed ratios by which the loop that took longest was shared, node
    0 at 1; None where it was not shared by all nodes. Loops without ratios of their own have those
    of their region."""
    longest, found = -1, None
    for region in stats["regions"]:
        loops = [(loop["elapsed_ns"] or 0, ratios_of_loop(loop, nodes)) for loop in region["loops"]]
        own = max((one for one in loops if one[1]), default=(0, None), key=lambda one: one[0])[1]
        given = own or region["csr"]
        if len(given) == nodes and all(given) and region["elapsed_ns"] > longest:
            longest = region["elapsed_ns"]
            found = [ratio / given[0] for ratio in given]
    return found


def summary(values):
    if not values:
        return None
    middle = statistics.median(values)
    return {"median": middle, "mad": statistics.median(abs(value - middle) for value in values),
            "min": min(values), "n": len(values)}


def run_rounds(case, chosen, rounds):
    """Name -> the runs' times, failure and whether it ran over the limit."""
    rows = {one.name: {"seconds": [], "settled": [], "wall": [], "failure": None,
                       "over_limit": False} for one in chosen}
    for _ in range(rounds):
        for one in chosen:
            row = rows[one.name]
            if row["failure"] or row["over_limit"]:
                continue
            try:
                now = case.run(one)
            except Failure as failure:
                row["failure"] = {"word": failure.word, "sentence": str(failure)}
                continue
            except OverLimit:
                row["over_limit"] = True
                now = Run(b"", case.options.limit, None, case.options.limit)
            row["seconds"].append(now.seconds)
            row["settled"].append(now.settled)
            row["wall"].append(now.wall)
    return rows


def speed_up(base, values):
    """The median of the ratios of rounds. A row over the limit may be shorter than the base: its
    last entry then stands for all. None where a time is missing."""
    values = values + values[-1:] * (len(base) - len(values))
    pairs = list(zip(base, values))
    if not pairs or any(one is None for pair in pairs for one in pair):
        return None
    return statistics.median(left / right for left, right in pairs)


def best_of(rows, what):
    """The configuration whose speed-up `what` is the best, and that; None: there is none."""
    good = [(row[what], name) for name, row in rows.items() if row[what] and not row["over_limit"]]
    return dict(zip(("speed_up", "configuration"), max(good))) if good else None


def confirm(case, result, chosen):
    """The time of default by that of the best other way, and of hetprobe-i by hetprobe's, each as
    the median of the ratios of rounds of their own; None: there is nothing to be held against."""
    part = aims.judged_part(result)
    what = "settled_speed_up" if part == "settled" else "speed_up"
    rows = result["configurations"]
    peer = best_of({name: row for name, row in rows.items() if name != "default"}, what)
    if not peer or not (rows.get("default") or {}).get(what) or case.options.confirm == 0:
        return None
    pairs = {"default": peer["configuration"]}
    if aims.is_irregular(result) and rows.get("hetprobe") and rows.get("hetprobe-i"):
        pairs["hetprobe-i"] = "hetprobe"
    names = {*pairs, *pairs.values()}
    again = run_rounds(case, [one for one in chosen if one.name in names], case.options.confirm)
    return {"peer": peer["configuration"], "part": part, "n": case.options.confirm,
            "failures": {name: row["failure"] for name, row in again.items() if row["failure"]},
            **{name: time_by(again[name], again[other], part) for name, other in pairs.items()}}


def time_by(own, peer, part):
    if any(row["failure"] or row["over_limit"] for row in (own, peer)):
        return None
    return speed_up(own[part], peer[part])


def measure(case):
    options = case.options
    searched = case.search() if "csr" in options.configurations else None
    with tempfile.TemporaryDirectory(prefix="unlike-") as folder:
        profile = None
        if "profile" in options.configurations:
            profile = case.make_profile(pathlib.Path(folder) / "profile.json")
        chosen = configurations.configurations(case.machine, case.program, searched,
                                               options.configurations, profile)
        rows = run_rounds(case, chosen, options.runs)
        result = result_of(case, chosen, rows, searched)
        result["confirmed"] = confirm(case, result, chosen)
    return result


def result_of(case, chosen, rows, searched):
    base = dict(rows[chosen[0].name])
    for row in rows.values():
        for what, name in (("seconds", "speed_up"), ("settled", "settled_speed_up")):
            row[name] = None if row["failure"] else speed_up(base[what], row[what])
    for row in rows.values():
        for what in ("seconds", "settled", "wall"):
            row[what] = summary([value for value in row[what] if value is not None])
    found = {one.name: case.found_ratios(one) for one in chosen
             if one.name in ("default", "hetprobe") and not rows[one.name]["failure"]
             and not rows[one.name]["over_limit"]}
    return {"program": case.program.name, "kind": case.program.kind, "compiler": case.compiler,
            "machine": case.machine.name, "link": case.machine.link,
            "scale": case.machine.scale, "configurations": rows,
            "oracle": best_of(rows, "speed_up"),
            "settled_oracle": best_of(rows, "settled_speed_up"),
            "ratios": {"searched": searched, "found": found}}


def print_result(result):
    print(f"{result['program']} ({result['compiler']})")
    for name, row in result["configurations"].items():
        if row["failure"]:
            print(f"  {name:16} {row['failure']['word']}: {row['failure']['sentence']}", flush=True)
            continue
        one = row["seconds"]
        over = "  over the limit" if row["over_limit"] else ""
        speed_ups = f"{row['speed_up']:7.3f}" if row["speed_up"] else "no base"
        if row["settled_speed_up"]:
            speed_ups += f"  settled {row['settled_speed_up']:7.3f}"
        print(f"  {name:16} median {one['median']:8.4f} s  MAD {one['mad']:7.4f}  "
              f"min {one['min']:8.4f}  n {one['n']}  process {row['wall']['median']:7.3f} s  "
              f"speed-up {speed_ups}{over}", flush=True)
    again = result["confirmed"]
    for name, failure in (again or {}).get("failures", {}).items():
        print(f"  again: {name} {failure['word']}: {failure['sentence']}", flush=True)
    if again and again["default"]:
        print(f"  again: default takes {again['default']:.3f} of {again['peer']}'s {again['part']}"
              f" (n {again['n']})", flush=True)


def host():
    model = re.search(r"model name\s*:\s*(.*)", pathlib.Path("/proc/cpuinfo").read_text())
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=HERE, text=True,
                            capture_output=True).stdout.strip()
    return {"cpu": model[1] if model else platform.machine(), "cores": os.cpu_count(),
            "kernel": platform.release(), "commit": commit, "load": os.getloadavg()[0]}


def parse_options():
    parser = argparse.ArgumentParser(description="Loops on unlike nodes, shared in every way.")
    parser.add_argument("--amasia", default="amasia", help="the launcher")
    parser.add_argument("--programs", default=",".join(programs.DEFAULT))
    parser.add_argument("--machines", action="append", default=[],
                        help="shares of a core such as 1.0,0.5, or n2 for two plain nodes of this "
                             f"host; may be repeated (default {' '.join(MACHINES)})")
    parser.add_argument("--links", action="append", default=[],
                        help="none, or what --link takes; may be repeated (default none 100,200)")
    parser.add_argument("--configurations", default=",".join(configurations.NAMES))
    parser.add_argument("--compilers", default="clang,gcc")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--confirm", type=int, default=5,
                        help="more runs of default and the best; 0: the table's runs judge")
    parser.add_argument("--search-steps", type=int, default=5, help="runs for each node's ratio")
    parser.add_argument("--limit", type=float, default=20, help="seconds for one run")
    parser.add_argument("--quick", action="store_true", help="small sizes: does it all work?")
    parser.add_argument("--build", type=pathlib.Path,
                        default=HERE.parents[1] / "build" / "bench" / "unlike")
    parser.add_argument("--png", type=pathlib.Path, help="folder for a figure of each machine")
    parser.add_argument("--json", type=pathlib.Path)
    return check_options(parser.parse_args())


def check_options(options):
    """The options with their lists as objects; ValueError with a sentence."""
    options.build = options.build.resolve()
    options.programs = programs.programs_named(options.programs)
    options.compilers = options.compilers.split(",")
    options.configurations = options.configurations.split(",")
    for what, given, allowed in [("compilers", options.compilers, programs.DRIVERS),
                                 ("configurations", options.configurations,
                                  configurations.NAMES)]:
        for one in given:
            if one not in allowed:
                raise ValueError(f"--{what} has '{one}'; allowed are {', '.join(allowed)}")
    for what, given, least in [("runs", options.runs, 1), ("confirm", options.confirm, 0),
                               ("search-steps", options.search_steps, 2)]:
        if given < least:
            raise ValueError(f"--{what} is {given}; allowed is {least} and more")
    machines = [configurations.machine_named(text, "" if link == "none" else link)
                for text in options.machines or MACHINES
                for link in options.links or ["none", "100,200"]]
    options.machines = list(dict.fromkeys(machines))
    launcher = shutil.which(options.amasia)
    if launcher is None:
        raise ValueError(f"there is no launcher '{options.amasia}' (--amasia, or put it in PATH)")
    options.amasia = str(pathlib.Path(launcher).resolve())
    return options


def scaled(machine, options):
    """The machine with the scale that the launcher says it has on this host."""
    if not machine.emulated:
        return machine
    program = programs.build(programs.PROGRAMS["ep"], options.compilers[0], "static", options.build)
    outcome = compare.run([options.amasia, "run", "--log-level=info", *machine.nodes(),
                           str(program), "1", "1"], environment(()), b"", options.limit, "/")
    found = re.search(r"all run at ([0-9.]+) of", outcome.stderr.decode(errors="replace"))
    return dataclasses.replace(machine, scale=float(found[1])) if found else machine


def measure_machine(machine, compiler, options):
    """The results of all programs; prints each, then the table."""
    print(f"== {machine.name}, {machine.link_name}, {compiler}")
    if machine.scale != 1:
        print(f"this host has too few cores: every node runs at {machine.scale:g} of its speed, "
              "alone too")
    results = []
    for program in options.programs:
        try:
            results.append(measure(Case(program, compiler, machine, options)))
        except (Failure, OverLimit) as failure:
            print(f"{program.name} ({compiler})\n  plain run: {failure or 'over the limit'}")
            continue
        print_result(results[-1])
    if results:
        figure.show(results, options.png)
    print()
    return results


def main():
    try:
        options = parse_options()
    except ValueError as mistake:
        print(mistake, file=sys.stderr)
        return 2
    where = host()
    print("  ".join(f"{name} {value}" for name, value in where.items()))
    results, complete = [], True
    for machine in (scaled(machine, options) for machine in options.machines):
        for compiler in options.compilers:
            measured = measure_machine(machine, compiler, options)
            complete = complete and len(measured) == len(options.programs)
            results += measured
            if options.json:
                options.json.write_text(json.dumps({"host": where, "results": results}, indent=1)
                                        + "\n")
    bad = [row for result in results for row in result["configurations"].values()
           if row["failure"]]
    bad += [result for result in results if (result["confirmed"] or {}).get("failures")]
    return 0 if complete and not bad else 1


if __name__ == "__main__":
    sys.exit(main())
