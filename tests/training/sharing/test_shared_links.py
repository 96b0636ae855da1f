from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slow_shared_links import run_slowly

from commsim.core.errors import InputError
from commsim.core.network import Network, both_ways, kinds, node_names
from commsim.training.sharing.periodic import JobPhase, PeriodicJob
from commsim.training.sharing.shared_links import Mltcp, simulate_jobs

GBPS = 1e9 / 8


def line(*bandwidths):
    """Switches in a row, with a host at one end: link k goes from node k to the next."""
    n = len(bandwidths)
    src, dst = both_ways(range(n), range(1, n + 1))
    return Network("line", node_names(h=1, s=n), kinds(1, n), src, dst, np.tile(bandwidths, 2), 0.0)


def on(network, **share):
    """Use of the links ``l0``, ``l1`` and so on."""
    use = np.zeros(network.n_links)
    for name, times in share.items():
        use[int(name[1:])] = times
    return use


def job(name, period, *phases):
    return PeriodicJob(name, 2, period, tuple(JobPhase(*phase) for phase in phases))


ONE = line(50 * GBPS)
TWINS = [job(name, 0.25, (0.125, 0.125, 50 * GBPS)) for name in "ab"]


def share(jobs, network=ONE, **options):
    return simulate_jobs(network, jobs, [on(network, l0=1)] * len(jobs), **options)


@pytest.mark.nojit
def test_two_equal_jobs_on_one_link_get_half_each_and_a_shift_of_half_an_iteration_restores_both():
    together = share(TWINS, iterations=8)
    for name, expected in (("iteration_times", 0.375), ("communication_times", 0.25)):
        assert [t.tolist() for t in getattr(together, name)] == [[expected] * 8] * 2
    assert together.contended_time[0] == 8 * 0.25
    assert together.excess[0] == 8 * 0.25 * 50 * GBPS
    assert together.job_contended_time.tolist() == [8 * 0.25] * 2
    assert together.slowdowns.tolist() == [1.5, 1.5]
    apart = share(TWINS, iterations=8, shifts=[0.0, 0.125])
    assert [t.tolist() for t in apart.iteration_times] == [[0.25] * 8] * 2
    assert apart.contended_time[0] == apart.excess[0] == 0.0
    assert apart.link_bytes[0] == apart.time * 50 * GBPS - 0.125 * 50 * GBPS  # full but for the first gap of the first


def test_what_overlaps_a_phase_goes_on_while_the_phase_is_slowed_down():
    """Together each sends for 8 s where it needs 4 alone; 6 s of computation run beside that, and 4 s follow both."""
    twins = [job(name, 10.0, (0.0, 4.0, 50 * GBPS, 6.0)) for name in "ab"]
    assert share(twins, iterations=3).iteration_times.tolist() == [[12.0] * 3] * 2
    waiting = [job(name, 10.0, (0.0, 4.0, 50 * GBPS)) for name in "ab"]
    assert share(waiting, iterations=3).iteration_times.tolist() == [[14.0] * 3] * 2
    hidden = [job(name, 10.0, (0.0, 4.0, 50 * GBPS, 8.0)) for name in "ab"]
    assert share(hidden, iterations=3).slowdowns.tolist() == [1.0, 1.0]
    ahead = share([twins[0], job("c", 10.0, (0.0, 4.0, 50 * GBPS, 6.0))], sharing="priority", priorities=[0, 1])
    assert ahead.iteration_times[:, 0].tolist() == [10.0, 12.0]


@pytest.mark.nojit
def test_a_single_job_needs_its_period_whatever_its_phases():
    for phases in ((), ((0.0, 0.25, 1.0),), ((0.0, 0.125, 1.0), (0.125, 0.0625, 2.0)), ((0.1875, 0.125, 3.0),)):
        alone = share([job("a", 0.25, *phases)], iterations=5)
        assert alone.iteration_times[0].tolist() == [0.25] * 5
        assert alone.communication_times[0].tolist() == [sum(p[1] for p in phases)] * 5
        assert alone.link_bytes[0] == pytest.approx(5 * sum(p[1] * p[2] for p in phases))


