"""A running job held against what it should reach: communicators, late ranks, slow rails, files that grow."""

import json
import math
import urllib.request

import pytest

import commsim as cs
from benchmarks.diagnosis.inspector_lines import MadeJob, lines_of
from commsim.core.errors import InputError
from commsim.diagnosis.communicators import Communicators
from commsim.diagnosis.live_expectations import LiveExpectations
from commsim.diagnosis.live_records import LiveRecord, of_line
from commsim.diagnosis.prometheus_page import prometheus_text, serve_page
from commsim.diagnosis.watched_job import WatchedJob

MACHINE, SIZE = "hgx-h100", 2.0**30
RAILS = [(f"rail {place}", "all_reduce", SIZE) for place in range(8)]


@pytest.fixture(scope="module")
def expectations():
    return LiveExpectations(MACHINE, 0.01)


def seconds_of(expectations, factor):
    """Return a function that has calls take what is expected, times a factor of the communicator."""

    def seconds(name, operation, size):
        found = expectations.of((2, 2) if name.startswith("rail") else (16, 2), operation, size)
        return found.time * factor(name)

    return seconds


def write(folder, lines):
    folder.mkdir(exist_ok=True)
    for name, line in lines:
        with (folder / name).open("a") as file:
            file.write(line)


def test_a_rail_at_a_third_of_its_rate_and_a_late_rank_are_named(tmp_path, expectations):
    seconds = seconds_of(expectations, lambda name: 3.0 if name == "rail 3" else 1.0)
    made = MadeJob(2, 8, seconds, late={"world": 11})
    write(tmp_path / "job", lines_of(made, [("world", "all_gather", SIZE), *RAILS] * 30))
    job = WatchedJob.of_path(tmp_path / "job", expectations)
    assert job.read(is_end=True) == 30 * (16 + 8 * 2)
    rows = job.rows()
    assert len(rows) == 9
    assert (rows[0].name, rows[0].verdict) == ("rail 3", "below")
    assert {row.verdict for row in rows[1:]} == {"normal"}
    (world,) = (row for row in rows if row.name == "world")
    assert (world.late_rank, world.late_host, world.operation) == (11, "node01", "all_gather")
    assert world.ratio == pytest.approx(1.0, rel=1e-3)
    rails = job.rails(rows)
    assert rails[0].rail == 3
    assert rails[0].ratio == pytest.approx(1 / 3, rel=1e-3)
    assert [one.ratio for one in rails[1:]] == pytest.approx([1.0] * 7, rel=1e-3)


def test_waiting_for_the_last_rank_is_not_the_time_of_the_call():
    """Of two ranks that wait for the third in each call, one by a second: the call took what the third one has."""
    found = Communicators()
    for number in range(20):
        times = [2.0, 1.5, 1.0]
        found.add(LiveRecord("c", "", 3, 1, rank, "all_reduce", SIZE, times[rank], number) for rank in range(3))
    (series,) = found.series.values()
    assert series.typical() == (SIZE, 1.0)
    assert series.latest_rank() == (2, 1.0)


def test_ranks_that_are_late_in_turn_are_none():
    found = Communicators()
    for number in range(40):
        found.add(
            LiveRecord("c", "", 4, 1, rank, "all_reduce", SIZE, 1.0 if rank == number % 4 else 1.5, number)
            for rank in range(4)
        )
    (series,) = found.series.values()
    assert series.latest_rank() is None


def test_calls_of_which_ranks_are_missing_are_taken_at_the_end():
    found = Communicators()
    found.add(LiveRecord("c", "", 8, 1, 0, "all_reduce", SIZE, 1.0, number) for number in range(5))
    (series,) = found.series.values()
    assert series.n_calls == 0
    found.settle(3)
    assert series.n_calls == 2
    found.settle(0)
    assert series.n_calls == 5


def test_a_file_that_grows_is_read_on_and_a_line_that_is_not_whole_waits(tmp_path, expectations):
    made = MadeJob(1, 2, lambda *_: 0.005)
    lines = [line for _, line in lines_of(made, [("world", "all_reduce", SIZE)] * 4)]
    path = tmp_path / "a.log"
    path.write_text("".join(lines[:4]) + lines[4][:50])
    job = WatchedJob.of_path(path, expectations)
    assert job.read() == 4
    assert job.read() == 0
    with path.open("a") as file:
        file.write(lines[4][50:] + "".join(lines[5:]) + "{}\n")
    assert job.read() == 4
    assert job.files.n_left_out == 1
    path.write_text("".join(lines[:2]))  # written anew
    assert job.read() == 2


