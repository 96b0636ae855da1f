"""What is known of an engine's error in one case, and why nothing is where nothing is.

When is a comparison at one rate evidence at another? A prediction depends on sizes s, rates B, latencies L, overheads o
and seconds per reduced byte g. Time, and bytes, may be counted in any unit, so a time over another is a function of the
groups s/(B L), o/L and g B alone, and the packet engine knows one quantity more: packets of m bytes. With its ideal
window it has no clock of its own (windows are counted in bandwidth-delay products, queues have no end), so the times of
both engines, and their ratio, depend on s/m, B L/m, o B/m and g B. Two cases in which these are equal *are* one case,
at 10 Gbit/s or at 400, but for picoseconds to which the packet engine rounds. So the rate is no condition there; what a
link holds, B L, is. DCTCP and DCQCN have clocks and thresholds of their own: there the rate is a condition as well. So
it is for real runs: what software takes for a message does not shrink when links become faster. What was run between
20 and 500 Mbit/s says nothing about 400 Gbit/s, whatever the groups are.

A case is known if comparisons lie around it: those of the very same algorithm, family of network, routing and
placement, and for each of some numbers the next one below and the next one above, or the number itself. That is never
outside of what was compared, and it does not join one corner (many ranks, little data) with another (few ranks, much
data). Not looked at: how many spines or pods there are, and latencies that differ within one network.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from commsim.core.units import format_size
from commsim.run.auto.known_error import AGAINST, LABELS, PACKET, Case, Comparison

from .bracket import around, by_kind, near, say_range


@dataclass(frozen=True, slots=True)
class KnownError:
    """What comparisons around a case say.

    Parameters
    ----------
    against : str
        One of AGAINST.
    error : float
        That is promised: of real runs the 90th percentile, of comparisons with the packet engine, which are the same
        every time, the largest.
    median : float
        Of the absolute errors.
    count : int
        Comparisons.
    text : str
        Which.
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


def evidence(engine: str, case: Case, transport: str = "window") -> tuple[tuple[KnownError, ...], dict[str, str]]:
    """Return what is known of an engine's error in a case, and for all else why nothing is.

    Parameters
    ----------
    engine : str
        As results name it.
    case : Case
        Its conditions.
    transport : str
        Of the packet engine; comparisons with its other transports come after those with this one.

    Returns
    -------
    tuple of KnownError
        The most telling first; none at all if only other transports than this were compared.
    dict of str to str
        By what was compared with: what was not compared, and what was.
    """
    found: list[KnownError] = []
    lacking: dict[str, str] = {}
    others = [against for key, against in PACKET.items() if key != transport]
    for against in (a for a in AGAINST if a not in others):
        some = around(engine, against, case)
        if isinstance(some, list):
            found.append(_known(engine, against, case, some))
        elif some:
            lacking[against] = some
    for against in others if found else ():
        some = around(engine, against, case)
        found += [_known(engine, against, case, some)] if isinstance(some, list) else []
    return tuple(found), lacking


def never(engine: str, labels: Sequence[str], n_ranks: int) -> bool:
    """Whether such an operation and algorithm, on such a network, were never compared with so many ranks at all."""
    n = [one.case.ranks for one in _labelled(engine, labels)]
    return not n or not min(n) <= n_ranks <= max(n)


def say_labels(engine: str, labels: Sequence[str]) -> str:
    """Say what of operation, algorithm, kind of network and ranks was compared."""
    for i, label in enumerate(labels):
        if not _labelled(engine, labels[: i + 1]):
            known = sorted({getattr(one.case, LABELS[i]) for one in _labelled(engine, labels[:i])})
            of = f"{', '.join(labels[:i])} on " if i == 2 else ""
            return f"{of}{label} was never compared, only {', '.join(known)} {'was' if len(known) == 1 else 'were'}"
    ranks = [one.case.ranks for one in _labelled(engine, labels)]
    return f"{labels[1]} on {labels[2]} was compared with {say_range('ranks', min(ranks), max(ranks))}"


def say(error: KnownError) -> str:
    """Say what a comparison was, in a phrase."""
    whom = "what others measured" if error.against == "measured" else f"the {error.against}"
    how = "p90" if error.real else "largest"
    how_many = f"{error.count} comparison{'s' * (error.count > 1)}"
    return f"{how_many} with {whom}: median {error.median:.1%}, {how} {error.error:.1%}, {error.text}"


def _labelled(engine: str, labels: Sequence[str]) -> list[Comparison]:
    return [
        one
        for (of, _), some in by_kind().items()
        if of == engine
        for one in some
        if all(getattr(one.case, name) == label for name, label in zip(LABELS, labels, strict=False))
    ]


def _known(engine: str, against: str, case: Case, pool: list[Comparison]) -> KnownError:
    real = against not in PACKET.values()
    counted = near(engine, against, case, pool) if real else pool
    errors = np.abs([one.error for one in counted])
    error = float(np.quantile(errors, 0.9)) if real else float(errors.max())
    text = f"{_extent(counted)} of {case.network}"
    return KnownError(against, error, float(np.median(errors)), len(counted), text)


def _extent(some: list[Comparison]) -> str:
    sizes, ranks = [one.case.size for one in some], [one.case.ranks for one in some]
    size = " to ".join(dict.fromkeys((format_size(min(sizes)), format_size(max(sizes)))))
    return f"{size} on {' to '.join(dict.fromkeys((f'{min(ranks):g}', f'{max(ranks):g}')))} ranks"
