"""NCCL's rules: how a call is cut into channels, loops, chunks, slices and steps, by version, algorithm and protocol.

They need no network: what the topology search found (how many channels) comes in as a number.

References
----------
NCCL 2.30.7, ``src/enqueue.cc`` (channels of a call, work split, chunks), ``src/include/collectives.h`` (steps),
``src/device/prims_simple.h`` (slices), ``src/device/all_reduce.h`` (loops): the rules, in our words.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from dataclasses import dataclass

from .call import BY_RANK, KIB, PROTOCOLS, STEPS, NcclCall
from .nvls_sizes import MANY_NODES, MANY_NODES_CHUNK, OWN_CHUNK

# Of a chunk of a ring with Simple, where the operation passes on what it receives: steps, and steps of a slice.
CHUNK_STEPS, SLICE_STEPS = STEPS // 2, STEPS // 4
# A slice carries at least this part of what it may carry, so that small chunks are one slice.
LEAST_SLICE = 32
# Bytes that a last chunk is rounded up to.
ALIGNMENT = 16
# Traffic in bytes below which no further channel gets work: half of it before 2.29 (2.26 in its source, 2.28.9 by its
# log: docs/data/nccl_real.md). LL counts four times, since it is for what is small.
TRAFFIC, LL_TRAFFIC, MORE_TRAFFIC = 32 * KIB, 4, (2, 29)

# Since this release a tree with Simple has chunks of a whole step; before, smaller ones where they would be few, as in
# every release of RCCL (2.18 to 2.28, src/enqueue.cc).
WHOLE_TREE_CHUNKS = (2, 20)
# Messages of RCCL's trees, both ways, above which chunks are not cut further: each message is simulated. 64 MiB on 128
# machines of 8 take 1,167 us with this limit and 1,132 without.
MOST_MESSAGES = 2**21
# Threads of a channel: of slow rings with Simple, and of what always takes them all.
SLOW_THREADS, WIDE_THREADS = 256, 640
# Bytes for each thread below which CollNet takes fewer channels.
COLLNET_THRESHOLD = 512


@dataclass(frozen=True, slots=True)
class ChannelPart:
    """What one channel does, loop by loop.

    Parameters
    ----------
    n_bytes : int
        Share of ``NcclCall.count`` that the channel carries.
    chunk, last_chunk : int, bytes
        Chunk of all loops but the last, and of the last.
    n_loops : int
        Loops.
    by_loop : int
        Chunks of a loop: one for each rank of a ring, one for each head, or one.
    slices, last_slices : int
        Messages that a chunk is sent in: in all loops but the last, and in the last.
    n_steps : int
        Steps of the whole call on each connection, which NCCL's proxy counts.
    """

    n_bytes: int
    chunk: int
    last_chunk: int
    n_loops: int
    by_loop: int
    slices: int
    last_slices: int
    n_steps: int

    @property
    def n_chunks(self) -> int:
        """Chunks of all loops."""
        return self.n_loops * self.by_loop

    @property
    def n_slices(self) -> int:
        """Slices of all chunks."""
        return self.by_loop * ((self.n_loops - 1) * self.slices + self.last_slices)


def used_channels(call: NcclCall) -> tuple[int, int]:
    """Return how many channels a call asks for, and threads of each, before the work is split over them.

    A channel is dropped as long as the bytes are fewer than channels x threads x threshold; then threads are halved.
    NVLink SHARP always takes all of its channels.
    """
    protocol, n = PROTOCOLS[call.protocol], call.n_channels
    threads, threshold = protocol.threads, protocol.threshold
    if call.algorithm in ("nvls", "nvls_tree"):
        return n, WIDE_THREADS
    if call.algorithm == "pat":  # no channel is dropped for the sake of threads (log of 2.28.9)
        return n, WIDE_THREADS
    if call.algorithm == "ring" and call.protocol == "simple" and call.slow:
        threads = SLOW_THREADS
    if call.algorithm == "ring" and call.protocol == "ll":
        threshold *= call.n_ranks  # since a rank gets only its share of what a ring carries
    if call.algorithm == "collnet_direct":
        return _collnet_channels(call, threads), WIDE_THREADS
    while n > 1 and call.size < n * threads * threshold:
        n -= 1
    while call.size < n * threads * threshold and threads % 128 == 0:
        threads //= 2
    if call.algorithm == "tree":
        return n, WIDE_THREADS
    return n, max(96, threads) + 32 * (call.protocol == "simple")  # a warp more, to synchronise


def _collnet_channels(call: NcclCall, threads: int) -> int:
    """Drop channels as long as each head has too little; the fewer there are, the less is asked of each."""
    n, threshold, least = call.n_channels, COLLNET_THRESHOLD, 16
    few = True
    while least >= 1 and few:
        while (few := call.size < n * threads * call.n_heads * threshold) and n > least:
            if n == least + least // 2:
                threshold //= 2
            n -= 1
        least //= 2
    return n


def split(call: NcclCall) -> tuple[int, ...]:
    """Return the bytes of ``call.count`` that each channel carries: equal cells, the last channel gets the rest.

    A cell is 32 KiB of traffic: what all ranks together send for it, or a quarter of that with LL. A size just above
    what fits the channels has one cell too many; then the last channel gets more.
    """
    n, _ = used_channels(call)
    if call.algorithm == "collnet_direct":
        return _equal_parts(call.count, n)
    by_byte = {"all_reduce": 2, "all_gather": call.n_ranks, "reduce_scatter": call.n_ranks}.get(call.operation, 1)
    weight = by_byte * (LL_TRAFFIC if call.protocol == "ll" else 1)
    least = TRAFFIC if call.version >= MORE_TRAFFIC else TRAFFIC // 2
    cell = _up(-(-least // weight), ALIGNMENT)
    cells = -(-call.count // cell)
    traffic = _up(max(least, call.count * weight // n), ALIGNMENT)
    each = cells if call.n_channels == 1 else min(cells, -(-traffic // (cell * weight)))
    whole, rest = divmod(cells, each)
    parts = [each * cell] * whole + [rest * cell] * (rest > 0)
    if len(parts) > call.n_channels:
        middle = call.n_channels - 1
        each, rest = divmod(cells - each, middle)
        parts = [parts[0], *[each * cell] * (middle - 1), (each + rest) * cell]
    parts[-1] -= cells * cell - call.count
    return tuple(parts)


def _equal_parts(count: int, n: int) -> tuple[int, ...]:
    bounds = [_up(count * i // n, ALIGNMENT) for i in range(n)] + [count]
    return tuple(high - low for low, high in itertools.pairwise(bounds) if high > low)


def chunk_bytes(call: NcclCall, part: int) -> int:
    """Return the largest chunk of a channel that carries `part` bytes of ``call.count``."""
    protocol = call.layout
    chunk = protocol.step * _chunk_steps(call)[0]
    total = part * (call.n_ranks if call.operation in BY_RANK else 1)
    if call.algorithm == "collnet_direct":
        depth = max(1, math.ceil(math.log2(max(2, call.n_nodes))))
        chunk = _halved(chunk, total // call.n_heads, ((depth * 64, 128), (depth * 8, 64), (depth * 8, 32)))
    elif call.algorithm == "collnet_chain":
        depth = call.n_ranks // call.n_nodes
        chunk = _halved(min(256 * KIB, chunk), total, ((depth * 64, 128), (depth * 8, 64), (depth, 32)))
    elif call.algorithm == "nvls":
        largest = 32 * KIB if call.n_nodes > 1 and call.slow_network else call.nvls_chunk or OWN_CHUNK
        chunk = _stepped(min(chunk, largest), total / call.n_heads, ((64, 64), (8, 32), (2, 16)))
    elif call.algorithm == "nvls_tree":
        largest = call.nvls_chunk or (MANY_NODES_CHUNK if call.n_nodes >= MANY_NODES else OWN_CHUNK)
        chunk = _stepped(largest, total / call.n_heads, ((32, 256), (16, 128), (4, 64), (1, 32)))
    elif call.algorithm == "tree" and call.protocol == "simple" and (call.rccl or call.version < WHOLE_TREE_CHUNKS):
        depth = call.n_ranks // call.n_nodes + call.n_nodes.bit_length() - 2
        chunk = _halved(chunk, total, ((depth * 8, 128), (depth * 4, 64), (depth, 32)))
        while call.rccl and chunk < protocol.step and 2 * call.n_ranks * call.size > MOST_MESSAGES * chunk:
            chunk *= 2
    elif call.algorithm == "tree" and call.protocol == "ll128":
        per_node = call.n_ranks / call.n_nodes
        steps = 1 + (call.n_nodes.bit_length() - 1) + 0.1 * per_node
        chunk = _halved(chunk, total, ((steps * 64 / per_node, 128), (steps * 16 / per_node, 32)))
    elif call.algorithm == "pat":
        least = 32 if call.operation == "all_gather" else 16
        while chunk * least > total and chunk > 64 * KIB:
            chunk //= 2
    return chunk // protocol.grain * protocol.grain


def _chunk_steps(call: NcclCall) -> tuple[int, int]:
    """Return the steps of a chunk and of a slice: several only where a ring passes on what it receives, with Simple."""
    if call.protocol == "simple" and call.algorithm == "ring" and call.operation not in ("broadcast", "reduce"):
        return CHUNK_STEPS, SLICE_STEPS
    return 1, 1


def _halved(chunk: int, total: int, rules: tuple[tuple[float, int], ...]) -> int:
    """Halve a chunk while there are fewer of them than each rule wants, down to its KiB."""
    for wanted, kib in rules:
        while total // chunk < wanted and chunk > kib * KIB:
            chunk //= 2
    return chunk


def _stepped(chunk: int, total: float, rules: tuple[tuple[int, int], ...]) -> int:
    """Cut a chunk to each rule's KiB if there are fewer of them than it wants."""
    for wanted, kib in rules:
        if total < wanted * chunk and chunk > kib * KIB:
            chunk = kib * KIB
    return chunk


