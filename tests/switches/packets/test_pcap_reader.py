"""Captures of all kinds are read, also those that lie."""

import struct
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from packet_story import event, every_protocol, story

from commsim.core.errors import InputError
from switch_model.packets import capture_file
from switch_model.packets import packet_event as p
from switch_model.packets.pcap_reader import read_pcap
from switch_model.packets.pcap_writer import encode, write_pcap
from switch_model.packets.reconstruct import reconstruct

HEADER = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 1)


def capture(*packets, header=HEADER, order="<", when=(0, 0)):
    """A file of whole packets."""
    return header + b"".join(struct.pack(order + "IIII", *when, len(q), len(q)) + q for q in packets)


def read(tmp_path, data):
    (tmp_path / "x.pcap").write_bytes(data)
    return read_pcap(tmp_path / "x.pcap")


def packets_of(events):
    """Bytes on the wire of each packet, with values 0."""
    values = np.zeros((len(events), int(events["elements"][0])), np.int32)
    return [bytes(encode(events[i : i + 1], values[i : i + 1])[16:]) for i in range(len(events))]


def on_wire(events):
    """What of events a reader can know."""
    e = events.copy()
    e["time_ps"] = e["time_ps"] // 1000 * 1000
    udp, rdma, atp = (e["protocol"] == protocol for protocol in range(3))
    up = e["kind"] == p.CONTRIBUTION
    e["worker_port"][e["worker_port"] == 0] = 4000
    e["worker_port"] = np.where(atp | rdma & ~up, 0, e["worker_port"])
    e["worker_port"] = np.where(rdma & up & (events["worker_port"] == 0), 0xC000, e["worker_port"])
    e["job"] &= np.where(udp, 0xFF, 0xFFFF)
    e["worker"][udp] = -1
    e["n_workers"] *= atp
    e["workers"] = np.where(atp, np.where(e["workers"], e["workers"], 1 << np.maximum(e["worker"], 0)), 0)
    bits = {1 << i: i for i in range(32)}
    e["worker"][atp] = [bits.get(workers, -1) for workers in e["workers"][atp].tolist()]
    e["chunk"] &= np.where(atp, 0xFFFF, 0xFFFFFFFF)
    e["version"] *= ~atp
    e["position"][~rdma], e["message_packets"][~rdma] = 0, 1
    e["flags"] &= np.where(atp, 7, p.ECN_MARKED).astype(np.uint8)
    for name in ("exponent0", "exponent1"):
        e[name] *= ~atp & (e["position"] + 1 == e["message_packets"])
    return e


@every_protocol
@pytest.mark.parametrize("with_values", [False, True])
def test_what_was_written_is_read(tmp_path, protocol, per, with_values):
    events = story(protocol, per=per, n_chunks=40, repeated={(3, 1)}, job=300)
    events["exponent0"] = np.where(events["position"] + 1 == per, -5, 0)
    events["flags"][5] |= p.ECN_MARKED
    values = np.ones((len(events), int(events["elements"][0])), np.int32) if with_values else None
    write_pcap(tmp_path / "x.pcap", events, values)
    found = read_pcap(tmp_path / "x.pcap")
    assert found.events.tolist() == on_wire(events).tolist()
    assert (found.n_packets, found.foreign, found.malformed, found.cut, found.stray) == (len(events), 0, 0, 0, 0)


@pytest.mark.parametrize("protocol", [p.SWITCHML_RDMA, p.ATP])
def test_the_largest_packet_that_is_written_is_read(tmp_path, protocol):
    events = story(protocol, n_workers=3, n_chunks=4)
    events["elements"] = 2048
    write_pcap(tmp_path / "x.pcap", events)
    found = read_pcap(tmp_path / "x.pcap")
    assert (found.malformed, len(found.events)) == (0, 24)
    events["elements"] = 2049
    with pytest.raises(InputError, match=r"1\.\.2048"):
        write_pcap(tmp_path / "x.pcap", events)


def column(low, high):
    return st.integers(low, high)


rows = st.fixed_dictionaries(
    {
        "time_ps": column(0, 10**18), "chunk": column(0, 2**20), "src": column(0, 2**32 - 1),
        "dst": column(0, 2**32 - 1), "job": column(0, 2**15 - 1), "worker": column(0, 31), "slot": column(0, 2**14 - 1),
        "worker_port": column(0, 0xBEDF), "kind": column(0, 1), "version": column(0, 1), "exponent0": column(-128, 127),
        "exponent1": column(-128, 127), "protocol": st.sampled_from([p.SWITCHML_UDP, p.ATP]), "flags": column(0, 7),
        "n_workers": column(0, 255), "workers": column(0, 2**32 - 1), "elements": st.sampled_from([32, 64, 128, 256]),
    }
)  # fmt: skip


