"""Where computation waits for calls: what a profile shows, and what it leaves to rules.

The first of these rules that applies to a call decides. (1) A recorded wait of a stream names it. (2) Computation
pauses until it ends: on a GPU whenever its streams are idle as it ends; on a processor if the pause follows the call,
or ends with it and is longer than those between operators. (3) A later call of its stream is waited for: both have
ended then. (4) What gathers (all-gather, broadcast, all-to-all, messages) is needed by the first computation after the
program issued its next call on that stream, since programs prefetch one ahead. (5) What reduces is needed by the
optimiser, or else by the end of the step. On a processor the thread waits for these calls in the pause in which the
last of them ends, if it began after all were issued: no gradient is left to be computed then. A pause that no call
explains counts as computation.

A thread that the processor takes away looks as if it waited. What a program does it does in every step, on all ranks:
on a processor a pause counts where most steps have one, between the same calls.
"""

from __future__ import annotations

import bisect
import dataclasses
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .rank import TracedCall, TracedRank

# Of a processor: a pause is waiting if it is this many times as long as is usual between operators, and what is left of
# it after the call, in which the thread wakes up, is at most this share.
LONGER = 4.0
WAKES = 0.25
# Pauses that are looked at for one call, the last ones.
MAX_PAUSES = 10_000
# A GPU's next kernel begins this much later at most, where it was launched before.
SOON = 50e-6
GATHER = ("all_gather", "broadcast", "all_to_all", "scatter", "send_recv")


@dataclass(frozen=True, slots=True)
class _Usual:
    """Pauses between operators: the median, and what nine of ten are shorter than, s."""

    median: float
    most: float


@dataclass(frozen=True, slots=True)
class CallWait:
    """Where a call is waited for.

    Parameters
    ----------
    resume : float, s
        When computation went on, or goes on that needs the call.
    pause : (float, float) or None, s
        Time that computation only waited; None where it did not.
    rule : int
        Number of the rule that says so.
    place : int
        Number of calls of the step that had been issued before the pause; -1 without one.
    """

    resume: float
    pause: tuple[float, float] | None
    rule: int
    place: int = -1


def find_waits(
    rank: TracedRank, calls: list[TracedCall], begin: float, end: float, places: Sequence[int] | None = None
) -> list[CallWait]:
    """Find where each call of a step is waited for.

    Parameters
    ----------
    rank : TracedRank
        What the rank did.
    calls : list of TracedCall
        Calls of the step, in the order in which they were issued.
    begin, end : float, s
        The step.
    places : sequence of int, optional
        Place of each call's pause in most steps of most ranks: on a processor, one elsewhere is no waiting.
    """
    busy = _spans(rank, begin, end)
    pauses = np.column_stack((np.append(begin, busy[:, 1]), np.append(busy[:, 0], end)))
    lengths: NDArray[np.float64] = pauses[:, 1] - pauses[:, 0]
    usual = _Usual(*np.percentile(lengths, (50, 90)).tolist())
    issued = [call.issued for call in calls]
    waits: list[CallWait | None] = []
    for i, call in enumerate(calls):
        k = max(int(np.searchsorted(pauses[:, 0], call.end, side="right")) - 1, 0)
        first, last = (float(time) for time in pauses[k])
        if call.waited is not None:
            resume = max(call.waited, call.end)
            waits.append(CallWait(resume, (first, call.end) if first < call.end <= last else None, 1))
        elif rank.on_gpu:
            waited, after = call.end - first, last - call.end
            seen = waited > 0 and 0 <= after <= max(SOON, waited)
            waits.append(CallWait(call.end, (first, call.end), 2) if seen else None)
        else:
            wait = _on_processor(call, pauses, usual)
            if wait is not None and wait.pause is not None:
                wait = dataclasses.replace(wait, place=bisect.bisect_right(issued, wait.pause[0]))
                if places is not None and wait.place != places[i]:
                    wait = None
            waits.append(wait)
    decided = _by_rules(rank, calls, waits, busy[:, 0], end)
    return decided if rank.on_gpu else _before_update(calls, decided, pauses)


