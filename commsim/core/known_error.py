"""How far predictions are known to be off: what the validation matrix found, shipped as data.

``python -m benchmarks.validation --write-data`` writes the file; nothing that is shipped computes it.
"""

from __future__ import annotations

import functools
import importlib.resources
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .errors import InputError
from .formats.files import parse_json

FILE = "validation.json"
AGAINST = ("testbed", "measured", "packet engine")
"""What errors are kept of, the most telling first: real runs here, runs of others, and the engine with most detail."""


@dataclass(frozen=True, slots=True)
class KnownError:
    """Absolute relative errors of one engine on one operation.

    Parameters
    ----------
    engine, operation : str
        Such as "flow" and "all_reduce".
    against : str
        One of AGAINST.
    low, high : float, bytes
        Sizes from `low` to below `high`; the last range has no end.
    count : int
        Comparisons.
    median, p90, largest : float
        Of their absolute relative errors.
    ranks : tuple of int
        With which numbers of ranks.
    networks : tuple of str
        On which topologies.
    smallest, biggest : float, bytes
        Sizes that were really compared lie between these; a range may be wider.
    """

    engine: str
    operation: str
    against: str
    low: float
    high: float
    count: int
    median: float
    p90: float
    largest: float
    ranks: tuple[int, ...]
    networks: tuple[str, ...]
    smallest: float = 0.0
    biggest: float = math.inf


def known_error(engine: str, operation: str, size: float) -> KnownError | None:
    """Return what is known of an engine's error at a size, from real runs if there are some.

    Parameters
    ----------
    engine, operation : str
        As results name them.
    size : float, bytes
        Of the operation.

    Returns
    -------
    KnownError or None
        None where nothing was compared.

    Raises
    ------
    InputError
        If the shipped file is damaged.
    """
    found = [e for e in known_errors() if (e.engine, e.operation) == (engine, operation) and e.low <= size < e.high]
    return min(found, key=lambda error: AGAINST.index(error.against), default=None)


@functools.cache
def known_errors() -> tuple[KnownError, ...]:
    """Read all of them; none where the file was never written.

    Raises
    ------
    InputError
        If the file is damaged.
    """
    path = importlib.resources.files("commsim.data") / FILE
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ()
    try:
        return tuple(from_tree(tree) for tree in parse_json(text)["errors"])
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"commsim/data/{FILE}: damaged: {error!r}; install commsim anew") from None


def from_tree(tree: Mapping[str, Any]) -> KnownError:
    """Return what :func:`to_tree` wrote."""
    ends = {name: math.inf if tree[name] is None else float(tree[name]) for name in ("high", "biggest") if name in tree}
    if tree["against"] not in AGAINST:
        raise ValueError(f"against {tree['against']!r}")
    lists = {name: tuple(tree[name]) for name in ("ranks", "networks")}
    return KnownError(**(dict(tree) | ends | lists))


def to_tree(error: KnownError) -> dict[str, Any]:
    """Return fields as JSON has them; what has no end has null."""
    tree = {name: getattr(error, name) for name in KnownError.__slots__}
    ends = {name: None if math.isinf(tree[name]) else tree[name] for name in ("high", "biggest")}
    return tree | ends | {"ranks": list(error.ranks), "networks": list(error.networks)}