@pytest.mark.nojit
def test_priorities_and_weights_decide_who_waits():
    first = share(TWINS, sharing="priority", priorities=[0, 1], iterations=4)
    assert first.iteration_times[0].tolist() == [0.25] * 4
    assert first.communication_times[1][0] == 0.25  # waits for the first one's 0.125 s, once:
    assert first.iteration_times[1].tolist() == [0.375, 0.25, 0.25, 0.25]  # then it has slid into the gap
    three = share(TWINS, sharing="weighted", weights=[3, 1], iterations=1)
    assert three.communication_times[0][0] == pytest.approx(0.125 * 4 / 3, rel=1e-12)
    assert three.communication_times[1][0] == pytest.approx(0.25, rel=1e-12)


@pytest.mark.nojit
def test_a_job_is_as_fast_as_its_slowest_link_and_leaves_the_rest_to_others():
    network = line(8.0, 2.0)
    long, short = job("long", 2.0, (0.0, 1.0, 8.0)), job("short", 2.0, (0.0, 1.0, 8.0))
    run = simulate_jobs(network, [long, short], [on(network, l0=1, l1=1), on(network, l0=1)], iterations=1)
    # long gets 2 over the second link, short the remaining 6 of the first
    assert run.communication_times[1][0] == 8 / 6
    assert run.communication_times[0][0] == 4.0
    double = simulate_jobs(network, [short], [on(network, l0=2)], iterations=1)
    assert double.communication_times[0][0] == 2.0
    assert double.link_bytes[0] == 16.0


@pytest.mark.parametrize("overlap", [0.0, 0.06, 0.2])
def test_alone_a_job_takes_what_its_links_allow_not_what_its_profile_says(overlap):
    run = share([job("fast", 0.25, (0.0, 0.05, 80 * GBPS, overlap))], iterations=4)
    communication = 0.05 * 80 / 50
    iteration = 0.25 + max(communication, overlap) - max(0.05, overlap)
    np.testing.assert_allclose(run.alone, [[iteration, communication]], rtol=1e-12)
    np.testing.assert_allclose(run.iteration_times, [[iteration] * 4], rtol=1e-12)
    assert run.slowdowns[0] == pytest.approx(1.0, rel=1e-12)


jobs = st.builds(
    lambda period, cuts, rates, turn, overlaps: _drawn(period, cuts, rates, turn, overlaps),
    st.integers(4, 12),
    st.lists(st.integers(0, 11), min_size=2, max_size=4, unique=True).map(sorted),
    st.tuples(st.integers(1, 6), st.integers(1, 6)),
    st.integers(0, 11),
    st.tuples(*[st.fractions(0, 1, max_denominator=4)] * 2),
)


def _drawn(period, cuts, rates, turn, overlaps):
    pairs = [(a, b) for a, b in zip(cuts[::2], cuts[1::2], strict=False) if b <= period]
    phases = sorted(((a + turn) % period, b - a, rate) for (a, b), rate in zip(pairs, rates, strict=False))
    following = [*(offset for offset, *_ in phases[1:]), *(period + offset for offset, *_ in phases[:1])]
    return period, [
        (*map(Fraction, phase), part * (then - phase[0]))
        for phase, then, part in zip(phases, following, overlaps, strict=False)
    ]


