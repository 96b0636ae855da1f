"""Points in chunks: neighbours that are prepared together go to one worker, and a chunk takes about half a second."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .points import Point, structure
from .worker import Chunk

SECONDS = 0.5
MAX_IN_CHUNK = 500


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
