"""From bytes to rows: what SwitchML and ATP packets of a block say; all others are only counted."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import Records

from . import packet_event as p
from . import wire_format as w
from .capture_file import LINK_HEADERS, PacketBatch, gather

# Not aggregation traffic; decoded; at our ports, but not as it should be; captured too little of its headers.
FOREIGN, OURS, MALFORMED, CUT = range(4)

RDMA_FIELDS = np.dtype(
    [("address", "u8"), ("qpn", "u4"), ("sequence", "u4"), ("rkey", "u4"), ("length", "u4"), ("opcode", "u1")],
    align=True,
)
_WINDOW = 96  # from the network layer on; the longest headers, RoCE's, take 60
_AT = {"ip": (0, w.IPV4), "udp": (20, w.UDP), "atp": (20, w.ATP_HEADER), "switchml": (28, w.SWITCHML),
       "exponents": (36, w.EXPONENTS), "bth": (28, w.BTH), "reth": (40, w.RETH), "immediate": (40, w.IMMEDIATE),
       "immediate_after_reth": (56, w.IMMEDIATE)}  # fmt: skip
_HEAD = np.dtype({"names": list(_AT), "formats": [f for _, f in _AT.values()],
                  "offsets": [at for at, _ in _AT.values()], "itemsize": _WINDOW})  # fmt: skip
_MAX_ELEMENTS = 2048


def decode(block: PacketBatch) -> tuple[Records, Records, NDArray[np.uint8]]:
    """Read the headers of all packets of a block.

    Returns
    -------
    events : PACKET_EVENT[m]
        Packets that are ours; of RDMA only what one packet shows. Times are left at 0.
    rdma : RDMA_FIELDS[m]
        What only the packets of a message together explain.
    status : uint8[n]
        What each packet of the block is.
    """
    type_at, begins = LINK_HEADERS[block.link]
    there, length = block.captured - begins, block.length - begins
    kind = gather(block.raw, block.begin + type_at, 2).view(">u2").reshape(-1)
    head: Records = gather(block.raw, block.begin + begins, _WINDOW).view(_HEAD).reshape(-1)
    ip, udp = head["ip"], head["udp"]
    plain = (there >= 20) & (ip["version_ihl"] == 0x45) & (ip["flags_fragment"] & 0x3FFF == 0)
    datagram = plain & (kind == w.ETHERTYPE_IPV4) & (ip["protocol"] == w.UDP_PROTOCOL) & (there >= 28)
    ports = [(udp[end] & w.SWITCHML_PORT_MASK) == w.SWITCHML_PORT for end in ("src_port", "dst_port")]
    opcode = head["bth"]["opcode"]
    write = (opcode >= w.WRITE_FIRST) & (opcode <= w.WRITE_ONLY_IMMEDIATE)
    chosen = {
        p.SWITCHML_UDP: datagram & (ports[0] | ports[1]),
        p.SWITCHML_RDMA: datagram & (udp["dst_port"] == w.ROCE_PORT) & ((there < 40) | write),
        p.ATP: plain & (kind == w.ETHERTYPE_ATP),
    }
    status = np.full(len(head), FOREIGN, np.uint8)
    events: Records = np.zeros(len(head), p.PACKET_EVENT)
    rdma: Records = np.zeros(len(head), RDMA_FIELDS)
    for protocol, selected in chosen.items():
        rows = np.flatnonzero(selected)
        part = events[rows]
        part["protocol"], part["src"], part["dst"] = protocol, ip["src"][rows], ip["dst"][rows]
        part["flags"] = p.ECN_MARKED * (ip["tos"][rows] & 3 == 3)
        side = rdma[rows]
        needed, right = _READ[protocol](part, head[rows], length[rows], side)
        status[rows] = np.where(there[rows] < needed, CUT, np.where(right, OURS, MALFORMED))
        events[rows], rdma[rows] = part, side
    ours = status == OURS
    return events[ours], rdma[ours], status


def _read_switchml(e: Records, head: Records, _length: Records, _side: Records) -> tuple[Any, NDArray[np.bool_]]:
    header, udp, size = head["switchml"], head["udp"], head["switchml"]["type_size"] & 7
    up = (udp["dst_port"] & w.SWITCHML_PORT_MASK) == w.SWITCHML_PORT
    e["kind"] = np.where(up, p.CONTRIBUTION, p.RESULT)
    e["worker_port"] = np.where(up, udp["src_port"], udp["dst_port"])
    e["elements"] = np.left_shift(32, size.astype(np.uint16))
    e["job"], e["chunk"], e["worker"], e["message_packets"] = header["job"], header["tsi"], -1, 1
    e["slot"], e["version"] = header["pool_index"] & 0x3FFF, header["pool_index"] >> 15
    e["exponent0"], e["exponent1"] = head["exponents"]["e0"], head["exponents"]["e1"]
    right = (header["type_size"] >> 4 == 1) & (size <= 3) & (udp["length"] == 18 + 4 * e["elements"].astype(np.int64))
    return 38, right & (head["ip"]["total_length"] == udp["length"].astype(np.int64) + 20)


def _read_rdma(e: Records, head: Records, _length: Records, side: Records) -> tuple[Any, NDArray[np.bool_]]:
    """Read one packet; slot, version, chunk, position and job stay open."""
    bth, udp, reth, opcode = head["bth"], head["udp"], head["reth"], head["bth"]["opcode"]
    first = np.isin(opcode, (w.WRITE_FIRST, w.WRITE_ONLY, w.WRITE_ONLY_IMMEDIATE))
    immediate = np.isin(opcode, (w.WRITE_LAST_IMMEDIATE, w.WRITE_ONLY_IMMEDIATE))
    more = 16 * first + 4 * immediate
    n_bytes = udp["length"].astype(np.int64) - 24 - more
    e["kind"] = np.where(bth["destination"] & w.SWITCH_QPN, p.CONTRIBUTION, p.RESULT)
    e["worker"] = np.where(e["kind"], udp["src_port"] & 0x7FFF, bth["destination"] >> 16 & 0x7F)
    e["worker_port"] = np.where(e["kind"], 0, udp["src_port"])
    e["elements"] = np.clip(n_bytes // 4, 0, _MAX_ELEMENTS)
    for name in ("0", "1"):
        alone, after = head["immediate"][f"e{name}"], head["immediate_after_reth"][f"e{name}"]
        e[f"exponent{name}"] = np.where(immediate, np.where(first, after, alone), 0)
    side["qpn"], side["sequence"], side["opcode"] = bth["destination"] & 0xFFFFFF, bth["sequence"] & 0xFFFFFF, opcode
    for field in ("address", "rkey", "length"):
        side[field] = np.where(first, reth[field], 0)
    right = (n_bytes % 4 == 0) & (n_bytes > 0) & (n_bytes <= 4 * _MAX_ELEMENTS) & (bth["flags"] & 0x3F == 0)
    return 40 + more, right & (head["ip"]["total_length"] == udp["length"].astype(np.int64) + 20)


def _read_atp(e: Records, head: Records, length: Records, _side: Records) -> tuple[Any, NDArray[np.bool_]]:
    """Read one packet; its IP header says a wrong length in the public client, so the packet's own counts."""
    header, flags = head["atp"], head["atp"]["flags"]
    n_bytes = length - 20 - w.ATP_HEADER.itemsize - w.ATP_TRAILER.itemsize
    bitmap = header["bitmap"].astype(np.uint32)
    e["kind"] = np.where(flags & w.ATP_ACK, p.RESULT, p.CONTRIBUTION)
    for theirs, ours in ((w.ATP_ECN, p.ECN_MARKED), (w.ATP_RESENT, p.RESENT), (w.ATP_COLLIDED, p.COLLIDED)):
        e["flags"] |= np.where(flags & theirs, ours, 0).astype(np.uint8)
    e["workers"], e["n_workers"], e["job"] = bitmap, header["n_workers"], header["job"]
    alone = (bitmap != 0) & (bitmap & (bitmap - 1) == 0)
    e["worker"] = np.where(alone, np.log2(np.where(alone, bitmap, 1)), -1)
    e["chunk"] = header["sequence"].astype(np.int64) - 1 & 0xFFFF
    e["slot"], e["message_packets"] = header["slot"], 1
    e["elements"] = np.clip(n_bytes // 4, 0, _MAX_ELEMENTS)
    right = (n_bytes % 4 == 0) & (n_bytes > 0) & (n_bytes <= 4 * _MAX_ELEMENTS)
    return 34, right & ((bitmap != 0) | (e["kind"] == p.RESULT))


_READ = {p.SWITCHML_UDP: _read_switchml, p.SWITCHML_RDMA: _read_rdma, p.ATP: _read_atp}
