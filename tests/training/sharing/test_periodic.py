import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.placement.starts.circles import rates_at
from commsim.training.sharing.periodic import JobPhase, PeriodicJob, parse_jobs, read_jobs

ROW = {"job": "vgg16", "gpus": 2, "iter_time_ms": 255, "phases": [{"offset_ms": 141, "dur_ms": 114, "rate_Gbps": 40}]}


def with_phases(*phases, **changes):
    names = ("offset_ms", "dur_ms", "rate_Gbps", "overlap_ms")
    return [ROW | {"phases": [dict(zip(names, p, strict=False)) for p in phases]} | changes]


def test_a_job_is_read_in_seconds_and_bytes(tmp_path):
    (tmp_path / "jobs.json").write_text(json.dumps([ROW, ROW | {"job": "b", "placement": ["h0", "h1"]}]))
    vgg, b = read_jobs(tmp_path / "jobs.json")
    assert vgg == PeriodicJob("vgg16", 2, 0.255, (JobPhase(0.141, 0.114, 5e9),))
    assert (vgg.n_bytes, vgg.communication_time) == (0.114 * 5e9, 0.114)
    assert vgg.placement is None
    assert b.placement == ("h0", "h1")


def test_demand_repeats_and_wraps_round_the_end_of_the_iteration():
    job = PeriodicJob("a", 1, 10.0, (JobPhase(2.0, 1.0, 5.0), JobPhase(8.0, 4.0, 3.0)))
    times = np.array([0.0, 1.9, 2.0, 2.9, 3.0, 7.9, 8.0, 9.9])
    expected = [3.0, 3.0, 5.0, 5.0, 0.0, 0.0, 3.0, 3.0]
    for turn in (-10.0, 0.0, 10.0):
        assert rates_at(job, times + turn).tolist() == expected


@given(
    cuts=st.lists(st.integers(0, 1000), min_size=2, max_size=9, unique=True).map(sorted),
    turn=st.integers(0, 1000),
)
def test_the_mean_of_the_demand_is_the_bytes_of_an_iteration(cuts, turn):
    pairs = list(zip(cuts[::2], cuts[1::2], strict=False))
    shifted = sorted(((a + turn) % 1000, b - a) for a, b in pairs)
    job = PeriodicJob("a", 1, 1000.0, tuple(JobPhase(float(a), float(n), 2.0 + i) for i, (a, n) in enumerate(shifted)))
    assert rates_at(job, np.arange(1000) + 0.5).sum() == job.n_bytes


def test_what_a_job_computes_is_all_but_communication_that_nothing_overlaps():
    (job,) = parse_jobs(with_phases((10, 20, 1, 5), (100, 10, 1, 40), (200, 50, 1)))
    assert job.compute_time == pytest.approx(0.255 - 0.015 - 0.050)
    assert job.overlap == pytest.approx(0.045)
    assert job.slack == pytest.approx(0.030)


