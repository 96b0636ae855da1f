"""The tables of rings for the streamed engine: one row for each connection of each ring phase, for all rounds.

A *ring connection* is what one connection carries in one slot of one ring phase
(:mod:`commsim.engine.recurrence.ring_phases`): a message per round; each waits until its feeder, another ring
connection, has brought the message before it. Only its first message waits for anything else: for the last messages of
ring connections of earlier phases.

A ring connection is *uncontended* if nothing else ever uses what its connection uses: what happens there needs no
events.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import Records
from commsim.engine.flow_state import FlowLinks, Numbers, Offsets, Rows, owners
from commsim.engine.recurrence.between_phases import ConnectionWaits
from commsim.engine.recurrence.ring_phases import RingPhase

RING_CONNECTION = np.dtype(
    [
        ("connection", np.int32),
        ("feeder", np.int32),  # ring connection that brings what this one sends on,
        ("follower", np.int32),  # the ring connection that this one is the feeder of,
        ("beside", np.int32),  # the ring connection of the next slot, of which the next message on the connection is,
        ("next", np.int32),  # and that of the next phase, or -1
        ("waiting", np.int32),  # ring connections of earlier phases that its first message still waits for
        ("run", np.int32),  # of rounds with the next message to arrive
        ("uncontended", np.bool_),
        ("n_rounds", np.int64),
        ("supplied", np.int64),  # messages that its feeder has brought,
        ("sent", np.int64),  # that have left,
        ("done", np.int64),  # and that are complete
        ("n_bytes", np.float64),  # of each message
        ("begun_at", np.float64),  # when the first message started, s,
        ("sent_at", np.float64),  # the last one had left,
        ("done_at", np.float64),  # and was complete; of an uncontended ring connection, so far
        ("free_at", np.float64),  # of an uncontended ring connection: when the last one so far had left, s;
        ("overhead", np.float64),  # what a message takes before its bytes,
        ("send", np.float64),  # for its bytes,
        ("reduce", np.float64),  # and to be reduced
        ("rate", np.float64),  # bytes/s, infinite where bytes take no time,
        ("reduce_rate", np.float64),  # and of reducing
    ],
    align=True,
)
Table = Records


class RingConnections(NamedTuple):
    """All of a schedule of phases; `row` is changed in place."""

    row: Rows  # RING_CONNECTION[n]
    run_end: Offsets  # [n_runs], round at which a run of rounds ends, phase by phase
    run_reduces: NDArray[np.bool_]  # [n_runs], whether its messages are reduced
    first: Offsets  # [n + 1], rows of those whose first message waits for the last one of this:
    after: Numbers  # [m], 2 * ring connection + (1 when it waits for completion)


def lay_out_ring_connections(
    phases: Sequence[RingPhase],
    connections: Sequence[NDArray[np.int64]],
    waits: Sequence[Sequence[ConnectionWaits]],
    n_connections: int,
) -> tuple[RingConnections, NDArray[np.int64]]:
    """Lay out the ring connections of all phases.

    Parameters
    ----------
    phases, connections, waits
        Same as in :class:`commsim.engine.recurrence.rings.Rings`.
    n_connections : int
        Wires of all phases.

    Returns
    -------
    ring_connections : RingConnections
        Before anything is sent; bytes are not known.
    lead : int64[n_connections]
        First ring connection of each connection.
    """
    begin = np.cumsum([0, *(len(w) for w in connections)])
    ring_connection: Table = np.zeros(begin[-1], RING_CONNECTION)
    ring_connection["connection"] = np.concatenate(connections)
    n_runs = np.cumsum([0, *(len(phase.rounds) for phase in phases)])
    for phase, low, high, run in zip(phases, begin[:-1], begin[1:], n_runs[:-1], strict=True):
        number = np.arange(low, high).reshape(phase.src.shape)
        ring_connection["feeder"][low:high] = np.roll(number, 1, axis=0).ravel()
        ring_connection["follower"][low:high] = np.roll(number, -1, axis=0).ravel()
        ring_connection["n_rounds"][low:high] = phase.n_rounds
        ring_connection["run"][low:high] = run
    slot = np.concatenate([phase.slot.ravel() for phase in phases])
    order = np.lexsort((slot, ring_connection["connection"]))
    same = ring_connection["connection"][order[1:]] == ring_connection["connection"][order[:-1]]
    ring_connection["next"], ring_connection["rate"], ring_connection["reduce_rate"] = -1, np.inf, np.inf
    ring_connection["beside"] = np.arange(len(order))
    lead = order[np.searchsorted(ring_connection["connection"][order], np.arange(n_connections))]
    if slot.any():  # of one phase
        ring_connection["beside"][order] = lead[ring_connection["connection"][order]]
        ring_connection["beside"][order[:-1][same]] = order[1:][same]
    else:
        ring_connection["next"][order[:-1][same]] = order[1:][same]
    first, after = _after(begin, waits)
    ring_connection["waiting"] = np.bincount(after // 2, minlength=len(ring_connection))
    run_end = np.concatenate([np.cumsum([n for n, _ in phase.rounds]) for phase in phases])
    run_reduces = np.array([adds for phase in phases for _, adds in phase.rounds])
    return RingConnections(ring_connection, run_end, run_reduces, first, after), lead


def _after(
    begin: NDArray[np.int64], waits: Sequence[Sequence[ConnectionWaits]]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Turn what is certain to be waited for into rows of what waits."""
    theirs, codes = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for i, row in enumerate(waits):
        for j, pairs in enumerate(row):
            theirs.append(begin[j] + pairs.theirs[pairs.certain])
            codes.append(2 * (begin[i] + pairs.mine[pairs.certain]) + ~pairs.sent[pairs.certain])
    before, code = np.concatenate(theirs), np.concatenate(codes)
    order = np.argsort(before, kind="stable")
    first = np.searchsorted(before[order], np.arange(begin[-1] + 1))
    return first.astype(np.int64), code[order].astype(np.int32)


