"""What one rank must know of a schedule's messages to play its part on sparse vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from commsim.core.schedule import Schedule, Transfers
from commsim.core.sparse.limits import UNLIMITED

from .plan import SEND, Step


def chunks_of_messages(schedule: Schedule, transfers: Transfers) -> list[tuple[int, ...]]:
    """Find the chunks that each message stands for: in scratch memory any chunk may lie anywhere."""
    held: dict[int, int] = {}
    for rank in range(schedule.n_ranks):
        held |= {rank * schedule.n_addresses + chunk: chunk for chunk in range(schedule.n_chunks)}
    read = (schedule.src_address(transfers) + transfers["src"].astype(np.int64) * schedule.n_addresses).tolist()
    write = (schedule.dst_address(transfers) + transfers["dst"].astype(np.int64) * schedule.n_addresses).tolist()
    counts, hop = transfers["count"].tolist(), transfers["hop"].tolist()
    found: list[tuple[int, ...]] = []
    written = 0
    for i in range(len(transfers) + 1):
        if i == len(transfers) or hop[i] != hop[written]:
            for j in range(written, i):
                held |= dict(zip(range(write[j], write[j] + counts[j]), found[j], strict=True))
            written = i
        if i < len(transfers):
            found.append(tuple(held[address] for address in range(read[i], read[i] + counts[i])))
    return found


def apart(chunks: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Cut a message that holds several lists of one chunk, which nothing could tell apart, into one for each."""
    return [chunks] if len(set(chunks)) == len(chunks) else [(chunk,) for chunk in chunks]


def last_writes(steps: list[Step], limits: list[int]) -> list[int]:
    """Move each limit to the last step of its hop that writes the same place: what is cut is all that a hop wrote."""
    cuts = [UNLIMITED] * len(steps)
    last: dict[Any, int] = {(step.hop, step.dst.start): i for i, step in enumerate(steps) if step.kind != SEND}
    for step, limit in zip(steps, limits, strict=True):
        if step.kind != SEND:
            at = last[step.hop, step.dst.start]
            cuts[at] = min(cuts[at], limit)
    return cuts