@pytest.mark.slow
@pytest.mark.nojit
@given(data=st.data(), drawn=st.lists(jobs, min_size=1, max_size=4))
def test_all_that_happens_is_what_the_slow_version_says(data, drawn):
    n = len(drawn)
    capacity = {k: Fraction(data.draw(st.integers(2, 9))) for k in range(3)}
    uses = [
        {k: Fraction(share, 2) for k in capacity if (share := data.draw(st.sampled_from([0, 0, 1, 2, 4])))}
        for _ in range(n)
    ]
    numbers = st.lists(st.integers(1, 3), min_size=n, max_size=n)
    sharing = data.draw(st.sampled_from(["fair", "weighted", "priority"]))
    given_ = {"weighted": "weights", "priority": "priorities"}.get(sharing)
    weights = data.draw(numbers) if given_ == "weights" else [1] * n
    priorities = data.draw(numbers) if given_ == "priorities" else [0] * n
    if sharing == "priority":  # so that nobody starves
        for k in capacity:
            capacity[k] = 1 + sum(
                Fraction(sum(d * r for _, d, r, _ in phases), period) * use.get(k, 0)
                for (period, phases), use in zip(drawn, uses, strict=True)
            )
    shifts = data.draw(st.lists(st.integers(0, 12), min_size=n, max_size=n))
    adjust = data.draw(st.one_of(st.none(), st.just(Fraction(503, 10007))))
    iterations = data.draw(st.integers(1, 4))
    slow = run_slowly(
        drawn, uses, capacity, shifts=list(map(Fraction, shifts)), iterations=iterations,
        weights=list(map(Fraction, weights)), priorities=priorities, adjust=adjust,
    )  # fmt: skip
    network = line(*map(float, capacity.values()))
    fast = simulate_jobs(
        network,
        [job(f"j{j}", float(period), *(map(float, p) for p in phases)) for j, (period, phases) in enumerate(drawn)],
        [on(network, **{f"l{k}": float(share) for k, share in use.items()}) for use in uses],
        shifts=shifts, iterations=iterations, sharing=sharing, adjust=None if adjust is None else float(adjust),
        **({given_: weights if given_ == "weights" else priorities} if given_ else {}),
    )  # fmt: skip
    for name in ("time", "iteration_times", "communication_times", "job_contended_time"):
        np.testing.assert_allclose(getattr(fast, name), np.array(slow[name], float), rtol=1e-9, atol=1e-9, err_msg=name)
    for name in ("link_bytes", "contended_time", "excess"):
        expected = [float(v) for v in slow[name].values()]
        np.testing.assert_allclose(getattr(fast, name)[:3], expected, rtol=1e-9, atol=1e-8, err_msg=name)
    for count, times in zip(fast.n_adjusted, slow["adjusted_at"], strict=True):
        assert sum(time < slow["time"] for time in times) <= count <= len(times)  # at the very end they may, or not


@given(seed=st.integers(0, 99), jitter=st.sampled_from([0.0, 0.1]), sharing=st.sampled_from(["fair", "mltcp"]))
def test_no_link_carries_more_than_it_can_and_computing_takes_as_long_as_ever(seed, jitter, sharing):
    random = np.random.default_rng(seed)
    network = line(*random.uniform(1, 5, 6))
    mixed = [job(f"j{j}", 10.0, (random.uniform(0, 5), random.uniform(1, 9), random.uniform(1, 9))) for j in range(5)]
    use = [random.choice([0.0, 0.5, 1.0, 2.0], network.n_links) for _ in mixed]
    run = simulate_jobs(network, mixed, use, iterations=20, sharing=sharing, jitter=jitter, seed=seed)
    assert (run.link_bytes <= network.bandwidth * run.time * (1 + 1e-9)).all()
    assert (run.contended_time <= run.time * (1 + 1e-9)).all()
    for one, total, busy in zip(mixed, run.iteration_times, run.communication_times, strict=True):
        computing = one.period - one.communication_time
        if not jitter:
            np.testing.assert_allclose(total - busy, computing, rtol=1e-9)
        assert (busy >= one.communication_time * (1 - 1e-9)).all()


def test_jitter_has_the_mean_that_was_asked_for_and_comes_again_with_the_seed():
    lone = [job("a", 1.0, (0.5, 0.25, 1.0))]
    one, two, other = (share(lone, iterations=4000, jitter=0.5, seed=seed) for seed in (1, 1, 2))
    assert one == two
    assert one != other
    computing = one.iteration_times[0] - 0.25
    assert computing.mean() == pytest.approx(0.75, rel=0.03)
    assert np.log(computing / 0.75).std() == pytest.approx(0.5, rel=0.05)


def test_jobs_that_drift_apart_are_kept_in_step_by_waiting():
    loose = share(TWINS, iterations=400, shifts=[0.0, 0.125], jitter=0.01, seed=3)
    kept = share(TWINS, iterations=400, shifts=[0.0, 0.125], jitter=0.01, seed=3, adjust=0.05)
    assert loose.n_adjusted.tolist() == [0, 0]
    assert (kept.n_adjusted > 0).all()
    assert kept.contended_time[0] / kept.time < loose.contended_time[0] / loose.time


