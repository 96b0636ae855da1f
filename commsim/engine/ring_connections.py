"""The tables of rings for the streamed engine: one row for each wire of each turn, whatever the number of rounds.

A *leg* is what one wire carries in one turn (:mod:`commsim.engine.recurrence.ring_phases`): a message per round, each
of which
waits until its feeder, another leg, has brought the message before it. Only its first message waits for anything else:
for the last messages of legs of earlier turns.

A leg is *lone* if nothing else ever uses what its wire uses (:func:`mark_lone`).

Which wires never share anything, and how fast they are: what happens on those needs no events.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .recurrence.ring_phases import Turn
from .recurrence.rings import Waits

LEG = np.dtype(
    [
        ("wire", np.int32),
        ("feeder", np.int32),  # leg that brings what this one sends on,
        ("follower", np.int32),  # the leg that this one is the feeder of,
        ("next", np.int32),  # and the leg after this one on its wire, or -1
        ("waiting", np.int32),  # legs of earlier turns that its first message still waits for
        ("run", np.int32),  # of rounds, of which the next message to arrive is one
        ("lone", np.bool_),
        ("n_rounds", np.int64),
        ("supplied", np.int64),  # messages that its feeder has brought,
        ("sent", np.int64),  # that have left,
        ("done", np.int64),  # and that are complete
        ("n_bytes", np.float64),  # of each message
        ("begun_at", np.float64),  # when the first message started, s,
        ("sent_at", np.float64),  # the last one had left,
        ("done_at", np.float64),  # and was complete; of a lone leg, so far
        ("free_at", np.float64),  # of a lone leg: when the last one so far had left, s;
        ("overhead", np.float64),  # what a message takes before its bytes,
        ("send", np.float64),  # for its bytes,
        ("reduce", np.float64),  # and to be reduced
        ("rate", np.float64),  # bytes/s, infinite where bytes take no time,
        ("reduce_rate", np.float64),  # and of reducing
    ],
    align=True,
)


class Legs(NamedTuple):
    """All of a schedule of turns; the rows of `leg` are changed in place."""

    leg: Any  # LEG[n]
    run_end: Any  # int64[n_runs], round at which a run of rounds ends, turn by turn
    run_reduces: Any  # bool[n_runs], whether its messages are reduced
    first: Any  # int64[n + 1], rows of legs whose first message waits for the last one of this leg:
    after: Any  # int32[m], 2 * leg + (1 when it waits for completion)


def lay_out_legs(
    turns: Sequence[Turn], wires: Sequence[NDArray[np.int64]], waits: Sequence[Sequence[Waits]], n_wires: int
) -> tuple[Legs, NDArray[np.int64]]:
    """Lay out the legs of all turns.

    Parameters
    ----------
    turns, wires, waits
        As in :class:`commsim.engine.recurrence.rings.Rings`.
    n_wires : int
        Wires of all turns.

    Returns
    -------
    legs : Legs
        Before anything is sent; bytes are not known.
    lead : int64[n_wires]
        First leg of each wire.
    """
    begin = np.cumsum([0, *(len(w) for w in wires)])
    leg = np.zeros(begin[-1], LEG)
    leg["wire"] = np.concatenate(wires)
    n_runs = np.cumsum([0, *(len(turn.rounds) for turn in turns)])
    for turn, low, high, run in zip(turns, begin[:-1], begin[1:], n_runs[:-1], strict=True):
        number = np.arange(low, high).reshape(turn.src.shape)
        leg["feeder"][low:high] = np.roll(number, 1, axis=0).ravel()
        leg["follower"][low:high] = np.roll(number, -1, axis=0).ravel()
        leg["n_rounds"][low:high] = turn.n_rounds
        leg["run"][low:high] = run
    order = np.argsort(leg["wire"], kind="stable")
    same = leg["wire"][order[1:]] == leg["wire"][order[:-1]]
    leg["next"], leg["rate"], leg["reduce_rate"] = -1, np.inf, np.inf
    leg["next"][order[:-1][same]] = order[1:][same]
    first, after = _after(begin, waits)
    leg["waiting"] = np.bincount(after // 2, minlength=len(leg))
    run_end = np.concatenate([np.cumsum([n for n, _ in turn.rounds]) for turn in turns])
    run_reduces = np.array([adds for turn in turns for _, adds in turn.rounds])
    lead = order[np.searchsorted(leg["wire"][order], np.arange(n_wires))]
    return Legs(leg, run_end, run_reduces, first, after), lead


def _after(begin: NDArray[np.int64], waits: Sequence[Sequence[Waits]]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Turn what is certain to be waited for into rows of who waits."""
    theirs, codes = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for i, row in enumerate(waits):
        for j, pairs in enumerate(row):
            theirs.append(begin[j] + pairs.theirs[pairs.certain])
            codes.append(2 * (begin[i] + pairs.mine[pairs.certain]) + ~pairs.sent[pairs.certain])
    before, code = np.concatenate(theirs), np.concatenate(codes)
    order = np.argsort(before, kind="stable")
    first = np.searchsorted(before[order], np.arange(begin[-1] + 1))
    return first.astype(np.int64), code[order].astype(np.int32)


