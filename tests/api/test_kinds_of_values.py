"""Every public function takes text, paths, values and plain dicts alike, and its first error says what it takes."""

import inspect
import json
from pathlib import Path

import numpy as np
import pytest

import commsim as cs

STAR = "star:n_hosts=4"
LEAF = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=2"
# Arguments after the first.
MORE = {
    "predict": (STAR, "1MiB"), "rank": (STAR, "1MiB"), "scenario_of": (STAR,), "place": (3,),
    "load_placement": (STAR, 4),
    "over_bound": (STAR, "1MiB"), "lower_bound": (STAR,), "synthesize": (STAR, "1MiB"), "evaluate": ([],),
    "place_jobs": ([],), "rank_moves": ([],), "rank_placements": ({"a": []},),
    "score_link": ("50Gbps",), "advise_for": (STAR,), "compare_with": (STAR,),
    "write_report": ("x.html",), "prepare": (STAR,), "run_sweep": ("d",), "estimate": ("1MiB", 4, STAR),
    "emulate": (STAR, 4), "save": ("x.json",), "read_placement": (STAR,), "compressed_sum": ([],),
    "training_step": ("h100",),
    "check_log": ("dgx-h100",), "line_chart": ("x", "y", {"a": {1: 1}}), "bar_chart": ("s", {"a": {"b": 1}}),
}  # fmt: skip
NAMED = {"training_step": {"global_batch": 8}}
FUNCTIONS = [name for name in cs.__all__ if inspect.isfunction(getattr(cs, name))]
JOBS = [
    {"job": name, "gpus": 2, "iter_time_ms": 100, "phases": [{"offset_ms": 0, "dur_ms": 50, "rate_Gbps": 40}]}
    for name in ("a", "b")
]
CLUSTER = {"topology": {"spec": LEAF}, "hosts": {"gpus": 1}}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("wrong", [3.5, object(), b"x"], ids=["number", "object", "bytes"])
def test_the_first_error_says_what_a_function_takes(name, wrong, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(cs.CommsimError) as found:
        getattr(cs, name)(wrong, *MORE.get(name, ()), **NAMED.get(name, {}))
    assert "\n" not in str(found.value)
    assert any(word in str(found.value) for word in ("must", "one number", "known", "takes", "needs"))


@pytest.fixture
def files(tmp_path):
    (tmp_path / "jobs.json").write_text(json.dumps(JOBS))
    (tmp_path / "cluster.json").write_text(json.dumps(CLUSTER))
    return tmp_path


@pytest.mark.slow
def test_jobs_and_clusters_may_be_paths_values_or_dicts(files):
    jobs = [JOBS, files / "jobs.json", str(files / "jobs.json"), cs.read_jobs(JOBS)]
    assert len({cs.score_link(kind, "50Gbps").score for kind in jobs}) == 1
    assert cs.score_link(JOBS, "50Gbps").score == cs.score_link(JOBS, 6.25e9).score
    clusters = [CLUSTER, files / "cluster.json", cs.read_cluster(CLUSTER)]
    rankings = [cs.place_jobs(cluster, kind) for cluster, kind in zip([*clusters, CLUSTER], jobs, strict=True)]
    assert all(one.candidates == rankings[0].candidates for one in rankings)
    frame = rankings[0].to_frame("pandas")
    assert list(frame["rank"]) == list(range(1, len(rankings[0].candidates) + 1))


def test_places_of_an_answer_are_those_of_the_next_question(files):
    """A loop of a scheduler's author: the tuple of a candidate was refused, and so was a job beside a dict."""
    first, second = JOBS[0], JOBS[1]
    best = cs.place_jobs(CLUSTER, [first], n=1).candidates[0]
    names, start = best.placement[first["job"]], best.shifts[first["job"]] * 1e3
    runs = {**first, "placement": names, "start_ms": np.float64(start), "gpus": np.int64(first["gpus"])}
    (known,) = cs.read_jobs([runs])
    assert known.placement == names
    both = [cs.place_jobs(CLUSTER, [one, second], n=1) for one in (runs, known, {**runs, "placement": [*names]})]
    assert both[0].candidates == both[1].candidates == both[2].candidates
    with pytest.raises(cs.CommsimError, match=r"\[1\]\.job must be another name than"):
        cs.read_jobs([known, first])


def test_placements_of_ones_own_are_ranked_and_printed_in_a_line_each(files):
    near, far = (
        [{**job, "placement": nodes} for job, nodes in zip(JOBS, places, strict=True)]
        for places in ((["h0", "h1"], ["h2", "h3"]), (["h0", "h2"], ["h1", "h3"]))
    )
    (files / "far.json").write_text(json.dumps(far))
    ranking = cs.rank_placements(CLUSTER, {"far": files / "far.json", "near": near})
    assert [one.generator for one in ranking.candidates] == ["near", "far"]
    first = str(ranking).splitlines()[0]
    assert first == "1: slowdown 1.0000x, score 1.0000 (least 1.0000), by near: a on h0-1, b on h2-3"
    (one,) = cs.rank_placements(CLUSTER, files / "far.json").candidates  # it was refused: a dict of names only
    assert (one.generator, one.slowdown) == ("given", ranking.candidates[1].slowdown)


def test_networks_may_be_names_paths_values_or_builders(tmp_path):
    path = tmp_path / "network.toml"
    network = cs.load_network(STAR)
    cs.save(network, path)
    for kind in (STAR, path, network):
        assert cs.place(kind, 3).nodes.tolist() == [0, 1, 2]
        assert (
            cs.prepare("ring_all_reduce", kind, overhead="0us").predict(1e6).time
            == cs.predict("ring_all_reduce", STAR, 1e6, overhead="0us").time
        )
    assert cs.lower_bound("all_reduce", Path(path)).time("1MiB") == cs.lower_bound("all_reduce", STAR).time(2**20)


def test_a_link_fails_in_python():
    broken = cs.with_faults(LEAF, fail=["link:leaf0:spine0"], scale=["link:h0:*=0.5"])
    options = {"fail": ["link:leaf0:spine0"], "scale": ["link:h0:*=0.5"]}
    asked = cs.predict("ring_all_reduce", LEAF, "1MiB", **({"overhead": "0us"} | options))
    assert cs.predict("ring_all_reduce", broken, "1MiB", overhead="0us").time == asked.time
    with pytest.raises(cs.InputError, match=r"fail must be a list such as \['link:leaf0:spine0'\]"):
        cs.with_faults(LEAF, fail="link:leaf0:spine0")


def test_a_builder_that_names_no_operation_learns_how():
    def own(n_ranks: int):
        program = cs.Program(n_ranks, 1)
        program.copy(0, src=0, dst=1)
        return program.build()

    with pytest.raises(cs.ScheduleError, match=r"build\(operation='all_reduce'\)"):
        cs.predict(own, STAR, "1MiB", overhead="0us")


def test_dir_has_the_public_names_only():
    assert sorted(dir(cs)) == sorted(cs.__all__)
