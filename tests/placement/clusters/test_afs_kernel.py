import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from commsim.placement.clusters.afs_kernel import hand_out


def slow(rates, work, gpus, free):
    """One GPU after the other: each job is held against the best of those before it."""
    gpus = list(gpus)

    def goes_first(a, b):
        left = {job: work[job] / rates[job][gpus[job] - 1] for job in (a, b)}
        a_is_short = left[a] < left[b]
        short, long = (a, b) if a_is_short else (b, a)
        (old, new), (old_of_long, new_of_long) = (rates[job][gpus[job] - 1 : gpus[job] + 1] for job in (short, long))
        return (new / old - 1.0 >= 1.0 - old_of_long / new_of_long) == a_is_short

    while free and (growing := [job for job in range(len(gpus)) if 0 < gpus[job] < len(rates[job])]):
        best = growing[0]
        for other in growing[1:]:
            if goes_first(other, best):
                best = other
        gpus[best] += 1
        free -= 1
    return gpus


@given(st.integers(0, 10_000), st.integers(0, 30))
def test_the_kernel_hands_out_gpus_as_the_slow_version_does(seed, free):
    random = np.random.default_rng(seed)
    rates = [np.cumsum(random.uniform(0.1, 1.0, random.integers(1, 9))) for _ in range(random.integers(1, 6))]
    work = random.uniform(1.0, 50.0, len(rates))
    gpus = np.array([random.integers(0, len(row) + 1) for row in rates], np.int64)
    expected = slow([row.tolist() for row in rates], work.tolist(), gpus.tolist(), free)
    hand_out(np.concatenate(rates), np.cumsum([0, *map(len, rates)], dtype=np.int64), work, gpus, free)
    assert gpus.tolist() == expected
