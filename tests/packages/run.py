#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs OpenMP programs of Debian packages, as they are installed, plainly and under a launcher.

The oracle is the plain run: standard output, exit code and the bytes of the files it writes must be
the same. Each section of manifest.ini is a program:

  packages   what to install; openmp: which file of it holds the OpenMP code
  inputs     lines of FILE:MAKER ARGUMENTS, made by make_inputs.py in a fresh folder
  prepare    a command that is run plainly before (makes another input)
  command    the command; the launcher goes before it
  files      files it writes, compared byte for byte
  ignore     lines of standard output that match this regular expression are not compared
  threads    OMP_NUM_THREADS (default 2); timeout: seconds for one run

`--symbols` prints the OpenMP entry points that each program needs instead of running it.
Exit code: 0 all equal, 1 a difference, 2 a mistake in the call.
"""

import argparse
import configparser
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "programs"))

from compare import environment, exit_name, first_difference, run, same_exit, split_template
from make_inputs import MAKERS

ENTRY_POINT = re.compile(r"(?<!@)\b(GOMP_[a-z]\w*|omp_\w+|__kmpc_\w+)")


def make_inputs(section, folder):
    for line in section.get("inputs", "").splitlines():
        name, _, recipe = line.strip().partition(":")
        if name:
            maker, *arguments = recipe.split()
            (folder / name).write_bytes(MAKERS[maker](*arguments))
    if "prepare" in section:
        subprocess.run(shlex.split(section["prepare"]), cwd=folder, check=True,
                       capture_output=True)


def execute(section, inputs, launcher, nodes, timeout):
    """Runs the command in a copy of the inputs. Returns the outcome and the files it wrote."""
    template_env, prefix = split_template(launcher, nodes) if nodes else ({}, [])
    command = [*prefix, *shlex.split(section["command"])]
    with tempfile.TemporaryDirectory(prefix="package-") as name:
        folder = pathlib.Path(name) / "work"
        shutil.copytree(inputs, folder)
        env = environment(section.get("threads", "2"), template_env)
        outcome = run(command, env, b"", float(section.get("timeout", timeout)), folder)
        files = {}
        for file in section.get("files", "").split():
            path = folder / file
            files[file] = path.read_bytes() if path.is_file() else None
    return outcome, files


def compared_lines(section, data):
    lines = data.split(b"\n")
    if "ignore" in section:
        ignored = re.compile(section["ignore"].encode())
        lines = [line for line in lines if not ignored.search(line)]
    return lines


def differences(section, plain, launched):
    (left, left_files), (right, right_files) = plain, launched
    found = [right.trouble] if right.trouble else []
    if not found and not same_exit(left.code, right.code):
        found.append(f"plain {exit_name(left.code)}, launched {exit_name(right.code)}")
    lines = [compared_lines(section, outcome.stdout) for outcome in (left, right)]
    if lines[0] != lines[1]:
        found.append(first_difference(*lines, "stdout"))
    for file, data in left_files.items():
        other = right_files[file]
        if other is None:
            found.append(f"{file} was not written")
        elif data != other:
            at = next((i for i, pair in enumerate(zip(data, other)) if pair[0] != pair[1]),
                      min(len(data), len(other)))
            found.append(f"{file} differs from byte {at} on ({len(data)} and {len(other)} bytes)")
    if found and right.stderr.strip():
        found.append("stderr: " + right.stderr.decode(errors="replace").strip()[-600:])
    return found


def plain_findings(plain):
    outcome, files = plain
    found = [outcome.trouble] if outcome.trouble else []
    if not found and outcome.code != 0:
        found.append(f"plain run ended with {exit_name(outcome.code)}: "
                     + outcome.stderr.decode(errors="replace").strip()[-400:])
    found += [f"plain run did not write {file}" for file, data in files.items() if not data]
    if not files and not outcome.stdout:
        found.append("plain run printed nothing, so that there is nothing to compare")
    return found


def check_section(section, options):
    """Yields (column, seconds, findings) of the plain runs, then of each node count."""
    with tempfile.TemporaryDirectory(prefix="package-") as name:
        inputs = pathlib.Path(name) / "inputs"
        inputs.mkdir()
        make_inputs(section, inputs)
        plain = execute(section, inputs, options.launcher, None, options.timeout)
        found = plain_findings(plain)
        if not found:
            again = execute(section, inputs, options.launcher, None, options.timeout)
            found = [f"two plain runs differ: {text}"
                     for text in differences(section, plain, again)]
        yield "plain", plain[0].seconds, found
        if found or not options.launcher:
            return
        for nodes in options.nodes:
            launched = execute(section, inputs, options.launcher, nodes, options.timeout)
            yield f"n={nodes}", launched[0].seconds, differences(section, plain, launched)


def print_symbols(name, section):
    """The entry points that the program and the libraries it loads ask of the OpenMP runtime."""
    program = shutil.which(shlex.split(section["command"])[0])
    listed = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
    files = [program, *re.findall(r"=> (/\S+)", listed)]
    for file in files:
        text = subprocess.run(["nm", "-D", "--undefined-only", file], capture_output=True,
                              text=True).stdout
        points = sorted(set(ENTRY_POINT.findall(text)))
        if points:
            print(f"{name:15} {pathlib.Path(file).name}: {' '.join(points)}")


def parse_options():
    parser = argparse.ArgumentParser(description="Compare packaged programs, plain and launched.")
    parser.add_argument("--manifest", type=pathlib.Path, default=HERE / "manifest.ini")
    parser.add_argument("--launcher", default="amasia run -n {nodes}",
                        help="command template, environment assignments first; '' for plain only")
    parser.add_argument("--nodes", default="2", help="comma-separated (default 2)")
    parser.add_argument("--only", action="append", default=[], help="regular expression on names")
    parser.add_argument("--timeout", type=float, default=60, help="seconds for one run")
    parser.add_argument("--symbols", action="store_true", help="print entry points, run nothing")
    parser.add_argument("--packages", action="store_true", help="print the packages to install")
    options = parser.parse_args()
    options.nodes = [int(text) for text in options.nodes.split(",")]
    return options


def main():
    options = parse_options()
    manifest = configparser.ConfigParser(interpolation=None)
    manifest.read_string(options.manifest.read_text())
    if options.packages:
        words = {word for name in manifest.sections()
                 for word in manifest[name]["packages"].split()}
        print(" ".join(sorted(words)))
        return 0
    launcher = split_template(options.launcher, 1)[1]
    if launcher and not options.symbols and not shutil.which(launcher[0]):
        print(f"there is no launcher '{launcher[0]}' (--launcher, or put it in PATH)",
              file=sys.stderr)
        return 2
    passed = failed = 0
    for name in manifest.sections():
        section = manifest[name]
        if options.only and not any(re.search(text, name) for text in options.only):
            continue
        if not shutil.which(shlex.split(section["command"])[0]):
            print(f"{name:15} is not installed (package {section['packages']})")
            failed += 1
            continue
        if options.symbols:
            print_symbols(name, section)
            continue
        for column, seconds, findings in check_section(section, options):
            print(f"{name:15} {column:6} {'FAIL' if findings else 'ok':5} {seconds:6.2f}s",
                  flush=True)
            for text in findings:
                print("    " + text.replace("\n", "\n      "), flush=True)
            passed, failed = passed + (not findings), failed + bool(findings)
    if not options.symbols:
        print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