def in_order(
    ring_connection: NDArray[Any], begin: NDArray[np.int64], waits: Sequence[Sequence[ConnectionWaits]]
) -> bool:
    """Whether all that might have to be waited for in earlier phases had ended when first messages started.

    Then what was simulated is what the event engine simulates: it starts nothing before all that it waits for has
    ended, and here nothing did.

    Parameters
    ----------
    ring_connection : RING_CONNECTION[n]
        Ring connections after the run.
    begin : int64[n_phases]
        First ring connection of each phase.
    waits
        Same as in :func:`lay_out_ring_connections`.
    """
    for i, row in enumerate(waits):
        for j, pairs in enumerate(row):
            theirs = ring_connection[begin[j] + pairs.theirs]
            ended = np.where(pairs.sent, theirs["sent_at"], theirs["done_at"])
            if (ring_connection["begun_at"][begin[i] + pairs.mine] < ended).any():
                return False
    return True


def mark_uncontended(
    ring_connection: Table, reduces: bool, connection: Table, flow: Table, flow_link: FlowLinks, resource: Table
) -> None:
    """Mark the ring connections whose connections share nothing that they use, and set the solver's rates.

    At least one ring connection of each cycle is left unmarked: there is where events come from.

    Parameters
    ----------
    ring_connection : RING_CONNECTION[n]
        Ring connections of one phase, each with a connection of its own; changed in place.
    reduces : bool
        Whether anything is reduced.
    connection, flow, flow_link, resource
        Tables of flow_state at the beginning.
    """
    n_connections, w = len(connection), ring_connection["connection"]
    of_flow, links = owners(flow), flow_link.resource
    mine, sends = of_flow % n_connections, of_flow < n_connections
    is_port = np.arange(len(links)) < flow["port"][of_flow]
    used = sends | np.where(is_port, connection["receive_work"][mine] > 0, connection["reduces"][mine] & reduces)
    n_users = np.bincount(links[used], minlength=len(resource))
    shares = np.bincount(mine[used & (n_users[links] > 1)], minlength=n_connections) > 0
    ring_connection["uncontended"] = ~shares[w]
    _keep_one(ring_connection)
    weight = flow["weight"][of_flow]
    with np.errstate(over="ignore"):  # a reduction of no time, with a small weight
        fair_rate = (resource["left"] * resource["unit"])[links] / (weight * flow_link.shares)
    port, path, unit = (
        _least(fair_rate, mine, kept, n_connections)[w] * flow["weight"][w]
        for kept in (sends & is_port, sends, ~sends & ~is_port)
    )
    ring_connection["overhead"] = np.where(
        connection["overhead_work"][w] > 0, connection["overhead_work"][w] / port, 0.0
    )
    ring_connection["rate"], ring_connection["reduce_rate"] = path, np.where(connection["reduces"][w], unit, np.inf)


def _least(
    fair_rate: NDArray[np.float64], of: NDArray[np.int32], kept: NDArray[np.bool_], n: int
) -> NDArray[np.float64]:
    """Least fair rate of each connection's kept flow links; infinite without any."""
    least = np.full(n, np.inf)
    np.minimum.at(least, of[kept], fair_rate[kept])
    return least


def _keep_one(ring_connection: Table) -> None:
    """Unmark a ring connection of each cycle whose ring connections are all marked."""
    seen = ~ring_connection["uncontended"]
    for first in np.flatnonzero(ring_connection["uncontended"]).tolist():
        k = first
        while not seen[k]:
            seen[k] = True
            k = int(ring_connection["follower"][k])
            if k == first:
                ring_connection["uncontended"][k] = False
