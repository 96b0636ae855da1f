"""Scapy layers of SwitchML and ATP, bound to their ports and types when this module is imported.

Ports 0xBEE0 to 0xBEEF, either way, carry SwitchML; port 4791 Scapy's own BTH, which computes the invariant CRC, and
then the headers here; EtherType 0x0700 carries IPv4 and then ATP without UDP between them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from scapy.contrib.roce import BTH
from scapy.fields import (
    BitField,
    ByteField,
    FieldListField,
    IntField,
    LEIntField,
    LELongField,
    LongField,
    ShortField,
    SignedByteField,
    SignedIntField,
    XIntField,
)
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, bind_bottom_up, bind_layers
from scapy.utils import PcapReader

from . import wire_format as w

_ZEROS: list[Any] = [0] * 62


class SwitchML(Packet):
    """Which chunk, on which slot; `size` is 128 bytes shifted left by it."""

    name = "SwitchML"
    fields_desc = [  # noqa: RUF012 - Scapy's own way to say it
        BitField("msg_type", 1, 4),
        BitField("unused", 0, 1),
        BitField("size", 3, 3),
        ByteField("job", 0),
        LEIntField("tsi", 0),
        BitField("version", 0, 1),
        BitField("unused2", 0, 1),
        BitField("slot", 0, 14),
    ]


class Exponents(Packet):
    """Exponents of the block that comes one window later; clients use the first."""

    name = "SwitchML exponents"
    fields_desc = [SignedByteField("e0", 0), SignedByteField("e1", 0)]  # noqa: RUF012


class Values(Packet):
    """Integers that the switch adds."""

    name = "Values"
    fields_desc = [FieldListField("values", [], SignedIntField("value", 0), max_count=2048)]  # noqa: RUF012


class RETH(Packet):
    """Where a message's bytes go; towards a SwitchML switch the lowest bits of the key are slot and version."""

    name = "RETH"
    fields_desc = [LongField("address", 0), XIntField("rkey", 0), IntField("length", 0)]  # noqa: RUF012

    def guess_payload_class(self, payload: bytes) -> type[Packet]:  # noqa: ARG002 - Scapy gives it
        """Return the class of an immediate if the operation has one."""
        under = self.underlayer
        with_immediate = under is not None and under.getfieldval("opcode") == w.WRITE_ONLY_IMMEDIATE
        return Immediate if with_immediate else Values


class Immediate(Packet):
    """SwitchML's use of the immediate: the message's number and its exponents."""

    name = "Immediate"
    fields_desc = [ShortField("message", 0), SignedByteField("e0", 0), SignedByteField("e1", 0)]  # noqa: RUF012


class ATP(Packet):
    """A fragment, whose values it holds, and the pair of slots it hashes to."""

    name = "ATP"
    fields_desc = [  # noqa: RUF012
        XIntField("bitmap", 0),
        ByteField("n_workers", 0),
        BitField("overflow", 0, 1),
        BitField("server", 0, 2),
        BitField("half", 0, 1),
        BitField("ecn", 0, 1),
        BitField("resent", 0, 1),
        BitField("collided", 0, 1),
        BitField("ack", 0, 1),
        ShortField("job", 0),
        ShortField("sequence", 1),
        ShortField("slot", 0),
        ShortField("slot2", w.ATP_SECOND_HALF),
        FieldListField("values", _ZEROS, SignedIntField("value", 0), count_from=lambda _: 62),
        LELongField("key", 0),
        IntField("tensor_length", 0),
    ]


class AtpIP(IP):
    """IPv4 under EtherType 0x0700: whatever its protocol says, ATP follows."""

    name = "IP of ATP"

    def guess_payload_class(self, payload: bytes) -> type[Packet]:  # noqa: ARG002 - Scapy gives it
        """Return ATP."""
        return ATP


for _port in range(w.SWITCHML_PORT, w.SWITCHML_PORT + 16):
    bind_bottom_up(UDP, SwitchML, sport=_port)
    bind_bottom_up(UDP, SwitchML, dport=_port)
bind_layers(UDP, SwitchML, dport=w.SWITCHML_PORT)  # the port that a packet gets when it is built
bind_layers(SwitchML, Exponents)
bind_layers(Exponents, Values)
for _opcode in (w.WRITE_FIRST, w.WRITE_ONLY, w.WRITE_ONLY_IMMEDIATE):
    bind_layers(BTH, RETH, opcode=_opcode)
bind_layers(BTH, Immediate, opcode=w.WRITE_LAST_IMMEDIATE)
for _opcode in (w.WRITE_MIDDLE, w.WRITE_LAST):
    bind_layers(BTH, Values, opcode=_opcode)
bind_layers(Immediate, Values)
bind_layers(Ether, AtpIP, type=w.ETHERTYPE_ATP)


def headers(file: str, n_packets: int) -> Iterator[str]:
    """Describe what the headers of the first packets of a capture hold, one line for each packet.

    Parameters
    ----------
    file : str
        A pcap file.
    n_packets : int
        How many packets, at most.
    """
    with PcapReader(file) as packets:
        for packet in itertools.islice(packets, n_packets):
            yield " / ".join(_header(layer) for layer in _layers(packet))


def _layers(packet: Packet) -> Iterator[Packet]:
    for i in itertools.count():
        layer = packet.getlayer(i)
        if layer is None:
            return
        yield layer


def _header(layer: Packet) -> str:
    names = [field.name for field in layer.fields_desc if field.name not in ("values", "load")]
    return " ".join([str(layer.name), *(f"{name}={layer.getfieldval(name)}" for name in names)])
