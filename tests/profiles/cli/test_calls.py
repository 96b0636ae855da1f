import json

import pytest


def record(path, n=6, ms=2.0):
    entries = [
        {"profiling_name": "nccl:all_reduce", "process_group": ["0", "d"], "input_sizes": [[size]],
         "input_dtypes": ["Float"],
         "output_sizes": [[size]], "output_dtypes": ["Float"], "duration_ms": ms, "time_created_ns": 0,
         "time_discovered_started_ns": int((0.1 * i + offset) * 1e9), "time_discovered_completed_ns": None}
        for i in range(n) for offset, size in ((0.01, 1000), (0.05, 4000))
    ]  # fmt: skip
    path.write_text(json.dumps({"entries": entries, "pg_config": {"0": {"ranks": "[0, 1, 2, 3]"}}}))
    return path


def test_a_profile_becomes_a_job_and_a_graph(commsim, tmp_path):
    job, graph = tmp_path / "job.json", tmp_path / "graph.toml"
    path = record(tmp_path / "trace_rank1.json")
    tree = commsim.results("workload", "calls", path, "--job", job, "--graph", graph, "--name", "model", "-v")
    assert "iteration: 2 calls in 100 ms, 6 in the profile" in commsim.out
    assert "1 of 4 ranks have a file; without one: 0, 2, 3" in commsim.out
    assert tree["period_s"] == pytest.approx(0.1)
    assert [row["size_B"] for row in tree["results"]] == [4000.0, 16000.0]
    assert json.loads(job.read_text())[0]["job"] == "model"
    assert (
        commsim("workload", "run", "--graph", graph, "--network", "star:n_hosts=4,bandwidth=10Gbps", "-v").code == 0
    ), commsim.err


def test_ranks_are_read_from_several_files_and_none_twice(commsim, tmp_path):
    files = [record(tmp_path / f"trace_rank{rank}.json") for rank in range(4)]
    assert commsim("workload", "calls", *files).code == 0
    assert "without one" not in commsim.out
    assert "two files are of rank 2" in commsim.refuses("workload", "calls", files[2], files[2])


def test_what_has_no_iteration_is_refused(commsim, tmp_path):
    once = record(tmp_path / "rank0.json", n=1)
    assert "give it, as in --period 200ms" in commsim.refuses("workload", "calls", once, "--job", tmp_path / "job.json")
    untimed = record(tmp_path / "rank0.json", ms=None)
    assert "has no duration" in commsim.refuses("workload", "calls", untimed, "--job", tmp_path / "job.json")
    assert not (tmp_path / "job.json").exists()


def gloo_trace(path, rank, slow=1.0):
    """A step of a processor as gloo's profile has it, three times: two all-reduces, the second one waited for."""
    events, at = [], 0.0

    def span(kind, name, start, length, tid=1, **args):
        events.append(
            {"ph": "X", "cat": kind, "name": name, "pid": 1, "tid": tid, "ts": start, "dur": length, "args": args}
        )

    for step in range(4):
        span("user_annotation", f"ProfilerStep#{step}", at, 9000)
        for k in range(40):  # operators with pauses between them
            span("cpu_op", "aten::mm", at + 100 * k, 95)
        span("cpu_op", "c10d::allreduce_", at + 2095, 4)
        span("user_annotation", "gloo:all_reduce", at + 2110, 1500 * slow, tid=7 + step % 2)
        span("cpu_op", "c10d::allreduce_", at + 3995, 4)
        span("user_annotation", "gloo:all_reduce", at + 4010, 3000 * slow, tid=8 - step % 2)
        at += 4010 + 3000 * slow
        span("user_annotation", "Optimizer.step#SGD.step", at + 2, 500)
        for k in range(5):
            span("cpu_op", "aten::add_", at + 5 + 100 * k, 95)
        at += 500
    about = {"rank": rank, "world_size": 4, "pg_config": [
        {"pg_name": "0", "pg_desc": "default_pg", "pg_size": 4, "ranks": [0, 1, 2, 3]}]}  # fmt: skip
    path.write_text(json.dumps({"distributedInfo": about, "baseTimeNanoseconds": 10**18, "traceEvents": events}))
    entries = [
        {"profiling_name": "gloo:all_reduce", "process_group": ["0", "default_pg"], "input_sizes": [[size]],
         "input_dtypes": ["Float"], "output_sizes": [[size]], "output_dtypes": ["Float"],
         "time_created_ns": 10**18 + round(1e3 * (issued + step * (4510 + 3000 * slow)))}
        for step in range(4) for issued, size in ((2097, 10**6), (3997, 2 * 10**6))
    ]  # fmt: skip
    record = path.with_name(f"flight_rank{rank}.json")
    record.write_text(
        json.dumps({"entries": entries, "pg_config": {"0": {"desc": "default_pg", "ranks": "[0,1,2,3]"}}})
    )
    return path, record


