"""Names of a network's nodes: rows of numbered names, which are written out when they are read."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, overload

DIGITS = frozenset("0123456789")


class NumberedNames(Sequence[str]):
    """Names in runs, such as ``h0, h1, …`` and ``m0.gpu0, m0.gpu1, m1.gpu0, …``; equal to the tuple of them.

    A million machines' names are some hundred megabytes as text and few are read, so they are made on demand.

    Parameters
    ----------
    runs : sequence of (str, int, tuple of str)
        Prefix, how many numbers from 0 on, and what follows a number: one name for each.
    """

    __slots__ = ("_all", "_ends", "runs")

    def __init__(self, runs: Sequence[tuple[str, int, tuple[str, ...]]]) -> None:
        self.runs = tuple((prefix, n, suffixes) for prefix, n, suffixes in runs if n > 0 and suffixes)
        self._ends = tuple(itertools.accumulate(n * len(suffixes) for _, n, suffixes in self.runs))
        self._all: tuple[str, ...] | None = None

    @property
    def differ(self) -> bool:
        """Whether it is plain that all are different and printable; else they have to be compared.

        The first digit of a name then begins its number, and the number's last digit ends it, so that a name says of
        which prefix, number and suffix it is.
        """
        parts = [(prefix, suffix) for prefix, _, suffixes in self.runs for suffix in suffixes]
        return len(set(parts)) == len(parts) and all(
            prefix.isprintable() and suffix.isprintable() and not DIGITS & set(prefix) and suffix[:1] not in DIGITS
            for prefix, suffix in parts
        )

    def after(self, n: int) -> NumberedNames | None:
        """Return all but the first `n`; None where no run begins there."""
        if n not in (0, *self._ends):
            return None
        return NumberedNames(self.runs[bisect.bisect_right(self._ends, n) :])

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[str, ...]: ...
    def __getitem__(self, at: int | slice) -> str | tuple[str, ...]:
        if isinstance(at, slice):
            return tuple(map(self.__getitem__, range(*at.indices(len(self)))))
        i = range(len(self))[at]  # counts from the end, and refuses what is beyond
        run = bisect.bisect_right(self._ends, i)
        prefix, _, suffixes = self.runs[run]
        number, which = divmod(i - (self._ends[run - 1] if run else 0), len(suffixes))
        return f"{prefix}{number}{suffixes[which]}"

    def __iter__(self) -> Iterator[str]:
        return iter(self._written)

    def __contains__(self, name: object) -> bool:
        return name in self._written

    def index(self, name: Any, *bounds: int) -> int:
        """Return the place of a name, as a tuple does."""
        return self._written.index(name, *bounds)

    def __add__(self, other: Sequence[str]) -> Sequence[str]:
        if isinstance(other, NumberedNames):
            return NumberedNames((*self.runs, *other.runs))
        return self._written + tuple(other)

    def __radd__(self, other: Sequence[str]) -> tuple[str, ...]:
        return tuple(other) + self._written

    def __eq__(self, other: object) -> bool:
        if isinstance(other, NumberedNames):
            return self.runs == other.runs or (len(self) == len(other) and self._written == other._written)
        return self._written == other if isinstance(other, tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._written)

    def __repr__(self) -> str:
        return repr(self._written)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.runs,)

    @property
    def _written(self) -> tuple[str, ...]:
        if self._all is None:
            parts = [[f"{prefix}{i}{suffix}" for i in range(n) for suffix in suffixes]
                     for prefix, n, suffixes in self.runs]  # fmt: skip
            self._all = tuple(itertools.chain.from_iterable(parts))
        return self._all


def node_names(**counts: int) -> NumberedNames:
    """Names ``h0, h1, …, leaf0, …`` from ``node_names(h=16, leaf=4)``, in that order."""
    return NumberedNames([(prefix, n, ("",)) for prefix, n in counts.items()])


def first_unprintable(names: Sequence[Any]) -> Any:
    """Return the first that is no printable text of some length; None where all are."""
    if isinstance(names, NumberedNames) and names.differ:
        return None
    try:
        if all(names) and all(map(str.isprintable, names)):
            return None
    except TypeError:  # not text
        pass
    return next(name for name in names if not isinstance(name, str) or not name.isprintable() or not name)


def first_repeated(names: Sequence[str]) -> str | None:
    """Return the first name that stands there again; None where all are different."""
    if (isinstance(names, NumberedNames) and names.differ) or len(set(names)) == len(names):
        return None
    seen: set[str] = set()
    return next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
