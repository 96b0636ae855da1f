"""Transfers for the messages of programs, with chunks that express what each message waits for."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.schedule import COPY, INPUT, REDUCE, TRANSFER, Block, Schedule

from .operations import MatchedMessage, Programs
from .schedule_to_programs import CHANNEL_STEP
from .waits import MessageWaits, Token

MAX_ADDRESSES = 2**27
MAX_CHANNELS = 2**15


class MessageRows:
    """Collects transfers in program order, each a hop, and gives out the chunks that they read and write.

    Parameters
    ----------
    programs, messages, waits
        What is to be said.
    reduces : list of bool
        Whether each message is added where it arrives.
    counts : list of int
        Chunks of each message.
    """

    def __init__(
        self,
        programs: Programs,
        messages: list[MatchedMessage],
        waits: MessageWaits,
        reduces: list[bool],
        counts: list[int],
    ) -> None:
        self._messages, self._reduces, self._counts = messages, reduces, counts
        self._n_ranks, self._n_messages = len(programs.ranks), len(messages)
        self._channel = _channels(programs, messages)
        connection = [(m.src, m.dst, c) for m, c in zip(messages, self._channel, strict=True)]

        def other(m: int, waited: set[Token]) -> list[Token]:
            """Leave out what left before on the same connection: that is waited for anyway."""
            return sorted(t for t in waited if t[1] or t[0] >= self._n_messages or connection[t[0]] != connection[m])

        self._after_send = [other(m, waited) for m, waited in enumerate(waits.of_send)]
        self._after_recv = [sorted(waited) for waited in waits.of_recv]
        self._of_join = [(rank, sorted(w)) for (rank, _), w in zip(waits.op_of, waits.of_join, strict=True)]
        everything = [*self._after_send, *self._after_recv, *(w for _, w in self._of_join)]
        self._watched = {m for waited in everything for m, arrived in waited if not arrived}
        self._next = [max(counts)] * self._n_ranks  # the first chunks of a rank are never written
        self._read: dict[int, int] = {}
        self._written: dict[int, tuple[int, int]] = {}  # first chunk, count
        self._left: set[int] = set()
        self._gathered: dict[tuple[int | Token, ...], tuple[int, int]] = {}
        self._connections: list[dict[int, int]] = [{} for _ in range(self._n_ranks)]
        self._stage = 0
        self._rows: list[tuple[int, ...]] = []
        self._bytes: list[float] = []

    def add(self, n: int, stage: int) -> None:
        """Write a message or a join, which need all that they wait for written before; stages must ascend."""
        self._stage = stage
        if n >= self._n_messages:
            rank, waited = self._of_join[n - self._n_messages]
            self._written[n] = self._ready(rank, 1, waited)
            return
        message, count = self._messages[n], self._counts[n]
        waited = self._after_send[n]
        shared = self._ready(message.src, count, waited)[0] if n not in self._watched else -1
        self._read[n] = shared if shared >= 0 else self._gather(message.src, count, waited)
        self._written[n] = self._gather(message.dst, count, self._after_recv[n]), count
        op = REDUCE if self._reduces[n] else COPY
        self._row(message.src, message.dst, self._read[n], self._written[n][0], count, self._channel[n], op)
        self._bytes[-1] = float(message.size)

    def build(self, name: str, n_helpers: int) -> tuple[Schedule, NDArray[np.float64]]:
        """Return the schedule of all that was added, and the bytes of its messages."""
        n_chunks = max(self._next)
        if n_chunks * self._n_ranks > MAX_ADDRESSES or max(map(len, self._connections)) > MAX_CHANNELS:
            raise InputError(f"{name}: too many operations of one rank wait for several others")
        n = len(self._rows)
        body = np.zeros(n, TRANSFER)
        fields = ("src", "dst", "src_chunk", "dst_chunk", "count", "channel", "op", "stage")
        for field, column in zip(fields, zip(*self._rows, strict=True), strict=True):
            body[field] = column
        body["hop"], body["src_buffer"], body["dst_buffer"] = np.arange(n), INPUT, INPUT
        block = Block(body, n, self._stage)  # the last stage is one that has had all fences before it
        n_ranks = self._n_ranks - n_helpers
        return Schedule(name, "custom", n_ranks, n_helpers, n_chunks, 0, (block,)), np.array(self._bytes)

    def _ready(self, rank: int, count: int, waited: list[Token]) -> tuple[int, int]:
        """Return chunks that cannot be read before all of `waited`: old ones, if they will do, and how many."""
        if not waited:
            return 0, count
        if len(waited) == 1 and waited[0][1] and self._written[waited[0][0]][1] >= count:
            return self._written[waited[0][0]]
        known = self._gathered.get((rank, *waited))  # several messages may wait for the same
        if known is None or known[1] < count:
            known = self._gathered[rank, *waited] = self._fresh(rank, count), count
            self._copy_all(rank, waited, known[0])
        return known

    def _gather(self, rank: int, count: int, waited: list[Token]) -> int:
        """Return fresh chunks of a rank whose first one cannot be read or written before all of `waited`."""
        fresh = self._fresh(rank, count)
        if len(waited) > 1:
            self._copy(rank, self._ready(rank, 1, waited)[0], fresh)
        else:
            self._copy_all(rank, waited, fresh)
        return fresh

    def _fresh(self, rank: int, count: int) -> int:
        self._next[rank] += count
        return self._next[rank] - count

    def _copy_all(self, rank: int, waited: list[Token], target: int) -> None:
        for n, arrived in waited:
            self._copy(rank, self._written[n][0] if arrived else self._departure(rank, n), target)

    def _departure(self, rank: int, m: int) -> int:
        """Return a chunk that is written when message m has left: the one it reads, overwritten."""
        if m not in self._left:
            self._left.add(m)
            self._copy(rank, 0, self._read[m])
        return self._read[m]

    def _copy(self, rank: int, src_chunk: int, dst_chunk: int) -> None:
        # the connection of copies into one chunk, which wait for each other anyway, and for nothing else
        connection = self._connections[rank].setdefault(dst_chunk, len(self._connections[rank]))
        self._row(rank, rank, src_chunk, dst_chunk, 1, connection, COPY)

    def _row(self, *row: int) -> None:
        self._rows.append((*row, self._stage))
        self._bytes.append(0.0)


def _channels(programs: Programs, messages: list[MatchedMessage]) -> list[int]:
    """Channels of messages: those between two ranks that follow each other directly share one."""
    pairs: dict[tuple[int, int], list[int]] = defaultdict(list)
    for m, message in enumerate(messages):
        pairs[message.src, message.dst].append(m)
    channel = [0] * len(messages)
    for (src, _), used in pairs.items():
        connections = _connections(programs, src, [(m, messages[m].send) for m in used])
        if len(connections) > MAX_CHANNELS:
            raise InputError(f"rank {src} sends one rank more than {MAX_CHANNELS} messages at once")
        numbers = [{messages[m].tag // CHANNEL_STEP for m in connection} for connection in connections]
        named = all(len(s) == 1 and max(s) < MAX_CHANNELS for s in numbers) and len(set.union(*numbers)) == len(
            connections
        )
        for number, connection in enumerate(connections):
            for m in connection:
                channel[m] = min(numbers[number]) if named else number
    return channel


def _connections(programs: Programs, src: int, sends: list[tuple[int, int]]) -> list[list[int]]:
    """Cut the messages (and sends) from `src` to one rank into chains in which one waits for the other."""
    message_of = {send: m for m, send in sends}
    following: dict[int, int] = {}
    for _, send in sends:
        last = next((j for j in programs.ranks[src][send].after if j in message_of and j not in following), None)
        if last is not None:
            following[last] = send
    followers, chains = set(following.values()), []
    for _, send in sends:
        if send in followers:
            continue
        chain = [message_of[send]]
        while send in following:
            send = following[send]
            chain.append(message_of[send])
        chains.append(chain)
    return chains
