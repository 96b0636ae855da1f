"""From a schedule to programs: a send and a receive per message, a computation per reduction.

What a message waits for is written where it can be known: at the sender what it reads must have arrived, at the
receiver what it overwrites must have been sent on. A fence, which waits for both ends of a message, is written as what
each rank knows of its own ends, and marked.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.data_order.dependencies import connections, dependencies
from commsim.core.errors import InputError
from commsim.core.schedule import REDUCE, Schedule, Transfers

from .operations import CALC, RECV, SEND, Programs, RankOperation
from .stages import fenced

# A tag is the channel times this, plus the message's number on its connection, so that both can be read again.
CHANNEL_STEP = 2**16


@dataclass(slots=True)
class _OperationDraft:
    kind: int
    size: int
    peer: int = 0
    tag: int = 0
    after: list[int] = field(default_factory=list)
    stage: int = 0

    def op(self) -> RankOperation:
        return RankOperation(self.kind, self.size, self.peer, self.tag, after=tuple(dict.fromkeys(self.after)))


def programs_of(schedule: Schedule, n_bytes: ArrayLike, gamma: ArrayLike = 0.0) -> Programs:
    """Return what every participant of a schedule does; helpers are ranks after the ranks.

    Parameters
    ----------
    schedule : Schedule
        What is sent.
    n_bytes : float64[n_transfers], bytes
        Size of each message; rounded to whole bytes.
    gamma : float64[n_participants] or float, s/byte
        What reducing costs at each participant; rounded to whole nanoseconds per message.

    Raises
    ------
    InputError
        If a size is negative or not finite.
    """
    transfers = schedule.expand()
    size = _whole_values("a message", np.broadcast_to(np.asarray(n_bytes, np.float64), len(transfers)), "bytes")
    costs = np.broadcast_to(np.asarray(gamma, np.float64), schedule.n_participants)[transfers["dst"]] * n_bytes * 1e9
    calc = _whole_values("a reduction", np.where(transfers["op"] == REDUCE, costs, 0.0), "ns")
    drafts: list[list[_OperationDraft]] = [[] for _ in range(schedule.n_participants)]
    sent, received, done = _operations(transfers, size, calc, drafts)
    _add_order(schedule, transfers, drafts, sent, received, done)
    return Programs(tuple(fenced([d.op() for d in own], [d.stage for d in own]) for own in drafts))


def _whole_values(what: str, values: NDArray[np.float64], unit: str) -> NDArray[np.int64]:
    if not ((values >= 0) & (values < 2**62)).all():
        raise InputError(f"{what} must be 0 or more {unit} and finite, got {values[~(values >= 0)][:1]}")
    return np.rint(values).astype(np.int64)


def _operations(
    transfers: Transfers,
    size: NDArray[np.int64],
    calc: NDArray[np.int64],
    drafts: list[list[_OperationDraft]],
) -> tuple[list[int], list[int], list[int]]:
    """Add the operations of all transfers; return which is each one's send, receive, and last at its receiver."""
    sent: list[int] = []
    received: list[int] = []
    done: list[int] = []
    on_connection: dict[tuple[int, int, int], int] = {}
    columns = (transfers[name].tolist() for name in ("src", "dst", "channel", "stage"))
    for i, (src, dst, channel, stage) in enumerate(zip(*columns, strict=True)):
        if src == dst:
            drafts[src].append(_OperationDraft(CALC, int(calc[i]), stage=stage))
            place = len(drafts[src]) - 1
            for each in (sent, received, done):
                each.append(place)
            continue
        number = on_connection.get((src, dst, channel), 0)
        on_connection[src, dst, channel] = number + 1
        tag = channel * CHANNEL_STEP + number % CHANNEL_STEP
        drafts[src].append(_OperationDraft(SEND, int(size[i]), dst, tag, stage=stage))
        sent.append(len(drafts[src]) - 1)
        drafts[dst].append(_OperationDraft(RECV, int(size[i]), src, tag, stage=stage))
        received.append(len(drafts[dst]) - 1)
        if calc[i]:
            drafts[dst].append(_OperationDraft(CALC, int(calc[i]), after=[received[-1]], stage=stage))
        done.append(len(drafts[dst]) - 1)
    return sent, received, done


def _add_order(
    schedule: Schedule,
    transfers: Transfers,
    drafts: list[list[_OperationDraft]],
    sent: list[int],
    received: list[int],
    done: list[int],
) -> None:
    from commsim.core.data_order.dependencies_kernel import READ_AFTER_WRITE, WRITE_AFTER_READ, WRITE_AFTER_WRITE

    order = dependencies(schedule, transfers)
    src, dst = transfers["src"].tolist(), transfers["dst"].tolist()
    first, pred, kind = order.first.tolist(), order.pred.tolist(), order.kind.tolist()
    connection, _ = connections(schedule, transfers)
    last: dict[int, int] = {}
    for i, w in enumerate(connection.tolist()):
        before = last.get(w)
        last[w] = i
        if before is not None:
            drafts[src[i]][sent[i]].after.append(sent[before])
        for row in range(first[i], first[i + 1]):
            p = pred[row]
            if kind[row] == READ_AFTER_WRITE:
                drafts[src[i]][sent[i]].after.append(done[p])
            elif kind[row] == WRITE_AFTER_WRITE:
                drafts[dst[i]][received[i]].after.append(done[p])
            elif kind[row] == WRITE_AFTER_READ:
                drafts[dst[i]][received[i]].after.append(sent[p])  # fences are said by the stages
