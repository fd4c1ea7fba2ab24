#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ranks.py RANKS PROGRAM [ARGUMENT…]: runs a program as ranks of mpirun, or --shmem as processing
elements of oshrun, more of them than there are cores if need be, as root, too. Exit code 0 if and
only if all ranks ended with 0 and no process of it is left."""

import os
import subprocess
import sys

OPTIONS = ["--oversubscribe", "--allow-run-as-root", "--bind-to", "none",
           # Its InfiniBand transport crashes when an OpenSHMEM program ends; it is not used here.
           "--mca", "btl", "^openib"]
PATIENCE = 100


def main(arguments):
    launcher = "mpirun"
    if arguments[0] == "--shmem":
        launcher = "oshrun"
        arguments = arguments[1:]
    ranks, program = arguments[0], arguments[1:]
    # A session of its own: what is left after it has ended can be found.
    with subprocess.Popen([launcher, *OPTIONS, "-np", ranks, *program], stdin=subprocess.DEVNULL,
                          # OpenMP's threads must not spin where there are more than cores.
                          env={**os.environ, "RANKS_EXPECTED": ranks,
                               "OMP_WAIT_POLICY": "passive"},
                          start_new_session=True) as job:
        try:
            code = job.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            print(f"ranks.py: not over after {PATIENCE} s", file=sys.stderr)
            job.terminate()  # mpirun ends its ranks
            try:
                job.wait(10)
            except subprocess.TimeoutExpired:
                job.kill()
            return 1
    left = subprocess.run(["ps", "-o", "pid=,state=,args=", "--sid", str(job.pid)], text=True,
                          capture_output=True, check=False).stdout
    alive = [line for line in left.splitlines() if line.split()[1] != "Z"]
    if alive:
        print("ranks.py: left over:", *alive, sep="\n", file=sys.stderr)
        return 1
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
