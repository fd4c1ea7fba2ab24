#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Repeats the figures of the paper (mcl-gpgpu2020) that tell of speed, with the benchmarks here.

  figures.py BUILD 4   products of 64 to 1024, 64 to 8192 tasks, 1 to 16 workers: Amasia's time by
                       that of OpenCL that waits for each, and of one with 16 in its queue
                       (aim: at most 1.0 and 1.25)
  figures.py BUILD 6   the same product on one device and on two: how many times as many a second
                       as on one, and as by OpenCL that waits for each on one
                       (aim: 2, where the machine has the cores); figure 7 with --devices for more
  figures.py BUILD 8   eight programs with small and large products in all proportions, against the
                       same with OpenCL

Expected: see the benchmarks. What would take longer than --limit seconds is left out, and counted.
All rounds of a row are interleaved; the table has medians."""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile


def run(program, *arguments):
    """The lines that a benchmark writes as JSON, by way."""
    with tempfile.NamedTemporaryFile("r") as lines:
        subprocess.run([program, *map(str, arguments)], check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "BENCH_JSON": lines.name})
        rows = [json.loads(line) for line in lines]
    return rows


def figure_4(options):
    left_out = 0
    print("| size | tasks | workers | Amasia, us a task | by waiting | by queue 16 |")
    print("|---|---|---|---|---|---|")
    for size in (64, 128, 256, 1024):
        for tasks in (64, 512, 8192):
            for workers in (1, 2, 16):
                operations = 3 * (options.rounds + 1) * tasks * 2 * size**3
                if operations / options.operations > options.limit:
                    left_out += 1
                    continue
                rows = run(options.build / "gemm_tasks", options.devices[0], size, tasks, workers,
                           options.rounds)
                ways = {row["way"]: row for row in rows}
                print(f"| {size} | {tasks} | {workers} | {ways['amasia']['median'] / 1000:.1f} | "
                      f"{ways['waits']['amasia_x']:.2f} | {ways['queue16']['amasia_x']:.2f} |",
                      flush=True)
    print(f"\nLeft out, as they would take longer than {options.limit:g} s: {left_out}")


def figure_6(options):
    print("| size | devices | tasks a second | by the first alone | by OpenCL there that waits |\n"
          "|---|---|---|---|---|")
    first = options.devices[0]
    most = max(len(devices.split()) for devices in options.devices)
    for size in (64, 128, 256):
        tasks = max(16 * most, 512 * most * 64**3 // size**3)
        times = {devices: [] for devices in options.devices}
        waits = []
        for _ in range(options.rounds):
            for devices, known in times.items():
                known.append(run(options.build / "gemm_tasks", devices, size, tasks, 4, 3,
                                 "amasia")[0]["median"])
            waits.append(run(options.build / "gemm_tasks", first, size, tasks, 4, 3,
                             "waits")[0]["median"])
        for devices, known in times.items():
            alone, by_opencl = (statistics.median(one / other for one, other in zip(ones, known))
                                for ones in (times[first], waits))
            print(f"| {size} | {devices} | {1e9 / statistics.median(known):.0f} | {alone:.2f} | "
                  f"{by_opencl:.2f} |", flush=True)


def figure_8(options):
    print("| large of 8 | Amasia, ms | by waiting | by queue 16 |\n|---|---|---|---|")
    rows = run(options.build / "programs_mix", options.devices[0], 64, 256, 512, options.rounds)
    for at in range(0, len(rows), 3):
        ways = {row["way"]: row for row in rows[at:at + 3]}
        print(f"| {ways['amasia']['question'].split()[0]} | {ways['amasia']['median'] / 1e6:.0f} | "
              f"{ways['waits']['amasia_x']:.2f} | {ways['queue16']['amasia_x']:.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("build", type=pathlib.Path,
                        help="the folder of the benchmarks, such as build/gcc/bin")
    parser.add_argument("figure", choices=("4", "6", "8"))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--limit", type=float, default=60)
    parser.add_argument("--devices", action="append",
                        help="PoCL's devices (POCL_DEVICES), or gpu or cuda; figure 6: once for\n"
                             "each row (pthread; figure 6: basic, and 'basic basic')")
    parser.add_argument("--operations", type=float, default=4e9, metavar="A_SECOND",
                        help="what the devices do, to know beforehand what takes too long\n"
                             "(4e9, two cores)")
    options = parser.parse_args()
    if not (options.build / "gemm_tasks").exists():
        sys.exit(f"{options.build}: no gemm_tasks there (built where OpenCL's headers are)")
    options.build = options.build.resolve()
    usual = ["basic", "basic basic"] if options.figure == "6" else ["pthread"]
    options.devices = options.devices or usual
    {"4": figure_4, "6": figure_6, "8": figure_8}[options.figure](options)


main()
