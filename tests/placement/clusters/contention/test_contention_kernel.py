import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from commsim.placement.clusters.contention.contention_kernel import largest_of, link_loads, shift_excess, stretch
from commsim.placement.clusters.contention.shifted_rates import shifted_rates


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
    stretch(rates, use, capacity, extra, np.arange(len(rates)))
    np.testing.assert_allclose(extra[:, 0], slow_stretch(rates[:, 0], use, capacity), atol=1e-7)


def test_two_equal_jobs_take_twice_as_long_and_a_small_one_is_not_held_up():
    extra = np.empty((2, 2))
    stretch(np.array([[1.0, 0.25], [1.0, 1.0]]), np.ones(2), 1.0, extra, np.arange(2))
    np.testing.assert_allclose(extra, [[1.0, 0.0], [1.0, 0.25]])


@given(st.integers(0, 1000), st.sampled_from([2, 3, 9, 21]), st.sampled_from([2, 3, 12]))
def test_instants_with_the_same_rates_have_what_each_has_by_itself(seed, n_jobs, n_rates):
    """To the bit, also of more jobs and rates than are recognised; rows of `extra` are the caller's."""
    random = np.random.default_rng(seed)
    rates = random.choice(random.uniform(0.0, 2.0, n_rates), (n_jobs, 40))
    use, row, extra = (
        random.uniform(0.5, 1.0, n_jobs),
        random.permutation(n_jobs + 1)[:n_jobs],
        np.empty((n_jobs + 1, 40)),
    )
    stretch(rates, use, 0.4 * n_jobs, extra, row)
    for n in range(40):
        alone = np.empty((n_jobs, 1))
        stretch(rates[:, n : n + 1].copy(), use, 0.4 * n_jobs, alone, np.arange(n_jobs))
        np.testing.assert_array_equal(extra[row, n], alone[:, 0])


def test_the_largest_of_some_rows_at_each_instant():
    extra, largest = np.array([[1.0, 0.0], [9.0, 9.0], [0.5, 2.0]]), np.empty(2)
    largest_of(extra, np.array([0, 2]), largest)
    np.testing.assert_array_equal(largest, [1.0, 2.0])


@given(st.integers(0, 1000))
def test_excess_of_each_shift_is_summed_over_links_and_instants(seed):
    """Of links 0 and 2; a job that sends already is taken out of the demand."""
    random = np.random.default_rng(seed)
    demand, capacity = random.uniform(0.0, 5.0, (3, 7)), random.uniform(2.0, 6.0, 3)
    levels = np.array([0.0, 1.0, 2.5])
    rates = levels[random.integers(0, 3, (4, 7))]
    sent = shifted_rates(rates, random.uniform(0.0, 1.0, 7), levels.tolist())
    links, use, own = np.array([0, 2]), random.uniform(0.2, 1.0, 2), levels[random.integers(0, 3, 7)]
    excess = np.empty(4)
    shift_excess(demand, links, demand[links].max(axis=1), use, own, capacity, sent, excess)
    for shift, found in enumerate(excess):
        others = [demand[link] + times * (rates[shift] - own) for link, times in zip(links, use, strict=True)]
        beyond = [
            np.maximum(sent - capacity[link], 0.0) / capacity[link] for link, sent in zip(links, others, strict=True)
        ]
        np.testing.assert_allclose(found, np.sum(beyond), atol=1e-12)


def test_loads_of_the_links_that_are_asked_for():
    demand, loads = np.array([[1.0, 3.0], [9.0, 9.0], [0.0, 8.0]]), np.zeros((3, 3))
    link_loads(demand, np.array([0, 2]), np.array([2.0, 2.0, 4.0]), loads)
    np.testing.assert_allclose(loads, [[3.0, 0.0, 8.0], [0.5, 0.0, 2.0], [2.0, 0.0, 4.0]])
