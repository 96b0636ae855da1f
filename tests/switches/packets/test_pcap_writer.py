"""Captures are written in blocks, cut as asked for, and read by the tools that people have."""

import json
import shutil
import struct
import subprocess
import tracemalloc

import numpy as np
import pytest
from packet_story import event, every_protocol, story

from commsim.core.errors import InputError
from switch_model.packets import packet_event as p
from switch_model.packets import pcap_writer
from switch_model.packets.build_frames import ip_checksums
from switch_model.packets.pcap_writer import encode, write_pcap


def values_of(events):
    shape = len(events), int(events["elements"][0])
    return np.random.default_rng(1).integers(-(2**31), 2**31, shape, np.int32)


def records(path):
    """(seconds, nanoseconds, length, bytes) of each packet, read the slow way."""
    data, at, found = path.read_bytes(), 24, []
    assert struct.unpack("<IHHiIII", data[:24]) == (0xA1B23C4D, 2, 4, 0, 0, 262144, 1)
    while at < len(data):
        seconds, fraction, captured, length = struct.unpack_from("<IIII", data, at)
        found.append((seconds, fraction, length, data[at + 16 : at + 16 + captured]))
        at += 16 + captured
    assert at == len(data)
    return found


@every_protocol
def test_packets_stand_in_the_order_and_at_the_times_given(tmp_path, protocol, per):
    events = story(protocol, per=per)
    events["time_ps"] += 3 * 10**12 + 999
    values = values_of(events)
    write_pcap(tmp_path / "x.pcap", events, values)
    found = records(tmp_path / "x.pcap")
    assert [s * 10**9 + f for s, f, _, _ in found] == (events["time_ps"] // 1000).tolist()
    assert [data for *_, data in found] == [bytes(encode(events[i : i + 1], values[i : i + 1])[16:]) for i in range(96)]
    assert all(length == len(data) for _, _, length, data in found)


@every_protocol
def test_blocks_do_not_show(tmp_path, monkeypatch, protocol, per):
    events = story(protocol, per=per)
    values = values_of(events)
    write_pcap(tmp_path / "whole.pcap", events, values)
    monkeypatch.setattr(pcap_writer, "BLOCK_PACKETS", 7)
    write_pcap(tmp_path / "blocks.pcap", events, values)
    given = iter(range(0, 96, 7))
    write_pcap(tmp_path / "called.pcap", events, lambda part: values[(at := next(given)) : at + len(part)])
    whole = (tmp_path / "whole.pcap").read_bytes()
    assert whole == (tmp_path / "blocks.pcap").read_bytes() == (tmp_path / "called.pcap").read_bytes()


@every_protocol
def test_packets_are_cut_but_say_how_long_they_were(tmp_path, protocol, per):
    events = story(protocol, per=per)
    values = values_of(events)
    whole = [bytes(encode(events[i : i + 1], values[i : i + 1])[16:]) for i in range(len(events))]
    raw = encode(events, values, snaplen=70)
    at = 0
    for packet in whole:
        _, _, captured, length = struct.unpack_from("<IIII", raw, at)
        assert (captured, length) == (70, len(packet))
        assert bytes(raw[at + 16 : at + 16 + captured]) == packet[:70]
        at += 16 + captured
    assert at == len(raw)


@every_protocol
def test_without_values_there_are_headers_only_and_they_are_the_same(tmp_path, protocol, per):
    events = story(protocol, per=per)
    write_pcap(tmp_path / "x.pcap", events)
    values = np.zeros((96, int(events["elements"][0])), np.int32)
    for i, (_, _, length, data) in enumerate(records(tmp_path / "x.pcap")):
        packet = bytes(encode(events[i : i + 1], values[i : i + 1])[16:])
        assert length == len(packet)
        assert packet.startswith(data)
        assert len(data) <= 14 + 20 + 8 + 12 + 16 + 4


def test_the_checksum_of_rfc_1071():
    example = bytes.fromhex("45000073000040004011 0000 c0a80001c0a800c7".replace(" ", ""))
    header = np.frombuffer(example, np.uint8)
    assert ip_checksums(header[None]).tolist() == [0xB861]
    with_sum = bytearray(example)
    with_sum[10:12] = b"\xb8\x61"
    assert ip_checksums(np.frombuffer(bytes(with_sum), np.uint8)[None]).tolist() == [0]


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(tmp_path):
    events = np.repeat(story(p.SWITCHML_RDMA, per=4), 1000)
    block = np.zeros((1 << 15, 256), np.int32)
    peaks = []
    for n in (24_000, 96_000):
        tracemalloc.start()
        write_pcap(tmp_path / "x.pcap", events[:n], lambda part: block[: len(part)])
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert (tmp_path / "x.pcap").stat().st_size > 100e6
    assert peaks[1] < 100e6
    assert peaks[1] < 1.3 * peaks[0] + 2 * 96_000 * 8


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"time_ps": -1}, "packet 1: time_ps must be 0..9223372036854775807 for a packet, got -1"),
        ({"protocol": 3}, "packet 1: protocol must be 0..2 for a packet, got 3"),
        ({"elements": 65}, "packet 1: elements must be 32, 64, 128 or 256 for switchml_udp, got 65"),
        ({"slot": 1 << 14}, "packet 1: slot must be 0..16383 for switchml_udp, got 16384"),
        ({"slot": -1}, "packet 1: slot must be 0..16383 for switchml_udp, got -1"),
        ({"version": 2}, "packet 1: version must be 0..1"),
        ({"protocol": 1, "position": 1}, "packet 1: position must be less than message_packets, got 1"),
        ({"protocol": 1, "worker": 128}, "packet 1: worker must be 0..127 for switchml_rdma, got 128"),
        ({"protocol": 1, "chunk": 2**30}, "packet 1: chunk must be in a tensor of 1 TiB, got 1073741824"),
        ({"kind": 2}, "packet 1: kind must be 0..1 for a packet, got 2"),
        ({"protocol": 2, "worker": 32}, "packet 1: worker must be 0..31 for atp, got 32"),
        ({"protocol": 2, "slot": 50_000}, "packet 1: slot must be 0..45535 for atp, got 50000"),
    ],
)
def test_what_does_not_fit_the_wire_is_refused(tmp_path, fields, message):
    with pytest.raises(InputError) as error:
        write_pcap(tmp_path / "x.pcap", np.concatenate([event(), event(**fields)]))
    assert str(error.value).startswith(message)
    assert not list(tmp_path.iterdir())


