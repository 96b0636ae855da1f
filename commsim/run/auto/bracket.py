"""Comparisons around a case: the next ones below and above in every number that matters, or what is missing.

Numbers of a case in words, for messages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from commsim.core.units import format_bandwidth, format_size
from commsim.run.auto.known_error import LABELS, PACKET, Case, Comparison, comparisons

WORDS: dict[str, Callable[[str], str]] = {
    "oversubscription": lambda x: f"oversubscription {x}",
    "unevenness": lambda x: f"fastest link {x} times the slowest",
    "near": lambda x: f"{x} ranks near each other",
    "ranks": lambda x: f"{x} ranks",
    "size": lambda x: x,
    "rate": lambda x: f"links of {x}",
    "product": lambda x: f"links that hold {x} (rate times latency)",
}


def say_number(name: str, value: float) -> str:
    """Say one number of a case, such as ``links of 100 Gb/s``."""
    return WORDS[name](_value(name, value))


def say_range(name: str, low: float, high: float) -> str:
    """Say between what it was compared."""
    return WORDS[name](" to ".join(dict.fromkeys((_value(name, low), _value(name, high)))))


def _value(name: str, value: float) -> str:
    if name in ("size", "product"):
        return format_size(value)
    return format_bandwidth(value).partition(" (")[0] if name == "rate" else f"{value:.4g}"


FEWEST = 4
"""Real runs: of fewer, nothing is said about the worst tenth."""
NEGLIGIBLE = 0.01
"""Part of a message's time: what takes less changes nothing that is worth a comparison."""
REAL = ("oversubscription", "unevenness", "ranks", "rate", "size")
AROUND = {
    "testbed": REAL,
    "measured": REAL,
    PACKET["window"]: ("oversubscription", "ranks", "size", "product"),
    PACKET["dctcp"]: ("oversubscription", "rate", "ranks", "size", "product"),
    PACKET["dcqcn"]: ("oversubscription", "rate", "ranks", "size", "product"),
}
"""In which numbers a case must lie between comparisons, by what they are against; each within the ones before it."""
WITHIN = ("unevenness", "near")
"""Numbers of which only the range must have been compared."""
SAME = 1e-6
"""By which two numbers that are the same may differ after arithmetic, and in files."""


def by_kind() -> dict[tuple[str, str], list[Comparison]]:
    """Return all comparisons by engine and what they are against."""
    found: dict[tuple[str, str], list[Comparison]] = {}
    for one in comparisons():
        found.setdefault((one.engine, one.against), []).append(one)
    return found


def around(engine: str, against: str, case: Case) -> list[Comparison] | str:
    """Return the comparisons around a case, or why there are none; an empty reason where nothing at all was compared.

    Parameters
    ----------
    engine, against : str
        What was compared with what.
    case : Case
        The conditions.
    """
    some = by_kind().get((engine, against), [])
    for label in LABELS:
        known = list(dict.fromkeys(getattr(one.case, label) for one in some))
        mine = getattr(case, label)
        some = [one for one in some if getattr(one.case, label) == mine]
        if not some:
            return f"{label} {mine} was not compared, only {', '.join(known)}" if known else ""
    pool = _nested(some, case, AROUND[against], "")
    if isinstance(pool, str):
        return pool
    for name in WITHIN:
        values = [getattr(one.case, name) for one in some]
        if not min(values) * (1 - SAME) <= getattr(case, name) <= max(values) * (1 + SAME):
            return _outside(name, getattr(case, name), values, "")
    if why := _costs(against, case):
        return why
    if against not in PACKET.values() and (n := len(near(engine, against, case, pool))) < FEWEST:
        return f"{n} comparisons are too few to say how far off the worst tenth is"
    return pool


def _costs(against: str, case: Case) -> str:
    """Say which cost of the case was zero, or free, in all comparisons of a kind."""
    if against in PACKET.values():
        if case.costs > NEGLIGIBLE:
            return f"overheads and reduction take {case.costs:.2g} of a message's time, compared was without them"
        return ""
    held = case.product / max(case.size / case.ranks, 1.0)
    if held > NEGLIGIBLE:
        return f"the links' latency is {held:.2g} of a message's time, and links that were run for real have none"
    return ""


def _nested(some: list[Comparison], case: Case, names: Sequence[str], where: str) -> list[Comparison] | str:
    """Comparisons around a case in the named numbers, or what is missing."""
    if not names:
        return some
    name, mine = names[0], getattr(case, names[0])
    values = sorted({getattr(one.case, name) for one in some})
    below = [v for v in values if v <= mine * (1 + SAME)]
    above = [v for v in values if v >= mine * (1 - SAME)]
    if not below or not above:
        return _outside(name, mine, values, where)
    pool: list[Comparison] = []
    for value in {below[-1], above[0]} if not _same(below[-1], mine) else {below[-1]}:
        at = [one for one in some if getattr(one.case, name) == value]
        found = _nested(at, case, names[1:], f"{where}, {say_number(name, value)}" if name != "size" else where)
        if isinstance(found, str):
            return found
        pool += found
    return pool


def _same(a: float, b: float) -> bool:
    return abs(a - b) <= SAME * max(abs(a), abs(b))


def _outside(name: str, mine: float, values: Sequence[float], where: str) -> str:
    real = " (software's costs do not scale with the rate)" if name == "rate" and max(values) < mine else ""
    with_others = f" with{where[1:]}" if where else ""
    return f"{say_number(name, mine)}: compared were {say_range(name, min(values), max(values))}{with_others}{real}"


def near(engine: str, against: str, case: Case, pool: list[Comparison]) -> list[Comparison]:
    """Return the real runs that count together: of any algorithm of the operation on such networks, of such sizes."""
    low, high = min(one.case.size for one in pool), max(one.case.size for one in pool)
    return [
        one
        for one in by_kind()[engine, against]
        if (one.case.operation, one.case.network) == (case.operation, case.network) and low <= one.case.size <= high
    ]
