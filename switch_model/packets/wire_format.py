"""Headers field by field, as packed NumPy records in the byte order of the wire.

Two fields are not in network order, since their writers do not turn them round and no switch on the way reads
them: SwitchML's `tsi` and ATP's `key` are little-endian, as every published client runs on such machines.

References
----------
p4lang/p4app-switchML: headers.p4, parsers.p4 (exponents before the values), udp_sender.p4, rdma_sender.p4, and the DPDK
worker. in-ATP/ATP: packet.h. InfiniBand Architecture Specification, volume 1, chapter 9 and annex A17 (RoCEv2).
"""

from __future__ import annotations

import numpy as np

ETHERTYPE_IPV4, ETHERTYPE_ATP = 0x0800, 0x0700
UDP_PROTOCOL = 17
ATP_IP_PROTOCOL = 1  # what ATP's template of the IP header says, though no ICMP follows
SWITCHML_PORT, SWITCHML_PORT_MASK = 0xBEE0, 0xFFF0  # 0xBEE0 to 0xBEEF
WORKER_PORT = 4000  # the first thread of a SwitchML worker
ROCE_PORT = 4791
ROCE_WORKER_PORT = 0xC000  # network cards choose from here to 0xFFFF
SWITCH_QPN = 1 << 23
ATP_SECOND_HALF = 20_000  # between the two slots of a pair

WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, WRITE_LAST_IMMEDIATE, WRITE_ONLY, WRITE_ONLY_IMMEDIATE = range(0x26, 0x2C)

# the lower flags of ATP: mark, resent, collision, result; above them are half, index of the server (2) and overflow
ATP_ECN, ATP_RESENT, ATP_COLLIDED, ATP_ACK = 8, 4, 2, 1

PCAP_HEADER = np.dtype(
    [("magic", "u4"), ("major", "u2"), ("minor", "u2"), ("zone", "i4"), ("figures", "u4"), ("snaplen", "u4"),
     ("link_type", "u4")]
)  # fmt: skip
PCAP_RECORD = np.dtype([("seconds", "<u4"), ("fraction", "<u4"), ("captured", "<u4"), ("length", "<u4")])
NANOSECONDS, MICROSECONDS = 0xA1B23C4D, 0xA1B2C3D4
LINK_ETHERNET, LINK_COOKED, LINK_COOKED_2 = 1, 113, 276

ETHERNET = np.dtype([("dst", "u1", (6,)), ("src", "u1", (6,)), ("type", ">u2")])
IPV4 = np.dtype(
    [
        ("version_ihl", "u1"),  # 0x45
        ("tos", "u1"),  # differentiated services, and two bits of congestion notification
        ("total_length", ">u2"),
        ("identification", ">u2"),
        ("flags_fragment", ">u2"),
        ("ttl", "u1"),
        ("protocol", "u1"),
        ("checksum", ">u2"),
        ("src", ">u4"),
        ("dst", ">u4"),
    ]
)
UDP = np.dtype([("src_port", ">u2"), ("dst_port", ">u2"), ("length", ">u2"), ("checksum", ">u2")])
SWITCHML = np.dtype(
    [
        ("type_size", "u1"),  # message type 4 bits, unused 1, size 3: 128 bytes shifted left by it
        ("job", "u1"),
        ("tsi", "<u4"),
        ("pool_index", ">u2"),  # version 1 bit, unused 1, slot 14
    ]
)
EXPONENTS = np.dtype([("e0", "i1"), ("e1", "i1")])
BTH = np.dtype(
    [
        ("opcode", "u1"),
        ("flags", "u1"),  # solicited event 1 bit, migration request 1, padding 2, version 4
        ("partition_key", ">u2"),
        ("destination", ">u4"),  # congestion 2 bits, reserved 6, queue pair 24
        ("sequence", ">u4"),  # acknowledge request 1 bit, reserved 7, packet sequence number 24
    ]
)
RETH = np.dtype([("address", ">u8"), ("rkey", ">u4"), ("length", ">u4")])
IMMEDIATE = np.dtype([("message", ">u2"), ("e0", "i1"), ("e1", "i1")])
ATP_HEADER = np.dtype(
    [
        ("bitmap", ">u4"),
        ("n_workers", "u1"),
        ("flags", "u1"),
        ("job", ">u2"),
        ("sequence", ">u2"),
        ("slot", ">u2"),
        ("slot2", ">u2"),
    ]
)
ATP_TRAILER = np.dtype([("key", "<u8"), ("tensor_length", ">u4")])


def frame(headers: list[tuple[str, np.dtype[np.void]]], elements: int, trailer: str | np.dtype[np.void] | None
          ) -> np.dtype[np.void]:  # fmt: skip
    """Record of the capture file, headers, and, unless `elements` is 0, values and what follows them; no padding."""
    fields: list[tuple[object, ...]] = [("record", PCAP_RECORD), ("ethernet", ETHERNET), ("ip", IPV4), *headers]
    if elements:
        fields.append(("values", ">i4", (elements,)))
        if trailer is not None:
            fields.append(("trailer", trailer))
    return np.dtype(fields)