def test_wrong_values_are_refused_and_leave_no_file(tmp_path):
    events = np.concatenate([event(), event()])
    for values in (np.zeros((2, 255), np.int32), np.zeros((2, 256)), np.zeros((3, 256), np.int32)):
        with pytest.raises(InputError, match="the payload must be int32"):
            write_pcap(tmp_path / "x.pcap", events, values)
        with pytest.raises(InputError, match="the payload must be int32"):
            write_pcap(tmp_path / "x.pcap", events, lambda _, given=values: given)
    events["elements"][1] = 64
    with pytest.raises(InputError, match="equally many"):
        write_pcap(tmp_path / "x.pcap", events, np.zeros((2, 256), np.int32))
    with pytest.raises(InputError, match=r"snaplen must be 1\.\.262144 bytes, got 0"):
        write_pcap(tmp_path / "x.pcap", events, snaplen=0)
    assert not list(tmp_path.iterdir())


def test_no_packets_make_an_empty_capture(tmp_path):
    write_pcap(tmp_path / "x.pcap", np.zeros(0, p.PACKET_EVENT))
    assert records(tmp_path / "x.pcap") == []


@every_protocol
def test_scapy_reads_the_file(tmp_path, protocol, per):
    pytest.importorskip("scapy")
    from scapy.utils import PcapReader

    from switch_model.packets.layers import ATP, BTH, SwitchML, Values

    events = story(protocol, per=per)
    values = values_of(events)
    write_pcap(tmp_path / "x.pcap", events, values)
    with PcapReader(str(tmp_path / "x.pcap")) as packets:
        found = list(packets)
    assert [round(packet.time * 10**9) for packet in found] == (events["time_ps"] // 1000).tolist()
    header = {p.SWITCHML_UDP: SwitchML, p.SWITCHML_RDMA: BTH, p.ATP: ATP}[protocol]
    body = ATP if protocol == p.ATP else Values
    assert all(header in packet for packet in found)
    assert [packet[body].values for packet in found] == values.tolist()


def tshark(path, *fields):
    """Fields of each packet; checksums are verified."""
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    command = ["tshark", "-r", str(path), "-n", "-o", "ip.check_checksum:TRUE", "-T", "json"]
    done = subprocess.run(
        [*command, *(x for f in fields for x in ("-e", f))], capture_output=True, text=True, check=True
    )
    return [[packet["_source"]["layers"].get(f, [None])[0] for f in fields] for packet in json.loads(done.stdout)]


@pytest.mark.parametrize("per", [1, 4])
def test_tshark_decodes_rdma_as_we_wrote_it(tmp_path, per):
    events = story(p.SWITCHML_RDMA, per=per)
    write_pcap(tmp_path / "x.pcap", events, values_of(events))
    names = ("opcode", "psn", "destqp", "p_key")
    found = tshark(tmp_path / "x.pcap", *(f"infiniband.bth.{n}" for n in names), "infiniband.reth.r_key",
                   "infiniband.reth.dmalen", "infiniband.immdt", "ip.checksum.status", "udp.length")  # fmt: skip
    assert len(found) == 96
    for e, (opcode, psn, queue, key, rkey, length, immediate, status, udp_length) in zip(events, found, strict=True):
        first, last, up = e["position"] == 0, e["position"] == per - 1, e["kind"] == p.CONTRIBUTION
        expected = 0x26 + (5 if first and last else 0 if first else 3 if last else 1)
        assert (int(opcode), int(psn), int(key)) == (expected, e["chunk"], 65535)
        assert int(queue, 16) == (up << 23 | int(e["worker"]) << 16 | int(e["slot"]) // per)
        assert (rkey is not None, immediate is not None) == (first, last)
        if first and up:
            assert (int(rkey, 16), int(length)) == (int(e["slot"]) << 1 | int(e["version"]), 1024 * per)
        assert status == "1"
        assert int(udp_length) == 8 + 12 + 1024 + 4 + 16 * first + 4 * last


def test_tshark_reads_udp_and_atp_and_finds_the_checksums_right(tmp_path):
    events = story(p.SWITCHML_UDP)
    write_pcap(tmp_path / "x.pcap", events, values_of(events))
    found = tshark(tmp_path / "x.pcap", "udp.dstport", "udp.srcport", "ip.checksum.status", "udp.length")
    up = events["kind"] == p.CONTRIBUTION
    assert [int(row[0]) for row in found] == np.where(up, 0xBEE0, 4000).tolist()
    assert {(row[2], row[3]) for row in found} == {("1", "1042")}
    events = story(p.ATP)
    write_pcap(tmp_path / "x.pcap", events, values_of(events))
    assert {tuple(row) for row in tshark(tmp_path / "x.pcap", "eth.type", "frame.len")} == {("0x0700", "308")}
