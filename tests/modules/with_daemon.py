#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""with_daemon.py DAEMON COMMAND [ARGUMENT…]: runs a command beside a daemon of devices of its own.
Exit code: the command's; 1 if the daemon does not end, or leaves its socket."""

import os
import pathlib
import subprocess
import sys
import tempfile
import time

PATIENCE = 30


def main(daemon, command):
    with tempfile.TemporaryDirectory() as folder:
        socket = pathlib.Path(folder) / "run" / "devices.sock"
        environment = {**os.environ, "AMASIA_DEVICES_SOCKET": str(socket),
                       "AMASIA_DEVICES_START": "0"}
        environment.setdefault("AMASIA_DEVICES_BACKENDS", "opencl")
        environment.setdefault("POCL_DEVICES", "basic")
        # Should this script be killed, the daemon ends by itself.
        with subprocess.Popen([daemon, "--idle-end", "20"], env=environment,
                              stdin=subprocess.DEVNULL) as process:
            while not socket.exists():
                if process.poll() is not None:
                    print("with_daemon.py: the daemon has ended", file=sys.stderr)
                    return 1
                time.sleep(0.01)
            code = subprocess.run(command, env=environment, check=False).returncode
            process.terminate()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                print("with_daemon.py: the daemon does not end", file=sys.stderr)
                return 1
        if socket.parent.exists():
            print("with_daemon.py: the daemon leaves its socket", file=sys.stderr)
            return 1
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
