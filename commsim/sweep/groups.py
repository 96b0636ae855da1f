"""Points that are prepared together: groups as a sample has them, some of all; and chunks, which go to one worker."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from .config import SweepConfig
from .points import Point, points, structure
from .worker import Chunk

# Points among which groups are drawn and counted; of more points the others are taken to be like these.
MAX_WALKED = 1_000_000
MAX_GROUPS = 4096
# Points of a group that are kept, at least, if it has so many.
MAX_KEPT = 64
# Seconds that a chunk takes, about, and points that it has at most.
SECONDS = 0.5
MAX_IN_CHUNK = 500
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PointGroup:
    """Points that are prepared together.

    Parameters
    ----------
    first : Point
        The one that is computed first.
    others : tuple of Point
        Some of the others, spread evenly over them.
    n : int
        How many points the group has.
    """

    first: Point
    others: tuple[Point, ...]
    n: int

    @property
    def ranks(self) -> float:
        """Of the collective or the training; 0 if that is left to the topology."""
        parameters = self.first.parameters
        return float(parameters.get("collective.ranks") or parameters.get("workload.workers") or 0)

    @property
    def likeness(self) -> tuple[tuple[str, ...], float, int]:
        """Sort key of groups: neighbours take similar time."""
        texts = tuple(f"{k}={v}" for k, v in self.first.parameters.items() if isinstance(v, str))
        return texts, self.ranks, self.first.order

    def some(self, most: int, draw: random.Random) -> tuple[Point, ...]:
        """Draw one of every nth part of the points that are not the first."""
        n, most = len(self.others), min(most, len(self.others))
        return tuple(self.others[draw.randrange(i * n // most, (i + 1) * n // most)] for i in range(most))


def walk_groups(config: SweepConfig, max_points: int, draw: random.Random) -> tuple[list[PointGroup], int, int]:
    """Draw up to ``MAX_GROUPS`` groups, each as likely as any other.

    Parameters
    ----------
    config : SweepConfig
        The sweep.
    max_points : int
        More points than that are refused.
    draw : Random
        Chooses the groups.

    Returns
    -------
    list of PointGroup, int, int
        The groups, sorted so that neighbours are alike; how many there are in all; points that were walked.
    """
    groups: list[PointGroup] = []
    n_groups = n_walked = 0
    walked = itertools.islice(points(config, max_points), MAX_WALKED)
    for _, members in itertools.groupby(walked, key=structure):
        first, (others, n_others) = next(members), spread(members, MAX_KEPT)  # noqa: B031 - one goes on with the other
        place = n_groups if n_groups < MAX_GROUPS else draw.randrange(n_groups + 1)
        if place < MAX_GROUPS:
            groups[place : place + 1] = [PointGroup(first, tuple(others), 1 + n_others)]
        n_groups, n_walked = n_groups + 1, n_walked + 1 + n_others
    return sorted(groups, key=lambda group: group.likeness), n_groups, n_walked


def spread(stream: Iterable[T], least: int) -> tuple[list[T], int]:
    """Return between `least` and twice as many members of a stream, spread evenly (all, if fewer), and their number."""
    members: list[T] = []
    step, n = 1, 0
    for member in stream:
        if n % step == 0:
            members.append(member)
            if len(members) == 2 * least:
                members, step = members[::2], 2 * step
        n += 1
    return members, n


class Chunker:
    """Cuts a stream of points into chunks whose length follows the speed of earlier chunks.

    Parameters
    ----------
    version, sweep : str
        Version of commsim; hash of the configuration.
    kinds : mapping of str to str
        Kind of every parameter.
    """

    def __init__(self, version: str, sweep: str, kinds: Mapping[str, str]) -> None:
        self._version, self._sweep, self._kinds = version, sweep, kinds
        self._points_per_second = 0.0

    def measured(self, seconds: float, n_points: int) -> None:
        """Update the measured rate with a chunk."""
        if seconds > 0:
            now = n_points / seconds
            self._points_per_second = now if not self._points_per_second else (self._points_per_second + now) / 2

    def chunks(self, points: Iterable[Point]) -> Iterator[Chunk]:
        """Cut; the first chunk is one point.

        Notes
        -----
        A chunk ends where the preparation of its points ends, unless it is less than half full.
        """
        held: list[Point] = []
        last: tuple[Any, ...] | None = None
        for point in points:
            shared = structure(point)
            full = self._length()
            if held and (len(held) >= full or (shared != last and 2 * len(held) >= full)):
                yield self._chunk(held)
                held = []
            held.append(point)
            last = shared
        if held:
            yield self._chunk(held)

    def _length(self) -> int:
        return min(max(1, int(self._points_per_second * SECONDS)), MAX_IN_CHUNK)

    def _chunk(self, held: list[Point]) -> Chunk:
        return Chunk(
            self._version,
            self._sweep,
            self._kinds,
            tuple(point.order for point in held),
            tuple(point.digest for point in held),
            tuple(point.seed for point in held),
            tuple(point.parameters for point in held),
        )
