"""Captures of one flow: what happened to each packet between two ranks, and when, in a run of the packet engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from commsim.core.errors import InputError
from commsim.core.files.csv_rows import write_rows
from commsim.engine.flow_plan import FlowPlan
from commsim.packets import codes
from commsim.packets.event_rows import PS
from commsim.packets.finished_run import PacketRun

# What packets are called, by their kind.
PACKETS = ("data", "header", "ack", "nack", "credit", "request", "notification")
ENDS = {codes.AT_TRIMMING: "trimmed", codes.AT_DROP: "dropped", codes.AT_LOSS: "lost"}
MOST_NAMED = 6


class PacketEvent(NamedTuple):
    """One event of a packet.

    Parameters
    ----------
    time_s : float, s
        Time since the beginning of the simulation.
    seq : int
        Number of the data packet, or of the one that is answered, from 0 through all messages of the flow.
    packet : str
        One of ``PACKETS``; a header is what is left of a trimmed packet.
    event : str
        ``sent``, ``sent again``, ``marked``, ``trimmed``, ``dropped``, ``lost``, ``delivered`` or ``acknowledged``.
    link : str
        Link that it left, before which it was trimmed or dropped, or on which it was lost.
    size_B : int, bytes
        Size on the wire.
    """

    time_s: float
    seq: int
    packet: str
    event: str
    link: str
    size_B: int  # noqa: N815


class FlowCapture:
    """Records the packets that one rank sends to another, and their answers.

    Parameters
    ----------
    src, dst : int
        Ranks.
    """

    def __init__(self, src: int, dst: int) -> None:
        self.src, self.dst = src, dst
        self._run: PacketRun | None = None

    def flows(self, plan: FlowPlan) -> list[int]:
        """Return the connections between the two ranks.

        Raises
        ------
        InputError
            If there is none, or it crosses no link.
        """
        sent = plan.ends[:, 0] == self.src
        indices = np.flatnonzero(sent & (plan.ends[:, 1] == self.dst))
        if not indices.size:
            others = np.unique(plan.ends[sent, 1]).tolist()
            names = ", ".join(map(str, others[:MOST_NAMED])) + (" ..." if len(others) > MOST_NAMED else "")
            raise InputError(f"rank {self.src} sends nothing to {self.dst}; it sends to {names or 'nobody'}")
        if not np.diff(plan.routes.first)[indices].any():
            raise InputError(f"what rank {self.src} sends to {self.dst} crosses no link, and has no packets")
        return [int(flow) for flow in indices]

    def take(self, run: PacketRun) -> None:
        """Keep the run in which the packets were recorded."""
        self._run = run

    @property
    def is_taken(self) -> bool:
        """Whether there was a run with messages."""
        return self._run is not None

    def events(self) -> list[PacketEvent]:
        """Return the events of the run in the order of time; none before it."""
        return [] if self._run is None else sorted(_events(self._run))

    def write(self, path: str | Path) -> int:
        """Write the events as CSV; return their number.

        Raises
        ------
        InputError
            If the file cannot be written.
        """
        rows = [(f"{event.time_s:.12f}", *event[1:]) for event in self.events()]  # whole picoseconds
        write_rows(path, [PacketEvent._fields, *rows])
        return len(rows)


def _events(run: PacketRun) -> Iterator[PacketEvent]:
    """Tell what happened to each copy of a packet; a copy is known by its number and the time at which it was sent."""
    marked, taps, network = set[tuple[int, ...]](), run.taps, run.layout.network
    names = {link: network.link_name(link) for link in np.unique(taps["link"]).tolist()}
    for row in taps:
        kind, event, flags = int(row["kind"]), int(row["event"]), int(row["flags"])
        number, size, link = int(row["number"]), int(row["size"]), names[int(row["link"])]
        now = int(row["time"]) / PS
        packet = PACKETS[kind]
        events: list[tuple[float, str]] = []
        if event & codes.AT_MAKER and kind in (codes.DATA, codes.ACK, codes.NACK):
            events.append((now, "sent again" if kind == codes.DATA and flags & codes.RESENT else "sent"))
        copy = int(row["stream"]), number, int(row["sent"])
        if kind == codes.DATA and flags & codes.MARKED and copy not in marked:
            marked.add(copy)
            events.append((now, "marked"))
        events += [(now, word) for bit, word in ENDS.items() if event & bit]
        if event & codes.AT_END:
            events.append((int(row["arrives"]) / PS, "acknowledged" if kind == codes.ACK else "delivered"))
        for time, word in events:
            yield PacketEvent(time, number, packet, word, link, size)
