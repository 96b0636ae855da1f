import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commsim.core.cost import LogGP
from commsim.core.errors import InputError
from commsim.formats.measurement import Measurement
from commsim.real.comparison import alpha_beta_fit
from commsim.real.comparison import bootstrap as bootstrap_fit
from commsim.real.comparison.alpha_beta_fit import fit_loggp, fit_table, network_costs
from commsim.real.comparison.bootstrap import bootstrap

SIZES = [2**k for k in range(10, 31, 2)]


@pytest.fixture(scope="module", autouse=True)
def _few_draws():
    """Fits are drawn again less often than for users: these tests want intervals, not their third digit."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bootstrap_fit, "DRAWS", 40)
        yield


def rows(times, operation="all_reduce", n_ranks=8, algorithm=""):
    return [Measurement(operation, size, time, n_ranks, algorithm, source="f.txt")
            for size, time in zip(SIZES, times, strict=True)]  # fmt: skip


def line(a, b, noise=0.0, seed=0):
    wobble = np.random.default_rng(seed).normal(1.0, noise, len(SIZES)) if noise else np.ones(len(SIZES))
    return [(a + b * size) * w for size, w in zip(SIZES, wobble, strict=True)]


@settings(max_examples=settings().max_examples // 5)
@given(st.floats(1e-6, 1e-4), st.floats(1e-12, 1e-9))
def test_a_fit_gives_back_what_a_table_was_made_of(a, b):
    fit = fit_table(rows(line(a, b)))
    if not fit.hidden:
        assert fit.startup.value == pytest.approx(a, rel=1e-4)
        assert fit.per_byte.value == pytest.approx(b, rel=1e-4)
        assert fit.median_residual < 1e-4
        assert fit.busbw.value == pytest.approx(1.75 / b, rel=1e-4)


@pytest.mark.slow
@settings(max_examples=settings().max_examples // 5)
@given(st.integers(0, 10**6))
def test_with_noise_the_truth_lies_near_the_interval(seed):
    a, b = 20e-6, 1e-11
    fit = fit_table(rows(line(a, b, noise=0.03, seed=seed)))
    assert fit.hidden == ()
    for estimate, truth in ((fit.startup, a), (fit.per_byte, b)):
        assert estimate.low <= estimate.value <= estimate.high
        assert estimate.value == pytest.approx(truth, rel=0.1)
        width = estimate.high - estimate.low
        assert estimate.low - 2 * width <= truth <= estimate.high + 2 * width


@pytest.mark.deep
@pytest.mark.slow
def test_intervals_cover_the_truth_about_as_often_as_they_say():
    a, b = 20e-6, 1e-11
    fits = [fit_table(rows(line(a, b, noise=0.03, seed=seed))) for seed in range(12)]
    covered = sum(fit.per_byte.low <= b <= fit.per_byte.high for fit in fits)
    assert covered >= 7  # 11 rows are few, so that drawn intervals are somewhat short of 95 %


def test_one_disturbed_run_does_not_bend_the_line():
    times = line(20e-6, 1e-11)
    times[5] *= 10
    fit = fit_table(rows(times))
    assert fit.startup.value == pytest.approx(20e-6, rel=0.05)
    assert fit.per_byte.value == pytest.approx(1e-11, rel=0.05)


def test_what_the_rows_cannot_tell_is_said():
    flat = fit_table(rows(line(1.0, 1e-13)))
    assert flat.hidden
    assert "the time per byte" in flat.hidden[0]
    assert "larger messages" in flat.hidden[0]
    steep = fit_table(rows(line(1e-12, 1e-9)))
    assert "the start-up time" in steep.hidden[0]
    with pytest.raises(InputError, match=r"f.txt: a fit needs at least 2 sizes of all_reduce, got 1"):
        fit_table(rows(line(1e-6, 1e-9))[:1] * 3)
    with pytest.raises(InputError, match="times that are not 0"):
        fit_table(rows([0.0, *line(1e-6, 1e-9)[1:]]))


@pytest.mark.slow
def test_two_rows_say_nothing_of_how_sure_a_line_through_them_is():
    two, three = (fit_table(rows(line(20e-6, 1e-11))[::5][:n]) for n in (2, 3))
    assert two.hidden == ("how sure the two are: a line goes through any two rows; measure more sizes",)
    assert not any("any two rows" in text for text in three.hidden)


def test_a_cost_that_is_not_known_is_said_with_its_unit():
    wild = fit_table(rows([t * w for t, w in zip(line(20e-6, 1e-11), [1, 9] * 6, strict=False)]))
    assert any(" s/B; measure" in text or " s; measure" in text for text in wild.hidden)


def test_of_very_many_rows_some_are_drawn(monkeypatch):
    monkeypatch.setattr(alpha_beta_fit, "MAX_ROWS", 22)
    many = fit_table(rows(line(20e-6, 1e-11)) * 10)
    assert many.n_rows == len(many.residuals) == 22
    assert many.per_byte.value == pytest.approx(1e-11, rel=1e-6)
    with pytest.raises(InputError, match="the seed of a fit must be 0 or more, got -1"):
        fit_table(rows(line(1e-6, 1e-9)), seed=-1)


@pytest.mark.parametrize(
    ("collective", "operation", "hops", "share"),
    [("ring_all_reduce", "all_reduce", 14, 14 / 8), ("ring_all_gather", "all_gather", 7, 7 / 8)],
)
def test_the_closed_form_turns_a_fit_into_a_network(collective, operation, hops, share):
    # 2(p - 1) or p - 1 messages of S/p each, so that a = hops alpha and b = share / B
    fit = fit_table(rows(line(hops * 2e-6, share / 50e9), operation=operation))
    middle, fastest, slowest = network_costs(fit, collective)
    assert (middle.alpha, middle.B) == pytest.approx((2e-6, 50e9), rel=1e-4)
    assert fastest.B >= middle.B >= slowest.B
    with pytest.raises(InputError, match="implements"):
        network_costs(dataclasses.replace(fit, operation="broadcast"), collective)
    with pytest.raises(InputError, match="unknown collective"):
        network_costs(fit, "mine")


def test_loggp_is_told_as_far_as_the_tables_show_it():
    wire = LogGP(L=1e-6, o=0.5e-6, B=25e9)
    alone = rows([wire.message(size) for size in SIZES], "send_recv", 2)
    stream = rows([0.7e-6 + size / 25e9 for size in SIZES], "send_recv", 2, "stream")
    both = fit_loggp(alone + stream)
    assert both.latency_and_overhead.value == pytest.approx(1.5e-6, rel=1e-3)
    assert both.gap_or_overhead.value == pytest.approx(0.7e-6, rel=1e-3)
    assert both.per_byte.value == pytest.approx(1 / 25e9, rel=1e-3)
    assert len(both.hidden) == 1
    assert "L and o come as a sum" in both.hidden[0]
    one = fit_loggp(alone)
    assert one.gap_or_overhead is None
    assert any("g: needs messages that do not wait" in text for text in one.hidden)
    assert fit_loggp(stream).latency_and_overhead is None
    assert fit_loggp(stream).costs() is None
    costs = both.costs()  # no engine has a gap, so that it counts as o
    assert (costs.o, costs.L, costs.B) == pytest.approx((0.7e-6, 0.8e-6, 25e9), rel=1e-3)
    with pytest.raises(InputError, match="OSU's latency and bandwidth tables"):
        fit_loggp(rows(line(1e-6, 1e-9)))


def test_draws_in_which_all_have_one_size_are_drawn_again():
    seen = []

    def fit(chosen):
        seen.append(len(set(np.array([1.0, 1.0, 2.0])[chosen])))
        return np.array([1.0])

    bootstrap(fit, np.array([1.0, 1.0, 2.0]), 0)
    assert set(seen) == {2}
