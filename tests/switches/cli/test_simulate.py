"""`commsim switch simulate`: the contract for scripts, and what it says to wrong input."""

import json
import re
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_words import with_flags

from commsim.cli import main
from commsim.core import limits
from commsim.core.errors import PhysicsError
from commsim.packets import run_loop as fabric_run
from commsim.packets.packet_rows import PACKET_ROW

SMALL = ["--workers", "4", "--size", "256KiB", "--pool-size", "64", "--rto", "50us"]
CONTRACT = ("time_s", "elements_per_s", "line_rate_elements_per_s", "retransmissions", "duplicates", "drops", "exact")


def simulate(tmp_path: Path, *flags: str) -> dict[str, Any]:
    out = tmp_path / "out.json"
    assert main(["switch", "simulate", *with_flags(SMALL, flags), "--json", str(out)]) == 0
    tree: dict[str, Any] = json.loads(out.read_text())
    return tree


@pytest.mark.parametrize("system", ["switchml-rdma", "switchml_udp", "atp", "sharp"])
def test_results_have_the_fields_that_scripts_rely_on(tmp_path: Path, system: str) -> None:
    result = simulate(tmp_path, "--system", system, "--pool-size", "128")["results"][0] if system != "sharp" else None
    if result is None:
        out = tmp_path / "sharp.json"
        flags = ["--system", "sharp", "--workers", "4", "--size", "256KiB", "--json", str(out)]
        assert main(["switch", "simulate", *flags]) == 0
        result = json.loads(out.read_text())["results"][0]
    assert set(CONTRACT) | {"events", "cpu_s", "packet_hops"} <= set(result)
    assert result["exact"] is True
    assert result["elements_per_s"] == pytest.approx(65536 / result["time_s"])
    assert result["elements_per_s"] <= result["line_rate_elements_per_s"]


def test_losses_are_repaired_and_counted(tmp_path: Path) -> None:
    rows = simulate(tmp_path, "--loss", "0,0.01,0.1", "--seed", "1,2")["results"]
    assert [r["loss"] for r in rows] == [0.0, 0.0, 0.01, 0.01, 0.1, 0.1]
    assert all(r["exact"] is True for r in rows)
    assert rows[0]["drops"] == rows[0]["retransmissions"] == 0
    assert all(r["drops"] > 0 and r["retransmissions"] > 0 for r in rows[2:])
    assert rows[2]["time_s"] < rows[4]["time_s"]


def test_rates_of_links_are_a_list_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = simulate(tmp_path, "--bandwidth", "10Gbps,100Gbps")["results"]
    slow, fast = (simulate(tmp_path, "--bandwidth", rate)["results"][0] for rate in ("10Gbps", "100Gbps"))
    assert [r["time_s"] for r in rows] == [slow["time_s"], fast["time_s"]]
    assert [r["network"] for r in rows] == [slow["network"], fast["network"]]
    heading, *cells = capsys.readouterr().out.splitlines()[1:4]
    at = heading.index("bandwidth") + len("bandwidth")
    assert [line[:at].split()[-1] for line in cells] == ["10Gbps", "100Gbps"]


def two_levels(tmp_path: Path, n_racks: int, per_rack: int, *flags: str) -> dict[str, Any]:
    racks = f"leaf_spine:n_leaves={n_racks},n_spines=1,hosts_per_leaf={per_rack},bandwidth=100Gbps,latency=1us"
    more = ["--workers", f"{n_racks * per_rack}", "--topology", f"{racks},uplink_bandwidth=100Gbps"]
    out = tmp_path / "racks.json"
    assert main(["switch", "simulate", "--system", "switchml_udp", *more, *flags, "--json", str(out)]) == 0
    row: dict[str, Any] = json.loads(out.read_text())["results"][0]
    return row


