import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from commsim.placement.clusters.contention_kernel import shift_scores, stretch


def slow_stretch(rates, use, capacity):
    """Serve one unit's bytes of each job in small steps of time."""
    left, time, end = dict(enumerate(rates)), 0.0, np.ones(len(rates))
    left = {j: r for j, r in left.items() if r > 0}
    while left:
        speed, budget = {}, capacity
        open_jobs = sorted(left, key=lambda j: rates[j])
        while open_jobs:
            level = budget / sum(use[j] for j in open_jobs)
            j = open_jobs[0]
            if rates[j] > level:
                speed |= dict.fromkeys(open_jobs, level)
                break
            speed[j] = rates[j]
            budget -= use[j] * rates[j]
            open_jobs = open_jobs[1:]
        step = min(left[j] / speed[j] for j in left)
        time += step
        for j in list(left):
            left[j] -= step * speed[j]
            if left[j] <= 1e-9 * rates[j]:
                del left[j]
                end[j] = time
    return end - 1.0


some = st.lists(
    st.tuples(st.sampled_from([0.0, 1.0, 2.0, 3.5, 7.0]), st.sampled_from([0.25, 1.0, 2.0])), min_size=1, max_size=5
)


@given(some, st.sampled_from([0.5, 2.0, 4.0, 100.0]))
def test_the_kernel_serves_as_the_slow_version_does(jobs, capacity):
    rates = np.array([[rate] for rate, _ in jobs])
    use = np.array([factor for _, factor in jobs])
    extra = np.empty_like(rates)
    stretch(rates, use, capacity, extra)
    np.testing.assert_allclose(extra[:, 0], slow_stretch(rates[:, 0], use, capacity), atol=1e-7)


def test_two_equal_jobs_take_twice_as_long_and_a_small_one_is_not_held_up():
    extra = np.empty((2, 2))
    stretch(np.array([[1.0, 0.25], [1.0, 1.0]]), np.ones(2), 1.0, extra)
    np.testing.assert_allclose(extra, [[1.0, 0.0], [1.0, 0.25]])


def test_scores_are_one_minus_mean_excess_over_capacity():
    base = np.array([[1.0, 0.0], [0.5, 0.5]])
    shifted = np.array([[1.0, 0.0], [0.0, 1.0]])
    scores = np.empty(2)
    shift_scores(base, np.array([1.0, 2.0]), np.array([1.0, 2.0]), shifted.T.copy(), scores)
    expected = [
        np.mean([1 - np.maximum(base[i] + u * row - c, 0).mean() / c for i, (u, c) in enumerate(((1, 1), (2, 2)))])
        for row in shifted
    ]
    np.testing.assert_allclose(scores, expected)
