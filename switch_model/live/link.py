"""A worker's packets: sent, received, and sent again, until a tensor has been exchanged."""

from __future__ import annotations

import itertools
import select
import socket
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import BackendError

from .backoff import Backoff
from .datagrams import open_datagrams, to_addresses
from .exchange import Lease, TensorExchange, frames_of
from .frame_fields_kernel import FORGED
from .frame_kernel import complete_leads
from .frame_tags import result_state, right_tags, worker_state, write_tags
from .session import Session


@dataclass(slots=True)
class PacketCounts:
    """Packets of a worker so far.

    Parameters
    ----------
    sent : int
        Packets sent, repeated ones included.
    received : int
        Packets received, those of others included.
    retransmissions : int
        Sent again.
    strange : int
        Received, and no result that was waited for: late copies, and worse.
    """

    sent: int = 0
    received: int = 0
    retransmissions: int = 0
    strange: int = 0


class Link:
    """A worker's UDP socket, watched together with its session.

    Parameters
    ----------
    session : Session
        Joined.
    sock : socket
        Bound to the port that the switch knows; it stays the caller's to close.
    lease : Lease
        What the job has been given.
    backoff : Backoff
        State of the timer that repeats packets.
    stall_timeout : float, s
        How long an exchange may go on without a result.
    mode : str, optional
        See `datagrams`.
    """

    def __init__(
        self, session: Session, sock: socket.socket, lease: Lease, backoff: Backoff, stall_timeout: float,
        mode: str | None,
    ) -> None:  # fmt: skip
        self._session, self._lease, self._stall_timeout = session, lease, stall_timeout
        self._backoff, self._datagrams = backoff, open_datagrams(sock, lease.elements, mode, lease.tag_bytes)
        self._mine, self._results = worker_state(lease.key, lease.rank), result_state(lease.key)
        self._frames, self._switch = frames_of(lease), to_addresses([session.switch])
        sock.connect(session.switch)  # what others send does not reach us
        self._poll, self._session_number = select.poll(), session.socket.fileno()
        self._poll.register(sock, select.POLLIN)
        self._poll.register(session.socket, select.POLLIN)
        self.traffic = PacketCounts()

    def run(self, values: NDArray[Any], sequence: int) -> int:
        """Replace a tensor by its sum; return how many packets it takes if none is lost.

        Raises
        ------
        InputError
            If a float cannot be quantised.
        BackendError
            If the job has failed, the switch has gone, or nothing comes for too long.
        """
        exchange, self._near = (
            TensorExchange(self._lease, values, sequence, self._frames),
            np.array([sequence], np.int64),
        )
        self._session.say({"do": "tensor", "elements": len(values), "type": str(values.dtype)})
        self._backoff.begin()
        came = looked = time.monotonic()
        self._send(exchange.begin(came, self._backoff.timeout))
        while not exchange.finished:
            arrived = self._wait()
            now = time.monotonic()
            # Only results that were waited for count, or anybody's datagrams could hold the workers for ever.
            if len(arrived) and self._take(exchange, arrived, now):
                came = now
            if not len(arrived) or now - looked > 2 * self._backoff.timeout:
                self._send_again(exchange, now)  # rather not before all that has come is taken in
                looked = now
            if now - came > self._stall_timeout:
                raise BackendError(f"no result came for {self._stall_timeout:g} s, {exchange.outstanding} packets are "
                                   "out; do UDP packets reach the switch, and do all ranks take part?")  # fmt: skip
        return exchange.n_packets

    def _wait(self) -> NDArray[Any]:
        """Return what has come, after at most half a timeout."""
        for number, _ in self._poll.poll(max(500 * self._backoff.timeout, 1)):
            if number == self._session_number:
                self._session.listen()
        arrived = self._datagrams.receive()
        self.traffic.received += len(arrived)
        return arrived

    def _take(self, exchange: TensorExchange, arrived: NDArray[Any], now: float) -> bool:
        before, done = exchange.strange, exchange.n_done
        if self._lease.key:
            self._mark_forged(arrived)
        self._send(exchange.take(self._datagrams.words, arrived, now, self._backoff.timeout))
        self._backoff.count(exchange.strange - before)
        self.traffic.strange += exchange.strange - before
        return exchange.n_done > done

    def _mark_forged(self, arrived: NDArray[Any]) -> None:
        complete_leads(self._datagrams.words, arrived, self._near)
        right_length = np.flatnonzero(arrived["row"] >= 0)
        right = right_tags(self._datagrams.words, arrived["row"][right_length], itertools.repeat(self._results))
        arrived["row"][right_length[~right]] = FORGED

    def _send_again(self, exchange: TensorExchange, now: float) -> None:
        replies = exchange.overdue(now, self._backoff.longest)
        self.traffic.retransmissions += len(replies)
        self._send(replies)

    def _send(self, replies: NDArray[Any]) -> None:
        self.traffic.sent += len(replies)
        if self._lease.key:
            write_tags(self._frames, replies["row"], itertools.repeat(self._mine))
        self._datagrams.send(self._frames, replies, self._switch)
