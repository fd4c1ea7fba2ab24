#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Figure 7 of the paper on libHetMP, of measured results: as a table of text and as a PNG.

figure.py RESULTS.json FOLDER prints and draws what run.py --json has written.
"""

import json
import pathlib
import re
import statistics
import sys

import aims

# The PNG ends here; of lower bars it has the figure. Otherwise slowdowns would flatten the rest.
FLOOR = 0.2


def speed_ups(results, names):
    """Configuration -> the geometric mean of its speed-ups, and "oracle" for the best of each
    program. Left out is what some program has no figure of."""
    means = {}
    for name in names:
        values = [result["configurations"].get(name, {}).get("speed_up") for result in results]
        if values and all(values):
            means[name] = statistics.geometric_mean(values)
    best = [result["oracle"]["speed_up"] for result in results if result["oracle"]]
    if best and len(best) == len(results):
        means["oracle"] = statistics.geometric_mean(best)
    return means


def columns_of(results):
    names = []
    for result in results:
        names += [name for name in result["configurations"] if name not in names]
    return names


def cell(result, name):
    one = result["configurations"].get(name)
    if one is None:
        return ""
    if one["failure"]:
        return one["failure"]["word"]
    if not one["speed_up"]:
        return "no base"
    mark = "*" if result["oracle"]["configuration"] == name else ""
    return f"{'<' if one['over_limit'] else ''}{one['speed_up']:.2f}{mark}"


def ratios_text(ratios):
    return ":".join(f"{ratio:.3g}" for ratio in ratios) if ratios else ""


def ratio_of(result, left, right):
    """The time of a configuration over that of another, or of the best, as text."""
    values = [result["oracle"]["speed_up"] if name == "oracle" and result["oracle"] else
              result["configurations"].get(name, {}).get("speed_up") for name in (left, right)]
    return f"{values[1] / values[0]:.3f}" if all(values) else ""


def settled_text(result):
    """The time of default by the best's, of the part that the aim is of."""
    behind = aims.behind_oracle(result)
    return f"{behind[0]:.3f}" if behind else ""


def reprobing_text(result):
    ratio = aims.reprobing(result)
    return f"{ratio:.3f}" if ratio else ""


def judged_text(result):
    """The same as it is held against the aim, and whether that is met."""
    behind = aims.judged(result)
    return f"{behind[0]:.3f}{' missed' if behind[0] > behind[2] else ''}" if behind else ""


def rows_of(results):
    names = columns_of(results)
    yield ["program", "base s", *names, "oracle", "default/oracle", "settled", "judged",
           "hetprobe-i/hetprobe",
           "csr searched", "csr default", "csr hetprobe"]
    for result in results:
        base = result["configurations"][names[0]]["seconds"]
        found = result["ratios"]["found"]
        yield [result["program"], f"{base['median']:.3f}" if base else "",
               *(cell(result, name) for name in names),
               f"{result['oracle']['speed_up']:.2f}" if result["oracle"] else "",
               ratio_of(result, "default", "oracle"), settled_text(result), judged_text(result),
               reprobing_text(result),
               ratios_text(result["ratios"]["searched"]), ratios_text(found.get("default")),
               ratios_text(found.get("hetprobe"))]
    kinds = list(dict.fromkeys(result["kind"] for result in results))
    groups = [(kind, [result for result in results if result["kind"] == kind]) for kind in kinds]
    for kind, group in [*(groups if len(kinds) > 1 else []), ("all", results)]:
        means = speed_ups(group, names)
        default = means.get("default")
        yield [f"geomean, {kind}", "",
               *(f"{means[name]:.2f}" if name in means else "" for name in [*names, "oracle"]),
               f"{means['oracle'] / default:.3f}" if default and "oracle" in means else ""]


def print_table(title, results):
    rows = list(rows_of(results))
    print(f"\n{title}: speed-up against {columns_of(results)[0]}; * is the best, < is over the "
          "limit")
    rows = [row + [""] * (len(rows[0]) - len(row)) for row in rows]
    # A column that has nothing to say is left out.
    used = [i for i in range(len(rows[0])) if any(row[i] for row in rows[1:])]
    widths = [max(len(row[i]) for row in rows) for i in used]
    for row in rows:
        cells = [row[i].ljust(width) if i == 0 else row[i].rjust(width)
                 for i, width in zip(used, widths)]
        print("  ".join(cells).rstrip(), flush=True)


