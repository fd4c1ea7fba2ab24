#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs OpenMP programs plainly and under a launcher, and compares what a user sees.

The oracle is the plain run of the very same executable: standard output, exit code (or signal),
and standard error where the manifest asks for it. A line of the manifest:

  SOURCE[,MORE...]  COMPILERS  KEY=VALUE...

  compilers=  clang gcc (C and C++), flang gfortran (Fortran), comma-separated
  compare=    exact (default), sorted: the lines are compared as a sorted multiset, or distinct:
              which lines there are, however often
  stderr=     one of these: compare standard error too (by default it is not compared)
  threads=    OMP_NUM_THREADS (default 4), the whole team over all nodes; or unset: as many as there
              are cores, and regions that stay on one node may have fewer
  exit=       the exit code the plain run must have (default 0); -6 means killed by signal 6
  args= stdin= env=NAME=VALUE flags= libs= timeout=  as they say; env may be given several times
  library=    a source that is built to lib<stem>.so beside the program and linked to it
  plugin=     the same, but not linked: the program opens it with dlopen
  tags=       words to select by (--tag, --without-tag)

With a launcher template that has {stats} in it (`amasia run -n {nodes} --stats={stats}`), the
statistics of all runs are added up: how many regions ran on several nodes, and why others did not.
So that a launcher which runs everything on one node is not taken for one that works.

Run `run.py --help` for the options. Exit code: 0 all equal, 1 a difference, 2 a mistake in the
call or the manifest.
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import hashlib
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading

from compare import (as_compared, environment, exit_name, first_difference, run, same_exit,
                     split_template)

HERE = pathlib.Path(__file__).resolve().parent
KEYS = {"compare", "stderr", "threads", "exit", "args", "stdin", "env", "flags", "libs", "timeout",
        "library", "plugin", "tags"}
# A driver per language; the first that is installed is used.
DRIVERS = {
    "clang": {".c": ["clang-19", "clang"], ".cpp": ["clang++-19", "clang++"]},
    "gcc": {".c": ["gcc-12", "gcc"], ".cpp": ["g++-12", "g++"]},
    "gfortran": {".f90": ["gfortran-12", "gfortran"]},
    "flang": {".f90": ["flang-new-19", "flang-19", "flang"]},
}
STANDARD = {".c": ["-std=gnu11"], ".cpp": ["-std=c++17"], ".f90": []}
# gcc-12 knows OpenMP 5.x without being asked; clang-19's default is 5.1.
COMMON_FLAGS = ["-O1", "-g", "-fopenmp"]
# Manifest lines may share an executable; with --jobs only one of them may build it.
BUILDING = threading.Lock()
COUNTING = threading.Lock()


class ManifestError(Exception):
    """A line of the manifest that does not say what it should."""


@dataclasses.dataclass
class Program:
    sources: list
    compilers: list
    keys: dict = dataclasses.field(default_factory=dict)
    env: dict = dataclasses.field(default_factory=dict)

    @property
    def name(self):
        return pathlib.Path(self.sources[0]).stem

    @property
    def suffix(self):
        return pathlib.Path(self.sources[0]).suffix

    def get(self, key, default=""):
        return self.keys.get(key, default)

    @property
    def tags(self):
        return {tag for tag in self.get("tags").split(",") if tag}


def read_manifest(path):
    programs = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        words = shlex.split(line, comments=True)
        if not words:
            continue
        if len(words) < 2:
            raise ManifestError(f"{path}:{number}: needs a source and a list of compilers")
        program = Program(words[0].split(","), words[1].split(","))
        unknown = [name for name in program.compilers if name not in DRIVERS]
        if unknown:
            raise ManifestError(f"{path}:{number}: compiler '{unknown[0]}' (allowed: "
                                f"{' '.join(DRIVERS)})")
        for word in words[2:]:
            key, equals, value = word.partition("=")
            if not equals or key not in KEYS:
                raise ManifestError(f"{path}:{number}: '{word}' (allowed keys: "
                                    f"{' '.join(sorted(KEYS))})")
            if key == "env":
                name, _, setting = value.partition("=")
                program.env[name] = setting
            else:
                program.keys[key] = value
        for source in program.sources:
            if not (path.parent / source).is_file():
                raise ManifestError(f"{path}:{number}: there is no file {source}")
        programs.append(program)
    return programs


def find_driver(compiler, suffix):
    for name in DRIVERS[compiler].get(suffix, []):
        if shutil.which(name):
            return name
    return None


