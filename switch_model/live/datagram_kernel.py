"""From what the kernel of the system delivered to a list of frames, and from frames to what it is asked to send."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import Records, njit_norefcount

Rows = Records

ARRIVED = np.dtype(
    [
        ("source", np.int64),  # address and port, see `datagrams.address_key`
        ("row", np.int32),  # where the frame is
        ("n_bytes", np.int32),  # its length, which may be wrong
        ("lost", np.bool_),  # to be treated as if it had not come
    ],
    align=True,
)
# A frame, and the number of the address that it goes to.
REPLY = np.dtype([("row", np.int32), ("to", np.int32)])
# Where in memory is what messages point to.
BASES = np.dtype(
    [
        ("frames", np.uint64),  # address of the frame in the first row
        ("row_bytes", np.uint64),  # from row to row
        ("frame_bytes", np.uint64),
        ("addresses", np.uint64),  # address of the ADDRESSes
        ("control", np.uint64),  # of the CONTROL that asks for segmentation
        ("pieces", np.uint64),  # of the pieces
    ]
)


@njit_norefcount
def list_arrivals(
    messages: Rows, n_messages: int, addresses: NDArray[np.uint64], controls: Rows, frame: int, room: int, arrived: Rows
) -> int:
    """List the datagrams of the messages received: Linux may deliver up to `room` of equal length as one message.

    Parameters
    ----------
    messages, addresses, controls : MESSAGE[n], ADDRESS[n] as uint64[n, 2], CONTROL[n]
        Tables as the system filled them in; message i was received into rows i * room and following, `frame` bytes in
        each.
    n_messages : int
        Received.
    frame, room : int
        Bytes of a frame, and rows of a message.
    arrived : ARRIVED[at least n * room]
        Written. Datagrams that are not one frame long get the row -1.

    Returns
    -------
    int
        Datagrams.
    """
    n = 0
    for i in range(n_messages):
        total = int(np.int64(messages[i]["n_bytes"]))
        length = total
        if messages[i]["control_bytes"] >= 20:
            length = max(int(np.int64(controls[i]["value"])), 1)
        source = np.int64(addresses[i, 0] >> np.uint64(16))
        for j in range(min((total + length - 1) // length, room) if total > 0 else 1):
            size = min(length, total - j * length)
            arrived[n]["source"], arrived[n]["n_bytes"], arrived[n]["lost"] = source, size, False
            arrived[n]["row"] = i * room + j if length == frame and size == frame else -1
            n += 1
    return n


@njit_norefcount
def pack_messages(
    replies: Rows,
    n_replies: int,
    bases: Rows,
    first: NDArray[np.int64],
    pieces: Rows,
    messages: Rows,
    segments: int,
) -> int:
    """Write what `sendmmsg` needs: frames to one address share messages of up to `segments` frames, in their order.

    Parameters
    ----------
    replies : REPLY[at least n_replies]
        What goes where.
    n_replies : int
        Frames to send.
    bases : BASES[1]
        Addresses of all arrays.
    first : int64[n_addresses + 1]
        Scratch.
    pieces, messages : PIECE[at least n_replies], MESSAGE[at least n_replies]
        Written.
    segments : int
        Frames of a message; 1 where the system does not cut messages into datagrams.

    Returns
    -------
    int
        Messages.
    """
    n_addresses = len(first) - 1
    for a in range(n_addresses + 1):
        first[a] = 0
    for i in range(n_replies):
        first[replies[i]["to"] + 1] += 1
    for a in range(n_addresses):
        first[a + 1] += first[a]
    for i in range(n_replies):
        at = first[replies[i]["to"]]
        first[replies[i]["to"]] += 1
        pieces[at]["base"] = bases[0]["frames"] + np.uint64(replies[i]["row"]) * bases[0]["row_bytes"]
        pieces[at]["n_bytes"] = bases[0]["frame_bytes"]
    n, begin = 0, 0
    for a in range(n_addresses):
        while begin < first[a]:
            count = min(segments, first[a] - begin)
            messages[n]["name"], messages[n]["name_bytes"] = bases[0]["addresses"] + np.uint64(16 * a), 16
            messages[n]["n_pieces"] = count
            messages[n]["control"] = bases[0]["control"] if count > 1 else np.uint64(0)
            messages[n]["control_bytes"] = 24 if count > 1 else 0
            messages[n]["pieces"] = bases[0]["pieces"] + np.uint64(16 * begin)
            begin, n = begin + count, n + 1
    return n
