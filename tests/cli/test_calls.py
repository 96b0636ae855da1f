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
    tree = commsim.results("calls", path, "--job", job, "--graph", graph, "--name", "model")
    assert "iteration: 2 calls in 100 ms, 6 in the profile" in commsim.out
    assert "1 of 4 ranks have a file; without one: 0, 2, 3" in commsim.out
    assert tree["period_s"] == pytest.approx(0.1)
    assert [row["size_B"] for row in tree["results"]] == [4000.0, 16000.0]
    assert json.loads(job.read_text())[0]["job"] == "model"
    assert commsim("workload", "run", "--graph", graph, "--network", "star:n_hosts=4,bandwidth=10Gbps").code == 0, (
        commsim.err
    )


def test_ranks_are_read_from_several_files_and_none_twice(commsim, tmp_path):
    files = [record(tmp_path / f"trace_rank{rank}.json") for rank in range(4)]
    assert commsim("calls", *files).code == 0
    assert "without one" not in commsim.out
    assert "two files are of rank 2" in commsim.refuses("calls", files[2], files[2])


def test_what_has_no_iteration_is_refused(commsim, tmp_path):
    once = record(tmp_path / "rank0.json", n=1)
    assert "give it, as in --period 200ms" in commsim.refuses("calls", once, "--job", tmp_path / "job.json")
    untimed = record(tmp_path / "rank0.json", ms=None)
    assert "has no duration" in commsim.refuses("calls", untimed, "--job", tmp_path / "job.json")
    assert not (tmp_path / "job.json").exists()