def build(program, compiler, folder, build_root):
    """Builds the program if it is not up to date. Returns the executable or raises RuntimeError."""
    # Lines of one source with other flags are built side by side.
    flagged = hashlib.sha256(program.get("flags").encode()).hexdigest()[:8]
    out = build_root / compiler / (f"{program.name}-{flagged}" if program.get("flags")
                                   else program.name)
    out.parent.mkdir(parents=True, exist_ok=True)
    driver = find_driver(compiler, program.suffix)
    flags = [*COMMON_FLAGS, *STANDARD[program.suffix], *shlex.split(program.get("flags"))]
    if compiler in ("gfortran", "flang"):
        modules = out.parent / f"{out.name}.mod.d"
        modules.mkdir(exist_ok=True)
        flags += ["-J" if compiler == "gfortran" else "-module-dir", str(modules)]
    libraries = []
    for key in ("library", "plugin"):
        source = program.get(key)
        if not source:
            continue
        stem = pathlib.Path(source).stem
        shared = out.parent / f"lib{stem}.so"
        compile_to(shared, [find_driver(compiler, pathlib.Path(source).suffix), *COMMON_FLAGS,
                            "-fPIC", "-shared", str(folder / source)], [folder / source])
        if key == "library":
            libraries += [f"-L{out.parent}", f"-l{stem}", "-Wl,-rpath,$ORIGIN"]
    sources = [folder / source for source in program.sources]
    compile_to(out, [driver, *flags, *map(str, sources), *libraries,
                     *shlex.split(program.get("libs"))], sources)
    return out


