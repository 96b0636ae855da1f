"""Scapy builds the same bytes as NumPy, and reads them back, field by field."""

import numpy as np
import pytest
from packet_story import event

from switch_model.packets import packet_event as p
from switch_model.packets.pcap_writer import encode
from switch_model.systems import SYSTEMS

pytest.importorskip("scapy")

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from switch_model.packets.layers import ATP, BTH, RETH, AtpIP, Exponents, Immediate, SwitchML, Values

WORKER, SWITCH = {"src": 0x0A000003, "dst": 0x0A0000FE}, {"src": 0x0A0000FE, "dst": 0x0A000003}
MACS = {0x0A000003: "02:00:0a:00:00:03", 0x0A0000FE: "02:00:0a:00:00:fe"}


def ints(n):
    return np.random.default_rng(n).integers(-(2**31), 2**31, n, np.int32)


def built(values, **fields):
    """Bytes on the wire of one packet."""
    row = event(elements=len(values), **fields)
    return bytes(encode(row, values[None])[16:])


def ethernet(ends, ethertype=0x0800):
    return Ether(src=MACS[ends["src"]], dst=MACS[ends["dst"]], type=ethertype)


def ip(ends, layer=IP, **fields):
    one, two = (".".join(map(str, int(ends[e]).to_bytes(4, "big"))) for e in ("src", "dst"))
    return layer(src=one, dst=two, id=fields.pop("id", 0), **fields)


@pytest.mark.parametrize(("k", "code"), [(64, 1), (256, 3)])
def test_switchml_over_udp(k, code):
    ours = built(ints(k), kind=p.CONTRIBUTION, job=0x1A7, chunk=0x01020304, slot=0x2BCD, version=1, exponent0=-3,
                 exponent1=7, **WORKER)  # fmt: skip
    theirs = (
        ethernet(WORKER) / ip(WORKER, ttl=128, proto=17) / UDP(sport=4000, dport=0xBEE0, chksum=0)
        / SwitchML(size=code, job=0xA7, tsi=0x01020304, version=1, slot=0x2BCD) / Exponents(e0=-3, e1=7)
        / Values(values=ints(k).tolist())
    )  # fmt: skip
    assert ours == bytes(theirs)
    assert len(ours) == SYSTEMS["switchml_udp"].build(elements_per_packet=k).packet_bytes(0) - 24
    read = Ether(ours)
    assert (read[SwitchML].msg_type, read[SwitchML].tsi, read[SwitchML].slot) == (1, 0x01020304, 0x2BCD)
    assert (read[Exponents].e0, read[Exponents].e1) == (-3, 7)
    assert read[Values].values == ints(k).tolist()
    assert ours[42:50] == bytes([0x10 | code, 0xA7, 4, 3, 2, 1, 0xAB, 0xCD])


def test_results_of_switchml_come_from_the_switchs_port():
    ours = built(ints(64), kind=p.RESULT, worker_port=4003, **SWITCH)
    theirs = (
        ethernet(SWITCH) / ip(SWITCH, ttl=64, proto=17) / UDP(sport=0xBEE0, dport=4003, chksum=0)
        / SwitchML(size=1) / Exponents() / Values(values=ints(64).tolist())
    )  # fmt: skip
    assert ours == bytes(theirs)
    assert Ether(ours)[SwitchML].size == 1


@pytest.mark.parametrize("port", [0xBEE0, 0xBEE7, 0xBEEF])
def test_all_sixteen_ports_carry_switchml(port):
    packet = bytes(ethernet(WORKER) / ip(WORKER) / UDP(dport=port) / Raw(bytes(10)))
    assert SwitchML in Ether(packet)
    packet = bytes(ethernet(WORKER) / ip(WORKER) / UDP(sport=port, dport=9) / Raw(bytes(10)))
    assert SwitchML in Ether(packet)


def test_a_port_beside_them_does_not():
    assert SwitchML not in Ether(bytes(ethernet(WORKER) / ip(WORKER) / UDP(sport=9, dport=0xBEF0) / Raw(bytes(10))))