@pytest.mark.parametrize(("n_racks", "per_rack", "header"), [(8, 8, 76), (16, 15, 76), (16, 15, 82)])
def test_racks_of_workers_take_the_time_of_one_stream(tmp_path: Path, n_racks: int, per_rack: int, header: int) -> None:
    """P packets, each stored and forwarded on four links of 1 us: (P + 3) t + 4 L, whatever the number of workers."""
    found = two_levels(tmp_path, n_racks, per_rack, "--size", "1MiB", "--header", f"{header}B")
    packet = (1024 + header) * 8 / 100e9
    assert found["time_s"] == pytest.approx((1024 + 3) * packet + 4e-6, abs=1e-12)
    assert found["exact"] is True


def test_racks_of_workers_repair_losses(tmp_path: Path) -> None:
    found = two_levels(tmp_path, 8, 8, "--size", "64KiB", "--loss", "0.01", "--rto", "50us")
    assert found["retransmissions"] > 0
    assert found["exact"] is True


def test_bytes_at_the_server_are_one_stream_where_all_is_aggregated_and_more_where_slots_collide(
    tmp_path: Path,
) -> None:
    out = tmp_path / "atp.json"
    flags = ["--system", "atp", "--workers", "4", "--size", "1MiB", "--pool-size", "110", "--no-values"]
    stream = -(-(2**18) // 62) * 332  # frames of 308 bytes and 24 between them
    for jobs, least, most in ((1, stream, stream), (2, 2.1 * stream, 8 * stream)):  # jobs collide, a job's own do not
        assert main(["switch", "simulate", *flags, "--jobs", f"{jobs}", "--json", str(out)]) == 0
        assert least <= json.loads(out.read_text())["results"][0]["server_bytes"] <= most


@pytest.mark.parametrize("flags", [["--without", "seen_check"], ["--versions", "1"]])
def test_leaving_out_a_rule_is_found_out(tmp_path: Path, flags: list[str]) -> None:
    assert simulate(tmp_path, "--loss", "0.05", *flags)["results"][0]["exact"] is False


def test_no_values_says_neither_yes_nor_no(tmp_path: Path) -> None:
    assert simulate(tmp_path, "--no-values")["results"][0]["exact"] is None


def test_the_recurrence_gives_the_same_time(tmp_path: Path) -> None:
    events = simulate(tmp_path)["results"][0]
    recurrence = simulate(tmp_path, "--engine", "recurrence")["results"][0]
    assert recurrence["time_s"] == events["time_s"]
    assert recurrence["engine"] == "recurrence"


def test_slots_over_time_are_in_the_json(tmp_path: Path) -> None:
    series = simulate(tmp_path, "--sample-every", "1us", "--start-jitter", "5us")["series"]
    assert len(series) > 3
    assert 0 < max(s["busy_slots"] for s in series) <= 64


@pytest.mark.parametrize(
    "flags", [["--loss", "0,0.01"], ["--pool-size", "4,16,64"], ["--workers", "2,4"], ["--sample-every", "1us"]]
)
def test_what_was_varied_is_drawn(tmp_path: Path, flags: list[str]) -> None:
    picture = tmp_path / "chart.svg"
    simulate(tmp_path, *flags, "--draw", str(picture))
    assert picture.read_text().startswith("<")


def test_a_capture_tells_the_same_story(tmp_path: Path) -> None:
    capture = tmp_path / "run.pcap"
    result = simulate(tmp_path, "--loss", "0.02", "--pcap", str(capture), "--pcap-values")["results"][0]
    out = tmp_path / "story.json"
    assert main(["switch", "pcap", str(capture), "--json", str(out)]) == 0
    job = json.loads(out.read_text())["results"][0]
    assert job["wrong_results"] == 0
    assert job["n_workers"] == 4
    assert job["retransmissions"] == result["retransmissions"]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--system", "switchmll"], "did you mean switchml_udp"),
        (["--workers", "0"], "--workers must be at least 1"),
        (["--workers", "33"], "a switch aggregates at most 32 children, got 33"),
        (["--workers", "four"], "--workers is a number"),
        (["--loss", "1.5"], "loss in [0, 1)"),
        (["--size", "0B"], "--size must be a whole number of bytes, at least 1"),
        (["--bandwidth", "100"], "--bandwidth"),
        (["--bandwidth", "10Gbps,"], "--bandwidth"),
        (["--bandwidth", "1Gbps,10Gbps", "--draw", "rates.svg"], "--draw takes one --bandwidth"),
        (["--system", "atp", "--packets-per-message", "4"], "has no packets_per_message"),
        (["--packets-per-message", "3"], "power of two"),
        (["--window", "1000"], "needs as many slots"),
        (["--without", "gravity"], "unknown rules"),
        (["--engine", "recurrence", "--loss", "0.1"], "links lose packets"),
        (["--draw", "x.gif", "--loss", "0,0.1"], ".svg"),
        (["--draw", "x.svg"], "something to draw"),
        (["--pcap", "x.pcap", "--loss", "0,0.1"], "take one run"),
        (["--jobs", "0"], "--jobs must be at least 1"),
        (["--tensors", "0"], "--tensors"),
        (["--tensors", "1000000000000"], "at most 1000000"),
        (["--size", "1e30B"], "--size must be below 8 EiB"),
        (["--system", "switchml_udp", "--elements-per-packet", "100000000000"], "elements must be at most 1048576"),
        (["--elements-per-packet", "48"], "switchml_rdma sends packets of 64 or 256 elements, got 48"),
        (["--pool-size", "20000"], "need 40000 entries of each register array, which has 22528; what would fit"),
        (["--hardware", "tofino_9"], "unknown switch hardware 'tofino_9'"),
        (["--pool-size", "1000000000000"], "pool_size must be at most 1048576"),
        (["--bandwidth", "1e-25Gbps"], "a byte must leave"),
        (["--buffer", "1B"], "every buffer must hold a packet"),
        (["--loss", "0.1", "--loss-burst", "0.5"], "a burst of losses"),
        (["--seed", "-1"], "--seed must be 0 or more"),
        (["--header", "82"], "--header needs a unit"),
        (["--header", "0.5B"], "--header must be whole bytes"),
        (["--header", "1GB"], "header must be 0..1048576 bytes"),
        (["--pcap-values"], "--pcap-values needs --pcap"),
        (["--topology", "star:n_hosts=8", "--bandwidth", "1Gbps"], "--topology is given"),
        (["--json", "no/such/folder.json"], "no such folder"),
        (["--loss", "0.1", "--loss-up", "0.2", "--loss-down", "0.3"], "leave nothing for --loss 0.1"),
    ],
)
def test_wrong_input_gets_one_line(flags: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["switch", "simulate", *with_flags(["--size", "64KiB"], flags)]) == 2
    error = capsys.readouterr().err.strip().splitlines()
    assert message in error[-1]
    assert not Path("x.svg").exists()


