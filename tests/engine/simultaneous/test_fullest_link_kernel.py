"""A proof that the fullest link is last agrees with going from departure to departure, and fails where it is not."""

from __future__ import annotations

import numpy as np
import pytest

from collectives import COLLECTIVES
from commsim.engine.bottlenecks.group_state import group_tables
from commsim.engine.simultaneous import simultaneous
from commsim.engine.simultaneous.departures_kernel import simulate_departures
from commsim.engine.simultaneous.fullest_link_kernel import BEHIND, GONE, IN_STEP, NO_LINK, fullest_is_last
from commsim.prediction.build import prepare

SIZE = 2.0**30


def drawn(rng, n_links, n_flows, *, alike):
    """Flows over two to four links in a row, of random sizes; links of one capacity, or of several."""
    length = rng.integers(2, 5, n_flows)
    first = np.concatenate(([0], np.cumsum(length)))
    link = np.concatenate([rng.choice(n_links, n, replace=False) for n in length]).astype(np.int32)
    capacity = np.full(n_links, 1e9) if alike else rng.choice([1e9, 2e9], n_links)
    return capacity, first, link, rng.choice(rng.uniform(1e6, 9e6, 4), n_flows)


def departures(capacity, first, link, n_bytes):
    """When each flow leaves, departure by departure."""
    ended = np.empty(len(n_bytes))
    assert simulate_departures(group_tables(capacity, link, len(n_bytes)).allocate(), first, n_bytes, ended)
    return ended


def proven(capacity, first, link, n_bytes):
    """The fullest link, how long its bytes take, what is proven, of which flows, and what kept some behind."""
    needs = np.bincount(link, np.repeat(n_bytes, np.diff(first)), len(capacity)) / capacity
    state, by = np.empty(len(n_bytes), np.uint8), np.empty(len(n_bytes), np.int32)
    fullest = int(needs.argmax())
    others_s = fullest_is_last(capacity, first, link, n_bytes, fullest, state, by)
    return fullest, needs[fullest], others_s, state, by


@pytest.mark.parametrize("alike", [True, False])
def test_what_is_proven_is_so_departure_by_departure(alike):
    rng, n_proven, n_alike = np.random.default_rng(1), 0, 0
    for _ in range(150):
        flows = drawn(rng, int(rng.integers(4, 12)), int(rng.integers(10, 80)), alike=alike)
        fullest, needs, others_s, state, by = proven(*flows)
        if others_s == np.inf:
            continue
        ended = departures(*flows)
        _, first, link, n_bytes = flows
        uses = np.logical_or.reduceat(link == fullest, first[:-1])
        n_proven += 1
        assert ended.max() == pytest.approx(needs, rel=1e-12)
        assert (ended[state == GONE] <= others_s * (1 + 1e-12)).all()
        assert (uses[state != GONE]).all()
        assert ended[~uses].max(initial=0.0) <= others_s * (1 + 1e-12)
        in_step = state == IN_STEP
        largest = in_step & (n_bytes == n_bytes[in_step].max(initial=0.0))
        assert len(np.unique(ended[largest].round(15))) <= 1
        for p in np.unique(by[(state == BEHIND) & (by >= 0)]):
            kept = (state == BEHIND) & (by == p)
            latest = ended[kept & (n_bytes == n_bytes[kept].max())]
            assert np.ptp(latest) <= 1e-12 * needs
            assert latest.max() == ended[kept].max()
            n_alike += len(latest) > 1
    assert n_proven > (30 if alike else 5)
    assert n_alike > (10 if alike else 2)


def test_a_link_that_its_flows_cannot_fill_at_first_is_not_taken_as_full():
    # two large flows over the fullest link; ten small ones slow each of them down until they have left
    link = [[0, 1], [0, 2], *[[1, 3]] * 10, *[[2, 3]] * 10]
    first = 2 * np.arange(len(link) + 1)
    n_bytes = np.array([100e6, 100e6, *[1e6] * 20])
    flows = np.array([1e9, 1e9, 1e9, 9e9]), first, np.array(link, np.int32).ravel(), n_bytes
    fullest, needs, others_s, _, _ = proven(*flows)
    assert fullest == 0
    assert others_s == np.inf
    assert departures(*flows).max() > needs * 1.01


def test_a_slower_link_beside_the_fullest_one_is_no_case_for_the_proof():
    # each of three flows has a slow link to itself: when one alone is left, it cannot fill the link of all
    link = np.array([[0, 1], [0, 2], [0, 3]], np.int32).ravel()
    flows = np.array([1e9, 4e8, 4e8, 4e8]), 2 * np.arange(4), link, np.array([3e8, 3e8, 3.9e8])
    fullest, needs, others_s, _, _ = proven(*flows)
    assert fullest == 0
    assert needs == pytest.approx(0.99)
    assert others_s == np.inf
    assert departures(*flows).max() == pytest.approx(0.9 + 0.09 / 0.4)


def all_to_all(network, n, seed):
    """An unequal all-to-all over hashed routes, ready to be predicted."""
    counts = np.random.default_rng(0).integers(1, 5, n * n)
    schedule = COLLECTIVES["direct_all_to_all_v"].build(n, counts=tuple(counts.tolist()))
    return prepare(schedule, network, n_ranks=n, placement="packed", routing="ecmp", seed=seed)


LEAF_SPINE, FAT_TREE = "leaf_spine:n_leaves=8,hosts_per_leaf=8,n_spines=8", "fat_tree:k=8,latency=1us"


# flows that are behind on the fat tree have either of two latencies
@pytest.mark.parametrize(
    ("network", "seed", "is_proven"),
    [
        (LEAF_SPINE, 0, True),
        (LEAF_SPINE, 1, False),
        (LEAF_SPINE, 2, False),
        (LEAF_SPINE, 3, True),
        (FAT_TREE, 0, True),
        (FAT_TREE, 1, False),
        (FAT_TREE, 7, True),
    ],
)
def test_an_unequal_all_to_all_takes_as_long_as_departure_by_departure(monkeypatch, network, seed, is_proven):
    tried = []
    departing = simultaneous._took
    monkeypatch.setattr(simultaneous, "_took", lambda *given: tried.append(1) or departing(*given))
    found = all_to_all(network, 64, seed).predict(SIZE, method="simultaneous", hashes=1)
    n_tried = len(tried)
    monkeypatch.setattr(simultaneous, "LEAST_PROVEN", 2**62)
    slow = all_to_all(network, 64, seed).predict(SIZE, method="simultaneous", hashes=1)
    assert found.time == pytest.approx(slow.time, rel=1e-12)
    assert (found.link_bytes == slow.link_bytes).all()
    assert found.counters == slow.counters
    assert (n_tried == 0) == is_proven


def test_where_the_last_flow_may_have_either_of_two_latencies_flows_depart_one_by_one(monkeypatch):
    def prove_nothing_of_latencies(capacity, first, link, n_bytes, fullest, state, by):
        uses = np.logical_or.reduceat(link == fullest, first[:-1])
        state[:], by[:] = np.where(uses, BEHIND, GONE), NO_LINK
        return 0.0

    from commsim.engine.simultaneous import fullest_link_kernel

    exact = all_to_all(FAT_TREE, 64, 3).predict(SIZE, method="simultaneous", hashes=1).time
    monkeypatch.setattr(fullest_link_kernel, "fullest_is_last", prove_nothing_of_latencies)
    found = all_to_all(FAT_TREE, 64, 3).predict(SIZE, method="simultaneous", hashes=1).time
    assert found == pytest.approx(exact, rel=1e-12)
