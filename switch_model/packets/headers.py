"""Headers of each protocol: one function fills them in for all packets that have one layout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import Records

from . import packet_event as p
from . import wire_format as w

Frames = Records
Layout = tuple[list[tuple[str, Any]], Any, Callable[[Frames, Records], None]]


def _udp_ports(out: Frames, events: Records, worker: int, switch: int) -> None:
    """Worker's port and the switch's, which change places in results."""
    own = np.where(events["worker_port"], events["worker_port"], worker)
    result = events["kind"] == p.RESULT
    out["udp"]["src_port"] = np.where(result, switch, own)
    out["udp"]["dst_port"] = np.where(result, own, switch)
    out["udp"]["length"] = out["ip"]["total_length"] - 20


def _fill_switchml(out: Frames, events: Records) -> None:
    _udp_ports(out, events, w.WORKER_PORT, w.SWITCHML_PORT)
    header = out["switchml"]
    header["type_size"] = 1 << 4 | int(events["elements"][0]).bit_length() - 6
    header["job"] = events["job"] & 0xFF
    header["tsi"] = events["chunk"]
    header["pool_index"] = events["version"].astype(np.uint16) << 15 | events["slot"]
    out["exponents"]["e0"], out["exponents"]["e1"] = events["exponent0"], events["exponent1"]


def _fill_rdma(out: Frames, events: Records) -> None:
    """BTH, and of first packets RETH, of last ones the immediate.

    Sequence numbers are the chunk's, so that those of a message follow each other; each message starts them anew,
    which the switch allows, and a repeated packet has that of the original.
    """
    own, result = np.where(events["worker_port"], events["worker_port"], w.ROCE_WORKER_PORT), events["kind"] == p.RESULT
    out["udp"]["src_port"] = np.where(result, 0x8000 | events["worker"], own)
    out["udp"]["dst_port"] = w.ROCE_PORT
    out["udp"]["length"] = out["ip"]["total_length"] - 20
    ip, bth = out["ip"], out["bth"]
    ip["tos"] |= np.where(ip["tos"], 0, 2).astype(np.uint8)
    ip["flags_fragment"], ip["identification"] = 0x4000, np.where(result, 1, 0)
    per, first = events["message_packets"].astype(np.int64), events["position"][0] == 0
    last = events["position"][0] == per[0] - 1
    bth["opcode"] = {(True, True): w.WRITE_ONLY_IMMEDIATE, (True, False): w.WRITE_FIRST, (False, False): w.WRITE_MIDDLE,
                     (False, True): w.WRITE_LAST_IMMEDIATE}[bool(first), bool(last)]  # fmt: skip
    bth["flags"], bth["partition_key"] = 0x40, 0xFFFF
    queue = events["worker"] << 16 | events["slot"] // per
    bth["destination"] = np.where(result, queue, queue | w.SWITCH_QPN)
    bth["sequence"] = events["chunk"] & 0xFFFFFF
    if first:
        _fill_reth(out["reth"], events, result)
    if last:
        out["immediate"]["message"] = events["chunk"] // per & 0xFFFF
        out["immediate"]["e0"], out["immediate"]["e1"] = events["exponent0"], events["exponent1"]


def _fill_reth(reth: Records, events: Records, result: NDArray[np.bool_]) -> None:
    """Where the result goes, and, towards the switch, the pool index; real keys of workers' memory are any number."""
    n_bytes = events["elements"].astype(np.int64) * 4
    reth["address"] = (events["job"].astype(np.int64) << 48) + events["chunk"] * n_bytes
    reth["rkey"] = np.where(result, 0x1000 + events["worker"], events["slot"] << 1 | events["version"])
    reth["length"] = n_bytes * events["message_packets"]


def _fill_atp(out: Frames, events: Records) -> None:
    out["ethernet"]["type"] = w.ETHERTYPE_ATP
    ip, header, flags = out["ip"], out["atp"], events["flags"]
    ip["protocol"], ip["flags_fragment"], ip["ttl"] = w.ATP_IP_PROTOCOL, 0x4000, 64
    alone = np.left_shift(np.uint32(1), events["worker"].astype(np.uint32))
    header["bitmap"] = np.where(events["workers"], events["workers"], alone)
    header["n_workers"], header["job"] = events["n_workers"], events["job"]
    on_wire = ((p.ECN_MARKED, w.ATP_ECN), (p.RESENT, w.ATP_RESENT), (p.COLLIDED, w.ATP_COLLIDED))
    bits = np.where(events["kind"] == p.RESULT, w.ATP_ACK, 0)
    header["flags"] = bits + sum(np.where(flags & ours, theirs, 0) for ours, theirs in on_wire)
    header["sequence"] = (events["chunk"] + 1) & 0xFFFF
    header["slot"], header["slot2"] = events["slot"], events["slot"] + w.ATP_SECOND_HALF


def _rdma_layout(first: Any) -> Layout:
    fields: list[tuple[str, Any]] = [("udp", w.UDP), ("bth", w.BTH)]
    if first["position"] == 0:
        fields.append(("reth", w.RETH))
    if first["position"] == first["message_packets"] - 1:
        fields.append(("immediate", w.IMMEDIATE))
    return fields, "<u4", _fill_rdma


# What returns, for the first packet of one layout: its headers, what follows the values, what fills them in.
LAYOUTS: dict[int, Callable[[Any], Layout]] = {
    p.SWITCHML_UDP: lambda _: (
        [("udp", w.UDP), ("switchml", w.SWITCHML), ("exponents", w.EXPONENTS)], None, _fill_switchml
    ),
    p.SWITCHML_RDMA: _rdma_layout,
    p.ATP: lambda _: ([("atp", w.ATP_HEADER)], w.ATP_TRAILER, _fill_atp),
}  # fmt: skip
