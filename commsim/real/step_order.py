"""What waits for what while a rank executes its part: known beforehand, so that execution only counts down.

Every step has two events. It *begins*: a message is handed to the library, a local copy reads. It *ends*: a message is
complete and what has arrived is in its place. What writes its place at its beginning waits there for what uses the
place; what is staged waits for them at its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .plan import LOCAL, RECEIVE, TransferStep


@dataclass(frozen=True, slots=True)
class StepOrder:
    """Events of n steps: step k begins with event k and ends with event n + k.

    Parameters
    ----------
    waits : list of int
        Number of things that each event waits for; the end of a message waits for the library too.
    following : list of list of int
        Events that wait for each event.
    soonest : list of int
        First step that waits for the end of each step; n if none does.
    """

    waits: list[int]
    following: list[list[int]]
    soonest: list[int]


def order_of(steps: Sequence[TransferStep], look_ahead: int, any_order: bool, *, by_channel: bool = True) -> StepOrder:
    """Find what each event waits for within its stage; what is before a fence is over when a stage starts.

    Parameters
    ----------
    steps : sequence of TransferStep
        Steps of one rank.
    look_ahead : int
        A receive begins when what comes this many steps before it, and is not a receive itself, has begun.
    any_order : bool
        Whether sends to different peers may overtake each other; else what is not a receive begins in program order.
    by_channel : bool
        Whether messages of different channels to one peer may overtake each other.
    """
    n = len(steps)
    following: list[list[int]] = [[] for _ in range(2 * n)]
    waits = [0] * n + [1] * n

    def wait_for(event: int, earlier: Iterable[int]) -> None:
        for before in set(earlier):
            if steps[before % n].stage == steps[event % n].stage:
                following[before].append(event)
                waits[event] += 1

    turn = -1  # the last step but receives that comes at least `look_ahead` before
    latest: dict[object, int] = {}
    for k, step in enumerate(steps):
        writes = n + k if step.staged else k
        at_beginning = [n + p for p in step.needs]
        if k >= look_ahead and steps[k - look_ahead].kind != RECEIVE:
            turn = k - look_ahead
        if any_order:
            lines: list[object] = [k if step.kind == LOCAL else (step.kind, step.peer, by_channel and step.tag)]
        else:
            lines = ["receives"] if step.kind == RECEIVE else ["receives", "others"]
        at_beginning += [latest[line] for line in lines if line in latest]
        latest[lines[-1]] = k
        if step.kind == RECEIVE and turn >= 0:
            at_beginning.append(turn)
        before = [n + p for p in step.before] + step.readers
        wait_for(k, at_beginning + (before if writes == k else []))
        wait_for(n + k, before if writes != k else [])
        if step.kind == LOCAL:
            following[k].append(n + k)
    return StepOrder(waits, following, [min((e % n for e in following[n + k]), default=n) for k in range(n)])