@pytest.mark.slow
@given(st.lists(rows, min_size=1, max_size=6))
def test_any_row_is_read_as_it_was_written(tmp_path_factory, given_rows):
    events = np.concatenate([event(**row) for row in given_rows])
    path = tmp_path_factory.getbasetemp() / "any.pcap"
    write_pcap(path, events)
    assert read_pcap(path).events.tolist() == on_wire(events).tolist()


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(("magic", "unit"), [(0xA1B23C4D, 1000), (0xA1B2C3D4, 1_000_000)])
def test_both_byte_orders_and_both_units(tmp_path, order, magic, unit):
    events = story(p.SWITCHML_UDP)
    header = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 262144, 1)
    found = read(tmp_path, capture(*packets_of(events), header=header, order=order, when=(3, 123456)))
    assert set(found.events["time_ps"].tolist()) == {3 * 10**12 + 123456 * unit}
    assert found.events["chunk"].tolist() == events["chunk"].tolist()


def test_times_that_are_dates_count_from_the_first_second(tmp_path):
    (packet,) = packets_of(event())
    late = struct.pack("<IIII", 1_700_000_007, 5, len(packet), len(packet)) + packet
    found = read(tmp_path, capture(packet, when=(1_700_000_000, 0)) + late)
    assert found.start_s == 1_700_000_000
    assert found.events["time_ps"].tolist() == [0, 7 * 10**12 + 5000]


def test_the_first_packet_alone_decides_whether_times_are_dates(tmp_path, monkeypatch):
    (packet,) = packets_of(event())
    late = struct.pack("<IIII", 1_700_000_000, 5, len(packet), len(packet)) + packet
    monkeypatch.setattr(capture_file, "BLOCK_BYTES", 24 + 16 + len(packet))
    found = read(tmp_path, capture(packet, when=(0, 0)) + late)
    assert (found.start_s, found.events["time_ps"].tolist(), found.malformed) == (0, [0], 1)


@pytest.mark.parametrize(("when", "start", "time"), [(9_000_000, 0, 9_000_000), (9_000_001, 9_000_001, 0)])
def test_the_latest_time_that_is_no_date_is_kept(tmp_path, when, start, time):
    (packet,) = packets_of(event())
    found = read(tmp_path, capture(packet, when=(when, 0)))
    assert (found.start_s, found.malformed) == (start, 0)
    assert found.events["time_ps"].tolist() == [time * 10**12]


@pytest.mark.parametrize(("link", "head"), [(113, bytes(14)), (276, None)])
def test_captures_of_any_interface_are_read(tmp_path, link, head):
    events = story(p.SWITCHML_UDP)
    cooked = [(head + b"\x08\x00" if head else b"\x08\x00" + bytes(18)) + q[14:] for q in packets_of(events)]
    header = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, link)
    assert read(tmp_path, capture(*cooked, header=header)).events["slot"].tolist() == events["slot"].tolist()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "expected a pcap file, got an empty one"),
        (b"\x0a\x0d\x0d\x0a" + bytes(40), "got a pcapng file; `editcap -F nsecpcap"),
        (b"\x1f\x8b\x08\x00" + bytes(40), "got compressed by gzip"),
        (b"GIF89a" + bytes(40), "got one that starts with 47494638"),
        (HEADER[:23], "a pcap file has a header of 24 bytes, got 23"),
        (
            HEADER[:20] + struct.pack("<I", 105),
            r"expected link type 1 \(Ethernet\), 113 or 276 \(Linux cooked\), got 105",
        ),
        (HEADER + struct.pack("<IIII", 0, 0, 262145, 262145), "the packet at byte 24 claims 262145 bytes"),
        (HEADER + struct.pack("<IIII", 0, 0, 2**32 - 1, 5), "the packet at byte 24 claims 4294967295 bytes"),
    ],
)
def test_what_is_no_capture_is_refused(tmp_path, data, message):
    with pytest.raises(InputError, match=message):
        read(tmp_path, data)