def usual_places(steps: Sequence[Sequence[CallWait]]) -> list[int]:
    """Return the place of each call's pause that most steps have; -1 where most have none.

    Parameters
    ----------
    steps : sequence of sequence of CallWait
        Waits of the same calls, in several steps or of several ranks.
    """
    return [Counter(wait.place for wait in waits).most_common(1)[0][0] for waits in zip(*steps, strict=True)]


def _spans(rank: TracedRank, begin: float, end: float) -> NDArray[np.float64]:
    inside = (rank.busy[:, 1] > begin) & (rank.busy[:, 0] < end)
    return np.clip(rank.busy[inside], begin, end)


def _on_processor(call: TracedCall, pauses: NDArray[np.float64], usual: _Usual) -> CallWait | None:
    """Tell whether the thread paused for a call: in the pause in which it ends, or the longest that ends about then.

    The backend's thread may note the end of a call after the program has gone on. A pause that follows the operator
    which issued the call is waiting also where it is short.
    """
    until = int(np.searchsorted(pauses[:, 0], call.end))
    since = max(int(np.searchsorted(pauses[:, 1], call.issued, side="right")), until - MAX_PAUSES)
    first, last = np.maximum(pauses[since:until, 0], call.issued), pauses[since:until, 1]
    indices = np.flatnonzero((last >= call.end) | (call.end - last <= WAKES * (last - first)))
    if not len(indices):
        return None
    around = indices[(first[indices] <= call.end) & (call.end <= last[indices])]
    longest = indices[np.argmax((last - first)[indices])]
    for k in (*map(int, around), int(longest)):
        begun, resume = float(first[k]), min(call.end, float(last[k]))
        at_once = begun <= call.returned and call.end <= last[k]
        near = abs(float(last[k]) - call.end) <= WAKES * float(last[k] - first[k])
        if (at_once or near) and resume - begun > LONGER * (usual.median if at_once else usual.most):
            return CallWait(resume, (begun, resume), 2)
    return None


def _by_rules(
    rank: TracedRank, calls: list[TracedCall], found: list[CallWait | None], starts: NDArray[np.float64], end: float
) -> list[CallWait]:
    """Decide the waits that no event and no pause shows."""
    waits: list[CallWait] = []
    following: dict[str, float] = {}  # of each stream, when the next call is issued
    waited: dict[str, float] = {}  # and when the next one that is waited for has ended
    for call, wait in zip(reversed(calls), reversed(found), strict=True):
        if wait is None:
            wait = _by_rule(rank, call, starts, end, following.get(call.stream, end), waited.get(call.stream))
        else:
            waited[call.stream] = wait.resume
        following[call.stream] = call.issued
        waits.append(wait)
    return waits[::-1]


def _before_update(calls: list[TracedCall], waits: list[CallWait], pauses: NDArray[np.float64]) -> list[CallWait]:
    """Find the pause in which the thread waits for all calls that one update, or the end of the step, needs."""
    found = list(waits)
    for resume in {wait.resume for wait in waits if wait.rule == 5}:
        needed = [i for i, wait in enumerate(waits) if wait.rule == 5 and wait.resume == resume]
        over = max(calls[i].end for i in needed)
        issued = max(calls[i].issued for i in needed)
        k = int(np.searchsorted(pauses[:, 0], over, side="right")) - 1
        if k >= 0 and issued <= pauses[k, 0] and over <= pauses[k, 1] <= resume:
            for i in needed:
                found[i] = CallWait(over, (float(pauses[k, 0]), over), 5)
    return found


def _by_rule(
    rank: TracedRank, call: TracedCall, starts: NDArray[np.float64], end: float, following: float, waited: float | None
) -> CallWait:
    """Decide the wait for one call, from when the next of its stream is issued, and the next one is waited for."""
    if waited is not None and waited >= call.end:
        resume, rule = waited, 3
    else:
        k = bisect.bisect_left(rank.updates, call.end)
        resume, rule = rank.updates[k] if k < len(rank.updates) and rank.updates[k] < end else end, 5
    if call.operation in GATHER:
        k = int(np.searchsorted(starts, max(call.end, following)))
        needed = float(starts[k]) if k < len(starts) else end
        return CallWait(needed, None, 4) if needed < resume else CallWait(resume, None, rule)
    return CallWait(resume, None, rule)
