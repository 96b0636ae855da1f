"""Answers come out of a pickle, and of copies, as they were; a prediction without what it was predicted of."""

import copy
import pickle

import pytest

import commsim as cs

STAR = "star:n_hosts=4,bandwidth=100Gbps,latency=1us"
JOBS = """
[[job]]
collective = "switchml"
ranks = "0-1"
size = "64KiB"
[[job]]
collective = "ring_all_reduce"
ranks = "2-3"
size = "64KiB"
"""
WAYS = {"pickle": lambda value: pickle.loads(pickle.dumps(value)), "deepcopy": copy.deepcopy, "copy": copy.copy}


def solved(collective, **options):
    return cs.solve(cs.scenario_of(collective, STAR, **({"overhead": "0us"} | options)), "64KiB")


ANSWERS = {
    "rank": lambda: cs.rank("all_reduce", STAR, ["1KiB", "64KiB"], synthesized=True),
    "advise_for": lambda: cs.advise_for("64KiB", STAR, density=0.01, programmable=True),
    "over_bound": lambda: cs.over_bound("all_gather", STAR, "64KiB"),
    "synthesize": lambda: cs.synthesize("all_gather", STAR, "64KiB", overhead="0us"),
    "switch system": lambda: solved("switchml"),
    "tree of a system": lambda: solved("sharp"),
    "pieces": lambda: solved("double_tree_all_reduce"),
    "partitions": lambda: solved("parameter_server", n_ranks=3, overhead="1us"),
    "sparse": lambda: solved("sparcml_dsar:density=0.01"),
    "groups": lambda: solved("ring_all_reduce", groups=[[0, 1], [2, 3]]),
}


@pytest.mark.sample(12)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ANSWERS)
def test_answers_come_out_of_a_pickle_as_they_were(name, way):
    one = ANSWERS[name]()
    other = WAYS[way](one)
    assert type(other) is type(one)
    assert repr(other) == repr(one)
    assert other.to_frame().equals(one.to_frame())


@pytest.mark.parametrize("way", WAYS)
def test_jobs_with_a_switch_system_come_out_of_a_pickle(way, tmp_path):
    (tmp_path / "jobs.toml").write_text(JOBS)
    one = solved(None, jobs=tmp_path / "jobs.toml")
    other = WAYS[way](one)
    assert other.results == one.results
    again = cs.solve(other.scenario, [0.0])
    assert again.results == one.results


@pytest.mark.parametrize("collective", ["ring_all_reduce", "switchml", "sharp", "double_tree_all_reduce"])
def test_a_plan_out_of_a_pickle_predicts_the_same(collective):
    plan = cs.predict(collective, STAR, "64KiB", overhead="0us").prepared
    assert pickle.loads(pickle.dumps(plan)).predict(2**20) == plan.predict(2**20)


@pytest.mark.parametrize("way", WAYS)
def test_a_prediction_keeps_its_class_and_says_what_it_lacks(way):
    one = cs.predict("switchml", STAR, "64KiB", overhead="0us")
    other = WAYS[way](one)
    assert type(other) is cs.Predicted
    assert other == one
    assert (other.solution, other.prepared, other.remarks) == (None, None, ())
    with pytest.raises(cs.InputError, match="has no timeline; predict it again"):
        other.timeline()
