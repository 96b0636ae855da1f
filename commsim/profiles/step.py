"""The last whole step of a rank: its calls, where they are waited for, and how much was computed until a time."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.profiles.one_iteration import repeat_length

from .rank import TracedCall, TracedRank, union_of
from .waits import CallWait, find_waits, usual_places

# Steps of each rank in which places of waiting are compared.
MAX_COMPARED = 5


@dataclass(frozen=True, slots=True)
class RankStep:
    """One step of one rank.

    Parameters
    ----------
    rank : TracedRank
        Whose it is.
    begin, end : float, s
        Begin and end on the clock of the rank.
    calls : tuple of TracedCall
        Calls of the step, in the order in which they were issued.
    waits : tuple of CallWait
        Where each is waited for.
    compute : float, s
        Time that is no waiting for calls.
    n_seen : int
        Steps that the profile has.
    """

    rank: TracedRank
    begin: float
    end: float
    calls: tuple[TracedCall, ...]
    waits: tuple[CallWait, ...]
    compute: float
    n_seen: int

    def computed(self, times: list[float]) -> list[float]:
        """Seconds of computation from the begin of the step to each time: the time without waiting.

        Parameters
        ----------
        times : list of float, s
            Times on the clock of the rank.
        """
        paused = self._pauses()
        if not len(paused):
            return [min(max(t, self.begin), self.end) - self.begin for t in times]
        lengths = np.append(0.0, np.cumsum(paused[:, 1] - paused[:, 0]))
        found = []
        for time in times:
            t = min(max(time, self.begin), self.end)
            k = int(np.searchsorted(paused[:, 0], t, side="right"))
            waited = lengths[k] - (max(0.0, float(paused[k - 1, 1]) - t) if k else 0.0)
            found.append(float(t - self.begin - waited))
        return found

    def _pauses(self) -> NDArray[np.float64]:
        rows = [wait.pause for wait in self.waits if wait.pause is not None]
        return np.clip(union_of(np.array(rows, np.float64).reshape(-1, 2)), self.begin, self.end)


def last_steps(ranks: Sequence[TracedRank], period: float | None) -> list[RankStep]:
    """Cut the last whole step of each rank out of what it did.

    Parameters
    ----------
    ranks : sequence of TracedRank
        What they did.
    period : float, s, optional
        Length of a step, for profiles in which nothing repeats.

    Raises
    ------
    InputError
        If it is not clear where a step begins and ends, or it has no calls.
    """
    windows = [_windows(rank, period) for rank in ranks]
    alike: dict[tuple[str, ...], list[Sequence[CallWait]]] = {}
    for rank, mine in zip(ranks, windows, strict=True):
        for begin, end in mine[-MAX_COMPARED:]:
            if not any(begin <= call.issued < end for call in rank.calls):
                continue
            step = _step(rank, begin, end, len(mine), None)
            alike.setdefault(tuple(call.operation for call in step.calls), []).append(step.waits)
    places = {what: usual_places(waits) for what, waits in alike.items()}
    return [_step(rank, *mine[-1], len(mine), places) for rank, mine in zip(ranks, windows, strict=True)]


def _step(
    rank: TracedRank, begin: float, end: float, n_seen: int, places: dict[tuple[str, ...], list[int]] | None
) -> RankStep:
    calls = [call for call in rank.calls if begin <= call.issued < end]
    if not calls:
        raise InputError(f"{rank.source}: the last step has no collective calls")
    where = None if places is None else places[tuple(call.operation for call in calls)]
    waits = find_waits(rank, calls, begin, end, where)
    step = RankStep(rank, begin, end, tuple(calls), tuple(waits), 0.0, n_seen)
    return RankStep(rank, begin, end, tuple(calls), tuple(waits), step.computed([end])[0], n_seen)


def _windows(rank: TracedRank, period: float | None) -> list[tuple[float, float]]:
    """Begin and end of each whole step, in order."""
    if len(rank.steps) >= 2:
        return list(itertools.pairwise(rank.steps))
    p = repeat_length([(call.operation, call.size, call.group, call.kernel) for call in rank.calls])
    if p and period is None:
        starts = [call.issued for call in rank.calls][::-1][p - 1 :: p][::-1]
        return list(itertools.pairwise(starts))
    if period is None:
        raise InputError(
            f"{rank.source}: the calls do not repeat and no steps are marked, so the iteration time is unknown;"
            " give it, as in --period 200ms"
        )
    last = max(rank.calls[-1].end, float(rank.busy[-1, 1]) if len(rank.busy) else 0.0)
    return [(last - period, last)]
