"""Counts that processes of trials share with the process that made them."""

from __future__ import annotations

import mmap
from collections.abc import Sequence


class Tally:
    """Trials of each kind by their outcome.

    Parameters
    ----------
    kinds : sequence of str
        Kinds; what is none of them is counted as the last.
    outcomes : sequence of str
        Outcomes.
    """

    def __init__(self, kinds: Sequence[str], outcomes: Sequence[str]) -> None:
        self.kinds, self.outcomes = tuple(kinds), tuple(outcomes)
        self._counts = memoryview(mmap.mmap(-1, 8 * len(kinds) * len(outcomes))).cast("q")

    def add(self, kind: str, outcome: int) -> None:
        """Count a trial, with the number of its outcome."""
        at = self.kinds.index(kind) if kind in self.kinds else len(self.kinds) - 1
        self._counts[at * len(self.outcomes) + outcome] += 1

    def rows(self) -> list[list[str]]:
        """Return the rows of a table: a kind of which there were trials, and their number by outcome."""
        n = len(self.outcomes)
        rows = [(kind, self._counts[n * i : n * i + n].tolist()) for i, kind in enumerate(self.kinds)]
        return [[kind, *map(str, counts)] for kind, counts in rows if any(counts)]
