"""Which slot, and which of its versions, a chunk uses: one sequence that never restarts.

References
----------
p4lang/p4app-switchML, the DPDK worker: slots continue where the tensor before stopped. A sequence that restarts meets
`seen` bits of the tensor before, and fresh packets look like repeated ones.

The log that ties timing to values: what the timing pass did to registers, in time order, one record per operation.

`action` is OVERWRITE, ADD, READ of `slot_kernel` (a contribution that completes a slot has two bits: first it is
added, then the slot is read), or RECEIVE. Values that go in are chunk `chunk` of worker `worker`, or, with `worker`
-1, what an earlier READ made: message `in_message`. A READ makes message `out_message`, numbered from 0 in the order
of the log.
RECEIVE: worker `worker` takes message `in_message` as the result of chunk `chunk`; the last one counts.
"""

from __future__ import annotations

import numpy as np

from commsim.core.errors import InputError

RECEIVE = 1 << 10

LOG_ROW = np.dtype(
    [
        ("action", np.int32),
        ("register", np.int32),  # over all switches and servers; -1 for a RECEIVE
        ("worker", np.int32),  # over all jobs; -1 when the values are a message's
        ("chunk", np.int32),  # a packet's worth of elements, over all tensors of the job
        ("in_message", np.int32),  # -1 when the values are a worker's
        ("out_message", np.int32),  # -1 without READ
    ],
    align=True,
)
# why a row makes no sense
ACTION, REGISTER, SOURCE, CHUNK, UNMADE, REMADE = range(1, 7)
REASONS = {
    ACTION: "needs OVERWRITE or ADD, READ, or both, or only RECEIVE",
    REGISTER: "names a register that does not exist",
    SOURCE: "needs a worker or a message to take values from, and not both",
    CHUNK: "names a worker that does not exist, or a chunk that the worker does not have",
    UNMADE: "takes values from a message that was not made before",
    REMADE: "makes a message that does not exist or was made before",
}


def slot_and_version(chunk: int, shift: int, n_slots: int) -> tuple[int, int]:
    """Slot and version of a chunk.

    Parameters
    ----------
    chunk : int
        Number of the chunk in the tensor, from 0; in a worker's thread, if its slots are divided among threads. Packets
        that carry exponents only count as chunks.
    shift : int
        Position of the sequence at the tensor's first chunk.
    n_slots : int
        Slots of the sequence, s: a chunk follows, on its slot, the one s before it.

    Returns
    -------
    slot, version : int
        0..s-1, and 0 or 1.
    """
    place = (chunk + shift) % (2 * n_slots)
    return place % n_slots, place // n_slots


def packets_needed(n_elements: int, elements: int, window: int, floats: bool) -> int:
    """Packets that a worker sends for one tensor, if none is lost.

    Floats need one window more: each packet carries the exponent of the block one window later, so the first window
    carries exponents only.

    Parameters
    ----------
    n_elements : int
        Number of elements of the tensor, at least 1.
    elements : int
        Elements of a packet, k.
    window : int
        Packets outstanding, s.
    floats : bool
        Whether blocks need exponents.

    Returns
    -------
    int
        P = ceil(n / k), or P + min(s, P).

    Raises
    ------
    InputError
        If a number is less than 1.
    """
    if min(n_elements, elements, window) < 1:
        raise InputError(f"a tensor, a packet and a window have at least 1 element each, "
                         f"got {n_elements}, {elements} and {window}")  # fmt: skip
    packets = -(-n_elements // elements)
    return packets + min(window, packets) if floats else packets
