"""From rows to frames: whatever all protocols have, and the checksums once all else is there."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import packet_event as p
from . import wire_format as w
from .checksums import invariant_crcs, ip_checksums
from .headers import LAYOUTS, Frames

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
