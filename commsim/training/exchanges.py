"""Exchanges of a graph that are under way at once on one network: when each ends, links shared among all of them.

Time only advances to the next end, and whatever begins, begins then. An exchange that has begun therefore changes no
end before its own start, so that all that overlap are simulated again, from the first start on, whenever one more
begins: the ends up to that time stay what they were.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from commsim.core.errors import InputError
from commsim.core.units import count_text

if TYPE_CHECKING:
    from .cost_by_simulation import NetworkCosts
    from .task_graph import Task

# Transfers of exchanges that overlap, which one simulation takes.
MAX_TOGETHER = 20_000_000


@dataclass(slots=True, eq=False)
class _Overlap:
    """Exchanges that share links, directly or through others."""

    tasks: dict[int, tuple[Task, float]] = field(default_factory=dict)  # by number: the task, and its start
    ends: dict[int, float] = field(default_factory=dict)
    left: set[int] = field(default_factory=set)  # those that have not ended


class ExchangesOnLinks:
    """Exchanges under way.

    Parameters
    ----------
    costs : NetworkCosts
        Costs of each by itself, which also plan it.
    """

    def __init__(self, costs: NetworkCosts) -> None:
        self._costs = costs
        self._overlaps: list[_Overlap] = []
        self._on_link: dict[int, set[int]] = {}  # of each link, the numbers of exchanges under way
        self._of: dict[int, _Overlap] = {}
        self.n_shared = 0  # exchanges that have shared a link with another

    def begin(self, number: int, task: Task, now: float) -> None:
        """Let an exchange begin; of those under way, the ones that it shares a link with may end later.

        Raises
        ------
        InputError
            If the network has no place for a rank, or more transfers overlap than one simulation takes.
        """
        links = self._costs.alone(task)[1]
        others = {id(overlap): overlap for n in set().union(*(self._on_link.get(k, ()) for k in links))
                  for overlap in (self._of[n],)}  # fmt: skip
        joined = _Overlap()
        for other in others.values():
            self._overlaps.remove(other)
            joined.tasks |= other.tasks
            joined.left |= other.left
        joined.tasks[number] = task, now
        joined.left.add(number)
        self.n_shared += (len(joined.tasks) > 1) + sum(len(one.tasks) == 1 for one in others.values())
        joined.ends = self._ends(joined)
        self._overlaps.append(joined)
        self._of |= dict.fromkeys(joined.left, joined)
        for k in links:
            self._on_link.setdefault(k, set()).add(number)

    def next_end(self) -> float:
        """Return when the first of those under way ends, s; infinity without one."""
        return min((overlap.ends[n] for overlap in self._overlaps for n in overlap.left), default=math.inf)

    def ended(self, now: float) -> list[int]:
        """Return the numbers of those that end at a time, and forget them."""
        done = sorted(n for overlap in self._overlaps for n in overlap.left if overlap.ends[n] <= now)
        for n in done:
            overlap = self._of.pop(n)
            overlap.left.discard(n)
            for k in self._costs.alone(overlap.tasks[n][0])[1]:
                self._on_link[k].discard(n)
        self._overlaps = [overlap for overlap in self._overlaps if overlap.left]
        return done

    def _ends(self, overlap: _Overlap) -> dict[int, float]:
        """When each exchange of an overlap ends; one by itself takes what it costs."""
        if len(overlap.tasks) == 1:
            ((number, (task, start)),) = overlap.tasks.items()
            return {number: start + self._costs(task)}
        first = min(start for _, start in overlap.tasks.values())
        n = sum(self._costs.n_transfers(task) for task, _ in overlap.tasks.values())
        if n > MAX_TOGETHER:
            raise InputError(
                f"{count_text(len(overlap.tasks), 'exchange')} overlap with {n} transfers, at most {MAX_TOGETHER} are"
                " simulated together; take fewer ranks"
            )
        times = self._costs.together([(task, start - first) for task, start in overlap.tasks.values()])
        starts = ((number, start) for number, (_, start) in overlap.tasks.items())
        return {number: start + time for (number, start), time in zip(starts, times, strict=True)}
