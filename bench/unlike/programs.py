# SPDX-License-Identifier: Apache-2.0
"""The programs of bench/unlike: their arguments, and how each is built."""

import dataclasses
import pathlib
import re
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
DRIVERS = {"clang": {".c": "clang-19", ".cpp": "clang++-19"},
           "gcc": {".c": "gcc-12", ".cpp": "g++-12"}}
SHAPES = ("phases", "mingled", "linear", "random")


@dataclasses.dataclass(frozen=True)
class Program:
    """`chunk` is that of the dynamic schedule: about a hundredth of the longest loop and less."""
    name: str
    source: str
    kind: str
    arguments: tuple
    quick: tuple
    chunk: int


PROGRAMS = {program.name: program for program in [
    Program("ep", "ep.c", "well", (), (256, 4), 16),
    Program("options", "options.c", "well", (), (8192, 40), 512),
    Program("kmeans", "kmeans.c", "well", (), (8000, 20), 256),
    Program("particles", "particles.cpp", "well", (), (4, 3), 2),
    Program("cg", "cg.c", "badly", (), (3000, 3), 256),
    Program("sp", "sp.c", "badly", (), (20, 4), 1),
    Program("stream_cluster", "stream_cluster.cpp", "badly", (), (1024, 100), 128),
    Program("lu", "lu.c", "badly", (), (100, 3), 8),
    # The same work as ep and particles in one run of each loop: nothing is known beforehand.
    Program("ep-once", "ep.c", "once", (81920, 1), (1024, 1), 16),
    Program("particles-once", "particles.cpp", "once", (14, 1), (5, 1), 2),
]}


def irregular(shape, degree, once):
    """`once`: the same work in one run of the loop, so that nothing is known of it beforehand."""
    if once:
        return Program(f"irregular-{shape}-{degree}-once", "irregular.c", "irregular-once",
                       (shape, degree, 40000, 1, 240), (shape, degree, 4000, 1, 8), 256)
    return Program(f"irregular-{shape}-{degree}", "irregular.c", "irregular", (shape, degree),
                   (shape, degree, 4000, 8), 256)


DEFAULT = [*PROGRAMS, *(f"irregular-{shape}-60{once}" for once in ("", "-once")
                        for shape in SHAPES)]


def programs_named(text):
    """The programs of a comma-separated list, or ValueError with a sentence. irregular-SHAPE
    without a degree is the paper's sweep of it."""
    chosen = []
    for name in text.split(","):
        match = re.fullmatch(rf"irregular-({'|'.join(SHAPES)})(?:-(\d{{1,3}}))?(-once)?", name)
        if name in PROGRAMS:
            chosen.append(PROGRAMS[name])
        elif match and int(match[2] or 0) <= 100:
            degrees = [int(match[2])] if match[2] else range(0, 101, 20)
            chosen += [irregular(match[1], degree, match[3]) for degree in degrees]
        else:
            raise ValueError(f"--programs has '{name}'; allowed are {', '.join(PROGRAMS)}, and "
                             "irregular-SHAPE[-DEGREE][-once] with SHAPE "
                             f"{', '.join(SHAPES)} and DEGREE 0 to 100")
    return chosen


def build(program, compiler, schedule, folder):
    """The executable with the loops' schedule static, or runtime. Built if it is not up to date."""
    folder.mkdir(parents=True, exist_ok=True)
    source = HERE / "programs" / program.source
    out = folder / f"{source.stem}-{schedule}-{compiler}"
    newest = max(path.stat().st_mtime for path in (source, HERE / "programs" / "program.h"))
    if not out.exists() or out.stat().st_mtime < newest:
        subprocess.run([DRIVERS[compiler][source.suffix], "-O2", "-fopenmp",
                        f"-DUNLIKE_SCHEDULE={schedule}", str(source), "-o", str(out), "-lm"],
                       check=True)
    return out