def test_what_cannot_be_opened_is_refused(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        read_pcap(tmp_path / "nothing.pcap")
    with pytest.raises(InputError, match="is a directory"):
        read_pcap(tmp_path)


def test_a_packet_with_a_false_length_is_named_by_its_place(tmp_path):
    (packet,) = packets_of(event())
    data = capture(packet, packet) + struct.pack("<IIII", 0, 0, 1 << 20, 1 << 20) + packet
    with pytest.raises(InputError, match=f"the packet at byte {24 + 2 * (16 + len(packet))} claims 1048576 bytes"):
        read(tmp_path, data)


@pytest.mark.sample(2)
@pytest.mark.slow
@every_protocol
def test_a_file_that_ends_in_a_packet_is_read_up_to_it(tmp_path, protocol, per):
    data = capture(*packets_of(story(protocol, per=per)))
    for end in range(len(data) - 400, len(data)):
        found = read(tmp_path, data[:end])
        assert found.n_packets in (94, 95)
        assert len(found.events) == found.n_packets
        assert found.left_over > 0 or found.n_packets == 95


@every_protocol
def test_blocks_do_not_show(tmp_path, monkeypatch, protocol, per):
    data = capture(*packets_of(story(protocol, per=per)), b"", bytes(60), *packets_of(story(p.SWITCHML_UDP)))
    whole = read(tmp_path, data)
    monkeypatch.setattr(capture_file, "BLOCK_BYTES", 1777)
    assert read(tmp_path, data).events.tolist() == whole.events.tolist()
    assert whole.n_packets == 194


def test_other_traffic_is_counted(tmp_path):
    (packet,) = packets_of(event())
    other_port = packet[:36] + b"\x00\x35" + packet[38:]
    tcp = packet[:23] + b"\x06" + packet[24:]
    fragment = packet[:20] + b"\x20\x00" + packet[22:]
    with_options = packet[:14] + b"\x46" + packet[15:]
    arp = packet[:12] + b"\x08\x06" + packet[14:]
    send = packets_of(event(protocol=p.SWITCHML_RDMA))[0]
    send = send[:42] + b"\x04" + send[43:]
    others = [other_port, tcp, fragment, with_options, arp, send, b"", packet[:10]]
    found = read(tmp_path, capture(packet, *others))
    assert (found.n_packets, len(found.events), found.foreign) == (9, 1, 8)


@pytest.mark.parametrize(
    ("protocol", "place", "byte"),
    [
        (p.SWITCHML_UDP, 42, 0x23),  # message type 2
        (p.SWITCHML_UDP, 42, 0x11),  # size of 64 elements, not 256
        (p.SWITCHML_UDP, 42, 0x17),  # size 7
        (p.SWITCHML_UDP, 39, 0),  # UDP length
        (p.SWITCHML_UDP, 17, 0),  # IP length
        (p.SWITCHML_RDMA, 39, 1),
        (p.SWITCHML_RDMA, 43, 0x50),  # padding
    ],
)
def test_packets_at_our_ports_that_are_wrong_are_counted(tmp_path, protocol, place, byte):
    packet = packets_of(event(protocol=protocol))[0]
    wrong = packet[:place] + bytes([byte]) + packet[place + 1 :]
    assert wrong != packet
    found = read(tmp_path, capture(packet, wrong))
    assert (found.n_packets, len(found.events), found.malformed) == (2, 1, 1)


@every_protocol
def test_packets_of_which_too_little_was_captured_are_counted(tmp_path, protocol, per):
    events = story(protocol, per=per, n_chunks=4)
    data = HEADER + bytes(encode(events, None, snaplen=47))
    found = read(tmp_path, data)
    assert (found.cut, len(found.events)) == (32, 0)


def test_packets_without_the_first_of_their_message_are_stray(tmp_path):
    events = story(p.SWITCHML_RDMA, per=4, n_workers=1)
    up = np.flatnonzero(events["kind"] == p.CONTRIBUTION)
    gone = {up[0], up[5], up[8]}  # first, middle and first of three messages
    packets = packets_of(events)
    found = read(tmp_path, capture(*(q for i, q in enumerate(packets) if i not in gone)))
    assert found.stray == 6
    left = [i for i in range(24) if i not in {*up[:4], up[5], *up[8:12]}]
    contributions = [i for i in left if i in set(up)]
    kept = found.events[found.events["kind"] == p.CONTRIBUTION]
    assert kept["chunk"].tolist() == events["chunk"][contributions].tolist()
    assert kept["position"].tolist() == events["position"][contributions].tolist()


def test_real_buffers_begin_anywhere_and_each_worker_has_its_own(tmp_path):
    packets = packets_of(story(p.SWITCHML_RDMA, per=1, job=0))
    moved = []
    for packet in packets:
        worker = packet[33] if packet[47] >> 7 == 0 else packet[29]
        address = struct.unpack(">Q", packet[54:62])[0] + 0x7F12_3456_0000 + worker * 0x1_0000_1000
        moved.append(packet[:54] + struct.pack(">Q", address) + packet[62:])
    found = read(tmp_path, capture(*moved))
    assert found.events["chunk"].tolist() == story(p.SWITCHML_RDMA, per=1)["chunk"].tolist()
    assert found.events["job"].tolist() == [0] * 96


@pytest.mark.slow
def test_a_hundred_thousand_random_payloads(tmp_path):
    """At SwitchML's ports, at RoCE's and as ATP: right up to UDP, then anything."""
    random = np.random.default_rng(4)
    parts = []
    shells = [packets_of(event(protocol=protocol))[0] for protocol in range(3)]
    keep = (42, 42, 34)
    for i in range(100_000):
        kind = i % 3
        payload = random.bytes(int(random.integers(0, 120)))
        parts.append(shells[kind][: keep[kind]] + payload)
    found = read(tmp_path, capture(*parts))
    result = reconstruct(found.events)
    assert found.n_packets == 100_000
    assert len(found.events) + found.foreign + found.malformed + found.cut + found.stray == 100_000
    assert all(report.elements_per_s >= 0 for report in result.jobs)


@pytest.mark.deep
@pytest.mark.slow
def test_a_hundred_thousand_right_packets_with_random_fields(tmp_path):
    random = np.random.default_rng(5)
    packets = np.frombuffer(b"".join(packets_of(event(protocol=protocol))[0][:80] for protocol in range(3)), np.uint8)
    many = np.tile(packets.reshape(3, 80), (33_334, 1))
    many[:, 26:34] = random.integers(0, 256, (len(many), 8)) & 3  # addresses
    many[0::3, 43:52] = random.integers(0, 256, (33_334, 9))
    many[1::3, 46:80] = random.integers(0, 256, (33_334, 34))
    many[1::3, 42] = random.choice([0x26, 0x27, 0x29, 0x2B], 33_334)
    many[2::3, 34:48] = random.integers(0, 256, (33_334, 14))
    head = np.zeros((len(many), 16), np.uint8)
    head.view("<u4")[:, 2] = 80
    head.view("<u4")[0::3, 3] = 1076
    head.view("<u4")[1::3, 3] = 1102
    head.view("<u4")[2::3, 3] = 308
    found = read(tmp_path, HEADER + np.concatenate([head, many], axis=1).tobytes())
    result = reconstruct(found.events)
    assert len(found.events) > 60_000
    assert len(result.jobs) + result.jobs_left_out > 1000


def read_or_refuse(path):
    """Return why a file was refused, or nothing."""
    try:
        reconstruct(read_pcap(path).events)
    except InputError as error:
        return str(error)
    return ""


@pytest.mark.slow
@given(st.data())
def test_bytes_that_were_changed_are_read_or_refused(tmp_path_factory, data):
    base = capture(*packets_of(story(p.SWITCHML_RDMA, per=4, n_chunks=4, n_workers=2))[:6],
                   *packets_of(story(p.ATP, n_chunks=2, n_workers=2)))  # fmt: skip
    changed = bytearray(base)
    for _ in range(data.draw(st.integers(1, 8))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "changed.pcap"
    path.write_bytes(bytes(changed[: data.draw(st.integers(0, len(changed)))]))
    message = read_or_refuse(path)
    assert not message or message.startswith(str(path))


@given(arrays.arrays(np.uint8, st.integers(0, 400)))
def test_any_bytes_after_the_header_are_read_or_refused(tmp_path_factory, rest):
    path = tmp_path_factory.getbasetemp() / "random.pcap"
    path.write_bytes(HEADER + rest.tobytes())
    message = read_or_refuse(path)
    assert not message or "claims" in message


def test_a_file_of_empty_packets_needs_no_more_memory_than_its_blocks(tmp_path):
    data = HEADER + bytes(16) * 4_000_000
    (tmp_path / "x.pcap").write_bytes(data)
    tracemalloc.start()
    assert read_pcap(tmp_path / "x.pcap").n_packets == 4_000_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 150e6
