#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Question: what do a barrier, an empty region and a reduction on several nodes cost beside MPI?

Runs constructs.c on N nodes of one thread and message_round_trips.c on N processes, one after the
other, round by round, so that what else the machine does falls on both alike. Aims: a barrier 1.0 x
MPI_Barrier; an empty region 2 x the round trip that it cannot do without (8 bytes there and back
between two processes), a region with a reduction 2 x that and MPI_Allreduce together.

Prints for each construct the median and the MAD (median absolute deviation) of the rounds' medians
in microseconds, the same of its peer, and the median of the ratios of each round. --json FILE
writes the same. mpirun binds its processes to cores while there are enough; beyond that both share
them.
"""

import argparse
import json
import os
import pathlib
import shlex
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
COMPILERS = {"clang": ["clang-19", "-fopenmp"], "gcc": ["gcc-12", "-fopenmp"], "mpi": ["mpicc"]}
# Construct -> what MPI needs for the same, and the aim.
PEERS = {"barrier": (["barrier"], 1.0), "region": (["round_trip"], 2.0),
         "reduction": (["round_trip", "allreduce"], 2.0)}


def build(source, compiler, folder):
    folder.mkdir(parents=True, exist_ok=True)
    out = folder / f"{source}-{compiler}"
    command = [*COMPILERS[compiler], "-O2", str(HERE / f"{source}.c"), "-o", str(out)]
    subprocess.run(command, check=True)
    return out


def run(command, environment, timeout):
    """Name -> microseconds; a program that fails is an error of the run."""
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True,
                          text=True, timeout=timeout)
    if done.returncode != 0:
        raise RuntimeError(f"{shlex.join(map(str, command))}: exit {done.returncode}: "
                           f"{(done.stdout + done.stderr).strip()[-400:]}")
    return {line.split()[0]: float(line.split()[1]) for line in done.stdout.splitlines()}


def summary(values):
    middle = statistics.median(values)
    return {"median": middle, "mad": statistics.median(abs(value - middle) for value in values),
            "min": min(values), "n": len(values)}


def measure(nodes, compiler, options):
    ours = build("constructs", compiler, options.build)
    peer = build("message_round_trips", "mpi", options.build)
    launcher = shlex.split(options.launcher.replace("{nodes}", str(nodes)))
    mpirun = shlex.split(options.mpirun.replace("{nodes}", str(nodes)))
    # By its own choice the runtime would keep such regions on one node.
    settings = {"OMP_NUM_THREADS": str(nodes), "AMASIA_SHARE": "always"}
    rounds = []
    for _ in range(options.rounds):
        load = os.getloadavg()[0]
        rounds.append((run([*launcher, ours], settings, options.timeout),
                       run([*mpirun, peer], {}, options.timeout), load))
    result = {"nodes": nodes, "compiler": compiler, "load": max(load for _, _, load in rounds)}
    for construct, (parts, aim) in PEERS.items():
        mine = [one[construct] for one, _, _ in rounds]
        other = [sum(two[part] for part in parts) for _, two, _ in rounds]
        result[construct] = {
            "us": summary(mine), "peer": " + ".join(parts), "peer_us": summary(other),
            "ratio": statistics.median(left / right for left, right in zip(mine, other)),
            "aim": aim}
    return result


def print_result(result):
    print(f"{result['nodes']} nodes, {result['compiler']}, load up to {result['load']:.1f}")
    for construct in PEERS:
        one = result[construct]
        mine, peer = one["us"], one["peer_us"]
        print(f"  {construct:10} median {mine['median']:9.3f} us  MAD {mine['mad']:8.3f}  "
              f"min {mine['min']:9.3f}  n {mine['n']}  "
              f"{one['peer']} {peer['median']:.3f} us  MAD {peer['mad']:.3f}  "
              f"x{one['ratio']:.2f}  aim x{one['aim']:.1f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description="Constructs on several nodes against MPI.")
    parser.add_argument("--launcher", default="amasia run -n {nodes}")
    parser.add_argument("--mpirun",
                        default="mpirun --allow-run-as-root --oversubscribe -np {nodes}")
    parser.add_argument("--nodes", default="2,4,8")
    parser.add_argument("--compilers", default="clang,gcc")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--timeout", type=float, default=120, help="seconds for one run")
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parents[1] / "build" / "bench")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    results = []
    for nodes in map(int, options.nodes.split(",")):
        for compiler in options.compilers.split(","):
            results.append(measure(nodes, compiler, options))
            print_result(results[-1])
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
