"""The log that ties timing to values: what the timing pass did to registers, in time order, one record per operation.

`action` is OVERWRITE, ADD, READ of `slot_kernel` (a contribution that completes a slot has two bits: first it is
added, then the slot is read), or RECEIVE. Values that go in are chunk `chunk` of worker `worker`, or, with `worker`
-1, what an earlier READ made: message `in_message`. A READ makes message `out_message`, numbered from 0 in the order
of the log.
RECEIVE: worker `worker` takes message `in_message` as the result of chunk `chunk`; the last one counts.
"""

from __future__ import annotations

import numpy as np

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
    ACTION: "needs OVERWRITE or ADD, READ, or both, or RECEIVE alone",
    REGISTER: "names a register that does not exist",
    SOURCE: "needs a worker or a message to take values from, and not both",
    CHUNK: "names a worker that does not exist, or a chunk that the worker does not have",
    UNMADE: "takes values from a message that was not made before",
    REMADE: "makes a message that does not exist or was made before",
}