def in_order(leg: NDArray[Any], begin: NDArray[np.int64], waits: Sequence[Sequence[Waits]]) -> bool:
    """Whether all that legs might have to wait for in earlier turns had ended when their first messages started.

    Then what was played is what the full engine plays: it starts nothing before all that it waits for has ended, and
    here nothing did.

    Parameters
    ----------
    leg : LEG[n]
        After the run.
    begin : int64[n_turns]
        First leg of each turn.
    waits
        As :func:`lay_out_legs` takes them.
    """
    for i, row in enumerate(waits):
        for j, pairs in enumerate(row):
            theirs = leg[begin[j] + pairs.theirs]
            ended = np.where(pairs.sent, theirs["sent_at"], theirs["done_at"])
            if (leg["begun_at"][begin[i] + pairs.mine] < ended).any():
                return False
    return True


Table = NDArray[Any]


def mark_lone(leg: Table, reduces: bool, wire: Table, slot: Table, entry: Table, resource: Table) -> None:
    """Mark the legs whose wires are alone on all that they use, and give them the solver's rates.

    At least one leg of each cycle is left unmarked: there is where events come from.

    Parameters
    ----------
    leg : LEG[n]
        Of one turn, each with a wire of its own; changed in place.
    reduces : bool
        Whether anything is reduced.
    wire, slot, entry, resource
        Tables of flow_state at the beginning.
    """
    n_wires, w = len(wire), leg["wire"]
    mine, sends = entry["slot"] % n_wires, entry["slot"] < n_wires
    is_port = np.arange(len(entry)) < slot["port"][entry["slot"]]
    used = sends | np.where(is_port, wire["receive_work"][mine] > 0, wire["reduces"][mine] & reduces)
    n_users = np.bincount(entry["resource"][used], minlength=len(resource))
    shares = np.bincount(mine[used & (n_users[entry["resource"]] > 1)], minlength=n_wires) > 0
    leg["lone"] = ~shares[w]
    _keep_one(leg)
    weight = slot["weight"][entry["slot"]]
    with np.errstate(over="ignore"):  # a reduction of no time, with a small weight
        level = (resource["left"] * resource["unit"])[entry["resource"]] / (weight * entry["share"])
    port, path, unit = (
        _least(level, mine, kept, n_wires)[w] * slot["weight"][w]
        for kept in (sends & is_port, sends, ~sends & ~is_port)
    )
    leg["overhead"] = np.where(wire["overhead_work"][w] > 0, wire["overhead_work"][w] / port, 0.0)
    leg["rate"], leg["reduce_rate"] = path, np.where(wire["reduces"][w], unit, np.inf)


def _least(level: NDArray[np.float64], of: NDArray[np.int32], kept: NDArray[np.bool_], n: int) -> NDArray[np.float64]:
    """Least level of each wire's kept entries; infinite where there are none."""
    least = np.full(n, np.inf)
    np.minimum.at(least, of[kept], level[kept])
    return least


def _keep_one(leg: Table) -> None:
    """Unmark a leg of each cycle whose legs are all marked."""
    seen = ~leg["lone"]
    for first in np.flatnonzero(leg["lone"]).tolist():
        k = first
        while not seen[k]:
            seen[k] = True
            k = int(leg["follower"][k])
            if k == first:
                leg["lone"][k] = False
