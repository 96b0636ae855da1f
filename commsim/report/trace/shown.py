"""The parts of a timeline: slices, the tracks that they are on, and counters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .tracks import PICOSECOND, Slices


class Slice(NamedTuple):
    """One slice: process, lane, picoseconds, what it is."""

    pid: int
    lane: int
    start: int
    end: int
    name: str
    n_bytes: float
    hop: int
    transfer: int
    critical: bool


@dataclass(frozen=True, slots=True, eq=False)
class Track:
    """Slices of one kind (send, receive or link), their lanes by number: name and process."""

    kind: str
    slices: Slices
    lane: NDArray[np.int64]
    lanes: Mapping[int, tuple[str, int]]


@dataclass(frozen=True, slots=True, eq=False)
class Counter:
    """Load of one link over time: percent of its capacity."""

    name: str
    pid: int
    edges: NDArray[np.float64]
    load: NDArray[np.float64]

    def changes(self) -> Iterator[tuple[int, float]]:
        """When (ps) the load changes, and to what (percent); 0 at the end."""
        before = -1.0
        for edge, load in zip(self.edges.tolist(), [*self.load.tolist(), 0.0], strict=True):
            if load != before:
                yield round(edge / PICOSECOND), 100 * load
            before = load
