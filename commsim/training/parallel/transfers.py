"""KV caches from prefill to decode, and weights from trainers to inference ranks, as copies of pieces between ranks.

Both are one tensor that two groups of ranks divide differently: piece i lies with the senders of its part, and goes to
the receivers of its part. Where a group has more ranks than there are parts, ranks hold copies: copies of senders share
the sending, and copies of receivers each get theirs.

References
----------
Qin et al., "Mooncake", FAST 2025: KV caches from prefill to decode ranks. Zhuang et al., "On optimizing the
communication of model parallelism", MLSys 2023: chains through the receivers of a piece.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from commsim.core.errors import InputError, unknown_name
from commsim.core.program import Program
from commsim.core.schedule import Schedule

MAX_RANKS = 4096
MAX_COPIES = 500_000
# Chunks of a piece that goes through a chain of receivers.
CHAIN_CHUNKS = 16
WAYS = ("direct", "chain")


@dataclass(frozen=True, slots=True)
class Side:
    """One group of ranks.

    Parameters
    ----------
    ranks, parts : int
        Ranks, and parts into which they divide the tensor; each part is held by ``ranks / parts`` of them.
    interleaved : bool
        Whether copies of one part are `parts` ranks apart (replicas of a whole group), or neighbours.
    name : str
        Name of the group in messages.

    Raises
    ------
    InputError
        If a number is below 1, or the parts do not divide the ranks.
    """

    ranks: int
    parts: int
    interleaved: bool
    name: str

    def __post_init__(self) -> None:
        if not 1 <= self.ranks <= MAX_RANKS:
            raise InputError(f"{self.name} must be 1 to {MAX_RANKS} ranks, got {self.ranks}")
        if self.parts < 1 or self.ranks % self.parts:
            raise InputError(f"{self.name}: {self.ranks} ranks must be a multiple of the {self.parts} parts")

    def holders(self, part: int) -> list[int]:
        """Ranks of the group, from 0, that hold a part."""
        copies = self.ranks // self.parts
        if self.interleaved:
            return [part + copy * self.parts for copy in range(copies)]
        return [part * copies + copy for copy in range(copies)]


def kv_side(ranks: int, kv_heads: int, name: str) -> Side:
    """Return the ranks of a tensor parallel group, which divide the heads of keys and values; 0 heads are not divided.

    Raises
    ------
    InputError
        If heads do not divide among the ranks, nor ranks among the heads.
    """
    parts = min(max(ranks, 1), max(kv_heads, 1))
    if kv_heads and (kv_heads % parts or max(ranks, 1) % parts):
        raise InputError(f"{name} must divide the {kv_heads} heads of keys and values, or be a multiple, got {ranks}")
    return Side(ranks, parts, False, name)


def transfer_schedule(senders: Side, receivers: Side, way: str = "direct") -> Schedule:
    """Return the schedule: senders are the first ranks, receivers follow; its size is that of the whole tensor.

    Parameters
    ----------
    senders, receivers : Side
        Who has what, and who needs what.
    way : {"direct", "chain"}
        A piece goes from its sender to each copy, or through the copies one after the other, cut in chunks.

    Raises
    ------
    InputError
        If the way is unknown, or there are too many copies.
    """
    if way not in WAYS:
        raise unknown_name("way", way, WAYS)
    pieces = math.lcm(senders.parts, receivers.parts)
    chunks = CHAIN_CHUNKS if way == "chain" else 1
    copies = pieces * chunks * (receivers.ranks // receivers.parts)
    if copies > MAX_COPIES:
        raise InputError(f"a transfer has at most {MAX_COPIES} messages, got {copies}")
    p = Program(senders.ranks + receivers.ranks, n_chunks=pieces * chunks)
    for piece in range(pieces):
        have = senders.holders(piece * senders.parts // pieces)
        need = receivers.holders(piece * receivers.parts // pieces)
        for copy, rank in enumerate(need):
            first = way == "direct" or not copy
            source = have[copy % len(have)] if first else senders.ranks + need[copy - 1]
            for chunk in range(chunks):
                p.copy(piece * chunks + chunk, src=source, dst=senders.ranks + rank)
    return p.build(f"{way}_transfer", "custom")


def port_bound(senders: Side, receivers: Side, size: float, rate: float) -> float:
    """Least time by ports alone: a receiver gets its part, and the senders send the whole tensor once.

    Parameters
    ----------
    senders, receivers, size
        As in :func:`transfer_schedule`; size in bytes.
    rate : float, bytes/s
        Rate of all ports of a rank together.
    """
    return size / rate * max(1 / receivers.parts, 1 / senders.ranks)
