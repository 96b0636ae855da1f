import numpy as np
import pytest

from collectives.dense.all_to_all import direct_all_to_all
from collectives.dense.ring import ring_all_reduce
from commsim.core.errors import InputError
from commsim.core.placement import Placement
from commsim.training.sharing.periodic import JobPhase, PeriodicJob
from commsim.training.sharing.shared_links import simulate_jobs
from commsim.training.sharing.shared_schedules import ScheduledJob, run_jobs
from topologies.leaf_spine import leaf_spine

RATE = 6.25e9
SIZE = 2.0**26
NETWORK = leaf_spine(n_leaves=2, n_spines=1, hosts_per_leaf=4, bandwidth=RATE, latency=0.0)


def pair(name, a, size=SIZE, **options):
    """An all-reduce between host a of the first leaf and its like of the second: a ring of 2 sends `size` each way."""
    return ScheduledJob(name, ring_all_reduce(2), Placement([a, a + 4]), size, **options)


def test_two_jobs_on_one_link_take_twice_as_long_and_a_shift_restores_both():
    together = run_jobs(NETWORK, [pair("a", 0), pair("b", 1)])
    np.testing.assert_allclose([r.time for r in together.alone], SIZE / RATE, rtol=1e-9)
    np.testing.assert_allclose(together.slowdowns, 2.0, rtol=1e-9)
    shared = np.flatnonzero(together.shared_time)
    assert {NETWORK.link_name(int(k)) for k in shared} == {
        f"{a}:{b}" for x in ("leaf0", "leaf1") for a, b in ((x, "spine0"), ("spine0", x))
    }
    np.testing.assert_allclose(together.shared_time[shared], 2 * SIZE / RATE, rtol=1e-9)
    apart = run_jobs(NETWORK, [pair("a", 0), pair("b", 1, start=SIZE / RATE)])
    np.testing.assert_allclose(apart.slowdowns, 1.0, rtol=1e-9)
    assert apart.shared_time.max() < 1e-9 * SIZE / RATE


def test_sizes_weights_and_priorities_differ_from_job_to_job():
    small = run_jobs(NETWORK, [pair("a", 0), pair("b", 1, SIZE / 4)])
    assert [r.size for r in small.together] == [SIZE, SIZE / 4]
    np.testing.assert_allclose(small.slowdowns, [1.25, 2.0], rtol=1e-9)
    first = run_jobs(NETWORK, [pair("a", 0), pair("b", 1, priority=1)])
    np.testing.assert_allclose(first.slowdowns, [1.0, 2.0], rtol=1e-9)
    heavy = run_jobs(NETWORK, [pair("a", 0, weight=3.0), pair("b", 1)])
    np.testing.assert_allclose(heavy.slowdowns, [4 / 3, 2.0], rtol=1e-9)


@pytest.mark.parametrize("start", [0.0, 0.25, 0.5, 1.0])
def test_schedules_and_periodic_jobs_tell_the_same_story(start):
    """What a ring of two sends in each direction is what a phase says that it sends."""
    alone = SIZE / RATE
    real = run_jobs(NETWORK, [pair("a", 0), pair("b", 1, start=start * alone)])
    use = np.zeros(NETWORK.n_links)
    use[[k for k in range(NETWORK.n_links) if "spine" in NETWORK.link_name(k)]] = 1.0
    fluid = [PeriodicJob(name, 2, 4 * alone, (JobPhase(0.0, alone, RATE),)) for name in "ab"]
    run = simulate_jobs(NETWORK, fluid, [use, use], shifts=[0.0, start * alone], iterations=1)
    np.testing.assert_allclose([r.time for r in real.together], run.communication_times[:, 0], rtol=1e-9)
    np.testing.assert_allclose(real.shared_time.max(), run.contended_time.max(), rtol=1e-9, atol=1e-15)


def test_alone_a_job_keeps_the_paths_that_it_has_among_the_others():
    network = leaf_spine(n_leaves=2, n_spines=4, hosts_per_leaf=4, bandwidth=RATE)
    jobs = [
        ScheduledJob(f"j{n}", direct_all_to_all(4), Placement([n % 4, 4, 5, 6]), SIZE, start=n * 10.0)
        for n in (0, 1, 2)
    ]
    run = run_jobs(network, jobs)
    for together, alone in zip(run.together, run.alone, strict=True):
        np.testing.assert_allclose(together.link_bytes, alone.link_bytes)
    np.testing.assert_allclose(run.slowdowns, 1.0, rtol=1e-9)
    assert run.shared_time.max() == 0.0


def test_rows_say_what_each_job_lost():
    rows = run_jobs(NETWORK, [pair("a", 0), pair("b", 1, start=0.5)]).rows()
    assert [row["job"] for row in rows] == ["a", "b"]
    assert rows[1]["start_s"] == 0.5
    assert rows[0]["alone_s"] == pytest.approx(SIZE / RATE)
    assert {"slowdown", "time_s", "busbw_Bps"} <= set(rows[0])


def test_names_must_differ():
    with pytest.raises(InputError, match="jobs need different names, got a, a"):
        run_jobs(NETWORK, [pair("a", 0), pair("a", 1)])