def test_a_profile_is_timed_again_on_another_network_with_more_ranks(commsim, tmp_path):
    files = [file for rank in range(4) for file in gloo_trace(tmp_path / f"rank{rank}.json", rank)]
    network = ("--network", "star:n_hosts=16,bandwidth=100Gbps")
    phases, timeline = tmp_path / "phases.json", tmp_path / "timeline.json"
    tree = commsim.results(
        "workload", "calls", *files, *network, "--ranks", 16, "--phases", phases, "--timeline", timeline, "-v"
    )
    assert [(row["size_B"], row["n_ranks"], row["calls"]) for row in tree["results"]] == [(8e6, 16, 1), (4e6, 16, 1)]
    first, second = (row["time_s"] for row in tree["results"])
    assert second < 1.9e-3  # the smaller hides behind computation
    assert tree["step_s"] == pytest.approx(3.995e-3 + first + 0.5e-3, abs=2e-5)
    assert tree["traced_step_s"] == pytest.approx(7.51e-3)
    assert tree["exposed_comm_s"] == pytest.approx(first, abs=2e-5)
    assert "each rank of the profile stands for 4" in commsim.out
    (job,) = json.loads(phases.read_text())
    assert sum(p["bytes"] for p in job["phases"]) == pytest.approx(12e6 * 2 * 15 / 16)
    # On a network phases are demand, and the period is without what their bytes take beyond the computation beside.
    exposed = [max(p["bytes"] * 8e3 / 100e9 - p.get("overlap_ms", 0.0), 0.0) for p in job["phases"]]
    assert exposed == [0.0, pytest.approx(1.2 - 0.002)]
    assert (job["gpus"], job["iter_time_ms"]) == (16, pytest.approx(tree["step_s"] * 1e3 - sum(exposed)))
    assert {event["name"] for event in json.loads(timeline.read_text())["traceEvents"]} > {"all_reduce default_pg 0"}
    assert (
        commsim("workload", "share", "star:n_hosts=16", phases, "-v").code == 2
    )  # it is read, and has no placement yet
    assert "needs a placement" in commsim.err


def test_what_changes_nothing_or_cannot_be_is_refused(commsim, tmp_path):
    trace, record = gloo_trace(tmp_path / "rank0.json", 0)
    network = ("--network", "star:n_hosts=16")
    assert "--ranks goes with --network or --bandwidth" in commsim.refuses("workload", "calls", trace, "--ranks", 8)
    assert "--job is of the profile as it is" in commsim.refuses(
        "workload", "calls", trace, *network, "--job", tmp_path / "j.json"
    )
    assert "record_shapes=True, add the rank's flight recorder" in commsim.refuses("workload", "calls", trace, *network)
    assert "the 4 ranks of the profile, times 1 to" in commsim.refuses(
        "workload", "calls", trace, record, *network, "--ranks", 6
    )
    assert "two files of one kind are of rank 0" in commsim.refuses("workload", "calls", trace, trace, record, *network)
    assert "--size must be NAME=SIZE" in commsim.refuses("workload", "calls", trace, *network, "--size", "4MB")
    assert "has 8 hosts), got 32" in commsim.refuses(
        "workload", "calls", trace, record, "--network", "star:n_hosts=8", "--ranks", 32
    )
    commsim("workload", "calls", trace, "-v")
    assert "the bytes of 8 calls are not recorded" in commsim.out