def test_losses_may_be_given_in_percent(tmp_path: Path) -> None:
    share, percent = (simulate(tmp_path, "--loss", text)["results"][0] for text in ("0.05", "5%"))
    assert percent["loss"] == 0.05
    assert percent["time_s"] == share["time_s"]


@pytest.mark.parametrize("limit", ["MAX_PACKETS", "MAX_COPIES"])
def test_packets_that_are_repeated_faster_than_sent_are_refused_before_memory_is_full(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(fabric_run, "MAX_PACKETS", 1 << 18)
    monkeypatch.setattr(fabric_run, limit, 1 << 14)
    assert main(["switch", "simulate", "--size", "64KiB", "--loss", "0.01", "--rto", "1ns"]) == 2
    count = re.search(r"(\d+) packets are on their way at once", capsys.readouterr().err)
    assert count is not None
    assert int(count[1]) <= 1 << 14


def test_packets_of_which_most_are_repeated_take_at_most_128_mib() -> None:
    assert fabric_run.MAX_COPIES * PACKET_ROW.itemsize <= 1 << 27


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--size 1e9KiB", "what workers received would take"),
        ("--size 1e11KiB --no-values", "simulating 1.6e+12 packets, counted on each link would take about 44.4 h"),
        ("--jobs 100000 --engine recurrence", "--jobs is at most 4096, got 100000"),
        ("--jobs 2 --engine recurrence", "the recurrence simulates one job"),
        ("--loss 0.999 --system netreduce --no-values", "years, but the limit is 60 min"),
        ("--loss 0.999 --system omnireduce:density=0.1 --no-values", "years, but the limit is 60 min"),
        (
            "--latency 2min --loss 0.02",
            "an rto of 1 ms repeats each packet 240000 times before an answer can be there, after 240 s",
        ),
        ("--rto 100ns", "an rto of 100 ns repeats packets faster than links send them, a window of 512 packets takes"),
        ("--bandwidth 1bps --loss 0.02", "an rto of 1 ms repeats packets faster"),
        ("--bandwidth 1e-3bps --tensors 8", "an rto of 1 ms repeats packets faster"),
        ("--system atp --header 1MB --size 64KiB", "an rto of 200 us repeats packets faster than links send them"),
        ("--system atp --bandwidth 1Gbps --size 1MiB", "an rto of 200 us repeats packets faster than links send them"),
        ("--system atp --bandwidth 100Mbps --size 1MiB --ecn 10kB", "an rto of 200 us repeats packets faster"),
        ("--system panama --header 1MB --ecn 4MB", "an rto of 1 ms repeats packets faster than links send them"),
        ("--sample-every 1e15s", "--sample-every is at most 1e+06 s, got 1e15s"),
        ("--rto 1e-13s", "an rto of at least 1 ps"),
        ("--system sharp --buffer 5KiB --size 1MiB", "a switch system never repeats a packet, and"),
        (
            "--versions 1 --buffer 2KiB --size 64KiB",
            "every buffer must hold a message of 4 packets, 4444 bytes, got 2048",
        ),
    ],
)
def test_work_that_nobody_can_mean_is_refused_before_it_begins(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, flags: str, message: str
) -> None:
    monkeypatch.delenv("COMMSIM_MAX_SECONDS", raising=False)
    tracemalloc.start()
    try:
        assert main(["switch", "simulate", *flags.split()]) == 2
        assert tracemalloc.get_traced_memory()[1] < 100e6
    finally:
        tracemalloc.stop()
    assert message in capsys.readouterr().err


