#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""over_ranks.py BIN [--turns N] [--rounds R] [--tree T1] [--ranks 2] [--threads 1] [--json FILE]:
a tree search by uts_nodes, as the nodes of a job, and by uts_mpi_openmp, as ranks of mpirun, in
turns: processes of their own, which time their searches themselves, without their beginning and
end. Ratios are of one turn; below 1 where Amasia is quicker."""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

MPIRUN = ["mpirun", "--oversubscribe", "--allow-run-as-root", "--bind-to", "none", "-np"]


def seconds_of(command):
    done = subprocess.run([str(word) for word in command], text=True, capture_output=True,
                          stdin=subprocess.DEVNULL, timeout=600, check=False,
                          env={**os.environ, "OMP_WAIT_POLICY": "passive"})
    found = re.search(r"median ([0-9.]+) s", done.stdout)
    if done.returncode != 0 or not found:
        words = " ".join(map(str, command))
        sys.exit(f"{words}: code {done.returncode}\n{done.stdout}{done.stderr}")
    return float(found.group(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tree", default="T1")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json")
    asked = parser.parse_args()
    search = ["--tree", asked.tree, "--rounds", asked.rounds, "--threads", asked.threads]
    ways = {
        "amasia": [asked.bin / "amasia", "run", "-n", asked.ranks, asked.bin / "uts_nodes",
                   *search],
        "MPI+OpenMP": [*MPIRUN, asked.ranks, asked.bin / "uts_mpi_openmp", *search],
    }
    times = {way: [] for way in ways}
    for _ in range(asked.turns):
        for way, command in ways.items():
            times[way].append(seconds_of(command))
    ratios = [ours / theirs for ours, theirs in zip(times["amasia"], times["MPI+OpenMP"])]
    for way, all_times in times.items():
        middle = statistics.median(all_times)
        spread = statistics.median(abs(one - middle) for one in all_times)
        print(f"{asked.tree}, {asked.ranks} x {asked.threads}  {way:10}  median {middle:.4f} s  "
              f"MAD {spread:.4f}  min {min(all_times):.4f}  n {len(all_times)}")
    print(f"ratio {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})")
    if asked.json:
        record = {"tree": asked.tree, "ranks": asked.ranks, "threads": asked.threads,
                  "seconds": times, "ratio": statistics.median(ratios)}
        pathlib.Path(asked.json).write_text(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