def rdma(position, per, kind=p.CONTRIBUTION):
    ends = WORKER if kind == p.CONTRIBUTION else SWITCH
    return built(ints(64), protocol=p.SWITCHML_RDMA, kind=kind, job=2, chunk=0x1020 * per + position,
                 slot=8 + position, version=1, worker=5, position=position, message_packets=per, exponent0=-3,
                 exponent1=7, **ends)  # fmt: skip


OPCODES = {(0, 1): 0x2B, (0, 4): 0x26, (1, 4): 0x27, (2, 4): 0x27, (3, 4): 0x29}


@pytest.mark.parametrize("kind", [p.CONTRIBUTION, p.RESULT])
@pytest.mark.parametrize(("position", "per"), OPCODES)
def test_switchml_over_rdma_with_the_invariant_crc(position, per, kind):
    up = kind == p.CONTRIBUTION
    ends = WORKER if up else SWITCH
    queue = 8 // per | 5 << 16
    theirs = ethernet(ends) / ip(ends, ttl=128 if up else 64, proto=17, tos=2, flags="DF", id=0 if up else 1)
    theirs /= UDP(sport=0xC000 if up else 0x8005, dport=4791, chksum=0)
    theirs /= BTH(opcode=OPCODES[position, per], migreq=1, dqpn=queue | up << 23, psn=0x1020 * per + position)
    if position == 0:
        key = (8 << 1 | 1) if up else 0x1005
        theirs /= RETH(address=(2 << 48) + 0x1020 * per * 256, rkey=key, length=256 * per)
    if position == per - 1:
        theirs /= Immediate(message=0x1020, e0=-3, e1=7)
    theirs /= Values(values=ints(64).tolist())
    ours = rdma(position, per, kind)
    assert ours == bytes(theirs)
    system = SYSTEMS["switchml_rdma"].build(elements_per_packet=64, packets_per_message=per)
    assert len(ours) == system.packet_bytes(position) - 24


@pytest.mark.parametrize(("position", "per"), OPCODES)
def test_rdma_packets_are_read_back(position, per):
    read = Ether(rdma(position, per))
    assert (RETH in read) == (position == 0)
    assert (Immediate in read) == (position == per - 1)
    assert read[Values].values == ints(64).tolist()
    if RETH in read:
        assert (read[RETH].rkey, read[RETH].length) == (17, 256 * per)
    if Immediate in read:
        assert (read[Immediate].message, read[Immediate].e0, read[Immediate].e1) == (0x1020, -3, 7)


@pytest.mark.parametrize("kind", [p.CONTRIBUTION, p.RESULT])
def test_atp(kind):
    ends, up = (WORKER, 1) if kind == p.CONTRIBUTION else (SWITCH, 0)
    ours = built(ints(62), protocol=p.ATP, kind=kind, job=0x1234, chunk=0x0506, slot=100, worker=6, n_workers=8,
                 workers=0 if up else 0xFF, flags=p.RESENT | p.COLLIDED | p.ECN_MARKED, **ends)  # fmt: skip
    theirs = (
        ethernet(ends, 0x0700) / ip(ends, AtpIP, ttl=64, proto=1, tos=3, flags="DF")
        / ATP(bitmap=1 << 6 if up else 0xFF, n_workers=8, resent=1, collided=1, ecn=1, ack=1 - up, job=0x1234,
              sequence=0x0507, slot=100, slot2=20100, values=ints(62).tolist())
    )  # fmt: skip
    assert ours == bytes(theirs)
    assert len(ours) == 308 == SYSTEMS["atp"].build().packet_bytes(0) - 24
    read = Ether(ours)[ATP]
    assert (read.bitmap, read.resent, read.ack) == (1 << 6 if up else 0xFF, 1, 1 - up)
    assert (read.job, read.slot2, read.key) == (0x1234, 20100, 0)
    assert read.values == ints(62).tolist()
    assert ours[34 + 5] == (0b1110 if up else 0b1111)


@pytest.mark.parametrize("whole", [rdma(0, 1), built(ints(64), **WORKER), built(ints(62), protocol=p.ATP, **WORKER)])
def test_a_packet_that_was_cut_is_read_without_complaint(whole):
    for n in range(14, 80):
        assert Ether(whole[:n]).original == whole[:n]
