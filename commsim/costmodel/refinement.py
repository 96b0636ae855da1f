"""Adaptive refinement: sizes between which lines are as close to a function of the size as is wanted.

Times of collectives are lines in the size, with jumps where a library changes its choice or the number of its chunks,
and with single sizes, whole multiples of its chunks, that take less than those on both sides. Jumps are kept as two
sizes that follow each other, single sizes as three. Sizes are counted in units, so that each has one before and after.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

Times = tuple[float, ...]
# Share of the tolerance that is used between sizes that were looked at, so that those between them keep it, too.
SHARE = 0.8
# Ratio of neighbouring sizes below which a jump is looked for, in place of a bend.
NARROW = 1 / 64
# Parts of the way between two sizes at which a line is compared.
TESTS = (0.382, 0.764)
# Round sizes have this many significant bits, and are multiples of at least this.
BITS, LEAST = 4, 2**4
# Largest multiple of a size by which single sizes follow each other.
MAX_TRAIN = 64
# Times that jumps are looked for beside the sizes that are kept: what is added changes which are.
PASSES = 3
# Labels that are looked at in each doubling of the size.
LOOKS = 16


class SizeRefinement:
    """Sizes at which a function is kept, and its values wherever it was called.

    Parameters
    ----------
    at : callable
        Function from a size, an int, to times above 0.
    low, high : int
        First and last size.
    tolerance : float
        Largest relative error of a line.
    choices : list of (int, str)
        Sizes from which on something else is chosen, as :func:`changes` returns them: there times may jump.
    """

    def __init__(
        self,
        at: Callable[[int], Times],
        low: int,
        high: int,
        tolerance: float,
        choices: Sequence[tuple[int, str]] = (),
    ) -> None:
        self._at = at
        self.low, self.high = low, high
        self.tolerance = tolerance
        self.known: dict[int, Times] = {}
        self.sizes: set[int] = {low, high}
        self.choices = choices

    def times(self, size: int) -> Times:
        """Return the function's value, called once for each size."""
        if size not in self.known:
            self.known[size] = self._at(size)
        return self.known[size]

    def refine(self) -> None:
        """Add sizes until lines between them are close enough wherever this looks."""
        edges = {start for start, _ in self.choices} | {start - 1 for start, _ in self.choices}
        powers = {1 << k for k in range(self.high.bit_length())}
        self.sizes |= {size for size in edges | powers if self.low <= size <= self.high}
        for size in sorted(powers & self.sizes):
            self._look_beside(size)
        for first, last in list(pairwise(sorted(self.sizes))):
            self._fill(first, last)
        self.add_round_sizes()
        for _ in range(PASSES):
            self._look_beside_kept()

    def _look_beside_kept(self) -> None:
        """Add jumps right beside sizes that are kept: a line that ends on the wrong side of one is most wrong there."""
        before = set(self.sizes)
        for size in self.fewest():
            self._look_beside(size)
        for size in self.sizes - before:
            first, last = self._around(size)
            self._fill(first, size)
            self._fill(size, last)

    def add_round_sizes(self) -> None:
        """Add round sizes that differ from those beside them, and their further multiples."""
        for size in round_sizes(self.low, self.high):
            step = size & -size
            for one in range(size, min(self.high, size + MAX_TRAIN * step), step):
                if one not in self.sizes and not self.add(one):
                    break

    def add(self, size: int) -> bool:
        """Look at a size, and add what is missing around it.

        Returns
        -------
        bool
            Whether the lines were wrong there.
        """
        if size in self.sizes or self.error(size, self._around(size)) <= self.tolerance * SHARE:
            return False
        first, last = self._around(size)
        self.sizes.add(size)
        self._look_beside(size)
        for one, other in list(pairwise(sorted(x for x in self.sizes if first <= x <= last))):
            self._fill(one, other)
        return True

    def error(self, size: int, around: tuple[int, int]) -> float:
        """Return the largest relative error at a size of the line between two others."""
        first, last = around
        part = (size - first) / (last - first)
        lines = zip(self.times(first), self.times(last), self.times(size), strict=True)
        return max(abs(a + (b - a) * part - exact) / exact for a, b, exact in lines)

    def wrong_at(self, sizes: Iterable[int]) -> list[tuple[float, int]]:
        """Return the error at each of some sizes, with the size."""
        return [(0.0 if size in self.sizes else self.error(size, self._around(size)), size) for size in sizes]

    def _around(self, size: int) -> tuple[int, int]:
        return max(one for one in self.sizes if one < size), min(one for one in self.sizes if one > size)

    def _look_beside(self, size: int) -> None:
        """Add the sizes that are one less and more, where the function jumps there."""
        for beside in (size - 1, size + 1):
            if self.low <= beside <= self.high and self._differ(size, beside):
                self.sizes.add(beside)

    def _differ(self, one: int, other: int) -> bool:
        pairs = zip(self.times(one), self.times(other), strict=True)
        return max(abs(a - b) / b for a, b in pairs) > self.tolerance * SHARE

    def _fill(self, first: int, last: int) -> None:
        """Add sizes between two until lines are close enough."""
        waiting = [(first, last)]
        while waiting:
            first, last = waiting.pop()
            if not self._is_wrong(first, last):
                continue
            new = self._jump(first, last) if last - first < NARROW * first else (_between(first, last, 0.5),)
            self.sizes.update(new)
            waiting += [(a, b) for a, b in pairwise(sorted({first, last, *new})) if b - a > 1]

    def _is_wrong(self, first: int, last: int) -> bool:
        return last - first > 1 and any(
            self.error(size, (first, last)) > self.tolerance * SHARE for size in _tests(first, last)
        )

    def _jump(self, first: int, last: int) -> tuple[int, ...]:
        """Return the two sizes between which the function jumps most, by halving."""
        while last - first > 1:
            middle = (first + last) // 2
            to_first, to_last = (abs(self.times(middle)[0] - self.times(one)[0]) for one in (first, last))
            first, last = (middle, last) if to_first <= to_last else (first, middle)
        return first, last

    def fewest(self) -> list[int]:
        """Return as few of all known sizes as lines need to be close to the others."""
        every = sorted(self.known)
        kept, i = [0], 0
        while i < len(every) - 1:
            i = self._farthest(every, i)
            kept.append(i)
        return [every[k] for k in kept]

    def _farthest(self, every: list[int], i: int) -> int:
        """Return the last known size to which a line from the i-th is close to all between them."""
        step, best = 1, i + 1
        while i + step < len(every) and self._is_line(every, i, i + step):
            best, step = i + step, step * 2
        while (step := step // 2) >= 1:
            if best + step < len(every) and self._is_line(every, i, best + step):
                best += step
        return best

    def _is_line(self, every: list[int], i: int, k: int) -> bool:
        return all(self.error(size, (every[i], every[k])) <= self.tolerance * SHARE for size in every[i + 1 : k])


def changes(label: Callable[[int], str], low: int, high: int) -> list[tuple[int, str]]:
    """Return the sizes from which on another label holds, with the label; the first is the least size."""
    looks = sorted(
        {low, high} | {size for k in range(LOOKS * high.bit_length()) if low < (size := int(2 ** (k / LOOKS))) < high}
    )
    found = [(low, label(low))]
    for first, last in pairwise(looks):
        while found[-1][1] != label(last):
            start = first
            end = last
            while end - start > 1:
                middle = (start + end) // 2
                start, end = (middle, end) if label(middle) == found[-1][1] else (start, middle)
            found.append((end, label(end)))
            first = end
    return found


def round_sizes(low: int, high: int) -> Iterator[int]:
    """Return sizes of few significant bits, which people ask for."""
    for k in range(high.bit_length()):
        for lead in range(2 ** (BITS - 1), 2**BITS):
            if low <= lead << k <= high and lead << k >= LEAST:
                yield lead << k


def random_sizes(random_numbers: random.Random, n: int, low: int, high: int) -> list[int]:
    """Draw sizes, logarithms uniformly: one half of them any, the others multiples of a power of two or of ten."""
    found: list[int] = []
    while len(found) < n:
        size = int(low * (high / low) ** random_numbers.random())
        if len(found) % 2:  # round ones
            unit = random_numbers.choice((10, 2)) ** random_numbers.randrange(2, 18)
            size = size // unit * unit
        if low <= size <= high:
            found.append(size)
    return found


def _between(first: int, last: int, part: float) -> int:
    """Return the size at a part of the way between two: of the logarithm where they are far apart."""
    size = int(first * (last / first) ** part) if last > 2 * first else first + int((last - first) * part)
    return min(max(size, first + 1), last - 1)


def _tests(first: int, last: int) -> set[int]:
    """Return the sizes between two at which a line is compared: no halves, at which stairs would all be equal."""
    parts = TESTS if last - first > NARROW * first else TESTS[:1]
    return {_between(first, last, part) for part in parts}
