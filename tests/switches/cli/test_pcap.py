import os

import numpy as np
import pytest
from packet_story import story

from switch_model.packets import packet_event as p
from switch_model.packets.pcap_writer import write_pcap


@pytest.fixture
def captured(tmp_path):
    write_pcap(tmp_path / "x.pcap", story(p.SWITCHML_UDP, repeated={(0, 1), (4, 1)}, late={2: 3}, too_early={7}))
    return tmp_path / "x.pcap"


def test_a_capture_is_told_as_json(commsim, captured):
    (row,) = commsim.results("switch", "pcap", captured)["results"]
    assert (row["protocol"], row["job"], row["n_workers"], row["chunks_delivered"]) == ("switchml_udp", 3, 4, 12)
    assert (row["retransmissions"], row["wrong_results"], row["duplicate_results"]) == (2, 4, 0)
    assert row["slots"] == [{"slot": 0, "retransmissions": 2}]
    assert [w["times_last"] for w in row["workers"]] == [0, 0, 0, 12]
    assert row["workers"][3]["max_late_s"] == pytest.approx(7e-6)
    assert row["wrong"][0]["chunk"] == 7


def test_a_capture_is_told_as_tables(commsim, captured):
    assert commsim("switch", "pcap", captured).code == 0
    assert "packets              98" in commsim.out
    assert "# late workers: switchml_udp job 3 at 10.0.3.233" in commsim.out
    assert "10.0.0.4       0       12          12" in commsim.out
    assert "# slots that were repeated most" in commsim.out
    assert "# results before all had contributed" in commsim.out


def test_what_is_not_told_was_not_there(commsim, tmp_path):
    write_pcap(tmp_path / "x.pcap", np.zeros(0, p.PACKET_EVENT))
    assert commsim("switch", "pcap", tmp_path / "x.pcap").code == 0
    assert commsim.out.split() == ["packets", "0", "aggregation", "packets", "0"]


def test_a_capture_that_was_cut_off_is_said_to_be(commsim, captured):
    captured.write_bytes(captured.read_bytes()[:-3])
    answer = commsim.results("switch", "pcap", captured)
    assert answer["capture"]["bytes_after_the_last_whole_packet"] == 16 + 52 - 3
    assert "bytes after the last whole packet  65" in commsim.out


def test_a_file_that_is_no_capture_is_refused(commsim, tmp_path):
    (tmp_path / "x.pcap").write_bytes(b"\x0a\x0d\x0d\x0a" * 10)
    assert "x.pcap: expected a pcap file, got a pcapng file" in commsim.refuses("switch", "pcap", tmp_path / "x.pcap")
    assert "No such file" in commsim.refuses("switch", "pcap", tmp_path / "y.pcap")
    os.mkfifo(tmp_path / "z.pcap")
    assert "z.pcap: not a regular file" in commsim.refuses("switch", "pcap", tmp_path / "z.pcap")


@pytest.mark.parametrize("system", ["switchml_udp", "switchml_rdma", "atp"])
def test_what_was_simulated_is_told_again(commsim, tmp_path, system):
    pcap = tmp_path / "s.pcap"
    (ran,) = commsim.results("switch", "simulate", "--system", system, "--workers", "4", "--size", "256KiB", "--loss",
                             "0.01", "--seed", "1", "--pcap", pcap)["results"]  # fmt: skip
    (told,) = commsim.results("switch", "pcap", pcap)["results"]
    assert ran["retransmissions"] > 0
    assert told["retransmissions"] == ran["retransmissions"]
    assert told["chunks"] == told["chunks_delivered"] == -(-ran["elements"] // (62 if system == "atp" else 256))
    assert told["wrong_results"] == 0
    of_message = 16 if system == "switchml_rdma" else 1  # chunks, all of which come again where one is lost
    assert 0.7 * ran["drops"] < told["chunks_repeated"] <= ran["drops"] * of_message
    assert "chunks resent: a contribution came again" in commsim.out
    # the capture ends as the last result leaves the switch, a packet and 1 us before it is there
    assert ran["time_s"] - 2e-6 < told["time_s"] < ran["time_s"]


def test_the_headers_of_the_first_packets_are_printed(commsim, captured):
    pytest.importorskip("scapy")
    assert commsim("switch", "pcap", captured, "--packets", 2, "-v").code == 0
    *_, first, second = commsim.out.splitlines()
    assert all("SwitchML msg_type=1 unused=0 size=3 job=3 tsi=0" in line for line in (first, second))
    assert "must not be negative" in commsim.refuses("switch", "pcap", captured, "--packets", -1)