def test_a_window_that_marks_shrink_is_not_refused(tmp_path: Path) -> None:
    flags = ("--system", "atp", "--bandwidth", "1Gbps", "--size", "256KiB", "--pool-size", "20000", "--rto", "200us")
    assert simulate(tmp_path, *flags, "--ecn", "10kB")["results"][0]["exact"] is True


def test_records_beyond_what_memory_holds_are_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SMALL", 1 << 16)
    monkeypatch.setenv("COMMSIM_MEMORY", "1MB")
    assert main(["switch", "simulate", "--size", "4MiB", "--no-values", "--sample-every", "1ns"]) == 2
    assert "records (sample)" in capsys.readouterr().err


def test_jobs_share_a_switch(tmp_path: Path) -> None:
    rows = simulate(tmp_path, "--jobs", "3")["results"]
    assert len(rows) == 3
    assert len({r["time_s"] for r in rows}) == 1
    assert np.isfinite(rows[0]["time_s"])


def test_blocks_of_zeros_are_skipped_by_a_system_that_looks_at_them(tmp_path: Path) -> None:
    out, found = tmp_path / "out.json", {}
    for density in ("0.05", "1"):
        spec = f"omnireduce:density={density},n_aggregators=4,pattern=overlapping,slots=4"
        flags = ["--system", spec, "--workers", "4", "--size", "1MiB", "--loss", "0,0.05", "--rto", "50us"]
        assert main(["switch", "simulate", *flags, "--json", str(out)]) == 0
        found[density] = json.loads(out.read_text())["results"]
    assert all(r["exact"] is True for rows in found.values() for r in rows)
    assert found["0.05"][0]["bytes_on_wire"] < 0.2 * found["1"][0]["bytes_on_wire"]
    assert found["0.05"][0]["time_s"] < found["0.05"][1]["time_s"] < found["1"][1]["time_s"]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("omnireduce:densty=0.1", "did you mean density"),
        ("omnireduce:density=1.5", "density must be above 0 and at most 1"),
        ("omnireduce:pattern=random", "needs density"),
        ("omnireduce:density=0.5,pattern=round", "unknown pattern"),
        ("switchml_udp:density=0.5", "density"),
    ],
)
def test_blocks_that_cannot_be_drawn_are_refused(spec: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["switch", "simulate", "--workers", "4", "--size", "64KiB", "--system", spec]) != 0
    assert message in capsys.readouterr().err