def test_what_is_no_line_of_a_collective_is_none():
    (_, line), *_ = lines_of(MadeJob(1, 2, lambda *_: 0.005), [("world", "reduce_scatter", SIZE)])
    tree = json.loads(line)
    perf = tree["coll_perf"]
    assert of_line(line).size == SIZE
    assert of_line(line).seconds == pytest.approx(0.005)
    for wrong in ("", "[]", "{", json.dumps({**tree, "coll_perf": 3}), json.dumps({"header": tree["header"]}),
                  json.dumps({**tree, "coll_perf": perf | {"coll": "Unheard"}}),
                  json.dumps({**tree, "coll_perf": perf | {"coll_msg_size_bytes": 2**40 + 1}})):  # fmt: skip
        assert of_line(wrong) is None


def test_records_of_the_flight_recorder_are_read_by_rank(tmp_path, expectations):
    entry = {"profiling_name": "nccl:all_reduce", "process_group": ["0", "default_pg"], "input_sizes": [[2**28]],
             "output_sizes": [[2**28]], "input_dtypes": ["Float"], "output_dtypes": ["Float"], "state": "completed",
             "time_created_ns": 1}  # fmt: skip
    config = {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3, 4, 5, 6, 7]"}}
    for rank in range(8):
        calls = [entry | {"collective_seq_id": n, "duration_ms": 4.0 if rank == 6 else 9.0} for n in range(10)]
        damaged = {"output_sizes": [[2**40]], "input_sizes": [[2**40]], "collective_seq_id": 10, "duration_ms": 4.0}
        calls += [entry | damaged | {"profiling_name": f"nccl:{name}"} for name in ("all_reduce", "all_to_all")]
        (tmp_path / f"nccl_trace_rank_{rank}").write_text(
            json.dumps({"version": "2.10", "rank": rank, "pg_config": config, "entries": calls})
        )
    job = WatchedJob.of_path(tmp_path, expectations)
    assert job.read(is_end=True) == 80
    assert job.files.n_left_out == 16  # of 4 TiB on each rank
    (row,) = job.rows()
    assert (row.n_ranks, row.n_calls, row.late_rank, row.size) == (8, 10, 6, SIZE)
    assert row.measured == pytest.approx(SIZE / 4e-3 * 14 / 8)
    assert row.verdict == "normal"


def test_expectations_between_powers_of_two_are_between_theirs(expectations):
    low, middle, high = (expectations.of((8, 1), "all_reduce", size) for size in (2**20, 1.5 * 2**20, 2**21))
    assert low.busbw < middle.busbw < high.busbw
    assert low == cs.expect(MACHINE, ["all_reduce"], ["1MiB"]).sizes[0]


def test_a_communicator_of_one_gpu_of_each_machine_has_its_own_nics_only(expectations):
    """A data-parallel group over two machines leaves each by one NIC of 400 Gb/s."""
    found = expectations.of((2, 2), "all_gather", SIZE)
    assert 20e9 < found.busbw < 50e9
    assert isinstance(expectations.of((3, 2), "all_reduce", SIZE), str)


def test_the_page_of_prometheus_is_served_here_only(tmp_path, expectations):
    made = MadeJob(1, 8, lambda *_: 0.02)
    write(tmp_path / "job", lines_of(made, [("world", "all_reduce", SIZE)] * 3))
    job = WatchedJob.of_path(tmp_path / "job", expectations)
    job.read(is_end=True)
    rows = [row._replace(name='a "b"\\') for row in job.rows()]
    text = prometheus_text(rows, [], 24, 1)
    server = serve_page(0, lambda: text)
    try:
        host, port = server.server_address
        assert host == "127.0.0.1"
        served = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5).read().decode()
    finally:
        server.shutdown()
        server.server_close()
    assert served == text
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    (below,) = (value for name, value in values.items() if name.startswith("commsim_below_floor{"))
    assert below == "1"
    assert any(r'comm_name="a \"b\"\\"' in name for name in values)
    assert math.isclose(float(values["commsim_records_total"]), 24)


def test_a_folder_without_records_is_refused(tmp_path, expectations):
    (tmp_path / "a.txt").write_text("hello\n")
    job = WatchedJob.of_path(tmp_path, expectations)
    job.read(is_end=True)
    with pytest.raises(InputError, match="no records of collectives"):
        job.require_records()
