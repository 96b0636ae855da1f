"""The search that turns one job after the other, against one that sums up the excess of every position."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from commsim.placement.starts.search_kernel import MAX_ROUNDS, add_steps, edges_of, search_in_turn


def every_position(demand, first, on, reach, positions, link, starts, enough):
    """Return what the search finds where it sums up every position."""
    n, jobs = demand.shape[1] - reach, range(len(positions))

    def turned(p, k):
        return demand[p, reach - k : reach - k + n]

    def excess(at, j, k):
        cost = 0
        for p in range(first[j], first[j + 1]):
            others = sum(
                (turned(q, at[i]) for i in jobs for q in range(first[i], first[i + 1]) if i != j and on[q] == on[p]),
                np.zeros(n, np.int64),
            )
            cost += link[1, on[p]] * np.maximum(others + turned(p, k) - link[0, on[p]], 0).sum()
        return int(cost)

    def whole(at):
        total = -np.repeat(link[0][:, None], n, axis=1)
        for j in jobs:
            for p in range(first[j], first[j + 1]):
                total[on[p]] += turned(p, at[j])
        return int(link[1] @ np.maximum(total, 0).sum(axis=1))

    best, best_at = None, None
    for start in starts:
        at = start.copy()
        for _ in range(MAX_ROUNDS):
            before = at.copy()
            for j in jobs[1:]:
                costs = [excess(at, j, k) for k in (at[j], *range(positions[j]))]
                k = int(np.argmin(costs))
                at[j] = at[j] if k == 0 else k - 1
            if (at == before).all():
                break
        if best is None or whole(at) < best:
            best, best_at = whole(at), at
            if best <= enough:
                break
    return best, best_at


@given(st.integers(0, 2**32))
def test_the_search_ends_where_one_of_every_position_does(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_jobs, n_links, n, reach = int(rng.integers(2, 5)), int(rng.integers(1, 4)), int(rng.integers(2, 20)), 0
    positions = rng.integers(1, n + 1, n_jobs)
    positions[0], reach = 1, int(positions.max())
    passes = rng.random((n_jobs, n_links)) < 0.8
    job, on = np.nonzero(passes)
    first = np.searchsorted(job, np.arange(n_jobs + 1))
    height = int(rng.choice([1, 5, 2**40]))
    demand = (
        rng.integers(0, height, (len(on), reach + n)) if rng.random() < 0.3 else np.zeros((len(on), reach + n), int)
    )
    for row in demand:  # a phase of each job, as circles have them
        begin = int(rng.integers(0, n))
        row[(np.arange(reach + n) - begin) % n < rng.integers(1, n + 1)] += int(rng.integers(0, height + 1))
    link = np.stack((rng.integers(0, 2 * height + 1, n_links), rng.integers(1, 4, n_links)))
    starts = rng.integers(0, positions, (2, n_jobs))
    starts[:, 0] = 0
    enough, n_passages = int(rng.integers(0, 3)), len(on)
    rows = np.random.default_rng(seed).permutation(n_passages)
    given = demand[np.argsort(rows)], first, np.stack((on, rows))
    found = search_in_turn(*given, reach, positions, link, starts, enough)
    expected = every_position(demand, first, on, reach, positions, link, starts, enough)
    assert found[0] == expected[0]
    assert found[1].tolist() == expected[1].tolist()


@given(st.lists(st.integers(0, 9), min_size=2, max_size=20), st.data())
def test_the_costs_of_all_positions_follow_from_the_edges(values: list[int], data: st.DataObject) -> None:
    reach = data.draw(st.integers(1, len(values) - 1))
    demand, n = np.array(values, np.int64), len(values) - reach
    total = np.array(data.draw(st.lists(st.integers(-9, 9), min_size=n, max_size=n)))
    first, edges = edges_of(demand[None])
    assert edges.tolist() == [i for i in range(1, len(values)) if values[i] != values[i - 1]]
    assert first.tolist() == [0, len(edges)]
    found = np.full(reach + 1, 5)
    add_steps(found, total, demand, edges, reach, 3)
    excess = [np.maximum(total + demand[reach - k : reach - k + n], 0).sum() for k in range(reach + 1)]
    assert np.cumsum(found - 5).tolist() == [3 * int(one) for one in excess]
