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
