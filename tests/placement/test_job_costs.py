"""New jobs beside running ones: costs are said by default, and the others' own collisions are no reason to try more."""

import pytest

import commsim as cs
from commsim.core.errors import InputError
from commsim.placement.job_costs import new_jobs

CLUSTER = {
    "topology": {"spec": "leaf_spine:n_leaves=4,n_spines=1,hosts_per_leaf=4,bandwidth=100Gbps"},
    "hosts": {"gpus": 8},
}
PHASES = [{"offset_ms": 60, "dur_ms": 40, "rate_Gbps": 90}]


def job(name: str, *places: str, **more: object) -> dict[str, object]:
    placed = {"placement": list(places), "start_ms": 0} if places else {}
    return {"job": name, "gpus": 16, "iter_time_ms": 100, "phases": PHASES, **placed, **more}


# b and c meet on the uplink of leaf2: 40 ms at 90 of 100 Gb/s each take 72 ms together
RUNNING = [job("b", "h7x8", "h8x8"), job("c", "h9x8", "h12x8")]


def test_a_new_job_that_costs_nothing_ends_the_search_though_running_jobs_slow_each_other() -> None:
    """Thirty more placements were tried, and more advised, because of two jobs that none of them helps."""
    found = cs.place_jobs(CLUSTER, [*RUNNING, job("new")])
    best = found.candidates[0]
    assert best.predicted["b"] == pytest.approx(0.132, rel=1e-3)
    assert (best.cost or {})["total"] == 0
    assert found.n_tried == 10
    assert "few-tried" not in [one.code for one in found.remarks]


def test_costs_are_said_where_some_jobs_are_newer_than_others() -> None:
    """In Python they were left out unless asked for, while the command line said them."""
    assert cs.place_jobs(CLUSTER, [*RUNNING, job("new")]).candidates[0].row()["cost"]["own"] == {"new": 1.0}
    assert cs.place_jobs(CLUSTER, [job("new")]).candidates[0].cost is None
    assert cs.place_jobs(CLUSTER, [*RUNNING, job("new")], costs=False).candidates[0].cost is None
    near, far = ([*RUNNING, {**job("new", *at), "start_ms": None}] for at in (("h0x8", "h1x8"), ("h0x8", "h10x8")))
    both = {
        name: [{k: v for k, v in one.items() if v is not None} for one in jobs]
        for name, jobs in zip("nf", (near, far), strict=True)
    }
    assert [(one.cost or {})["own"]["new"] > 1.1 for one in cs.rank_placements(CLUSTER, both).candidates] == [
        False,
        True,
    ]
    assert cs.rank_placements(CLUSTER, both, new=()).candidates[0].cost is None


def test_new_jobs_are_those_without_a_placement_else_those_without_a_start() -> None:
    jobs = cs.read_jobs([*RUNNING, job("new")])
    assert [one.name for one in new_jobs(jobs)] == ["new"]
    assert new_jobs(jobs[:2]) == []
    assert new_jobs(jobs[2:]) == []


def test_placements_of_ones_own_on_gpus_that_are_taken_are_refused() -> None:
    """Two jobs on the eight GPUs of one host were ranked."""
    with pytest.raises(cs.InputError, match="own: job b asks 8 GPUs of h0, which has 8, 0 of them free beside job a"):
        cs.rank_placements(CLUSTER, {"own": [job("a", "h0x8", "h1x8"), job("b", "h0x8", "h2x8")]})


def test_new_jobs_are_named_in_both_functions() -> None:
    """``cs.place_jobs`` did not take ``new``, which the page of Python gave to both."""
    jobs = [job("a", "h0x8", "h4x8"), job("b", "h1x8", "h5x8")]
    assert cs.place_jobs(CLUSTER, jobs).candidates[0].cost is None
    (one,) = cs.place_jobs(CLUSTER, jobs, new=["b"]).candidates
    (same,) = cs.rank_placements(CLUSTER, {"x": jobs}, new=["b"]).candidates
    assert one.cost == same.cost
    assert set((one.cost or {})["own"]) == {"b"}
    with pytest.raises(InputError, match="new: no job is named c"):
        cs.place_jobs(CLUSTER, jobs, new=["c"])
    with pytest.raises(InputError, match="new: job a has no placement, and is new, too"):
        cs.place_jobs(CLUSTER, [job("a"), jobs[1]], new=["b"])
