"""Candidates: every job gets its GPUs, none is given twice, and each generator does what its scheduler does."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.placement.cluster import Cluster
from commsim.placement.free_gpus import Seats, crossings, order_ranks
from commsim.placement.generators import GENERATORS, candidates
from commsim.workload.sharing.periodic import PeriodicJob, Phase
from topologies.leaf_spine import leaf_spine

NETWORK = leaf_spine(4, 2, 4)
CLUSTER = Cluster(NETWORK, np.where(NETWORK.kind == 0, 4, 0))


def job(name: str, n_gpus: int, *, busy: float = 0.04, placement: tuple[str, ...] | None = None) -> PeriodicJob:
    return PeriodicJob(name, n_gpus, 0.1, (Phase(0.0, busy, 1e9),), placement)


def racks(placement: tuple[str, ...] | None) -> set[int]:
    return {int(name[1:]) // 4 for name in placement or ()}


@given(
    st.sampled_from(list(GENERATORS)),
    st.lists(st.integers(1, 12), min_size=1, max_size=5),
    st.integers(0, 3),
    st.integers(1, 6),
)
@settings(max_examples=60, deadline=None)
def test_every_job_gets_its_gpus_and_no_gpu_has_two(generator: str, sizes: list[int], seed: int, n: int) -> None:
    jobs = [job(f"j{i}", size) for i, size in enumerate(sizes)] + [job("fixed", 2, placement=("h3", "h1"))]
    found = candidates(CLUSTER, jobs, generator, n, seed)
    assert 1 <= len(found) <= n
    assert len({tuple(one.placement for one in placed) for placed in found}) == len(found)
    for placed in found:
        assert [(a.name, a.n_gpus, a.period, a.phases) for a in placed] == [
            (b.name, b.n_gpus, b.period, b.phases) for b in jobs
        ]
        assert placed[-1].placement == ("h3", "h1")  # stays, in its own order
        used = Counter(name for one in placed for name in one.placement or ())
        assert all(count <= 4 for count in used.values())
        assert all(one.placement == order_ranks(NETWORK, one.placement or ()) for one in placed[:-1])
    assert found == candidates(CLUSTER, jobs, generator, n, seed)


def test_packed_uses_the_smallest_group_that_has_room() -> None:
    taken = job("taken", 3, placement=("h5", "h5", "h5"))
    placed = candidates(CLUSTER, [job("one", 1), job("host", 4), job("rack", 16), taken], "packed", 1)[0]
    assert placed[0].placement == ("h5",)  # the host with the least room
    assert len(set(placed[1].placement or ())) == 1
    assert len(racks(placed[2].placement)) == 1


def test_a_job_that_no_rack_can_hold_leaves_as_few_racks_as_possible() -> None:
    placed = candidates(CLUSTER, [job("large", 20)], "packed", 1)[0]
    assert len(racks(placed[0].placement)) == 2
    assert crossings(NETWORK, placed[0].placement or ()) == 2


def test_spread_goes_round_the_racks_and_their_hosts() -> None:
    placed = candidates(CLUSTER, [job("eight", 8)], "spread", 1)[0]
    assert Counter(int(name[1:]) // 4 for name in placed[0].placement or ()) == {0: 2, 1: 2, 2: 2, 3: 2}
    assert set(Counter(placed[0].placement).values()) == {1}


def test_themis_candidates_are_all_as_close_together_as_when_packed() -> None:
    jobs = [job("a", 6), job("b", 20), job("c", 3), job("d", 8)]
    seats = Seats(CLUSTER, jobs)
    index = {name: i for i, name in enumerate(NETWORK.nodes)}

    def levels(placed: tuple[PeriodicJob, ...]) -> list[int]:
        return [seats.level(np.array([index[name] for name in one.placement or ()])) for one in placed]

    found = candidates(CLUSTER, jobs, "themis", 10)
    assert len(found) == 10
    assert {tuple(levels(placed)) for placed in found} == {tuple(levels(found[0]))}
    assert found[0] == candidates(CLUSTER, jobs, "packed", 1)[0]


def test_tiresias_consolidates_skewed_jobs_and_lets_others_take_leftovers() -> None:
    taken = [job(f"t{i}", 3, placement=(f"h{4 * i}",) * 3) for i in range(4)]  # one GPU is left in each rack's first
    jobs = [job("skewed", 4), job("even", 4), *taken]
    placed = candidates(CLUSTER, jobs, "tiresias", 1, skew={"skewed": 0.9, "even": 0.1})[0]
    assert len(set(placed[0].placement or ())) == 1
    assert placed[1].placement == ("h0", "h4", "h8", "h12")


def test_muri_makes_neighbours_of_jobs_that_complement_each_other() -> None:
    jobs = [job("a", 8, busy=0.08), job("x", 8, busy=0.5e-2), job("b", 8, busy=0.02), job("y", 8, busy=0.99e-1)]
    placed = candidates(CLUSTER, jobs, "muri", 1)[0]
    by_rack = {one.name: racks(one.placement) for one in placed}
    assert by_rack["a"] == by_rack["b"] != by_rack["x"] == by_rack["y"]


def test_jobs_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InputError, match="need 65 GPUs, and 64 are free"):
        candidates(CLUSTER, [job("a", 65)])
    with pytest.raises(InputError, match="job b is placed on h0, but all 4 free GPUs of h0 are taken"):
        candidates(CLUSTER, [job("b", 5, placement=("h0",) * 5)])
    with pytest.raises(InputError, match="placed on leaf0, which has no GPUs"):
        candidates(CLUSTER, [job("b", 1, placement=("leaf0",))])
    with pytest.raises(InputError, match="unknown generator 'pack'; known: packed, spread"):
        candidates(CLUSTER, [job("a", 1)], "pack")
    with pytest.raises(InputError, match="number of candidates is 1 or more"):
        candidates(CLUSTER, [job("a", 1)], n=0)


def test_when_all_jobs_are_placed_there_is_one_candidate() -> None:
    assert len(candidates(CLUSTER, [job("a", 1, placement=("h0",))], "random", 10)) == 1
