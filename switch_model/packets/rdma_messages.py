"""What single RDMA packets do not say: message, slot and chunk follow from the first packet of the message."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import packet_event as p
from . import wire_format as w
from .decode import RDMA_FIELDS
from .equal_rows import runs_of

_POOL_INDEX = 0x7FFF  # slot 14 bits, version 1
_ADDRESS = (1 << 48) - 1  # no user's memory is above: there our own files say the job
__all__ = ["RDMA_FIELDS", "last_where", "resolve_messages"]


def resolve_messages(events: NDArray[Any], rdma: NDArray[Any]) -> NDArray[np.bool_]:
    """Fill in position, chunk, job, slot and version of RDMA packets, in place.

    A packet belongs to the last first packet of its queue pair, if its sequence number and opcode say so. Its result
    says where it is written to, and nothing of slots: those are found at the worker's contribution for that place.

    Parameters
    ----------
    events : PACKET_EVENT[n]
        All packets of a capture, in its order.
    rdma : RDMA_FIELDS[n]
        RDMA fields of the packets.

    Returns
    -------
    bool[n]
        Packets without the first one of their message; nothing more is known of it.
    """
    lost = np.zeros(len(events), np.bool_)
    rows = np.flatnonzero(events["protocol"] == p.SWITCHML_RDMA)
    if not len(rows):
        return lost
    e, r = events[rows], rdma[rows]
    begin = _first_packets(e, r)
    known = begin >= 0
    first, opener = r[np.maximum(begin, 0)], e[np.maximum(begin, 0)]
    n_bytes = opener["elements"].astype(np.int64) * 4
    packets = -(-first["length"].astype(np.int64) // n_bytes)
    position = (r["sequence"].astype(np.int64) - first["sequence"]) & 0xFFFFFF
    ends = np.isin(r["opcode"], (w.WRITE_LAST, w.WRITE_LAST_IMMEDIATE, w.WRITE_ONLY, w.WRITE_ONLY_IMMEDIATE))
    known &= (position < packets) & (ends == (position == packets - 1)) & (packets <= 0xFFFF)
    e["position"], e["message_packets"] = np.where(known, position, 0), np.where(known, packets, 1)
    e["job"] = first["address"] >> 48
    e["chunk"] = _places(e, first, known) // n_bytes + position
    pool = first["rkey"].astype(np.int64) & _POOL_INDEX
    up = e["kind"] == p.CONTRIBUTION
    e["slot"], e["version"] = np.where(up, (pool >> 1) + position, -1), np.where(up, pool & 1, 0)
    _find_slots(e, known)
    events[rows], lost[rows] = e, ~known
    return lost


def _first_packets(e: NDArray[Any], r: NDArray[Any]) -> NDArray[np.int64]:
    """Row of the last packet of the queue pair, up to each row, that opens a message; -1 without one."""
    order, opens_run = runs_of(e["src"], e["dst"], r["qpn"])
    opens = np.isin(r["opcode"], (w.WRITE_FIRST, w.WRITE_ONLY, w.WRITE_ONLY_IMMEDIATE))[order]
    last = last_where(opens, opens_run)
    out = np.empty(len(e), np.int64)
    out[order] = np.where(last >= 0, order[np.maximum(last, 0)], -1)
    return out


def last_where(wanted: NDArray[np.bool_], opens_run: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Last index up to each one, in the same run, at which something is so; -1 without one."""
    index = np.arange(len(wanted))
    run = np.maximum.accumulate(np.where(opens_run, index, 0))
    last = np.maximum.accumulate(np.where(wanted, index, -1))
    return np.where(last >= run, last, -1)


def _places(e: NDArray[Any], first: NDArray[Any], known: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Bytes from the beginning of the worker's buffer, which is where the lowest address seen is, or 0 if low."""
    place = (first["address"] & np.uint64(_ADDRESS)).astype(np.int64)
    worker = np.where(e["kind"] == p.RESULT, e["dst"], e["src"])
    order, opens_run = runs_of(worker, e["job"])
    starts = np.flatnonzero(opens_run)
    lowest = np.minimum.reduceat(np.where(known, place, _ADDRESS)[order], starts)
    base = np.where((lowest < p.OWN_BUFFER) | (lowest == _ADDRESS), 0, lowest)
    out = np.empty_like(place)
    out[order] = place[order] - np.repeat(base, np.diff(np.append(starts, len(order))))
    return np.where(known, out, 0)


def _find_slots(e: NDArray[Any], known: NDArray[np.bool_]) -> None:
    """Give results the slot and version of the last contribution for the chunk: the worker's own, else anyone's."""
    result = e["kind"] == p.RESULT
    worker, switch = np.where(result, (e["dst"], e["src"]), (e["src"], e["dst"]))
    for keys in ((switch, worker, e["job"], e["chunk"]), (switch, e["job"], e["chunk"])):
        order, opens_run = runs_of(*keys)
        last = last_where((~result & known)[order], opens_run)
        answers = result[order] & (e["slot"][order] < 0) & (last >= 0)
        row, source = order[answers], order[last[answers]]
        e["slot"][row], e["version"][row] = e["slot"][source], e["version"][source]
        if not (result & (e["slot"] < 0)).any():
            break
