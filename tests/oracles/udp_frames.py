"""SwitchML's frames from their description, byte by byte with `struct`; knows no kernel and no words."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

PORT = 0xBEE0


@dataclass(frozen=True)
class Frame:
    job: int
    tsi: int
    slot: int
    version: int
    exponents: tuple[int, int]
    values: tuple[int, ...]

    def pack(self, kind: int | None = None) -> bytes:
        first = (0x11 if len(self.values) == 64 else 0x13) if kind is None else kind
        index = self.version << 15 | self.slot
        head = struct.pack("!BBIHbb", first, self.job, self.tsi % 2**32, index, *self.exponents)
        return head + struct.pack(f"!{len(self.values)}i", *self.values)


def unpack(data: bytes) -> Frame:
    _, job, tsi, index, e0, e1 = struct.unpack_from("!BBIHbb", data)
    values = struct.unpack_from(f"!{(len(data) - 10) // 4}i", data, 10)
    return Frame(job, tsi, index & 0x7FFF, index >> 15, (e0, e1), values)


def checksum(header: bytes) -> int:
    total = sum(struct.unpack(f"!{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def address(text: str) -> bytes:
    return bytes(int(part) for part in text.split("."))


def packet(
    payload: bytes, src: tuple[str, int], dst: tuple[str, int], macs: Sequence[bytes] = (b"\2" * 6, b"\4" * 6),
    ttl: int = 128, udp_checksum: int = 0,
) -> bytes:  # fmt: skip
    """Ethernet, IPv4 and UDP around a payload; `macs` are destination and source."""
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 28 + len(payload), 7, 0, ttl, 17, 0, address(src[0]), address(dst[0]))
    ip = ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:]
    udp = struct.pack("!HHHH", src[1], dst[1], 8 + len(payload), udp_checksum)
    return bytes(macs[0]) + bytes(macs[1]) + b"\x08\x00" + ip + udp + payload