def test_phases_may_touch_whatever_their_decimals():
    (job,) = parse_jobs(with_phases((0.1, 0.2, 1), (0.3, 99.7, 1), (100.0, 0.1, 1), iter_time_ms=100.1))
    assert len(job.phases) == 3


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], r"jobs: must be a list of jobs, at least one, got list \[\]"),
        ({"jobs": []}, "must be a list of jobs, at least one, got dict"),
        ([3], r"\[0\] must be a table, got int"),
        ([ROW, ROW], r"\[1\].job must be another name than 'vgg16', which job 0 has"),
        ([ROW | {"job": 3}], r"\[0\].job must be text, got 3"),
        ([ROW | {"job": "a\nb"}], r"\[0\].job must be printable text"),
        ([ROW | {"gpus": 0}], r"\[0\].gpus must be a whole number 1"),
        ([ROW | {"gpus": True}], r"\[0\].gpus must be a whole number 1"),
        ([ROW | {"gpus": 2.0}], r"\[0\].gpus must be a whole number 1"),
        ([ROW | {"iter_time_ms": 0}], r"\[0\].iter_time_ms must be more than 0, got 0"),
        ([ROW | {"iter_time_ms": math.nan}], r"\[0\].iter_time_ms must be a finite number, got nan"),
        ([ROW | {"iter_time_ms": "255"}], r"\[0\].iter_time_ms must be a finite number, got '255'"),
        ([ROW | {"iter_ms": 1}], r"\[0\].iter_ms is not a field here; did you mean iter_time_ms"),
        ([{k: v for k, v in ROW.items() if k != "phases"}], r"\[0\].phases is missing"),
        ([ROW | {"phases": [1]}], r"\[0\].phases\[0\] must be a table, got 1"),
        (with_phases((-1, 5, 1)), r"\[0\].phases\[0\].offset_ms must be 0 or more.*got -1"),
        (with_phases((255, 5, 1)), r"offset_ms must be 0 or more, and less than the iteration time, got 255"),
        (with_phases((0, 0, 1)), r"dur_ms must be more than 0, and at most the iteration time, got 0"),
        (with_phases((0, 256, 1)), r"dur_ms must be more than 0, and at most the iteration time, got 256"),
        (with_phases((0, 1, 0)), r"rate_Gbps must be more than 0, and at most 144000, got 0"),
        (with_phases((0, 1, 1e302)), r"rate_Gbps must be more than 0"),
        (with_phases((0, 1, 145e3)), r"rate_Gbps must be more than 0, and at most 144000, got 145000"),
        ([ROW | {"phases": [{"offset_ms": 0, "bytes": 1e18}]}], r"bytes must be more than 0, and at most 1e\+15, got"),
        (
            with_phases((0, 10, 1, -1)),
            r"phases\[0\].overlap_ms must be 0 or more, and end before.*got -1",
        ),
        (with_phases((0, 10, 1, 31), (30, 10, 1)), r"overlap_ms must be .* got 31"),
        (with_phases((10, 10, 1, 256)), r"overlap_ms must be .* got 256"),
        (with_phases((0, 10, 1), (9, 10, 1)), r"phases\[1\].offset_ms must be at or after the end of the phase before"),
        (with_phases((20, 10, 1), (0, 10, 1)), r"phases\[1\].offset_ms must be at or after the end"),
        (with_phases((10, 10, 1), (200, 66, 1)), r"phases\[1\].dur_ms must be such that it ends before the first"),
        (
            [ROW | {"gpus": 3, "placement": ["h0", "h1"]}],
            r"\[0\].placement must name 3 nodes, one per GPU, such as h0 .*, got 2",
        ),
        ([ROW | {"placement": ["h0", "h1", "h2"]}], r"got 3: a job that shrinks lists the 2 that it keeps"),
        ([ROW | {"placed": ["h0", "h1", "h2"]}], r"the job has 2: a job that shrinks lists the 2 that it keeps"),
        ([ROW | {"placement": ["h0", 1]}], r"\[0\].placement\[1\] must be the name of a node, got 1"),
        (
            [ROW | {"start_ms": 255000}],
            r"\[0\].start_ms must be 0 or more, and less than 1000 iteration times, got 255000",
        ),
        ([ROW | {"start_ms": -1}], r"\[0\].start_ms must be 0 or more, and less than 1000 iteration times, got -1"),
        ([ROW | {"start_ms": "1"}], r"\[0\].start_ms must be a finite number, got '1'"),
        ([ROW | {"placement": "h0"}], r"\[0\].placement must be a list"),
    ],
)
def test_what_is_wrong_is_named(rows, message):
    with pytest.raises(InputError, match=message):
        parse_jobs(rows)


def test_the_file_and_the_line_are_named(tmp_path):
    path = tmp_path / "jobs.json"
    path.write_text(json.dumps([ROW, ROW | {"job": "b", "gpus": -1}], indent=1))
    with pytest.raises(InputError, match=r"jobs.json, line 16: \[1\].gpus must be .*got -1"):
        read_jobs(path)
    path.write_text("[{")
    with pytest.raises(InputError, match=r"jobs\.json: "):
        read_jobs(path)
    with pytest.raises(InputError, match=r"none.json: No such file"):
        read_jobs(tmp_path / "none.json")


