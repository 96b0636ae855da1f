"""A schedule as htsim's matrix of connections: flows that are started by triggers of those that they wait for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from commsim.core.data_order.dependencies import dependencies
from commsim.core.errors import InputError
from commsim.core.files.whole_files import replacing
from commsim.core.schedule import Schedule

MAX_BYTES = 2**31 - 1
MAX_EXACT = 2**14
_BY_HOPS = "a flow would have to start several triggers, so all of a hop wait for all of the hop before"


def write_flows(
    schedule: Schedule, n_bytes: ArrayLike, path: str | Path, hosts: tuple[int, ...], n_hosts: int
) -> tuple[str, ...]:
    """Write the messages of a schedule; the file appears whole or not at all.

    A flow ends when all has arrived, and then starts one trigger; a trigger that several flows start is a barrier.
    That messages of one connection go one after the other is left to what they wait for.

    Parameters
    ----------
    schedule : Schedule
        What is sent.
    n_bytes : float64[n_transfers], bytes
        Size of each message; rounded up to whole bytes, and to 1.
    path : path
        ``.cm``
    hosts : tuple of int
        Host of every participant, numbered from 0.
    n_hosts : int
        Number of hosts of the network.

    Returns
    -------
    tuple of str
        What should be said.

    Raises
    ------
    InputError
        If a message is too large for htsim, or two participants sit on one host.
    """
    transfers = schedule.expand()
    size = np.maximum(1, np.ceil(np.broadcast_to(np.asarray(n_bytes, np.float64), len(transfers)))).astype(np.int64)
    moving = np.flatnonzero(transfers["src"] != transfers["dst"]).tolist()
    if len(set(hosts)) < schedule.n_participants or not all(0 <= host < n_hosts for host in hosts):
        raise InputError(f"{schedule.name}: its {schedule.n_participants} participants need a host each, got {hosts}")
    if moving and size[moving].max() > MAX_BYTES:
        raise InputError(f"{schedule.name}: htsim takes messages of up to {MAX_BYTES} bytes, got {size[moving].max()}")
    notes: tuple[str, ...] = ()
    waits = _waits(schedule) if len(moving) <= MAX_EXACT else []
    starts = _triggers(waits, moving) if waits or not moving else None
    if starts is None:
        waits, notes = _by_hops(transfers["hop"].tolist(), moving), (_BY_HOPS,)
        starts = _triggers(waits, moving) or {}
    number = {group: i for i, group in enumerate(dict.fromkeys(waits[m] for m in moving if waits[m]), 1)}
    lines = [f"Nodes {n_hosts}", f"Connections {len(moving)}", *([f"Triggers {len(number)}"] if number else [])]
    for i, m in enumerate(moving, 1):
        begin = f"trigger {number[waits[m]]}" if waits[m] else "start 0"
        after = f" recv_done_trigger {number[starts[m]]}" if m in starts else ""
        src, dst = (hosts[transfers[end][m]] for end in ("src", "dst"))
        lines.append(f"{src}->{dst} id {i} {begin} size {size[m]}{after}")
    for group, i in number.items():
        lines.append(f"trigger id {i} " + ("oneshot" if len(group) == 1 else f"barrier count {len(group)}"))
    with replacing(path) as out:
        out.write(("\n".join(lines) + "\n").encode())
    return notes


def _waits(schedule: Schedule) -> list[frozenset[int]]:
    """Messages that must have arrived before each transfer: looking through local ones, none that another implies."""
    from commsim.core.data_order.dependencies_kernel import WRITE_AFTER_READ

    transfers = schedule.expand()
    order = dependencies(schedule, transfers)
    local = (transfers["src"] == transfers["dst"]).tolist()
    waits: list[frozenset[int]] = []
    before: list[int] = []  # one bit for all that comes before each transfer
    for i in range(len(transfers)):
        waited: set[int] = set()
        for row in range(order.first[i], order.first[i + 1]):
            p = int(order.pred[row])
            if order.kind[row] != WRITE_AFTER_READ:
                waited |= waits[p] if local[p] else {p}
        implied = 0
        for p in waited:
            implied |= before[p]
        waits.append(frozenset(p for p in waited if not implied >> p & 1))
        before.append(implied | sum(1 << p for p in waited))
    return waits


def _triggers(waits: list[frozenset[int]], moving: list[int]) -> dict[int, frozenset[int]] | None:
    """Group that each message starts when it has arrived; None if one would have to start two."""
    starts: dict[int, frozenset[int]] = {}
    for m in moving:
        for p in waits[m]:
            if starts.setdefault(p, waits[m]) != waits[m]:
                return None
    return starts


def _by_hops(hops: list[int], moving: list[int]) -> list[frozenset[int]]:
    of_hop: dict[int, list[int]] = {}
    for m in moving:
        of_hop.setdefault(hops[m], []).append(m)
    waits: list[frozenset[int]] = [frozenset()] * len(hops)
    before: frozenset[int] = frozenset()
    for _, messages in sorted(of_hop.items()):
        for m in messages:
            waits[m] = before
        before = frozenset(messages)
    return waits