def slices_of(call: NcclCall, chunk: int) -> int:
    """Return the messages that a chunk of so many bytes is sent in; a slice has a 32nd of its largest size at least."""
    chunk_steps, slice_steps = _chunk_steps(call)
    step = call.layout.step
    each = max(-(-chunk // (chunk_steps // slice_steps)), step * slice_steps // LEAST_SLICE)
    return max(1, -(-chunk // each))


def cut_call(call: NcclCall) -> tuple[ChannelPart, ...]:
    """Cut a call into what each channel does.

    Parameters
    ----------
    call : NcclCall
        What is called.

    Returns
    -------
    tuple of ChannelPart
        One for each channel that has work.
    """
    parts = split(call)
    cut = {part: _channel_part(call, part) for part in dict.fromkeys(parts)}  # most channels carry as much as others
    return tuple(cut[part] for part in parts)


def first_loops(part: ChannelPart, n_loops: int) -> ChannelPart:
    """Return the first loops of a part, all with full chunks; the part itself if it has no more."""
    if part.n_loops <= n_loops:
        return part
    n_bytes, n_steps = (number * n_loops // part.n_loops for number in (part.n_bytes, part.n_steps))
    return dataclasses.replace(
        part, n_bytes=n_bytes, last_chunk=part.chunk, n_loops=n_loops, last_slices=part.slices, n_steps=n_steps
    )


def loops_of(part: ChannelPart) -> float:
    """Return the loops of a part, the last one counted by its bytes."""
    return part.n_loops - 1 + part.last_chunk / part.chunk if part.n_loops > 1 else 1.0


def _channel_part(call: NcclCall, n_bytes: int) -> ChannelPart:
    chunk = chunk_bytes(call, n_bytes)
    shared = _chunks_of_a_loop(call)  # chunks that a loop cuts the part into
    by_loop = call.n_ranks if call.operation in BY_RANK else shared
    n_loops = max(1, -(-n_bytes // (shared * chunk)))
    last = min(chunk, _up(-(-(n_bytes - (n_loops - 1) * shared * chunk) // shared), ALIGNMENT))
    steps = n_loops * _chunk_steps(call)[0] * _steps_of_a_loop(call)
    return ChannelPart(n_bytes, chunk, last, n_loops, by_loop, slices_of(call, chunk), slices_of(call, last), steps)


def _chunks_of_a_loop(call: NcclCall) -> int:
    if call.operation == "all_reduce":
        if call.algorithm == "ring":
            return call.n_ranks
        if call.algorithm in ("nvls", "nvls_tree", "collnet_direct"):
            return call.n_heads
    return 1


def _steps_of_a_loop(call: NcclCall) -> int:
    """How often a ring passes a chunk on; other patterns count one."""
    if call.algorithm != "ring" or call.operation in ("broadcast", "reduce"):
        return 1
    return (2 if call.operation == "all_reduce" else 1) * (call.n_ranks - 1)


def _up(number: int, unit: int) -> int:
    return -(-number // unit) * unit
