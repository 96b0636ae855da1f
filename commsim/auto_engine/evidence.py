"""What is known of an engine's error for one operation, size, number of ranks and network; and what is not."""

from __future__ import annotations

from collections.abc import Iterable

from commsim.core.known_error import AGAINST, KnownError, known_errors
from commsim.core.units import format_size

FEWEST = 4
"""Comparisons: of fewer, nothing is said about the worst tenth."""


def evidence(engine: str, operation: str, size: float, n_ranks: int, network: str) -> tuple[KnownError, ...]:
    """Return the comparisons that cover a case without extrapolation, the most telling kind first.

    A comparison covers sizes between the smallest and the largest that were compared in its kind, numbers of ranks
    likewise, and the families of networks that were compared: a star says nothing of a fat tree.

    Parameters
    ----------
    engine, operation : str
        As results name them.
    size : float, bytes
        Of the operation.
    n_ranks : int
        Ranks.
    network : str
        Name of the network; its family is what stands before the first colon.
    """
    mine = [e for e in known_errors() if (e.engine, e.operation) == (engine, operation)]
    found = [
        e
        for e in mine
        if e.low <= size < e.high
        and _compared_sizes(mine, e.against)[0] <= size <= _compared_sizes(mine, e.against)[1]
        and min(e.ranks, default=1) <= n_ranks <= max(e.ranks, default=0)
        and family(network) in map(family, e.networks)
        and e.count >= FEWEST
    ]
    return tuple(sorted(found, key=lambda e: AGAINST.index(e.against)))


def family(network: str) -> str:
    """Family of a network by its name: ``leaf_spine`` of ``leaf_spine:n_leaves=4,...``."""
    return network.partition(":")[0].partition(" ")[0].replace("-", "_")


def say(error: KnownError) -> str:
    """Say what a comparison was, in a phrase."""
    whom = "what others measured" if error.against == "measured" else f"the {error.against}"
    return f"{error.count} comparisons with {whom}: median {error.median:.1%}, p90 {error.p90:.1%}, {_case(error)}"


def compared_cases(engine: str, operation: str) -> list[str]:
    """Say in which cases an engine was compared often enough on an operation."""
    mine = [e for e in known_errors() if (e.engine, e.operation) == (engine, operation) and e.count >= FEWEST]
    return list(dict.fromkeys(map(_case, mine)))


def _case(error: KnownError) -> str:
    ranks = " to ".join(dict.fromkeys(f"{n}" for n in (min(error.ranks), max(error.ranks))))
    sizes = " to ".join(dict.fromkeys((format_size(error.smallest), format_size(error.biggest))))
    return f"{sizes} on {ranks} ranks of {', '.join(error.networks)}"


def compared_operations() -> list[str]:
    """Operations on which any engine was compared."""
    return sorted({e.operation for e in known_errors()})


def _compared_sizes(errors: Iterable[KnownError], against: str) -> tuple[float, float]:
    mine = [e for e in errors if e.against == against]
    return min(e.smallest for e in mine), max(e.biggest for e in mine)
