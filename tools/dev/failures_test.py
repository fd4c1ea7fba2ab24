#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds failures.py against real runs of ctest: what fails, and how, is told, and nothing else."""
import pathlib
import subprocess
import sys
import tempfile

FAILURES = pathlib.Path(__file__).with_name("failures.py")

# As GoogleTest prints it.
FAILED_CASE = """\
[ RUN      ] Lock.IsFair
/src/lock_test.cpp:12: Failure
Expected: (turns) >= (4u), actual: 3 vs 4
of 8
unknown file: Failure
C++ exception with description "none" thrown in the test body.
"""

# Cases that passed are not told.
CASES = f"""[ RUN      ] Lock.IsTaken
[       OK ] Lock.IsTaken (0 ms)
{FAILED_CASE}[  FAILED  ] Lock.IsFair (21 ms)
[ RUN      ] Lock.IsGiven
[       OK ] Lock.IsGiven (0 ms)"""

TESTS = {
    "passes": "echo all is well",
    "skips": "echo no device here; exit 77",
    "cases": "cat cases.txt; exit 1",
    "speaks": "seq 1 30; exit 3",
    "dies": "echo before; kill -SEGV $$",
    "hangs": "echo waiting; sleep 60",
}

SPOKEN = "\n".join(map(str, range(16, 31)))

EXPECTED = f"""
-- cases (build) failed:
{FAILED_CASE}
-- speaks (build) failed:
{SPOKEN}

-- dies (build) failed:
before

-- hangs (build) failed:
waiting
"""


def main():
    with tempfile.TemporaryDirectory() as folder:
        build = pathlib.Path(folder, "build")
        build.mkdir()
        (build / "cases.txt").write_text(CASES)
        (build / "CTestTestfile.cmake").write_text("".join(
            f"add_test({name} sh -c [=[{command}]=])\n"
            f"set_tests_properties({name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 1)\n"
            for name, command in TESTS.items()))
        subprocess.run(["ctest", "--test-dir", build], stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=False)
        logs = [build / "Testing/Temporary/LastTest.log", build / "none/LastTest.log"]
        told = subprocess.run([FAILURES, *logs], stdout=subprocess.PIPE, text=True, check=True)
    if told.stdout != EXPECTED:
        sys.exit(f"told:\n{told.stdout}\nexpected:\n{EXPECTED}")


if __name__ == "__main__":
    main()
