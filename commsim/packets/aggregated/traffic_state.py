"""The tables of what sends packets, one row per thing: aggregation jobs, and flows of ordinary messages.

A *flow* is a wire of the plan, seen from its sender: a stream of packets numbered from 0 through all its messages. Its
*receiver* has the same number. A flow has at most one packet in its host's queue, so flows of one host take turns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from commsim.packets.event_rows import Rows

LOG_RECORDS = 1 << 18  # that wait to be carried out on values, 6 MB

JOB_ROW = np.dtype(
    [
        ("worker", np.int32),  # the first, and
        ("n_workers", np.int32),  # how many
        ("window", np.int32),  # messages that a worker may have outstanding
        ("packets", np.int32),  # per message
        ("versions", np.int32),
        ("n_trees", np.int32),
        ("tensor", np.int32),  # the first, and
        ("n_tensors", np.int32),  # how many
        ("bytes_first", np.int32),  # on the wire, of the first packet of a message (perhaps the only one),
        ("bytes_middle", np.int32),
        ("bytes_last", np.int32),  # and of the last one
        ("bytes_empty", np.int32),  # of a packet without values
        ("segment", np.float64),  # packets that the congestion window grows by in a round
        ("max_window", np.int32),  # packets
        ("rto", np.int64),  # ps; 0 for never
        ("gain", np.float64),  # of the congestion window's estimate of marks; 1 halves it on any mark
        ("unclaimed", np.int32),  # the slot that the server hands out next
        ("pool", np.int32),  # shared slots of a switch
        ("shared", np.bool_),
        ("sliding", np.bool_),  # messages go in order; else each slot clocks itself
        ("ecn", np.bool_),
        ("skips_seen_check", np.bool_),  # does not check `seen`: what goes wrong then
        ("restarts_slots", np.bool_),  # starts every tensor at slot 0: what goes wrong then
        ("rounds", np.int64),  # its slots' first row in the table of first rounds, or -1: nothing is skipped
        ("owned", np.int64),  # the first word of its workers' non-zero blocks, and
        ("owned_words", np.int64),  # words per worker
    ],
    align=True,
)

TENSOR_ROW = np.dtype(
    [("first", np.int64), ("end", np.int64), ("lead", np.int64), ("chunk", np.int64), ("end_chunk", np.int64)],
    align=True,
)  # messages first..end-1; the first `lead` carry exponents only; the first chunk, in packets, and the end

WORKER_ROW = np.dtype(
    [
        ("job", np.int32),
        ("number", np.int32),  # in its job
        ("up", np.int32),  # streams to its aggregators, one per tree
        ("entry", np.int32),  # the first of its window
        ("tensor", np.int32),
        ("left", np.int64),  # messages of the tensor without result
        ("next", np.int64),  # message to send
        ("base", np.int64),  # the first without result
        ("limit", np.int64),  # the message whose result ends the round of the congestion window
        ("congestion_window", np.float64),  # packets
        ("n_marked", np.int64),  # results of this round with a mark,
        ("n_results", np.int64),  # and all
        ("marks", np.float64),  # running estimate of the share of marks
        ("head", np.int32),  # of the outstanding entries, in the order of their timers
        ("tail", np.int32),
        ("finished", np.int64),  # ps
        ("n_resent", np.int64),
        ("started", np.bool_),
        ("timer_pending", np.bool_),
    ],
    align=True,
)

ENTRY_ROW = np.dtype(
    [
        ("message", np.int64),  # outstanding, or -1
        ("deadline", np.int64),
        ("after", np.int32),
        ("before", np.int32),
        ("slot", np.int32),  # when slots are shared
        ("expected", np.int16),  # position of the next packet of the result
        ("resent", np.bool_),
        ("done", np.bool_),
    ],
    align=True,
)

AGGREGATOR_ROW = np.dtype(
    [
        ("job", np.int32),
        ("fan_in", np.int32),
        ("up", np.int32),  # stream to the parent, or -1
        ("down", np.int32),  # streams to the children, from here
        ("down_end", np.int32),
        ("slots", np.int32),  # its first row of the table of slots
        ("order", np.int32),  # its first row of the expected positions; per child and message slot
        ("unit", np.int32),  # stream through the aggregation unit, or -1
        ("all_workers", np.int32),  # set of the workers below, where slots are shared
    ],
    align=True,
)

SERVER_ROW = np.dtype(
    [
        ("job", np.int32),
        ("down", np.int32),  # stream to its switch
        ("fragments", np.int32),  # its first row of the table of fragments; one per message
        ("register", np.int32),  # its first register
        ("n_registers", np.int32),
        ("all_workers", np.int32),  # their set
    ],
    align=True,
)

FRAGMENT_ROW = np.dtype([("slot", np.int32)], align=True)

RECEIVER_ROW = np.dtype(
    [
        ("boundary", np.int64),  # end of the message that is being received
        ("message", np.int32),  # its place in `queue`
        ("end", np.int32),
        ("complete", np.int32),  # place in `queue` of the first message that is not yet complete
        ("node", np.int32),
    ],
    align=True,
)

MESSAGE_ROW = np.dtype(
    [
        ("end", np.int32),  # of its packets, which begin where those of the message before it on its flow end
        ("flow", np.int32),
        ("waiting", np.int32),  # messages that are not yet sent, or complete
        ("last_size", np.int32),  # bytes of its last packet on the wire
    ],
    align=True,
)


class AggregationState(NamedTuple):
    """Aggregation jobs: workers, switches and servers.

    Parameters
    ----------
    job, tensor, worker, entry : JOB_ROW[n], TENSOR_ROW[n], WORKER_ROW[n], ENTRY_ROW[n]
        Jobs, their tensors and workers, and the workers' windows.
    aggregator, slot, order : AGGREGATOR_ROW[n], SLOT_ROW[n], int16[n]
        Switches, their slots, and the position that is expected next per child and message slot.
    server, fragment : SERVER_ROW[n], FRAGMENT_ROW[n]
        Parameter servers, and the messages that they put together.
    log : LOG_ROW[LOG_RECORDS]
        What happened to values, as far as it has not been carried out.
    round_first, round_block : int64[n_slots + 1], int32[n_rounds]
        The first round of each slot, and the block of each round, where blocks of zeros are skipped.
    occupancy : uint64[n_words]
        Bits of each worker's non-zero blocks.
    filled : bool[n_slots]
        Whether some worker's values are in a slot.
    workers : uint64[n_sets, n_words]
        Sets of workers whose values are in each slot, fragment, aggregator, server and packet, in this order, where
        slots are shared.
    """

    job: Rows
    tensor: Rows
    worker: Rows
    entry: Rows
    aggregator: Rows
    slot: Rows
    order: NDArray[np.int16]
    server: Rows
    fragment: Rows
    log: Rows
    round_first: NDArray[np.int64]
    round_block: NDArray[np.int32]
    occupancy: NDArray[np.uint64]
    filled: NDArray[np.bool_]
    workers: NDArray[np.uint64]
