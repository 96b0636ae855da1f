import itertools
import json

import pytest

from commsim import predict
from commsim.core.errors import InputError
from commsim.core.files.sweep_store import read_description
from commsim.sweep.compute import Bench
from commsim.sweep.run_sweep import run_sweep
from commsim.sweep.table import read_table
from commsim.sweep.worker import one_line


def test_every_point_has_the_numbers_that_a_prediction_by_itself_has(small, tmp_path):
    done = run_sweep(small, tmp_path / "r", "serial")
    assert (done.n_points, done.n_before, done.n_done, done.n_failed) == (24, 0, 24, 0)
    rows = read_table(tmp_path / "r").to_pylist()
    assert [row["order"] for row in rows] == list(range(24))
    for row in rows:
        network = f"star:n_hosts=8,bandwidth={row['topology.bandwidth'] * 8e-9:.0f}Gbps,latency=1us"
        found = predict(row["collective.name"], network, row["collective.size"], n_ranks=row["collective.ranks"],
                        engine="alpha-beta")  # fmt: skip
        assert (row["time_s"], row["busbw_Bps"], row["size_B"]) == (found.time, found.busbw, found.size)
        assert row["counters.transfers"] == found.counters["transfers"]
        assert row["error"] is None


def test_a_sweep_in_parts_is_the_sweep_in_one_go(small, tmp_path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    run_sweep(small, whole, "serial")
    taste = run_sweep(small, parts, "serial", limit=5)
    assert (taste.n_points, taste.n_done) == (5, 5)
    orders = read_table(parts).column("order").to_pylist()
    assert max(b - a for a, b in itertools.pairwise(orders)) <= 5  # spread over the sweep
    rest = run_sweep(small, parts, "serial")
    assert (rest.n_points, rest.n_before, rest.n_done) == (24, 5, 24)
    again = run_sweep(small, parts, "serial")
    assert (again.n_before, again.n_done) == (24, 24)
    assert read_table(parts).equals(read_table(whole), check_metadata=True)


def test_a_point_that_fails_is_a_row_with_its_error(small, tmp_path):
    small["collective"]["ranks"] = [4, 9]
    done = run_sweep(small, tmp_path / "r", "serial")
    assert (done.n_done, done.n_failed) == (24, 12)
    rows = read_table(tmp_path / "r").to_pylist()
    failed = [row for row in rows if row["collective.ranks"] == 9]
    assert all(row["error"].endswith("has 8 hosts), got 9") for row in failed)
    assert all(row["time_s"] is None for row in failed)
    assert all(row["error"] is None for row in rows if row["collective.ranks"] == 4)


def test_points_that_failed_are_kept_until_they_are_asked_for_again(small, tmp_path, monkeypatch):
    run_sweep(small, tmp_path / "whole", "serial")
    with monkeypatch.context() as broken:
        row = Bench.row
        broken.setattr(Bench, "row", lambda self, seed, p: row(self, seed, p) if p["collective.ranks"] == 4 else 1 / 0)
        assert run_sweep(small, tmp_path / "r", "serial").n_failed == 12
    again = run_sweep(small, tmp_path / "r", "serial")
    assert (again.n_before, again.n_done, again.n_failed) == (24, 24, 12)
    retried = run_sweep(small, tmp_path / "r", "serial", retry_failed=True)
    assert (retried.n_before, retried.n_done, retried.n_failed) == (12, 24, 0)
    assert read_table(tmp_path / "r").equals(read_table(tmp_path / "whole"), check_metadata=True)


def test_points_that_fail_again_are_there_once(small, tmp_path):
    small["collective"]["ranks"] = [4, 9]
    run_sweep(small, tmp_path / "r", "serial")
    before = read_table(tmp_path / "r")
    done = run_sweep(small, tmp_path / "r", "serial", retry_failed=True)
    assert (done.n_before, done.n_done, done.n_failed) == (12, 24, 12)
    assert read_table(tmp_path / "r").equals(before, check_metadata=True)


def test_an_error_that_is_ours_says_its_type_on_one_line(small, tmp_path, monkeypatch):
    def broken(self, seed, parameters):
        raise ZeroDivisionError("one\ntwo" + "x" * 1000)

    monkeypatch.setattr("commsim.sweep.compute.Bench.row", broken)
    run_sweep(small, tmp_path / "r", "serial")
    errors = set(read_table(tmp_path / "r").column("error").to_pylist())
    assert len(errors) == 1
    assert errors.pop().startswith("ZeroDivisionError: one twoxxx")


def test_another_sweep_in_the_directory_is_refused(small, tmp_path):
    run_sweep(small, tmp_path / "r", "serial", limit=1)
    small["engine"] = {"name": "flow"}
    with pytest.raises(InputError, match="has the results of another sweep"):
        run_sweep(small, tmp_path / "r", "serial")


def test_another_version_in_the_directory_is_refused(small, tmp_path, monkeypatch):
    run_sweep(small, tmp_path / "r", "serial", limit=1)
    monkeypatch.setattr("commsim.version.__version__", "9.9")
    with pytest.raises(InputError, match=r"was begun by version \S+ of commsim, this is version 9.9"):
        run_sweep(small, tmp_path / "r", "serial")


def test_filters_that_contradict_each_other_are_refused(small, tmp_path):
    small["sweep"] = {"filters": ["ranks > 4", "ranks < 8"]}
    with pytest.raises(InputError, match="the filters leave none of 24 points"):
        run_sweep(small, tmp_path / "r", "serial")
    assert not (tmp_path / "r").exists()


def test_results_say_where_they_come_from_but_not_on_which_host(small, tmp_path):
    import platform

    run_sweep(small, tmp_path / "r", "serial", limit=1)
    run_sweep(small, tmp_path / "named", "serial", limit=1, host=True)
    about = read_description(tmp_path / "r")["provenance"]
    assert about["seed"] == 0
    assert {"platform", "machine", "python", "numpy", "numba"} == set(about["machine"])
    assert read_description(tmp_path / "named")["provenance"]["machine"]["host"] == platform.node()
    assert json.loads(read_table(tmp_path / "r").schema.metadata[b"commsim"]) == about


def test_seeds_are_those_of_the_prediction(small, tmp_path):
    small["sweep"] = {"seed": 5, "repeats": 2}
    small["engine"]["start_jitter"] = "1ms"
    small["collective"]["size"] = "1KiB"
    small["collective"]["ranks"] = 4
    run_sweep(small, tmp_path / "r", "serial")
    rows = read_table(tmp_path / "r").to_pylist()
    assert [row["seed"] for row in rows[:2]] == [5, 6]
    for row in rows[:2]:
        network = "star:n_hosts=8,bandwidth=100Gbps,latency=1us"
        found = predict("ring_all_reduce", network, 1024, n_ranks=4, engine="alpha-beta", start_jitter=1e-3,
                        seed=row["seed"])  # fmt: skip
        assert row["time_s"] == found.time
    assert rows[0]["time_s"] != rows[1]["time_s"]


def test_training_iterations_are_points_too(tmp_path):
    trace = tmp_path / "trace.csv"
    trace.write_text("numel,gap_us\n1000000,2000\n500000,1000\n250000,500\n")
    tree = {"workload": {"trace": str(trace), "workers": [2, 4], "policy": ["ddp", "ddp:bucket=1MiB"]},
            "case": [{"workload": {"bandwidth": ["10Gbps", "100Gbps"]}},
                     {"topology": {"name": "star", "n_hosts": 4, "bandwidth": "10Gbps"}}]}  # fmt: skip
    done = run_sweep(tree, tmp_path / "r", "serial")
    rows = read_table(tmp_path / "r").to_pylist()
    assert (done.n_failed, len(rows)) == (0, 12), [row["error"] for row in rows]
    slow, fast = (next(r for r in rows if r["workload.bandwidth"] == rate) for rate in (1.25e9, 12.5e9))
    assert slow["iteration_s"] > fast["iteration_s"] > slow["compute_s"] == pytest.approx(3.5e-3, rel=0.5)
    assert slow["scaling"] < fast["scaling"] < 1


def test_the_engine_may_be_chosen_for_every_point(small, tmp_path):
    from commsim.auto.choose import choose
    from commsim.prediction.build import prepare

    small["engine"] = {"name": "auto", "tolerance": 0.5, "overhead": "0us"}
    run_sweep(small, tmp_path / "r", "serial")
    rows = read_table(tmp_path / "r").to_pylist()
    for row in rows[:6]:
        network = "star:n_hosts=8,bandwidth=100Gbps,latency=1us"
        ready = prepare(row["collective.name"], network, n_ranks=row["collective.ranks"])
        said = {"engine": None, "error": None}
        try:
            said["engine"] = choose(ready, row["collective.size"], 0.5).engine
        except InputError as error:
            said["error"] = one_line(error)
        assert {key: row[key] for key in said} == said


@pytest.mark.parametrize("engine", [{"name": "auto"}, {"tolerance": 0.1}, {"payload": "4096B"}, {"window": "1MiB"}])
def test_options_that_need_another_engine_are_errors(small, tmp_path, engine):
    small["engine"] = engine
    done = run_sweep(small, tmp_path / "r", "serial")
    assert done.n_failed == 24


def test_a_row_does_not_depend_on_what_was_computed_before_it():
    from commsim.sweep.config import read_config
    from commsim.sweep.points import points

    network = {"name": "leaf_spine", "n_leaves": 8, "n_spines": 2, "hosts_per_leaf": 8, "oversubscription": 4}
    tree = {"topology": network,
            "collective": {"name": ["double_tree_all_reduce:n_chunks=8", "halving_doubling_all_reduce"], "ranks": 64,
                           "size": {"from": "64B", "to": "1GiB", "scale": "log", "steps": 9}}}  # fmt: skip
    config = read_config(tree)
    every = list(points(config))
    up, down = Bench(config.kinds), Bench(config.kinds)
    there = {p.digest: up.row(p.seed, p.parameters) for p in every}
    back = {p.digest: down.row(p.seed, p.parameters) for p in reversed(every)}
    alone = {p.digest: Bench(config.kinds).row(p.seed, p.parameters) for p in every}
    assert there == back == alone


def test_a_directory_that_cannot_be_made_is_refused(small, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be made"):
        run_sweep(small, tmp_path / "file" / "r", "serial")
