"""Headers of each protocol: one function fills them in for all packets that have one layout.

From rows to frames: whatever all protocols have, and the checksums once all else is there.

Checksums of many packets at once: the IPv4 header's, and the invariant CRC of RoCEv2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from . import packet_event as p
from . import wire_format as w

Frames = NDArray[np.void]
Layout = tuple[list[tuple[str, Any]], Any, Callable[[Frames, NDArray[Any]], None]]


def _udp_ports(out: Frames, events: NDArray[Any], worker: int, switch: int) -> None:
    """Worker's port and the switch's, which change places in results."""
    own = np.where(events["worker_port"], events["worker_port"], worker)
    result = events["kind"] == p.RESULT
    out["udp"]["src_port"] = np.where(result, switch, own)
    out["udp"]["dst_port"] = np.where(result, own, switch)
    out["udp"]["length"] = out["ip"]["total_length"] - 20


def _fill_switchml(out: Frames, events: NDArray[Any]) -> None:
    _udp_ports(out, events, w.WORKER_PORT, w.SWITCHML_PORT)
    header = out["switchml"]
    header["type_size"] = 1 << 4 | int(events["elements"][0]).bit_length() - 6
    header["job"] = events["job"] & 0xFF
    header["tsi"] = events["chunk"]
    header["pool_index"] = events["version"].astype(np.uint16) << 15 | events["slot"]
    out["exponents"]["e0"], out["exponents"]["e1"] = events["exponent0"], events["exponent1"]


def _fill_rdma(out: Frames, events: NDArray[Any]) -> None:
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


def _fill_reth(reth: NDArray[Any], events: NDArray[Any], result: NDArray[np.bool_]) -> None:
    """Where the result goes, and, towards the switch, the pool index; real keys of workers' memory are any number."""
    n_bytes = events["elements"].astype(np.int64) * 4
    reth["address"] = (events["job"].astype(np.int64) << 48) + events["chunk"] * n_bytes
    reth["rkey"] = np.where(result, 0x1000 + events["worker"], events["slot"] << 1 | events["version"])
    reth["length"] = n_bytes * events["message_packets"]


def _fill_atp(out: Frames, events: NDArray[Any]) -> None:
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


_IP, _UDP, _BTH = 8, 28, 36  # after eight bytes of ones, which stand for the header that RoCE does not have
_CHANGING = (_IP + 1, _IP + 8, _IP + 10, _IP + 11, _UDP + 6, _UDP + 7, _BTH + 4)


def ip_checksums(headers: NDArray[np.uint8]) -> NDArray[np.uint16]:
    """Checksums of IPv4 headers.

    Parameters
    ----------
    headers : uint8[n, 20]
        With 0 where the checksum goes.

    Returns
    -------
    uint16[n]

    References
    ----------
    RFC 1071.
    """
    total = np.ascontiguousarray(headers).view(">u2").sum(axis=1, dtype=np.uint32)
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    return np.asarray(~total & 0xFFFF, np.uint16)


def invariant_crcs(packets: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """Invariant CRCs of RoCEv2 packets of one length; on the wire the lowest byte goes first.

    What routers may change counts as ones: service and life time, both checksums, and the congestion byte of BTH.

    Parameters
    ----------
    packets : uint8[n, m]
        From the IPv4 header, without options, to the last byte before the CRC.

    Returns
    -------
    uint32[n]

    References
    ----------
    InfiniBand Architecture Specification, volume 1, annex A17.3.3.
    """
    n, length = packets.shape
    masked = np.empty((n, length + _IP), np.uint8)
    masked[:, :_IP] = 0xFF
    masked[:, _IP:] = packets
    masked[:, _CHANGING] = 0xFF
    flat = memoryview(masked.reshape(-1).data)
    width = length + _IP
    return np.fromiter((crc32(flat[at : at + width]) for at in range(0, n * width, width)), np.uint32, n)


IP_AT = w.PCAP_RECORD.itemsize + w.ETHERNET.itemsize


def build_frames(events: NDArray[Any], values: NDArray[Any] | None) -> Frames:
    """Build records of a capture file, of packets that all have the protocol, size and place in a message of the first.

    Parameters
    ----------
    events : PACKET_EVENT[n]
        At least one.
    values : int32[n, k] or None
        None leaves the frames without values and what follows them; their length is still the whole packet's.

    Returns
    -------
    structured array [n]
        Packed; `record`, `ethernet`, `ip` and the protocol's own headers.
    """
    first = events[0]
    fields, trailer, fill = LAYOUTS[first["protocol"]](first)
    elements = int(first["elements"])
    whole = w.frame(fields, elements, trailer)
    out = np.zeros(len(events), whole if values is not None else w.frame(fields, 0, None))
    length = whole.itemsize - w.PCAP_RECORD.itemsize
    _fill_record(out, events, length)
    _fill_network(out, events, length - w.ETHERNET.itemsize)
    if values is not None:
        out["values"] = values
    fill(out, events)
    raw = out.view(np.uint8).reshape(len(out), -1)
    out["ip"]["checksum"] = ip_checksums(raw[:, IP_AT : IP_AT + 20])
    if first["protocol"] == p.SWITCHML_RDMA and values is not None:
        out["trailer"] = invariant_crcs(raw[:, IP_AT:-4])
    return out


def _fill_record(out: Frames, events: NDArray[Any], length: int) -> None:
    record, nanoseconds = out["record"], events["time_ps"] // 1000
    record["seconds"], record["fraction"] = np.divmod(nanoseconds, 10**9)
    record["captured"] = out.dtype.itemsize - w.PCAP_RECORD.itemsize
    record["length"] = length


def _fill_network(out: Frames, events: NDArray[Any], length: int) -> None:
    """Ethernet and IPv4; a MAC address is 02:00 and the IP address."""
    ethernet, ip = out["ethernet"], out["ip"]
    for end in ("src", "dst"):
        ethernet[end][:, 0] = 2
        ethernet[end][:, 2:] = events[end].astype(">u4").view(np.uint8).reshape(-1, 4)
        ip[end] = events[end]
    ethernet["type"] = w.ETHERTYPE_IPV4
    result = events["kind"] == p.RESULT
    ip["version_ihl"], ip["total_length"], ip["protocol"] = 0x45, length, w.UDP_PROTOCOL
    ip["ttl"] = np.where(result, 64, 128)
    ip["tos"] = np.where(events["flags"] & p.ECN_MARKED, 3, 0)
