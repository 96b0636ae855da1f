"""Times of a closed form in place of an engine's, on stretches of sizes where the engine was found to return them.

The engine returns NCCL's closed form to the last bit where no link can be in the way of messages, which it proves anew
for each size from the whole schedule. Here it is asked at both ends of a stretch and at some sizes between; where all
are equal, the closed form is taken for the rest. Random sizes are compared with the engine at last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise

from .refinement import Times

# Ratio of sizes of a stretch at which the engine is asked; and of those below which a stretch is not split again.
APART, NARROW = 16, 1.1


class TrustedTimes:
    """Times of an engine, or of a closed form where this was found to be the same.

    Parameters
    ----------
    engine : callable
        Function from a size, an int, to times; it is called once for each size.
    closed_form : callable
        Function from a size to times, or to None where none is known.
    """

    def __init__(self, engine: Callable[[int], Times], closed_form: Callable[[int], Times | None]) -> None:
        self._engine, self._closed_form = engine, closed_form
        self.asked: dict[int, Times] = {}
        self.trusted: list[tuple[int, int]] = []

    def engine(self, size: int) -> Times:
        """Return the engine's times."""
        if size not in self.asked:
            self.asked[size] = self._engine(size)
        return self.asked[size]

    def __call__(self, size: int) -> Times:
        """Return the closed form's times where it is trusted, else the engine's."""
        if size not in self.asked and any(first <= size <= last for first, last in self.trusted):
            known = self._closed_form(size)
            if known is not None:
                return known
        return self.engine(size)

    def examine(self, starts: Iterable[int], high: int) -> None:
        """Find the stretches on which the closed form is trusted.

        Parameters
        ----------
        starts : iterable of int
            Sizes at which a stretch begins, in ascending order: those from which on a library chooses otherwise.
        high : int
            Last size of the last stretch.
        """
        waiting = [(first, after - 1) for first, after in pairwise([*starts, high + 1])]
        while waiting:
            first, last = waiting.pop()
            equal = [self.is_equal(size) for size in _looks(first, last)]
            if all(equal):
                self.trusted.append((first, last))
            elif any(equal) and last > NARROW * first:
                middle = int((first * last) ** 0.5)
                waiting += [(first, middle), (middle + 1, last)]

    def is_equal(self, size: int) -> bool:
        """Whether the closed form has the engine's times to the last bit; both are compared."""
        return self._closed_form(size) == self.engine(size)


def _looks(first: int, last: int) -> list[int]:
    """Return sizes from a first to a last one, at most ``APART`` times as large as the one before."""
    found = [first]
    while found[-1] * APART < last:
        found.append(found[-1] * APART - 1)  # no power of two: round sizes have rounds of their own
    return [*found, last] if last > first else found
