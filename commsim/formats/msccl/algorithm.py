"""The values in an MSCCL file: steps, thread blocks, GPUs, an algorithm; and the limits of the runtime.

Numbers for things that come after each other, where some may also come at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from commsim.core.errors import InputError
from commsim.core.schedule import INPUT, OUTPUT, SCRATCH

MAX_STEPS, MAX_BLOCKS, MAX_BLOCKS_OF_CHANNEL, MAX_COUNT, MAX_NAME = 256, 216, 32, 72, 63
"""Of a thread block, of a GPU, of a channel of a GPU; a step moves fewer chunks than the fourth; letters."""
OPERATIONS = {
    "allreduce": "all_reduce", "allgather": "all_gather", "reduce_scatter": "reduce_scatter", "alltoall": "all_to_all",
    "broadcast": "broadcast", "reduce": "reduce", "custom": "custom",
}  # fmt: skip
BUFFERS = {"i": INPUT, "o": OUTPUT, "s": SCRATCH}
PROTOCOLS = ("Simple", "LL", "LL128")
SENDING = ("s", "rcs", "rrs", "rrcs")
RECEIVING = ("r", "rcs", "rrc", "rrs", "rrcs")
STEP_TYPES = ("s", "r", "rcs", "rrc", "rrs", "rrcs", "cpy", "re", "ra", "nop")


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a thread block.

    Parameters
    ----------
    kind : str
        One of ``STEP_TYPES``.
    src_buffer, src_chunk, dst_buffer, dst_chunk : str and int
        What it reads and writes; the chunk is -1 where there is none.
    count : int
        Contiguous chunks.
    wait : (int, int) or None
        The thread block and step that must be done before.
    waited_for : bool
        Whether another thread block waits for it.
    hop, stage : int
        Of the message or copy that begins with it, where the file says: ours do, in two attributes that the runtime
        passes over; else -1.
    """

    kind: str
    src_buffer: str = "i"
    src_chunk: int = -1
    dst_buffer: str = "i"
    dst_chunk: int = -1
    count: int = 0
    wait: tuple[int, int] | None = None
    waited_for: bool = False
    hop: int = -1
    stage: int = -1


@dataclass(frozen=True, slots=True)
class ThreadBlock:
    """Steps that are done one after the other, with one GPU to send to and one to receive from, or -1."""

    send: int
    recv: int
    channel: int
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Gpu:
    """What one GPU does.

    Parameters
    ----------
    chunks : dict of str to int
        Chunks of each buffer, ``i``, ``o`` and ``s``.
    blocks : tuple of ThreadBlock
        At work at once.
    """

    chunks: dict[str, int]
    blocks: tuple[ThreadBlock, ...]


@dataclass(frozen=True, slots=True)
class Algorithm:
    """What an MSCCL file holds.

    Parameters
    ----------
    name, collective, protocol : str
        As in the file.
    in_place : bool
        Whether input and output are one array.
    n_chunks : int
        Pieces that the array is cut into.
    min_bytes, max_bytes : int
        The runtime takes it for arrays of at least the one, and less than the other.
    gpus : tuple of Gpu
        By rank.
    n_channels : int
        One more than the largest channel.
    """

    name: str
    collective: str
    protocol: str
    in_place: bool
    n_chunks: int
    min_bytes: int
    max_bytes: int
    gpus: tuple[Gpu, ...]
    n_channels: int


ANY, LATER, UNLESS_AROUND = range(3)
"""Of an edge: the later end is not before the earlier one; after it; after it unless it also comes before it."""
Edge = tuple[int, int, int]
"""Earlier, later, and one of these."""


def levels(n: int, edges: Iterable[Edge], name: str) -> list[int]:
    """Return the smallest number of each thing that all edges allow.

    Things that come after each other in a circle get one number.

    Raises
    ------
    InputError
        If one of a circle must be later than another.
    """
    rows = list(edges)
    circle = _circles(n, rows)
    after: list[list[tuple[int, int]]] = [[] for _ in range(n)]
    for a, b, kind in rows:
        if circle[a] != circle[b]:
            after[circle[b]].append((circle[a], int(kind != ANY)))
        elif kind == LATER:
            raise InputError(f"{name}: messages overtake each other in a way that no order of hops allows")
    level = [0] * n
    for c in range(n):  # circles are numbered so that what they come after has smaller numbers
        level[c] = max((level[before] + step for before, step in after[c]), default=0)
    return [level[circle[i]] for i in range(n)]


def _circles(n: int, edges: list[Edge]) -> list[int]:
    """Find the circle (strongly connected component) of each thing, numbered after those that it comes after.

    References
    ----------
    Tarjan, "Depth-first search and linear graph algorithms", SIAM J. Comput. 1(2), 1972.
    """
    before: list[list[int]] = [[] for _ in range(n)]
    for a, b, _ in edges:
        before[b].append(a)
    found, low, circle = [-1] * n, [0] * n, [-1] * n
    waiting: list[int] = []
    n_found = n_circles = 0
    for root in range(n):
        stack = [(root, 0)] if found[root] < 0 else []
        while stack:
            i, k = stack.pop()
            if k == 0:
                found[i] = low[i] = n_found
                n_found += 1
                waiting.append(i)
            if k < len(before[i]):
                stack.append((i, k + 1))
                j = before[i][k]
                if found[j] < 0:
                    stack.append((j, 0))
                elif circle[j] < 0:
                    low[i] = min(low[i], found[j])
                continue
            if low[i] == found[i]:
                while circle[i] < 0:
                    circle[waiting.pop()] = n_circles
                n_circles += 1
            if stack and circle[i] < 0:
                low[stack[-1][0]] = min(low[stack[-1][0]], low[i])
    return circle