@pytest.mark.nojit
def test_a_late_job_waits_for_its_next_time_and_is_in_step_again():
    # b is held back once, by c, which sends only in its first 16 s
    b, c = job("b", 1.0, (0.5, 0.25, 8.0)), job("c", 16.0, (0.0, 0.625, 8.0))
    network = line(8.0)
    kept = share([b, c], network, iterations=1, adjust=0.05)
    # 0.125 s of sharing make it 0.125 s late: the second iteration waits 0.875 s
    assert kept.iteration_times[0].tolist() == [1.125]
    assert kept.n_adjusted.tolist() == [1, 0]
    loose = share([b, c], network, iterations=3)
    assert loose.iteration_times[0].tolist() == [1.125, 1.0, 1.0]
    kept = share([b, c], network, iterations=3, adjust=0.05)
    assert kept.iteration_times[0].tolist() == [1.125, 1.875, 1.0]


def test_with_mltcp_jobs_slide_apart_by_themselves():
    fair = share(TWINS, iterations=60, shifts=[0.0, 0.01])
    apart = share(TWINS, iterations=60, shifts=[0.0, 0.01], sharing="mltcp")
    np.testing.assert_allclose(np.array(fair.iteration_times)[:, 20:], 0.375, rtol=0.05)
    np.testing.assert_allclose(np.array(apart.iteration_times)[:, 20:], 0.25, rtol=1e-6)


@given(ahead=st.floats(0.05, 0.9), slope=st.floats(0.5, 8.0), intercept=st.floats(0.1, 1.0))
@settings(max_examples=settings().max_examples * 2 // 3)
def test_the_steps_of_mltcp_tend_to_the_exact_solution(ahead, slope, intercept):
    # a has sent the part `ahead` when b begins; from then on their rates are as w(ahead) : w(0), until a has finished
    a, b = job("a", 4.0, (0.0, 1.0, 8.0)), job("b", 4.0, (0.0, 1.0, 8.0))
    ratio = (slope * ahead + intercept) / intercept
    exact = ahead + (1 - ahead) * (1 + 1 / ratio)
    errors = []
    for n_steps in (64, 512):
        rule = Mltcp(slope, intercept, n_steps)
        run = share([a, b], line(8.0), iterations=1, shifts=[0.0, ahead], sharing="mltcp", mltcp=rule)
        errors.append(abs(run.communication_times[0][0] - exact))
    assert errors[1] < 0.003
    assert errors[1] <= errors[0] / 4 + 1e-9


def test_without_contention_mltcp_changes_nothing():
    shifts = [0.0, 0.125]
    assert share(TWINS, shifts=shifts, sharing="mltcp") == share(TWINS, shifts=shifts)


def test_snapshot_of_two_like_cassini_figure_2_is_restored_by_a_shift():
    """Two equal jobs that want most of the link: 22 of 50 Gb/s each in step, all that they want half a period apart."""
    vgg = [job(name, 0.255, (0.141, 0.114, 45 * GBPS)) for name in ("j1", "j2")]
    step = share(vgg, iterations=1000)
    rates = np.array([one.n_bytes / t.mean() for one, t in zip(vgg, step.communication_times, strict=True)])
    np.testing.assert_allclose(rates / GBPS, 25.0, rtol=1e-9)
    apart = share(vgg, iterations=1000, shifts=[0.0, 0.12])
    gain = np.percentile(step.iteration_times[0], 90) / np.percentile(apart.iteration_times[0], 90)
    assert gain == pytest.approx((0.141 + 0.114 * 45 / 25) / 0.255, rel=1e-9)
    assert gain > 1.26


def test_snapshots_like_those_of_cassini_table_2_are_restored_in_the_order_of_their_scores():
    """Snapshots 1 to 3: two that interleave, two beside a small one, two whose phases are too long to interleave."""

    def snapshot(period, *ups, shifts, rates):
        mixed = [
            job(f"j{n}", period, (0.0, up, rate * GBPS)) for n, (up, rate) in enumerate(zip(ups, rates, strict=True))
        ]
        at_once, shifted = share(mixed, iterations=50), share(mixed, iterations=50, shifts=shifts)
        times = [np.array([t[10:].mean() for t in run.communication_times]) for run in (at_once, shifted)]
        return times[0] / times[1]

    first = snapshot(0.3, 0.138, 0.148, shifts=[0.0, 0.15], rates=[40, 40])
    second = snapshot(0.33, 0.163, 0.160, 0.055, shifts=[0.0, 0.165, 0.046], rates=[40, 40, 10])
    third = snapshot(0.3, 0.165, 0.165, shifts=[0.0, 0.15], rates=[40, 40])
    assert (first > 1.25).all()
    assert (second[:2] > 1.25).all()
    assert second[2] == pytest.approx(1.0, abs=0.1)  # the small one does not gain
    assert (third >= 1 - 1e-9).all()
    assert third.max() < first.min()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"iterations": 0}, "iterations must be 1..1000000, and jitter 0..10, got 0"),
        ({"iterations": 10**12}, "iterations must be 1..1000000"),
        ({"jitter": -1.0}, "jitter 0..10, got 100 and -1.0"),
        ({"adjust": 0.6}, "adjust must be a part of an iteration"),
        ({"shifts": [0.0]}, "shifts must be one number per job, 2, got 1"),
        ({"shifts": [0.0, -1.0]}, r"shifts must be 0 or more, and at most 1e\+09 iterations of a, got"),
        ({"sharing": "best"}, "unknown sharing 'best'; known: fair, weighted"),
        ({"weights": [1, 1]}, "weights go with weighted sharing, got fair"),
        ({"sharing": "weighted"}, "weighted sharing needs weights, one per job"),
        ({"sharing": "weighted", "weights": [1, 0]}, "weights must be positive"),
        ({"sharing": "priority"}, "priority sharing needs priorities"),
        ({"sharing": "priority", "priorities": [0, 0.5]}, "priorities must be whole numbers"),
        ({"mltcp": Mltcp()}, "mltcp go with mltcp sharing, got fair"),
    ],
)
def test_what_is_out_of_range_or_without_effect_is_refused(options, message):
    with pytest.raises(InputError, match=message):
        share(TWINS, **options)


