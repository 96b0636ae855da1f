"""The first placements may all be slow: the answer then says how many were tried, and that more can be."""

from commsim.placement.moves import rank_moves
from commsim.placement.place import place_jobs

CLUSTER = {
    "topology": {"spec": "leaf_spine:n_leaves=8,n_spines=1,hosts_per_leaf=8,bandwidth=100Gbps"},
    "hosts": {"gpus": 8},
}
PHASES = [{"offset_ms": 100, "dur_ms": 200, "rate_Gbps": 90}]


def hosts(*ranges: tuple[int, int]) -> list[str]:
    return [f"h{i}" for first, last in ranges for i in range(first, last + 1) for _ in range(8)]


def job(name: str, *ranges: tuple[int, int]) -> dict[str, object]:
    placed = {"placement": hosts(*ranges)} if ranges else {}
    return {"job": name, "gpus": len(hosts(*ranges)) or 48, "iter_time_ms": 300, "phases": PHASES, **placed}


# three jobs cross the spine between racks 0 and 5, 1 and 2, 3 and 6; racks 4 and 7, which none of them uses, have room
RUNNING = [
    job("p05", (0, 4), (40, 44)), job("p12", (8, 12), (16, 20)), job("p36", (24, 28), (48, 52)),
    job("q4", (32, 36)), job("q7", (56, 60)),
]  # fmt: skip


def test_where_all_of_the_first_placements_are_slow_more_are_advised_and_find_better() -> None:
    few, more = (place_jobs(CLUSTER, [*RUNNING, job("new")], n=n) for n in (10, 40))
    assert few.candidates[0].slowdown > 1.05
    advice = "10 placements were tried, and the best is slower than the jobs alone: --candidates 40 tries more"
    assert few.remarks[-1] == advice
    assert few.n_results == 1  # below the table, where nothing hides it
    assert more.candidates[0].slowdown == 1.0
    assert more.n_results == 0


def test_a_job_that_loses_does_not_stay_by_choice_where_none_of_those_tried_is_better() -> None:
    jobs = [*RUNNING, job("new", (13, 15), (37, 39))]
    found = rank_moves(CLUSTER, jobs, n=2)
    assert {move.to() for move in found.moves} == {"none of 2 tried is better"}
    assert "new: stretch" in str(found)
    assert "h13x8 h14x8 h15x8 h37x8 h38x8 h39x8: none of 2 tried is better" in str(found)
    assert "jobs are still slower than alone: --candidates 8 tries more places" in found.remarks[-2]
    assert {move.to() for move in rank_moves(CLUSTER, RUNNING, n=2).moves} == {"stays"}
