"""What is known of an engine's error in one case, and why nothing is where nothing is.

When is a comparison at one rate evidence at another? A prediction depends on sizes s, rates B, latencies L, overheads o
and seconds per reduced byte g. Time, and bytes, may be counted in any unit, so a time over another is a function of the
groups s/(B L), o/L and g B only, and the packet engine knows one quantity more: packets of m bytes. With its ideal
window it has no clock of its own (windows are counted in bandwidth-delay products, queues have no end), so the times of
both engines, and their ratio, depend on s/m, B L/m, o B/m and g B. Two cases in which these are equal *are* one case,
at 10 Gbit/s or at 400, but for picoseconds to which the packet engine rounds. So the rate is no condition there; what a
link holds, B L, and what it would carry during an overhead, o B, are. DCTCP and DCQCN have clocks and thresholds of
their own: there the rate is a condition as well. So it is for real runs: what software takes for a message does not
shrink when links become faster. What was run between 20 and 500 Mbit/s says nothing about 400 Gbit/s, whatever the
groups are.

A case is known if comparisons lie around it: those of the very same algorithm, family of network, routing and
placement, and for each of some numbers the next one below and the next one above, or the number itself. That is never
outside of what was compared, and it does not join one corner (many ranks, little data) with another (few ranks, much
data). Not looked at: how many spines or pods there are, and latencies that differ within one network.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from commsim.auto.case import PredictionCase
from commsim.auto.known_error import AGAINST, LABELS, PACKET, ErrorSample, comparisons
from commsim.core.units import format_bandwidth, format_size

WORDS: dict[str, Callable[[str], str]] = {
    "oversubscription": lambda x: f"oversubscription {x}",
    "unevenness": lambda x: f"fastest link {x} times the slowest",
    "near": lambda x: f"{x} ranks near each other",
    "ranks": lambda x: f"{x} ranks",
    "size": lambda x: x,
    "rate": lambda x: f"links of {x}",
    "product": lambda x: f"links that hold {x} (rate times latency)",
    "overhead": lambda x: f"messages that cost as long as {x} on a link",
}
# Real runs: of fewer, nothing is said about the worst tenth.
FEWEST = 4
# Part of a message's time: what takes less changes nothing that is worth a comparison.
NEGLIGIBLE = 0.01
REAL = ("oversubscription", "unevenness", "ranks", "rate", "size")
# In which numbers a case must lie between comparisons, by what they are against; each within the ones before it.
AROUND = {
    "testbed": REAL,
    "measured": REAL,
    PACKET["window"]: ("oversubscription", "ranks", "overhead", "size", "product"),
    PACKET["dctcp"]: ("oversubscription", "rate", "ranks", "overhead", "size", "product"),
    PACKET["dcqcn"]: ("oversubscription", "rate", "ranks", "overhead", "size", "product"),
}
# Numbers that must only lie in the range of those compared.
WITHIN = ("unevenness", "near")
# By which two numbers that are the same may differ after arithmetic, and in files.
SAME = 1e-6


@dataclass(frozen=True, slots=True)
class KnownError:
    """What comparisons around a case say.

    Parameters
    ----------
    against : str
        One of AGAINST.
    error : float
        Error that is promised: of real runs the 90th percentile, of comparisons with the packet engine, which are the
        same every time, the largest.
    median : float
        Median of the absolute errors.
    count : int
        Comparisons.
    text : str
        Description of the comparisons.
    """

    against: str
    error: float
    median: float
    count: int
    text: str

    @property
    def real(self) -> bool:
        """Whether something real was compared with."""
        return self.against not in PACKET.values()


def evidence(
    engine: str, case: PredictionCase, transport: str = "window"
) -> tuple[tuple[KnownError, ...], dict[str, str]]:
    """Return what is known of an engine's error in a case, and for all else why nothing is.

    Parameters
    ----------
    engine : str
        Engine as results name it.
    case : PredictionCase
        Its conditions.
    transport : str
        Transport of the packet engine; comparisons with its other transports come after those with this one.

    Returns
    -------
    tuple of KnownError
        The most telling first; none at all if only other transports than this were compared.
    dict of str to str
        By what was compared with: what was not compared, and what was.
    """
    known_errors: list[KnownError] = []
    lacking: dict[str, str] = {}
    others = [against for key, against in PACKET.items() if key != transport]
    for against in (a for a in AGAINST if a not in others):
        some = around(engine, against, case)
        if isinstance(some, list):
            known_errors.append(_known_error(engine, against, case, some))
        elif some:
            lacking[against] = some
    for against in others if known_errors else ():
        some = around(engine, against, case)
        known_errors += [_known_error(engine, against, case, some)] if isinstance(some, list) else []
    return tuple(known_errors), lacking


def never(engine: str, labels: Sequence[str], n_ranks: int) -> bool:
    """Whether such an operation and algorithm, on such a network, were never compared with so many ranks at all."""
    n = [sample.case.ranks for sample in _labelled(engine, labels)]
    return not n or not min(n) <= n_ranks <= max(n)


def say_labels(engine: str, labels: Sequence[str]) -> str:
    """Describe what of operation, algorithm, kind of network and ranks was compared."""
    for i, label in enumerate(labels):
        if not _labelled(engine, labels[: i + 1]):
            known = sorted({getattr(sample.case, LABELS[i]) for sample in _labelled(engine, labels[:i])})
            of = f"{', '.join(labels[:i])} on " if i == 2 else ""
            return f"{of}{label} was never compared, only {', '.join(known)} {'was' if len(known) == 1 else 'were'}"
    ranks = [sample.case.ranks for sample in _labelled(engine, labels)]
    return f"{labels[1]} on {labels[2]} was compared with {say_range('ranks', min(ranks), max(ranks))}"


def say(error: KnownError) -> str:
    """Describe what a comparison was, in a phrase."""
    reference = "what others measured" if error.against == "measured" else f"the {error.against}"
    how = "p90" if error.real else "largest"
    how_many = f"{error.count} comparison{'s' * (error.count > 1)}"
    return f"{how_many} with {reference}: median {error.median:.1%}, {how} {error.error:.1%}, {error.text}"


def _labelled(engine: str, labels: Sequence[str]) -> list[ErrorSample]:
    return [
        sample
        for (of, _), some in by_kind().items()
        if of == engine
        for sample in some
        if all(getattr(sample.case, name) == label for name, label in zip(LABELS, labels, strict=False))
    ]


def _known_error(engine: str, against: str, case: PredictionCase, pool: list[ErrorSample]) -> KnownError:
    real = against not in PACKET.values()
    counted = near(engine, against, case, pool) if real else pool
    errors = np.abs([sample.error for sample in counted])
    error = float(np.quantile(errors, 0.9)) if real else float(errors.max())
    text = f"{_extent(counted)} of {case.network}"
    return KnownError(against, error, float(np.median(errors)), len(counted), text)


def _extent(some: list[ErrorSample]) -> str:
    sizes, ranks = [sample.case.size for sample in some], [sample.case.ranks for sample in some]
    size = " to ".join(dict.fromkeys((format_size(min(sizes)), format_size(max(sizes)))))
    return f"{size} on {' to '.join(dict.fromkeys((f'{min(ranks):g}', f'{max(ranks):g}')))} ranks"


def say_number(name: str, value: float) -> str:
    """Describe one number of a case, such as ``links of 100 Gb/s``."""
    return WORDS[name](_value(name, value))


def say_range(name: str, low: float, high: float) -> str:
    """Describe the bracket of the comparisons."""
    return WORDS[name](" to ".join(dict.fromkeys((_value(name, low), _value(name, high)))))


def _value(name: str, value: float) -> str:
    if name in ("size", "product", "overhead"):
        return format_size(value)
    return format_bandwidth(value).partition(" (")[0] if name == "rate" else f"{value:.4g}"


def by_kind() -> dict[tuple[str, str], list[ErrorSample]]:
    """Return all comparisons by engine and what they are against."""
    by_key: dict[tuple[str, str], list[ErrorSample]] = {}
    for comparison in comparisons():
        by_key.setdefault((comparison.engine, comparison.against), []).append(comparison)
    return by_key


def around(engine: str, against: str, case: PredictionCase) -> list[ErrorSample] | str:
    """Return the comparisons around a case, or why none were made; an empty reason where nothing at all was compared.

    Parameters
    ----------
    engine, against : str
        What was compared with what.
    case : PredictionCase
        The conditions.
    """
    some = by_kind().get((engine, against), [])
    for label in LABELS:
        known = list(dict.fromkeys(getattr(sample.case, label) for sample in some))
        own = getattr(case, label)
        some = [sample for sample in some if getattr(sample.case, label) == own]
        if not some:
            return f"{label} {own} was not compared, only {', '.join(known)}" if known else ""
    if case.costs <= NEGLIGIBLE:
        case = dataclasses.replace(case, overhead=0.0)
    pool = _nested(some, case, AROUND[against], "")
    if isinstance(pool, str):
        return pool
    for name in WITHIN:
        values = [getattr(sample.case, name) for sample in some]
        if not min(values) * (1 - SAME) <= getattr(case, name) <= max(values) * (1 + SAME):
            return _outside(name, getattr(case, name), values, "")
    if why := _costs(against, case):
        return why
    if against not in PACKET.values() and (n := len(near(engine, against, case, pool))) < FEWEST:
        return f"{n} comparisons are too few for a 90th percentile of the error"
    return pool


def _costs(against: str, case: PredictionCase) -> str:
    """Describe which cost of the case was zero, or free, in all comparisons of a kind."""
    if against in PACKET.values():
        if case.others > NEGLIGIBLE:
            return f"receiving and reducing take {case.others:.2g} of a message's time, compared was without them"
        return ""
    held = case.product / max(case.size / case.ranks, 1.0)
    if held > NEGLIGIBLE:
        return f"the links' latency is {held:.2g} of a message's time, and links that were run for real have none"
    return ""


def _nested(some: list[ErrorSample], case: PredictionCase, names: Sequence[str], where: str) -> list[ErrorSample] | str:
    """Comparisons around a case in the named numbers, or what is missing."""
    if not names:
        return some
    name, mine = names[0], getattr(case, names[0])
    values = sorted({getattr(sample.case, name) for sample in some})
    below = [v for v in values if v <= mine * (1 + SAME)]
    above = [v for v in values if v >= mine * (1 - SAME)]
    if not below or not above:
        return _outside(name, mine, values, where)
    pool: list[ErrorSample] = []
    for value in {below[-1], above[0]} if not _same(below[-1], mine) else {below[-1]}:
        at = [sample for sample in some if getattr(sample.case, name) == value]
        by_key = _nested(at, case, names[1:], f"{where}, {say_number(name, value)}" if name != "size" else where)
        if isinstance(by_key, str):
            return by_key
        pool += by_key
    return pool


def _same(a: float, b: float) -> bool:
    return abs(a - b) <= SAME * max(abs(a), abs(b))


def _outside(name: str, mine: float, values: Sequence[float], where: str) -> str:
    real = " (software's costs do not scale with the rate)" if name == "rate" and max(values) < mine else ""
    with_others = f" with{where[1:]}" if where else ""
    return f"{say_number(name, mine)}: compared were {say_range(name, min(values), max(values))}{with_others}{real}"


def near(engine: str, against: str, case: PredictionCase, pool: list[ErrorSample]) -> list[ErrorSample]:
    """Return the real runs that count together: of any algorithm of the operation on such networks, of such sizes.

    Parameters
    ----------
    engine, against : str
        Engines that were compared.
    case : PredictionCase
        Case with the operation and the network that count.
    pool : list of ErrorSample
        Those whose sizes count.
    """
    low, high = min(sample.case.size for sample in pool), max(sample.case.size for sample in pool)
    return [
        sample
        for sample in by_kind()[engine, against]
        if (sample.case.operation, sample.case.network) == (case.operation, case.network)
        and low <= sample.case.size <= high
    ]