def test_a_run_that_never_ends_since_a_rule_was_left_out_is_refused_by_that_rule(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def endless(*args: object, **named: object) -> None:
        raise PhysicsError("deadlock")

    monkeypatch.setattr("commsim.packets.run_packets.simulate_aggregation", endless)
    assert main(["switch", "simulate", *SMALL, "--versions", "1"]) == 2
    assert "--versions 1: a packet was lost" in capsys.readouterr().err
    assert main(["switch", "simulate", *SMALL]) == 1


def test_what_a_loss_rests_on_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = simulate(tmp_path, "--loss", "0.01", "--rto", "100us")["results"][0]
    out = capsys.readouterr().out
    assert (row["rto_s"], row["network"]) == (1e-4, "star:n_hosts=4,bandwidth=100Gbps,latency=1us")
    assert "# packets of 256KiB on star:n_hosts=4,bandwidth=100Gbps,latency=1us\n" in out
    assert "is sent again after 100 us: --rto\n" in out
    share = row["elements_per_s"] / row["line_rate_elements_per_s"]
    assert f" {share:.2%} " in out
    assert main(["switch", "simulate", "--workers", "4", "--size", "256KiB", "--loss", "0.01"]) == 0
    assert "is sent again after 1 ms; --rto changes it and what a loss costs\n" in capsys.readouterr().out
    assert "again" not in (simulate(tmp_path), capsys.readouterr().out)[1]
    assert (
        main(["switch", "simulate", "--system", "sharp", "--size", "256KiB", "--json", str(tmp_path / "s.json")]) == 0
    )
    assert json.loads((tmp_path / "s.json").read_text())["results"][0]["rto_s"] is None


@pytest.mark.parametrize(
    ("flags", "limit"),
    [
        ("--system switchml_udp --elements-per-packet 45", "link"),
        ("--system switchml_udp --elements-per-packet 45 --pool-size 64", "pool"),
        ("--system switchml_udp --elements-per-packet 45 --pool-size 512 --window 64", "window"),
        ("--system iswitch", "adders"),
        ("--system switchml_udp --loss 0.01", "losses"),
        ("--system atp", "window"),
        ("--system switchml_udp --size 1KiB", "latency"),
    ],
)
def test_a_row_says_what_limits_it_and_which_packet_rate_a_host_would_need(commsim, flags, limit):
    size = () if "--size" in flags else ("--size", "2MiB")
    (row,) = commsim.results("switch", "simulate", *flags.split(), *size, "--no-values", "-v")["results"]
    assert row["limited_by"] == limit
    assert (
        f"hosts take no time per packet here: a worker sends and receives {row['packets_per_s'] / 1e6:.3g} M packets/s"
        in commsim.out
    )
    if "45" in flags:
        assert row["packets_per_s"] == pytest.approx(row["elements_per_s"] / 45, rel=1e-4)
        assert ("# link: 30% of the bytes of a packet are headers" in commsim.out) == (limit == "link")


def test_the_pool_of_the_system_is_shown_where_none_was_given(commsim):
    commsim("switch", "simulate", "--system", "switchml_rdma", "--workers", "2", "--size", "64KiB")
    cells = dict(zip(*(line.split("  ") for line in _columns(commsim.out)), strict=True))
    assert cells["pool"] == "512"


def _columns(out):
    """Return the line of the columns and the first row, two spaces between cells."""
    lines = [line for line in out.splitlines() if not line.startswith("#")]
    return [re.sub(r" {2,}", "  ", line.strip()) for line in lines[:2]]


def test_more_elements_than_a_link_carries_are_explained(commsim):
    wanted = ("--workers", "8", "--size", "1MiB")
    assert "blocks of zeros" not in commsim("switch", "simulate", "--system", "omnireduce", *wanted, "-v").out
    assert "blocks of zeros" in commsim("switch", "simulate", "--system", "omnireduce:density=0.05", *wanted, "-v").out


def test_of_several_jobs_each_has_its_row_and_it_is_said_whose_the_slots_are(commsim):
    two = ("switch", "simulate", "--jobs", "2", "--workers", "2", "--size", "64KiB", "--pool-size", "128")
    assert commsim(*two, "--system", "atp", "-v").code == 0
    assert "# atp: its 128 slots are shared by all jobs" in commsim.out
    assert "which it adds itself" in commsim.out
    rows = [line.split() for line in commsim.out.splitlines() if line.split()[:1] in (["system"], ["atp"])]
    assert [row[1] for row in rows] == ["job", "0", "1"]
    assert commsim(*two, "--system", "switchml_udp", "-v").code == 0
    assert "# switchml_udp: its 128 slots are each job's own" in commsim.out
    assert commsim(*two[:2], *two[4:], "-v").code == 0
    assert "its 128 slots" not in commsim.out


def test_what_a_loss_of_a_message_sends_again_is_explained(commsim):
    line = ("switch", "simulate", "--workers", "4", "--size", "256KiB", "--loss", "0.01")
    row = commsim.results(*line, "-v")["results"][0]
    each = row["retransmissions"] / row["drops"]
    assert commsim(*line, "-v").code == 0
    assert "the message, 4 packets, at each worker that waits for it (up to 16)" in commsim.out
    assert f"here {each:.3g} packets a loss" in commsim.out
    assert commsim(*line, "--system", "switchml_udp", "-v").code == 0
    assert "packets a loss" not in commsim.out


def test_a_pool_that_a_window_does_not_fill_is_named(tmp_path: Path) -> None:
    """The same time for every pool looked like a pool without effect."""
    atp = ("--system", "atp", "--pool-size")
    tree = simulate(tmp_path, *atp, "100,128,2048")
    assert len({row["time_s"] for row in tree["results"]}) == 1
    told = "atp: not limited by a pool of 128 to 2048 slots: a worker has at most 100 packets under way (--window)"
    assert told in [one.get("details") or one["text"] for one in tree["remarks"]]
    assert "pool-unfilled" not in [one["code"] for one in simulate(tmp_path, *atp, "100")["remarks"]]
    slots = simulate(tmp_path, "--system", "switchml_udp", "--pool-size", "128,32")["remarks"]
    assert "pool-unfilled" not in [one["code"] for one in slots]  # its window is its pool


def test_slots_of_no_hardware_are_simulated_if_that_is_said(tmp_path):
    """What `switch budget` refuses gave clean numbers."""
    flags = ["--size", "64KiB", "--pool-size", "20000", "--no-values"]
    assert simulate(tmp_path, *flags, "--hardware", "none")["results"][0]["time_s"] > 0
    assert main(["switch", "simulate", *flags]) == main(["switch", "budget", "--pool-size", "20000"]) == 2