def compile_to(out, command, sources):
    """Runs `command -o out` unless out was made by the same command from the same sources."""
    texts = [source.read_bytes() for source in sources]
    texts += [header.read_bytes() for header in sorted(sources[0].parent.glob("*.h"))]
    key = hashlib.sha256(b"\0".join([" ".join(command).encode(), *texts])).hexdigest()
    stamp = out.with_name(out.name + ".key")
    if out.exists() and stamp.exists() and stamp.read_text() == key:
        return
    done = subprocess.run([*command, "-o", str(out)], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{shlex.join(command)} failed:\n{done.stderr.strip()[-2000:]}")
    stamp.write_text(key)


def differences(program, plain, launched):
    """The sentences that say how a launched run differs from the plain one."""
    found = [launched.trouble] if launched.trouble else []
    if not launched.trouble and not same_exit(plain.code, launched.code):
        found.append(f"plain {exit_name(plain.code)}, launched {exit_name(launched.code)}")
    mode = program.get("compare", "exact")
    left, right = as_compared(plain.stdout, mode), as_compared(launched.stdout, mode)
    if left != right:
        found.append(first_difference(left, right, "stdout"))
    if program.get("stderr"):
        mode = program.get("stderr")
        left, right = as_compared(plain.stderr, mode), as_compared(launched.stderr, mode)
        if left != right:
            found.append(first_difference(left, right, "stderr"))
    if found and launched.stderr.strip():
        found.append("stderr: " + launched.stderr.decode(errors="replace").strip()[-600:])
    return found


def execute(program, executable, options, nodes=None):
    """One run of an executable: plain if nodes is None, else under the launcher."""
    stdin = program.get("stdin").encode().decode("unicode_escape").encode()
    timeout = float(program.get("timeout", 0)) or options.timeout
    with tempfile.TemporaryDirectory(prefix="program-") as folder, \
            tempfile.TemporaryDirectory(prefix="stats-") as stats_folder:
        stats = pathlib.Path(stats_folder) / "stats.json"
        template = options.launcher.replace("{stats}", str(stats))
        template_env, prefix = ({}, []) if nodes is None else split_template(template, nodes)
        command = [*prefix, str(executable), *shlex.split(program.get("args"))]
        settings = {**program.env, **template_env}
        env = environment(program.get("threads", "4"), settings)
        outcome = run(command, env, stdin, timeout, folder)
        if stats.is_file():
            with COUNTING:
                options.regions.update(count_regions(stats, nodes))
        return outcome


def count_regions(stats, nodes):
    """(node count, why on one node or "on several nodes") -> how many times a region ran so."""
    counted = collections.Counter()
    try:
        for region in json.loads(stats.read_text())["regions"]:
            alone = region["nodes"] == 1
            why = region.get("single_node_reason") or "no reason given"
            counted[nodes, f"on one node: {why}" if alone else "on several nodes"] += region["runs"]
    except (ValueError, KeyError) as error:
        counted[nodes, f"statistics that cannot be read: {error!r}"] += 1
    return counted


def plain_findings(program, plain):
    found = [plain.trouble] if plain.trouble else []
    expected = int(program.get("exit", "0"))
    if not plain.trouble and plain.code != expected:
        found.append(f"{exit_name(plain.code)} instead of {exit_name(expected)}")
    if found:
        found.append("stdout: " + plain.stdout.decode(errors="replace")[-300:])
        found.append("stderr: " + plain.stderr.decode(errors="replace")[-300:])
    return found


def check_program(program, compiler, options):
    """Yields (column, verdict, seconds, findings) for one program built by one compiler."""
    try:
        with BUILDING:
            executable = build(program, compiler, options.folder, options.build)
    except RuntimeError as failure:
        yield "build", "FAIL", 0.0, [str(failure)]
        return
    if options.build_only:
        yield "build", "ok", 0.0, []
        return
    plain = execute(program, executable, options)
    found = plain_findings(program, plain)
    if not found and options.launcher == "":
        again = execute(program, executable, options)
        found = [f"two plain runs differ: {text}" for text in differences(program, plain, again)]
    yield "plain", "FAIL" if found else "ok", plain.seconds, found
    if found:
        return
    for nodes in options.nodes if options.launcher else []:
        for _ in range(options.repeat):
            launched = execute(program, executable, options, nodes)
            found = differences(program, plain, launched)
            if found:
                break
        yield f"n={nodes}", "FAIL" if found else "ok", launched.seconds, found


def parse_options():
    parser = argparse.ArgumentParser(description="Compare OpenMP programs, plain and launched.")
    parser.add_argument("--manifest", type=pathlib.Path, default=HERE / "manifest.txt")
    parser.add_argument("--build", type=pathlib.Path,
                        default=HERE.parents[1] / "build" / "programs")
    parser.add_argument("--launcher", default="amasia run -n {nodes}",
                        help="command template, environment assignments first; '' for plain only")
    parser.add_argument("--nodes", default="1,2,3,4", help="comma-separated (default 1,2,3,4)")
    parser.add_argument("--compilers", default=",".join(DRIVERS))
    parser.add_argument("--only", action="append", default=[], help="regular expression on names")
    parser.add_argument("--tag", action="append", default=[])
    parser.add_argument("--without-tag", action="append", default=[])
    parser.add_argument("--timeout", type=float, default=30, help="seconds for one run")
    parser.add_argument("--repeat", type=int, default=1, help="launched runs for each node count")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--build-only", action="store_true")
    parser.add_argument("--verbose", action="store_true", help="a line for every good run too")
    options = parser.parse_args()
    options.nodes = [int(text) for text in options.nodes.split(",")]
    options.compilers = options.compilers.split(",")
    options.manifest = options.manifest.resolve()
    options.build = options.build.resolve()
    options.folder = options.manifest.parent
    options.regions = collections.Counter()
    return options


def select(programs, options):
    """The (program, compiler) pairs to run, and those left out since a compiler is missing."""
    chosen, missing = [], []
    for program in programs:
        if options.only and not any(re.search(text, program.name) for text in options.only):
            continue
        if options.tag and not program.tags & set(options.tag):
            continue
        if program.tags & set(options.without_tag):
            continue
        for compiler in program.compilers:
            if compiler not in options.compilers:
                continue
            there = find_driver(compiler, program.suffix)
            (chosen if there else missing).append((program, compiler))
    return chosen, missing


def print_program(program, compiler, results, verbose):
    cells = "  ".join(f"{column} {verdict} {seconds:5.2f}s"
                      for column, verdict, seconds, _ in results)
    bad = any(verdict != "ok" for _, verdict, _, _ in results)
    if bad or verbose:
        print(f"{program.name:34} {compiler:9} {cells}", flush=True)
    for column, _, _, findings in results:
        for text in findings:
            print(f"    {column}: " + text.replace("\n", "\n      "), flush=True)


def main():
    options = parse_options()
    try:
        chosen, missing = select(read_manifest(options.manifest), options)
    except (ManifestError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    launcher = split_template(options.launcher, 1)[1]
    if launcher and not options.build_only and not shutil.which(launcher[0]):
        print(f"there is no launcher '{launcher[0]}' (--launcher, or put it in PATH)",
              file=sys.stderr)
        return 2
    columns = {}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        work = pool.map(lambda pair: list(check_program(*pair, options)), chosen)
        for (program, compiler), results in zip(chosen, work):
            print_program(program, compiler, results, options.verbose)
            for column, verdict, _, _ in results:
                good, bad = columns.get(column, (0, 0))
                columns[column] = (good + (verdict == "ok"), bad + (verdict != "ok"))
    for compiler in sorted({compiler for _, compiler in missing}):
        count = sum(1 for _, name in missing if name == compiler)
        print(f"{compiler} is not installed: {count} programs left out")
    print(f"{'runs':10} {'passed':>7} {'failed':>7}")
    for column, (good, bad) in columns.items():
        print(f"{column:10} {good:7} {bad:7}")
    for (nodes, how), count in sorted(options.regions.items()):
        print(f"n={nodes}: {count} regions {how}")
    passed = sum(good for good, _ in columns.values())
    failed = sum(bad for _, bad in columns.values())
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
