# SPDX-License-Identifier: Apache-2.0
"""What the figures of one machine are held against: the aims, and the paper's cost of probing."""

import statistics

BY_HAND = ("even", "csr", "dynamic")
WITHIN, WITHIN_ONCE = 1.03, 1.08  # of the oracle's time


def speed(result, name):
    return (result["configurations"].get(name) or {}).get("speed_up")


def best_single_node(result):
    values = [speed(result, name) for name in result["configurations"] if name.startswith("node ")]
    return max((value for value in values if value), default=None)


def sharing_pays(result):
    """Whether a way of sharing that is asked for by hand beats the best node; None: unknown."""
    shared = max((value for value in (speed(result, name) for name in BY_HAND) if value),
                 default=None)
    single = best_single_node(result)
    return None if shared is None or single is None else shared > single


def probing_costs(results, name="hetprobe"):
    """(kind of programs, their number, mean cost of probing): as in section 5.2 of the paper, where
    sharing pays against the searched ratios, else against the best node."""
    ratios = {True: [], False: []}
    for result in results:
        pays = sharing_pays(result)
        peer = speed(result, "csr") if pays else best_single_node(result)
        if pays is not None and peer and speed(result, name):
            ratios[pays].append(peer / speed(result, name))
    for pays, words in ((True, "sharing pays"), (False, "sharing does not pay")):
        if ratios[pays]:
            yield words, len(ratios[pays]), statistics.geometric_mean(ratios[pays]) - 1


def ratio_distance(found, searched):
    """How far the furthest core speed ratio is off, as a part of the searched one."""
    return max(abs(left / right - 1) for left, right in zip(found, searched))


def is_once(result):
    return result["kind"].endswith("once")


def is_irregular(result):
    return result["kind"].startswith("irregular")


def judged_part(result):
    """What the aim is of: "settled", the part of the program in which every loop has run twice,
    where it has one, else "seconds", all of it."""
    row = result["configurations"].get("default") or {}
    settles = result.get("settled_oracle") and row.get("settled_speed_up")
    return "settled" if settles and not is_once(result) else "seconds"


def behind_oracle(result):
    """(time of default over that of the best, the best's name, what is allowed) of that part; None:
    it was not measured."""
    settled = judged_part(result) == "settled"
    best = result["settled_oracle" if settled else "oracle"]
    row = result["configurations"].get("default") or {}
    own = row.get("settled_speed_up" if settled else "speed_up")
    if not best or not own:
        return None
    within = WITHIN_ONCE if is_once(result) else WITHIN
    return best["speed_up"] / own, best["configuration"], within


def judged(result):
    """As behind_oracle(), by runs of their own where there are some. The best of many figures that
    vary is better than it is by chance; who was the best before has no such help in later runs."""
    behind, confirmed = behind_oracle(result), result.get("confirmed") or {}
    if behind and confirmed.get("default"):
        return max(1, confirmed["default"]), confirmed["peer"], behind[2]
    return behind


def misses(result):
    """A sentence for each aim that a program misses; none for what was not measured."""
    behind = judged(result)
    if behind and behind[0] > behind[2]:
        yield f"default takes {behind[0]:.3f} of {behind[1]}'s time (aim {behind[2]:g})"
    searched, found = result["ratios"]["searched"], result["ratios"]["found"].get("default")
    if searched and found and sharing_pays(result) and ratio_distance(found, searched) > 0.05:
        yield f"core speed ratios are {100 * ratio_distance(found, searched):.0f} % off (aim 5 %)"
    if is_irregular(result):
        ratio = reprobing(result)
        if ratio and ratio >= 1:
            yield f"hetprobe-i takes {ratio:.3f} of hetprobe's time (aim below 1)"


def reprobing(result):
    """The time of hetprobe-i by that of hetprobe, by runs of their own where there are some."""
    plain, again = speed(result, "hetprobe"), speed(result, "hetprobe-i")
    confirmed = (result.get("confirmed") or {}).get("hetprobe-i")
    return confirmed or (plain / again if plain and again else None)


def print_aims(results):
    for name in ("hetprobe", "default"):
        for words, count, cost in probing_costs(results, name):
            print(f"{name} costs {100 * cost:+.1f} % where {words} ({count} programs)")
    for result in results:
        for sentence in misses(result):
            print(f"missed: {result['program']}: {sentence}")
