"""How far predictions were off: every comparison that says something of an engine's error, shipped as data.

``python -m benchmarks.validation --write-data`` writes what was run for real into validation.json, ``python -m
benchmarks.accuracy.packet_vs_flow --write-data`` what the packet engine says into packet_vs_flow.json; nothing that is
shipped computes either.
"""

from __future__ import annotations

import functools
import importlib.resources
import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from commsim.auto.case import PredictionCase
from commsim.core.errors import InputError
from commsim.core.files.whole_files import parse_json

REAL_FILE, PACKET_FILE = "validation.json", "packet_vs_flow.json"
# What a comparison with the packet engine is called, by its transport.
PACKET = {
    "window": "packet engine",
    "dctcp": "packet engine, DCTCP",
    "dcqcn": "packet engine, DCQCN",
}
# What is compared with, the most telling first: real runs here, runs of others, and the engine with most detail.
AGAINST = ("testbed", "measured", *PACKET.values())
LABELS = ("operation", "collective", "network", "routing", "placement")


@dataclass(frozen=True, slots=True)
class ErrorSample:
    """One engine's prediction of one case beside something else.

    Parameters
    ----------
    engine : str
        Engine as results name it.
    against : str
        One of AGAINST.
    case : PredictionCase
        Case of the comparison.
    error : float
        Prediction over reference, less 1.
    """

    engine: str
    against: str
    case: PredictionCase
    error: float


@functools.cache
def comparisons() -> tuple[ErrorSample, ...]:
    """Read all of them; none of a file that was never written.

    Raises
    ------
    InputError
        If a file is damaged.
    """
    return tuple(itertools.chain.from_iterable(map(_read_samples, (REAL_FILE, PACKET_FILE))))


def _read_samples(name: str) -> list[ErrorSample]:
    try:
        text = (importlib.resources.files("commsim.auto") / name).read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    try:
        return from_tree(parse_json(text))
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"commsim/auto/{name}: damaged: {error!r}; reinstall commsim") from None


def from_tree(tree: Mapping[str, Any]) -> list[ErrorSample]:
    """Return what ``benchmarks.accuracy.known_errors`` wrote."""
    samples = []
    for table in tree["tables"]:
        if table["against"] not in AGAINST:
            raise ValueError(f"against {table['against']!r}")
        labels = [table[name] for name in LABELS]
        for *numbers, error in table["rows"]:
            if not all(math.isfinite(x) for x in (*numbers, error)):
                raise ValueError(f"a number that is not finite in {labels}")
            case = PredictionCase(*labels, *map(float, numbers))
            samples.append(ErrorSample(table["engine"], table["against"], case, float(error)))
    return samples