def test_what_the_clock_could_not_tell_apart_is_refused():
    short, long = job("short", 1e-6, (0.0, 5e-7, 1.0)), job("long", 1e6)
    with pytest.raises(InputError, match=r"an iteration of long is more than 1e\+09 of short"):
        share([short, long])
    with pytest.raises(InputError, match="huge: rates and bytes of an iteration must be at most 1e30"):
        share([job("huge", 1.0, (0.0, 0.5, 1e200))])


def test_uses_must_fit_the_network_and_the_jobs():
    with pytest.raises(InputError, match="2 jobs need as many uses of links, got 1"):
        simulate_jobs(ONE, TWINS, [np.zeros(2)])
    with pytest.raises(InputError, match="a: the use of links is 2 numbers of 0 or more"):
        simulate_jobs(ONE, TWINS[:1], [np.array([1.0, -1.0])])
    with pytest.raises(InputError, match="at least one job"):
        simulate_jobs(ONE, [], [])


@pytest.mark.parametrize("given_", [(0.0, -1.0), (1.0, 0.0), (1.0, 1.0, 0)])
def test_mltcp_needs_positive_weights_and_a_step(given_):
    with pytest.raises(InputError, match="MLTCP"):
        Mltcp(*given_)


def test_a_job_that_starves_is_said_and_not_waited_for():
    greedy, starved = job("greedy", 1.0, (0.0, 1.0, 50 * GBPS)), job("starved", 1.0, (0.0, 0.5, GBPS))
    with pytest.raises(InputError, match="starved has done 0 of 5 iterations while greedy did"):
        share([greedy, starved], sharing="priority", priorities=[0, 1], iterations=5)


def test_jobs_whose_periods_are_too_different_are_refused_at_once():
    """A thousandth of a jobs.json's periods was a month: the others went on for minutes."""
    with pytest.raises(InputError, match=r"b does 8.59e\+06 iterations until all jobs have done 1"):
        share([job("a", 2147483.648, (0.1, 0.1, GBPS)), TWINS[1]], iterations=1)
