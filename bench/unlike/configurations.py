# SPDX-License-Identifier: Apache-2.0
"""The machines a program runs on, and the ways in which its loops are shared there."""

import dataclasses
import re


@dataclasses.dataclass(frozen=True)
class Machine:
    """Nodes of one core each. `emulated` nodes have that share of a core; others are plain nodes of
    this host, all alike. `link` is what `--link` takes, or empty for the host's own speed. `scale`
    is what the launcher cuts all speeds by where the host has too few cores for them: a single node
    is cut by hand then, to be the same node that it is among the others."""
    speeds: tuple
    link: str
    emulated: bool = True
    scale: float = 1.0

    @property
    def name(self):
        if not self.emulated:
            return f"{len(self.speeds)} plain nodes"
        return ",".join(f"{speed:g}" for speed in self.speeds)

    @property
    def link_name(self):
        return f"link {self.link}" if self.link else "fast link"

    def nodes(self):
        """Options of the launcher for all nodes."""
        if not self.emulated:
            return ["-n", str(len(self.speeds)), "-t", "1"]
        return ["--emulate", self.name, *(["--link", self.link] if self.link else [])]

    def single_node(self, node):
        if not self.emulated:
            return ["-n", "1", "-t", "1"]
        return ["--emulate", f"{self.speeds[node] * self.scale:.4g}"]


@dataclasses.dataclass(frozen=True)
class Configuration:
    """One way of running: which build, options of the launcher, variables of the environment."""
    name: str
    build: str
    options: tuple
    environment: tuple = ()


# Order is that of the table's columns. "nodes" stands for each single node whose speed is new.
NAMES = ["nodes", "even", "csr", "dynamic", "hetprobe", "hetprobe-i", "default", "default-runtime",
         "profile"]


def machine_named(text, link):
    """'1.0,0.5', or 'n2' for plain nodes of this host. ValueError with a sentence."""
    if link and not re.fullmatch(r"[0-9.]+(,[0-9.]+)?", link):
        raise ValueError(f"--links has '{link}'; allowed are none, and microseconds with or "
                         "without megabytes a second, such as 100,200")
    if re.fullmatch(r"n([2-9]|[1-5][0-9]|6[0-4])", text):
        return Machine((1.0,) * int(text[1:]), "", False)
    try:
        speeds = tuple(float(word) for word in text.split(","))
    except ValueError:
        speeds = ()
    if len(speeds) < 2 or not all(0 < speed <= 1 for speed in speeds):
        raise ValueError(f"--machines has '{text}'; allowed are two or more shares of a core above "
                         "0 up to 1, such as 1.0,0.5, or n2 to n64 for plain nodes of this host")
    return Machine(speeds, link)


def single_nodes(machine):
    seen = {}
    for node, speed in enumerate(machine.speeds):
        seen.setdefault(speed, node)
    one_thread = (("OMP_NUM_THREADS", "1"),)  # a node has one core, this host more
    return [Configuration(f"node {node}", "static", tuple(machine.single_node(node)), one_thread)
            for node in seen.values()]


def with_ratios(machine, ratios, name="csr"):
    words = ",".join(f"{ratio:.4g}" for ratio in ratios)
    return Configuration(name, "static",
                         (*machine.nodes(), "--share", "always", "--csr", words))


def default(machine):
    return Configuration("default", "static", tuple(machine.nodes()))


def configurations(machine, program, ratios, chosen, profile=None):
    """The chosen ones, in order; `ratios` are the ideal core speed ratios that a search found,
    `profile` is a file that earlier runs of the program have left."""
    nodes = tuple(machine.nodes())
    dynamic = (("OMP_SCHEDULE", f"dynamic,{program.chunk}"),)
    table = {
        "nodes": single_nodes(machine),
        "even": [with_ratios(machine, [1] * len(machine.speeds), "even")],
        "csr": [with_ratios(machine, ratios)] if ratios else [],
        "dynamic": [Configuration("dynamic", "runtime", (*nodes, "--share", "always"), dynamic)],
        "hetprobe": [Configuration("hetprobe", "runtime", (*nodes, "--schedule", "hetprobe"))],
        "hetprobe-i": [Configuration("hetprobe-i", "runtime",
                                     (*nodes, "--schedule", "hetprobe-i"))],
        "default": [default(machine)],
        "default-runtime": [Configuration("default-runtime", "runtime", nodes)],
        "profile": [Configuration("profile", "static", (*nodes, "--profile", profile))]
                   if profile else [],
    }
    return [one for name in NAMES if name in chosen for one in table[name]]
