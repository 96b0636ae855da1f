"""Both formats say the same: lanes without overlap, the engine's times, arrows from senders to receivers, loads."""

import gzip
import itertools
import json
from collections import defaultdict
from decimal import Decimal

import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.pages import perfetto_trace
from commsim.pages.perfetto_trace import write_chrome
from commsim.pages.simulated_run import simulate_run
from commsim.pages.timeline import make_timeline
from commsim.prediction.build import prepare
from commsim.prediction.scenario import Wish

NETWORK = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=2,bandwidth=100Gbps,latency=1us"
COLLECTIVES = ["ring_all_reduce", "pairwise_all_to_all", "double_tree_all_reduce:n_chunks=3"]


def played(collective="ring_all_reduce", size=2**16, **options):
    return simulate_run(collective, prepare(collective, NETWORK), size, Wish.of(**options))


def written(run, path, **options):
    n = write_chrome(make_timeline(run, **options), path)
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    tree = json.loads(text, parse_float=Decimal)
    assert len(tree["traceEvents"]) == n
    return tree["traceEvents"]


def overlaps(slices):
    lanes = defaultdict(list)
    for pid, tid, start, end in slices:
        lanes[pid, tid].append((start, end))
    return [lane for lane, on in lanes.items() for a, b in zip(sorted(on), sorted(on)[1:], strict=False) if a[1] > b[0]]


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("engine", ["flow", "alpha-beta"])
def test_json_has_the_engines_times_and_no_overlap(tmp_path, collective, engine):
    run = played(collective, engine=engine)
    events = written(run, tmp_path / "t.json.gz")
    slices = [e for e in events if e["ph"] == "X"]
    assert not overlaps((e["pid"], e["tid"], e["ts"], e["ts"] + e["dur"]) for e in slices)
    sends = {e["args"]["transfer"]: e for e in slices if e["cat"].startswith("send")}
    assert set(sends) == set(range(len(run.n_bytes)))
    for i, event in sends.items():
        assert abs(float(event["ts"]) * 1e-6 - run.trace.start[i]) <= 1e-12
        assert abs(float(event["dur"]) * 1e-6 - (run.trace.sent[i] - run.trace.start[i])) <= 1.01e-12
        assert float(event["args"]["bytes"]) == run.n_bytes[i]
    critical = {e["args"]["transfer"] for e in slices if e["cat"] == "send,critical"}
    assert critical == set(run.critical.transfers)


def test_arrows_go_from_the_senders_slice_to_the_receivers(tmp_path):
    run = played()
    events = written(run, tmp_path / "t.json")
    begin = {e["id"]: e for e in events if e["ph"] == "s"}
    end = {e["id"]: e for e in events if e["ph"] == "f"}
    assert set(begin) == set(end) == set(range(len(run.n_bytes)))
    named = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    ends = run.prepared.plan.ends[run.prepared.plan.connection_of]
    for i in begin:
        assert named[begin[i]["pid"]].startswith(f"rank {ends[i, 0]} ")
        assert named[end[i]["pid"]].startswith(f"rank {ends[i, 1]} ")
        assert begin[i]["ts"] <= end[i]["ts"]
    some = written(run, tmp_path / "t.json", arrows="critical")
    assert {e["id"] for e in some if e["ph"] == "s"} == set(run.critical.transfers)
    assert not [e for e in written(run, tmp_path / "t.json", arrows="none") if e["ph"] in "sf"]


def test_counters_integrate_to_the_bytes_of_each_link(tmp_path):
    run = played()
    by_name = defaultdict(list)
    for event in written(run, tmp_path / "t.json", show=("links",)):
        if event["ph"] == "C":
            by_name[event["name"]].append((float(event["ts"]) * 1e-6, float(event["args"]["percent"]) / 100))
    network = run.prepared.network
    assert len(by_name) == np.count_nonzero(run.result.link_bytes)
    for link in np.flatnonzero(run.result.link_bytes):
        steps = by_name[f"load {network.link_name(int(link))}"]
        carried = sum(load * (b[0] - a) for (a, load), b in itertools.pairwise(steps)) * network.bandwidth[link]
        assert carried == pytest.approx(run.result.link_bytes[link], rel=1e-3)  # percents have four digits
        assert steps[-1][1] == 0


def test_a_window_and_a_limit_make_it_smaller(tmp_path):
    run = played("pairwise_all_to_all")
    half = run.result.time / 2
    for options in ({"window": (half, run.result.time)}, {"limit": 5}):
        shown = {e["args"]["transfer"] for e in written(run, tmp_path / "t.json", **options) if e["ph"] == "X"}
        assert 0 < len(shown) < len(run.n_bytes)


def test_the_same_run_gives_the_same_bytes(tmp_path):
    for name in ("a.json.gz", "b.json.gz"):
        write_chrome(make_timeline(played()), tmp_path / name)
    assert (tmp_path / "a.json.gz").read_bytes() == (tmp_path / "b.json.gz").read_bytes()


def parsed(path):
    pytest.importorskip("perfetto")
    trace = perfetto_trace.require_perfetto().Trace()
    trace.ParseFromString(path.read_bytes())
    return trace.packet


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_perfettos_own_format_holds_the_same_slices(tmp_path, collective, monkeypatch):
    pytest.importorskip("perfetto")
    monkeypatch.setattr(perfetto_trace, "AT_ONCE", 16)
    run = played(collective)
    n = perfetto_trace.write_perfetto(make_timeline(run), tmp_path / "t.pftrace")
    packets = parsed(tmp_path / "t.pftrace")
    assert len(packets) == n
    tracks = {p.track_descriptor.uuid for p in packets if p.HasField("track_descriptor")}
    kinds = perfetto_trace.require_perfetto().TrackEvent
    open_slice, slices = {}, []
    for packet in packets:
        event = packet.track_event
        if event.type == kinds.TYPE_SLICE_BEGIN:
            assert event.track_uuid in tracks
            assert event.track_uuid not in open_slice, "two slices are open on one track"
            open_slice[event.track_uuid] = packet
        elif event.type == kinds.TYPE_SLICE_END:
            begin = open_slice.pop(event.track_uuid)
            values = {note.name: note.int_value or note.double_value for note in begin.track_event.debug_annotations}
            slices.append(
                (event.track_uuid, begin.timestamp, packet.timestamp, begin.track_event.categories[0], values)
            )
    assert not open_slice
    assert not overlaps((0, track, start, end) for track, start, end, _, _ in slices)
    sends = {values["transfer"]: (start, end) for _, start, end, kind, values in slices if kind == "send"}
    for i in range(len(run.n_bytes)):
        assert sends[i][0] == int(round(run.trace.start[i] * 1e12) // 1000)
        assert sends[i][1] == int(round(run.trace.sent[i] * 1e12) // 1000)
    flows = [p.track_event.flow_ids[0] for p in packets if p.track_event.flow_ids]
    ends = [p.track_event.terminating_flow_ids[0] for p in packets if p.track_event.terminating_flow_ids]
    assert sorted(flows) == sorted(ends) == [i + 1 for i in range(len(run.n_bytes))]


def test_without_the_package_one_line_says_what_to_install(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "perfetto.protos.perfetto.trace", None)
    with pytest.raises(InputError, match=r"pip install 'commsim\[perfetto\]', or write .json.gz"):
        perfetto_trace.require_perfetto()
