#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tells once more, and shortly, what failed in ctest's logs: failures.py LastTest.log...

Of a GoogleTest program the failed assertions with their cases, of any other test the end of its
output, so that the end of a long record says what went wrong. Prints nothing where all passed.
"""
import pathlib
import re
import sys

ASSERTION_LINES = 8  # of each failed assertion
MOST_ASSERTIONS = 10  # of each test
LAST_LINES = 15  # of a test whose output has none


def failed_tests(log):
    """(name, output) of each test in ctest's log that did not pass."""
    for block in re.split(r"^(?=\d+/\d+ Testing: )", log, flags=re.M)[1:]:
        if re.search(r"^Test (Passed|Skipped)\.$", block, re.M):
            continue
        output = block.partition("\nOutput:\n")[2].partition("\n<end of output>\n")[0]
        yield block.split("\n", 1)[0].partition("Testing: ")[2], output.split("\n")[1:]


def is_assertion(line):
    return re.search(r"^\S.*: Failure$", line) is not None


def extract(output):
    """The lines that say why: each failed assertion below its case, else the last ones."""
    lines, assertions, case = [], 0, None
    for number, line in enumerate(output):
        if line.startswith("[ RUN      ] "):
            case = line
        elif is_assertion(line):
            assertions += 1
            if assertions > MOST_ASSERTIONS:
                return lines + ["(and more)"]
            if case is not None:
                lines.append(case)
                case = None
            block = output[number:number + ASSERTION_LINES]
            end = next((i for i, text in enumerate(block)
                        if i > 0 and (text.startswith("[") or is_assertion(text))), None)
            lines += block[:end]
    return lines or output[-LAST_LINES:]


def main(logs):
    for path in map(pathlib.Path, logs):
        if not path.exists():
            continue
        for name, output in failed_tests(path.read_text(errors="replace")):
            print(f"\n-- {name} ({path.parts[-4]}) failed:")
            print("\n".join(extract(output)))


if __name__ == "__main__":
    main(sys.argv[1:])
