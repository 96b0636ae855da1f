"""Steps of one GPU in thread blocks, with what they wait for."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace

from commsim.core.errors import InputError

from .algorithm import (
    COPIES,
    MAX_BLOCKS,
    MAX_BLOCKS_OF_CHANNEL,
    MAX_STEPS,
    RECEIVES,
    SENDS,
    BlockStep,
    Item,
    ThreadBlock,
)

# Messages of a connection that the runtime buffers.
MAX_IN_FLIGHT = 8


class TooManyStepsError(InputError):
    """A thread block has more steps than the runtime takes.

    Parameters
    ----------
    rank : int
        GPU of the thread block.
    fitting : float
        Share of the messages of that GPU that fit.
    """

    def __init__(self, rank: int, fitting: float) -> None:
        super().__init__(f"rank {rank} needs more than {MAX_STEPS} steps in one thread block")
        self.fitting = fitting


def blocks_of(rank: int, items: list[Item]) -> tuple[ThreadBlock, ...]:
    """Give the steps of one GPU to thread blocks, with what they wait for.

    Raises
    ------
    TooManyStepsError
        If a thread block has more than the runtime takes.
    InputError
        If there are more thread blocks than it takes.
    """
    block_of, ends = _places(items)
    per_channel = Counter(channel for _, _, channel in ends)
    if len(ends) > MAX_BLOCKS or max(per_channel.values(), default=0) > MAX_BLOCKS_OF_CHANNEL:
        raise InputError(
            f"rank {rank} needs {len(ends)} thread blocks, {max(per_channel.values())} on one channel; the runtime "
            f"takes {MAX_BLOCKS} and {MAX_BLOCKS_OF_CHANNEL}"
        )
    steps: list[list[BlockStep]] = [[] for _ in ends]
    known: list[dict[int, int]] = [{} for _ in ends]  # the last step of other blocks that each has waited for
    order = _Order()
    waited_for: set[tuple[int, int]] = set()
    for number, item in enumerate(items):
        block = block_of[item.connection]
        waits = []
        for other, step in order.before(item).items():
            if other != block and known[block].get(other, -1) < step:
                known[block][other] = step
                waits.append((other, step))
        waited_for.update(waits)
        steps[block] += [BlockStep("nop", wait=wait) for wait in waits[:-1]]
        steps[block].append(replace(item.step, wait=waits[-1] if waits else None))
        order.add(item, block, len(steps[block]) - 1)
        if len(steps[block]) > MAX_STEPS:
            raise TooManyStepsError(rank, number / len(items))
    return tuple(
        ThreadBlock(*end, tuple(replace(s, waited_for=(b, i) in waited_for) for i, s in enumerate(of_block)))
        for b, (end, of_block) in enumerate(zip(ends, steps, strict=True))
    )


def _places(items: list[Item]) -> tuple[dict[tuple[int, int, int], int], list[tuple[int, int, int]]]:
    """Thread block of each connection, and the ends (send, recv, channel) of each block."""
    connections = list(dict.fromkeys(item.connection for item in items))
    at_once = max(Counter((item.connection, item.hop) for item in items).values(), default=0)
    block_of: dict[tuple[int, int, int], int] = {}
    ends: list[tuple[int, int, int]] = []
    for channel in sorted({channel for _, _, channel in connections}):
        sends, receives = ([w for w in connections if w[0] == way and w[2] == channel] for way in (SENDS, RECEIVES))
        if at_once > MAX_IN_FLIGHT:  # sends could wait for room while the receives behind them do not make any
            together = [[connection] for connection in sends + receives]
        else:
            together = [list(filter(None, pair)) for pair in itertools.zip_longest(sends, receives)]
        for pair in together:
            peer = {way: peer for way, peer, _ in pair}
            block_of |= dict.fromkeys(pair, len(ends))
            ends.append((peer.get(SENDS, -1), peer.get(RECEIVES, -1), channel))
    if any(connection[0] == COPIES for connection in connections):
        block_of[COPIES, -1, 0] = len(ends)
        ends.append((-1, -1, 0))
    return block_of, ends


class _Order:
    """Who touched each chunk of one GPU last, and what was done in earlier stages."""

    def __init__(self) -> None:
        self._writer: dict[int, tuple[int, int]] = {}
        self._readers: dict[int, dict[int, int]] = {}
        self._stage = 0
        self._earlier: dict[int, int] = {}
        self._now: dict[int, int] = {}

    def before(self, item: Item) -> dict[int, int]:
        """Return the last step of every thread block that `item` must wait for."""
        if item.stage != self._stage:
            self._stage = item.stage
            self._earlier = dict(self._now)
        last = dict(self._earlier)

        def need(block: int, step: int) -> None:
            last[block] = max(step, last.get(block, -1))

        for chunk in itertools.chain(item.reads, item.writes):
            if chunk in self._writer:
                need(*self._writer[chunk])
        for chunk in item.writes:
            for place in self._readers.get(chunk, {}).items():
                need(*place)
        return last

    def add(self, item: Item, block: int, step: int) -> None:
        """Note what a step touched."""
        self._now[block] = step
        for chunk in item.reads:
            self._readers.setdefault(chunk, {})[block] = step
        for chunk in item.writes:
            self._writer[chunk] = block, step
            self._readers.pop(chunk, None)
