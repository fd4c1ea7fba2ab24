#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the rules of the code that a compiler does not: layers, doors, sizes.

  - a folder under src/ is a layer of src/LAYERS and has one door header, src/<layer>/<layer>.hpp;
    other layers include only that door;
  - no layer includes a layer that src/LAYERS does not list for it;
  - a file has at most 800 lines, a line at most 100 columns, a function at most 70 lines;
  - every source file begins with an SPDX line.

Prints one line per finding, `file:line: what is wrong (what is allowed)`, and exits 1 if there is
any. There is no list of exceptions.
"""

import pathlib
import re
import subprocess
import sys

# A tree may be named as the one argument, so that the checks can be held against planted faults.
ROOT = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else \
    pathlib.Path(__file__).resolve().parents[2]
MAX_FILE_LINES, MAX_FUNCTION_LINES, MAX_COLUMNS = 800, 70, 100
SOURCE = {".hpp", ".cpp", ".h", ".c", ".S", ".f90", ".py", ".sh"}
CXX = {".hpp", ".cpp", ".h", ".c"}
NOT_FUNCTIONS = re.compile(r"\b(namespace|struct|class|enum|union|extern)\b")
PARAMETER_LIST_ENDS = re.compile(r"\)\s*(const|noexcept|override|->.*)*\s*$")


def tracked_files():
    """Files git tracks or would track, so that a new file is checked before it is added."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    return [ROOT / name for name in listed if name and (ROOT / name).is_file()]


def read_layers():
    layers = {}
    for line in (ROOT / "src" / "LAYERS").read_text().splitlines():
        match = re.match(r"([a-z]+):\s*([a-z ]*)$", line)
        if match:
            layers[match[1]] = match[2].split()
    return layers


def check_includes(path, lines, layers):
    """The layer rule. Tests of a layer live in it and obey it too."""
    parts = path.relative_to(ROOT).parts
    if parts[0] != "src" or len(parts) < 3:
        return
    layer = parts[1]
    if layer not in layers:
        yield 1, f"folder src/{layer} is not a layer (src/LAYERS lists {' '.join(layers)})"
        return
    for number, line in enumerate(lines, 1):
        match = re.match(r'\s*#\s*include\s*"([a-z_]+)/([^"]+)"', line)
        if not match or match[1] not in layers or match[1] == layer:
            continue
        other, header = match[1], match[2]
        if other not in layers[layer]:
            yield number, (f"layer '{layer}' includes layer '{other}' "
                           f"(allowed: {' '.join(layers[layer]) or 'none'})")
        elif header != f"{other}.hpp":
            yield number, (f"includes \"{other}/{header}\" "
                           f"(another layer's only door is \"{other}/{other}.hpp\")")


def strip_noise(lines):
    """The lines without comments, strings and directives, so that braces can be counted."""
    text = "\n".join(lines)
    text = re.sub(r'R"(\w*)\((.*?)\)\1"', lambda m: "\n" * m[0].count("\n"), text, flags=re.S)
    pattern = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<!\d)\'(?:\\.|[^\'\\\n])*\''
    text = re.sub(pattern, lambda m: "\n" * m[0].count("\n"), text, flags=re.S)
    out, continued = [], False
    for line in text.split("\n"):
        directive = continued or line.lstrip().startswith("#")
        continued = directive and line.rstrip().endswith("\\")
        out.append("" if directive else line)
    return out


def check_functions(lines):
    """Measures every brace block that is not a namespace or a type, outermost such block only."""
    stack, head, head_line = [], "", 1
    for number, line in enumerate(strip_noise(lines), 1):
        for character in line:
            if character == "{":
                inside = any(kind == "function" for kind, _ in stack)
                container = NOT_FUNCTIONS.search(head) and not PARAMETER_LIST_ENDS.search(head)
                aggregate = re.search(r"[=,(\[]\s*$", head) is not None
                kind = "inner" if inside else "scope" if container or aggregate else "function"
                stack.append((kind, head_line))
                head = ""
            elif character == "}":
                if stack:
                    kind, start = stack.pop()
                    length = number - start + 1
                    if kind == "function" and length > MAX_FUNCTION_LINES:
                        yield start, f"function of {length} lines (at most {MAX_FUNCTION_LINES})"
                head = ""
            elif character == ";":
                head = ""
            else:
                if not head.strip():
                    if character.isspace():
                        continue
                    head, head_line = "", number
                head += character
        head += " "


def check_file(path, layers):
    try:
        lines = path.read_text().splitlines()
    except UnicodeDecodeError:
        return
    yield from check_includes(path, lines, layers)
    if len(lines) > MAX_FILE_LINES:
        yield MAX_FILE_LINES + 1, f"file of {len(lines)} lines (at most {MAX_FILE_LINES})"
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_COLUMNS:
            yield number, f"line of {len(line)} columns (at most {MAX_COLUMNS})"
    if not any("SPDX-License-Identifier" in line for line in lines[:3]):
        yield 1, "no SPDX-License-Identifier in the first three lines"
    if path.suffix in CXX:
        yield from check_functions(lines)


def check_doors(layers):
    for folder in sorted((ROOT / "src").iterdir()):
        if folder.is_dir() and folder.name in layers and any(folder.rglob("*.cpp")):
            door = folder / f"{folder.name}.hpp"
            if folder.name != "tools" and not door.exists():
                yield door, 1, "the layer has no door header"


def main():
    layers = read_layers()
    findings = [(path, line, what) for path, line, what in check_doors(layers)]
    for path in tracked_files():
        if path.suffix in SOURCE:
            findings += [(path, line, what) for line, what in check_file(path, layers)]
    for path, line, what in findings:
        print(f"{path.relative_to(ROOT)}:{line}: {what}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
