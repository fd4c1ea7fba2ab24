# SPDX-License-Identifier: Apache-2.0
"""The search for ideal core speed ratios: whoever has all the time in the world, and no probe."""

import math
import statistics

GOLDEN = (math.sqrt(5) - 1) / 2


def golden_section(cost, low, high, steps):
    """The cheapest of `steps` values between low and high (both above 0), searched on a logarithmic
    scale, and its cost. cost(value) may return None for a value that cannot be tried."""
    def tried(position):
        value = math.exp(position)
        seconds = cost(value)
        return (math.inf if seconds is None else seconds, value, position)
    left, right = math.log(low), math.log(high)
    first = tried(right - GOLDEN * (right - left))
    second = tried(left + GOLDEN * (right - left))
    best = min(first, second)
    for _ in range(steps - 2):
        if first[0] <= second[0]:
            right, second = second[2], first
            first = latest = tried(right - GOLDEN * (right - left))
        else:
            left, first = first[2], second
            second = latest = tried(left + GOLDEN * (right - left))
        best = min(best, latest)
    return best[1], best[0]


def search_ratios(cost, speeds, steps):
    """(ratios, their cost) with node 0 at 1. Starts from the speeds: first all other nodes are
    scaled by one factor, as node 0 also has the serial work; then, if there are several, each by
    itself."""
    ratios = [speed / speeds[0] for speed in speeds]
    least = cost(ratios)
    if least is None:
        return ratios, None
    groups = [range(1, len(ratios))]
    if len(ratios) > 2:
        groups += [[node] for node in range(1, len(ratios))]
    reach = 2.0
    for group in groups:
        def scaled(factor, group=group):
            return [ratio * factor if node in group else ratio
                    for node, ratio in enumerate(ratios)]
        factor, seconds = golden_section(lambda factor: cost(scaled(factor)), 1 / reach, reach,
                                         steps)
        if seconds < least:
            ratios, least = scaled(factor), seconds
        reach = 1.4
    return ratios, least


def cheapest(cost, candidates, rounds):
    """The one of least median cost, all tried once in each round: the least of single costs, as a
    search finds it, is so by chance, too. The first of equals, or the first if none has a cost."""
    costs = [[] for _ in candidates]
    for _ in range(rounds):
        for candidate, known in zip(candidates, costs):
            known.append(cost(candidate))
    medians = [math.inf if None in known else statistics.median(known) for known in costs]
    return candidates[medians.index(min(medians))]
