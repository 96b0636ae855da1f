"""Kernel that goes through a schedule's transfers and finds out whether any waits for another."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import Records, kernel, njit_norefcount
from commsim.core.schedule import REDUCE


@kernel
def unroll(
    body: Records,
    repetitions: tuple[int, int, int, bool],
    step: tuple[int, int, int, int],
    sizes: tuple[int, NDArray[np.int64], NDArray[np.int64], int],
    first_hop: int,
    reads: bool,
    writer: NDArray[np.signedinteger],
    out: tuple[NDArray[np.int32], NDArray[np.int32]],
) -> bool:
    """Go through the transfers of a block; mark what they write, or check that nothing else writes what they read.

    Parameters
    ----------
    body : TRANSFER[n]
        Transfers of the block.
    repetitions : (int, int, int, bool)
        How many, the number of the first, hops in each, and whether numbers are exclusive-ored.
    step : tuple of int
        What a repetition adds to src, dst, src_chunk, dst_chunk.
    sizes : (int, int64[3], int64[3], int)
        Ranks; chunks of each buffer; first address of each buffer; addresses.
    first_hop : int
        Number of the first hop.
    reads : bool
        Whether to check, after all blocks have marked.
    writer : int8 or int32[n_participants * n_addresses]
        Hop that writes each address, or -1.
    out : (int32[n_transfers], int32[n_transfers])
        Source and destination of each transfer, written when marking.

    Returns
    -------
    bool
        Whether nothing waits for anything, as far as was looked.
    """
    times, first, n_hops, xor = repetitions
    n_ranks, n_chunks, offset, n_addresses = sizes
    i = 0
    for repetition in range(times):
        r = repetition + first
        for k in range(body.shape[0]):
            t = body[k]
            hop = np.int32(first_hop + repetition * n_hops + t["hop"])
            buffer = t["src_buffer"] if reads else t["dst_buffer"]
            participant = _moved(t["src"], r * step[0], n_ranks, xor)
            to = _moved(t["dst"], r * step[1], n_ranks, xor)
            chunk = _moved(
                t["src_chunk"] if reads else t["dst_chunk"], r * step[2 if reads else 3], n_chunks[buffer], xor
            )
            if not reads:
                out[0][i], out[1][i] = participant, to
                i += 1
                participant = to
            at = participant * n_addresses + offset[buffer] + chunk
            for a in range(at, at + t["count"]):
                if reads:
                    if writer[a] >= 0 and writer[a] != hop:
                        return False
                elif writer[a] >= 0 and (writer[a] != hop or t["op"] != REDUCE):
                    return False
                else:
                    writer[a] = hop
    return True


@njit_norefcount
def _moved(value: int, by: int, modulus: int, xor: bool) -> int:
    if by == 0:
        return value
    return value ^ by if xor else (value + by) % modulus