def colours_of(names):
    """Single nodes are grey, what is asked for by hand pale, what decides by itself strong."""
    fixed = {"even": "#c6dbef", "csr": "#6baed6", "dynamic": "#9e9ac8", "hetprobe": "#fdae6b",
             "hetprobe-i": "#e6550d", "default": "#238b45", "default-runtime": "#74c476",
             "profile": "#00441b", "oracle": "#000000"}
    greys = ["#525252", "#969696", "#bdbdbd", "#d9d9d9"]
    singles = [name for name in names if name not in fixed]
    return {**fixed, **{name: greys[i % len(greys)] for i, name in enumerate(singles)}}


def draw(title, results, folder):
    """Writes the PNG. Returns a sentence of where, or why not."""
    file = folder / (re.sub(r"[^\w.]+", "-", title) + ".png")
    try:
        import matplotlib
    except ImportError:
        return (f"{file} is not drawn: this Python has no matplotlib (on Debian: apt install "
                "python3-matplotlib, and run with /usr/bin/python3)")
    matplotlib.use("Agg")
    from matplotlib import pyplot
    names = columns_of(results)
    bars = [*names, "oracle"]
    means = speed_ups(results, names)
    labels = [*(result["program"] for result in results), "geomean"]
    figure, axes = pyplot.subplots(figsize=(max(9, 1.2 * len(labels) + 1.5), 6))
    width = 0.86 / len(bars)
    for i, name in enumerate(bars):
        values = [result["configurations"].get(name, {}).get("speed_up") for result in results]
        places = [place for place, value in enumerate([*values, means.get(name)]) if value]
        heights = [value for value in [*values, means.get(name)] if value]
        # Bars start at 1: above it is faster than the first node alone, below it slower.
        middles = [place + (i - (len(bars) - 1) / 2) * width for place in places]
        axes.bar(middles, [height - 1 for height in heights], width, bottom=1, label=name,
                 color=colours_of(bars)[name], edgecolor="black", linewidth=0.3)
        for place, middle, height in zip(places, middles, heights):
            best = results[place]["oracle"] if place < len(results) else None
            if best and best["configuration"] == name:
                axes.annotate("*", (middle, max(height, 1)), ha="center", va="bottom", fontsize=13)
            if height < FLOOR:
                axes.annotate(f"{height:.2g}", (middle, FLOOR * 1.03), ha="center", va="bottom",
                              fontsize=7, rotation=90, color="white",
                              bbox={"facecolor": "#404040", "edgecolor": "none", "pad": 1})
    style_axes(axes, title, labels, names[0])
    figure.legend(loc="lower center", ncols=min(len(bars), 12), fontsize=9, frameon=False)
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=110)
    pyplot.close(figure)
    return f"drawn: {file}"


def style_axes(axes, title, labels, base):
    from matplotlib import ticker
    axes.set_yscale("log", base=2)
    axes.yaxis.set_major_locator(ticker.LogLocator(base=2, subs=(1, 1.5)))
    axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    low, high = axes.get_ylim()
    axes.set_ylim(max(low, FLOOR), high * 1.1)
    axes.axhline(1, color="black", linewidth=0.8)
    axes.axvline(len(labels) - 1.5, color="black", linewidth=0.6, linestyle=":")
    axes.grid(axis="y", linewidth=0.3)
    axes.set_axisbelow(True)
    axes.set_xticks(range(len(labels)), labels, rotation=20 if len(labels) > 6 else 0, ha="right"
                    if len(labels) > 6 else "center")
    axes.set_xlim(-0.55, len(labels) - 0.45)
    axes.set_ylabel(f"speed-up against {base} alone")
    axes.set_title(title)


def title_of(result):
    link = f"link {result['link']}" if result["link"] else "fast link"
    return f"{result['machine']}, {link}, {result['compiler']}"


def show(results, folder):
    """The table of one machine's results, and the PNG if there is a folder for it."""
    print_table(title_of(results[0]), results)
    aims.print_aims(results)
    if folder:
        print(draw(title_of(results[0]), results, folder))


def main():
    if len(sys.argv) != 3:
        print("figure.py takes two arguments: RESULTS.json and a folder", file=sys.stderr)
        return 2
    groups = {}
    for result in json.loads(pathlib.Path(sys.argv[1]).read_text())["results"]:
        groups.setdefault(title_of(result), []).append(result)
    for results in groups.values():
        show(results, pathlib.Path(sys.argv[2]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
