import csv
import gzip
import json

import pytest

RUN = ("trace", "--topology", "star:n_hosts=4,bandwidth=100Gbps,latency=1us", "-b", "1M", "-e", "1M")


def events(path):
    return json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]


def test_a_run_becomes_a_compressed_timeline(commsim, tmp_path):
    assert commsim(*RUN, "-o", tmp_path / "t.json.gz").code == 0, commsim.err
    assert "24 of 24 messages" in commsim.out
    assert len([e for e in events(tmp_path / "t.json.gz") if e["ph"] == "X" and e["cat"].startswith("send")]) == 24


def test_a_window_and_a_limit(commsim, tmp_path):
    whole, part = tmp_path / "a.json.gz", tmp_path / "b.json.gz"
    commsim(*RUN, "-o", whole)
    assert commsim(*RUN, "-o", part, "--from", "50us", "--to", "60us", "--limit", "3", "--tracks", "ranks").code == 0
    assert "3 of 24 messages" in commsim.out
    assert part.stat().st_size < whole.stat().st_size


def test_perfettos_own_format_is_written_by_its_ending(commsim, tmp_path):
    pytest.importorskip("perfetto")
    assert commsim(*RUN, "-o", tmp_path / "t.pftrace").code == 0, commsim.err
    assert (tmp_path / "t.pftrace").read_bytes()[:1] == b"\n"  # field 1, a message


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (("-o", "t.txt"), "ends with .json, .json.gz, .pftrace"),
        (("-o", "not/t.json"), "no such folder"),
        (("-o", "t.json", "--operation", "all_reduce"), "unrecognized arguments: --operation"),
        (
            ("-o", "t.json", "--collective", "ring_all_reduce", "--collective", "ring_all_gather"),
            "of one collective, got 2",
        ),
        (("-o", "t.json", "--from", "2us", "--to", "1us"), "--to must be later than --from"),
        (("-o", "t.json", "--from", "5s"), "--from must be before the end of the run"),
        (("-o", "t.json", "--from", "2"), "--from needs a unit"),
        (("-o", "t.json", "--limit", "0"), "--limit must be at least 1"),
        (("-o", "t.json", "--engine", "closed-form"), "a closed form has no single transfers"),
    ],
)
def test_what_has_no_timeline_is_refused(commsim, tmp_path, monkeypatch, flags, why):
    monkeypatch.chdir(tmp_path)
    assert why in commsim.refuses(*RUN, *flags)
    assert list(tmp_path.iterdir()) == []


def test_a_barrier_has_a_timeline_too(commsim, tmp_path):
    assert commsim(*RUN, "--collective", "dissemination_barrier", "-o", tmp_path / "t.json.gz").code == 0, commsim.err


PACKETS = ("--engine", "packet", "--transport", "nscc", "--balancing", "path")
NARROW = ("trace", "--topology", "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4,uplink_bandwidth=50Gbps")


def test_the_packets_of_a_flow_are_written_as_csv(commsim, tmp_path):
    """No file said what happened to single packets."""
    out = tmp_path / "flow.csv"
    assert commsim(*NARROW, "direct_all_to_all", "--size", "1M", *PACKETS, "--flow", "0:5", "-o", out).code == 0
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert f"{len(rows)} events of packets from rank 0 to 5" in commsim.out
    of_data = {row["event"] for row in rows if row["packet"] == "data"}
    assert {"sent", "sent again", "marked", "delivered"} <= of_data
    assert "trimmed" in {row["event"] for row in rows if row["packet"] == "header"}
    assert "acknowledged" in {row["event"] for row in rows if row["packet"] == "ack"}


def test_a_timeline_of_packets_has_the_queues(commsim, tmp_path):
    out = tmp_path / "t.json.gz"
    assert commsim(*NARROW, "direct_all_to_all", "--size", "1M", *PACKETS, "-o", out).code == 0
    names = {e["name"]: e["args"] for e in events(out) if e["ph"] == "C"}
    queues = {name.split()[1]: args for name, args in names.items() if name.startswith("queue ")}
    assert {"leaf0:spine0", "leaf1:spine1"} <= queues.keys()
    assert all(args.keys() == {"bytes"} for args in queues.values())
    assert commsim(*NARROW, "direct_all_to_all", "--size", "1M", "-o", out).code == 0  # engine flow
    assert not [e for e in events(out) if e["ph"] == "C" and e["name"].startswith("queue")]


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (("--flow", "0:1"), "--flow: only --engine packet has packets, got engine flow"),
        (("--flow", "h0:h1", *PACKETS), "--flow takes two ranks, such as 0:1, got 'h0:h1'"),
        (("--flow", "0:3", *PACKETS), "rank 0 sends nothing to 3; it sends to 1"),
        (("--flow", "0:1", *PACKETS, "--limit", "3"), "--limit does not go with --flow"),
        (PACKETS, "the packets of one flow are a .csv file, --flow SRC:DST -o FILE.csv"),
        (("--flow", "0:1", "--engine", "packet", "--collective", "switchml"), "which are of no flow"),
    ],
)
def test_what_has_no_packets_of_a_flow_is_refused(commsim, tmp_path, flags, why):
    assert why in commsim.refuses(*RUN, *flags, "-o", tmp_path / "x.csv")
    assert not (tmp_path / "x.csv").exists()