def test_where_a_list_is_inside_of_a_request_is_said():
    with pytest.raises(InputError, match=r"request: jobs\[0\].gpus must be"):
        parse_jobs([ROW | {"gpus": 0}], "request", ("jobs",))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": ""}, "a job's name is printable text"),
        ({"n_gpus": 0}, "n_gpus must be at least 1"),
        ({"period": math.inf}, "period must be positive and finite"),
        ({"placement": ("h0",)}, "2 GPUs need as many places, got 1"),
        (
            {"phases": (JobPhase(0.0, 2.0, 1.0),)},
            "phase 0: duration must be more than 0, and at most the iteration time",
        ),
        ({"phases": (JobPhase(0.0, 1.0, math.nan),)}, "phase 0: rate must be more than 0, got nan"),
    ],
)
def test_a_job_made_by_hand_is_checked_as_well(change, message):
    good = {"name": "a", "n_gpus": 2, "period": 1.0, "phases": ()}
    assert PeriodicJob(**good).n_bytes == 0
    with pytest.raises(InputError, match=message):
        PeriodicJob(**(good | change))


def test_a_placement_may_say_how_many_gpus_of_a_node():
    row = {"job": "a", "gpus": 4, "iter_time_ms": 40, "phases": [], "placement": ["h0x3", "h1"]}
    assert parse_jobs([row])[0].placement == ("h0", "h0", "h0", "h1")
    named = {**row, "gpus": 2, "placement": ["h0x3", "h1"]}  # one name for each GPU: a node may be called h0x3
    assert parse_jobs([named])[0].placement == ("h0x3", "h1")
    with pytest.raises(InputError, match=r"must name 4 nodes, .* such as h0 or h0x4 .*, or h0-3x4 .*, got 3"):
        parse_jobs([{**row, "placement": ["h0x2", "h1"]}])


@pytest.mark.parametrize("names", [["h[0-1]"], ["h0", "h1"], ["h0-1"], ["h0x4", "h1x4"]])
def test_hosts_without_counts_have_equal_parts_of_a_job(names):
    """``h[0-1]`` of eight GPUs was refused, as Slurm's own output gives the hosts of a job."""
    row = {"job": "a", "gpus": 8, "iter_time_ms": 40, "phases": [], "placement": names}
    assert parse_jobs([row])[0].placement == ("h0",) * 4 + ("h1",) * 4


def test_a_data_frame_is_read_as_its_rows_without_empty_fields() -> None:
    """NaN of a job without a start was refused, after the frame itself was."""
    pandas = pytest.importorskip("pandas")
    phases = [{"offset_ms": 0, "dur_ms": 10, "rate_Gbps": 40}]
    rows = [
        {"job": "a", "gpus": 2, "iter_time_ms": 100, "phases": phases, "placement": ["h0", "h1"], "start_ms": 5},
        {"job": "b", "gpus": 2, "iter_time_ms": 100, "phases": phases},
    ]
    assert read_jobs(pandas.DataFrame(rows)) == read_jobs(rows)


def test_a_file_may_have_the_form_of_the_service(tmp_path) -> None:
    """The body of a request and the answer of `GET /jobs` were refused: must be a list of jobs, got dict."""
    row = {"job": "a", "gpus": 4, "iter_time_ms": 10, "phases": [], "gpus_per_host": 2}
    for tree in ([row], {"jobs": [row]}, {"version": 3, "jobs": [row]}):
        (tmp_path / "jobs.json").write_text(json.dumps(tree))
        (job,) = read_jobs(tmp_path / "jobs.json")
        assert (job.n_gpus, job.gpus_per_host) == (4, 2)
    (tmp_path / "jobs.json").write_text(json.dumps({"jobs": [row], "reserve": True}))
    with pytest.raises(InputError, match="must be a list of jobs, at least one, got dict"):
        read_jobs(tmp_path / "jobs.json")
    with pytest.raises(InputError, match="must be a list of jobs, at least one, got list"):
        read_jobs([])
    with pytest.raises(InputError, match=r'placement must be a list of names of nodes, such as \["h0x4", "h1x4"\]'):
        read_jobs([row | {"placement": "h0-1x2"}])
