"""From rows to frames: what all protocols have, and checksums, the IPv4 header's and the invariant CRC of RoCEv2."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from . import packet_event as p
from . import wire_format as w
from .headers import LAYOUTS, Frames

_IP, _UDP, _BTH = 8, 28, 36  # after eight bytes of ones, which replace the header that RoCE does not have
_CHANGING = (_IP + 1, _IP + 8, _IP + 10, _IP + 11, _UDP + 6, _UDP + 7, _BTH + 4)
IP_AT = w.PCAP_RECORD.itemsize + w.ETHERNET.itemsize


def ip_checksums(headers: NDArray[np.uint8]) -> NDArray[np.uint16]:
    """Checksums of IPv4 headers.

    Parameters
    ----------
    headers : uint8[n, 20]
        Headers with 0 in place of the checksum.

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
        Packets from the IPv4 header, without options, to the last byte before the CRC.

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


def build_frames(events: NDArray[Any], values: NDArray[Any] | None) -> Frames:
    """Build records of a capture file, of packets that all have the protocol, size and place in a message of the first.

    Parameters
    ----------
    events : PACKET_EVENT[n]
        Events, at least one.
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
