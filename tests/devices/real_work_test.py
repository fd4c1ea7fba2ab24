#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""real_work.cpp around a daemon of its own, whose trace has to tell of its tasks. Ends with 77
where OpenCL has no device: skipped."""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

LIMIT = 540  # seconds after which something hangs; far above what it takes under load


def check_trace(path):
    """What is in it of tasks and of the programs that ran them."""
    events = json.loads(path.read_text())
    runs = [event for event in events if event.get("ph") == "X" and event["name"] == "run"]
    programs = [event for event in events if "client" in event.get("args", {})
                and event["name"] == "process_name"]
    named = [event for event in events if event.get("args", {}).get("share") is not None]
    assert all(not event["name"].startswith("kernel ") for event in named), "kernels have no names"
    assert any(event["name"].startswith("saxpy_") for event in named), named[0]
    assert len(runs) >= 70, f"the trace has {len(runs)} kernels"
    assert len(programs) >= 2, f"the trace has {len(programs)} programs"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--daemon", required=True)
    parser.add_argument("--program", required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        socket, trace = pathlib.Path(folder) / "run" / "devices.sock", pathlib.Path(folder) / "t"
        environment = {**os.environ, "AMASIA_DEVICES_SOCKET": str(socket),
                       "AMASIA_DEVICES_START": "0"}
        with subprocess.Popen([options.daemon, "--trace", str(trace)], env=environment,
                              stderr=subprocess.PIPE, text=True) as daemon:
            while not socket.exists() and daemon.poll() is None:
                pass
            result = subprocess.run([options.program], env=environment, timeout=LIMIT,
                                    check=False).returncode
            daemon.terminate()
            errors = daemon.communicate(timeout=LIMIT)[1]
        assert (daemon.returncode, errors) == (0, ""), (daemon.returncode, errors)
        assert not socket.parent.exists(), "the daemon leaves its socket"
        if result == 0:
            check_trace(trace)
        return result


if __name__ == "__main__":
    sys.exit(main())
