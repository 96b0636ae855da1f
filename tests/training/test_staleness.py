import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from commsim.core.errors import InputError
from commsim.training.staleness import draw_compute, run_workers

computes = st.tuples(st.integers(1, 5), st.integers(1, 12)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.one_of(st.integers(0, 4).map(float), st.floats(0.0, 10.0)))
)
seconds = st.sampled_from([0.0, 0.5, 1.0, 2.7])


def recurrence(compute, between, bound):
    """Start of every iteration when pushes do not queue: after one's own last, and everyone's that must be in."""
    n, m = compute.shape
    applied = np.zeros((n, m))
    started = np.zeros((n, m))
    for i in range(m):
        gate = applied[:, i - bound - 1].max() if i > bound else 0.0
        started[:, i] = np.maximum(gate, applied[:, i - 1] if i else 0.0)
        applied[:, i] = started[:, i] + between + compute[:, i]
    return started, applied


@given(compute=computes, pull=seconds, push=seconds, serve=seconds, bound=st.one_of(st.none(), st.integers(0, 6)))
def test_the_bound_is_never_exceeded_and_every_iteration_is_applied_once_and_in_order(
    compute, pull, push, serve, bound
):
    run = run_workers(compute, pull=pull, push=push, serve=serve, bound=bound)
    assert run.lead.min() >= 0
    if bound is not None:
        assert run.lead.max() <= bound
    assert (run.applied - run.started >= compute + pull + push + serve - 1e-9).all()
    assert (run.started[:, 1:] >= run.applied[:, :-1]).all()
    assert run.histogram().sum() == run.missed.size == compute.size
    assert np.diff(np.sort(run.applied.ravel())).min(initial=np.inf) >= serve - 1e-9


@given(compute=computes, pull=seconds, push=seconds, bound=st.integers(0, 6))
def test_without_queueing_times_are_a_recurrence(compute, pull, push, bound):
    run = run_workers(compute, pull=pull, push=push, bound=bound)
    started, applied = recurrence(compute, pull + push, bound)
    np.testing.assert_allclose(run.started, started, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(run.applied, applied, rtol=1e-12, atol=1e-12)


@given(compute=computes, pull=seconds, push=seconds)
def test_a_looser_bound_is_never_slower(compute, pull, push):
    runs = [run_workers(compute, pull=pull, push=push, bound=b) for b in (0, 1, 3, compute.shape[1], None)]
    for tighter, looser in itertools.pairwise(runs):
        assert (looser.applied <= tighter.applied + 1e-9).all()
    assert runs[-1] == runs[-2]


def test_bulk_synchronous_pays_for_the_slowest_of_every_round_and_asynchronous_for_ones_own():
    compute = draw_compute(8, 200, 1.0, jitter=0.3, seed=1)
    assert run_workers(compute, push=0.1, bound=0).time == pytest.approx(compute.max(axis=0).sum() + 20)
    assert run_workers(compute, push=0.1).time == pytest.approx(compute.sum(axis=1).max() + 20)
    assert run_workers(compute, bound=0).histogram().tolist() == [1600]


def test_a_straggler_halves_the_throughput_of_all_but_asynchronous_workers():
    compute = draw_compute(8, 100, [1.0] * 7 + [2.0])
    rates = [run_workers(compute, bound=bound).throughput for bound in (0, 3, None)]
    assert rates[0] == pytest.approx(8 / 2, rel=0.01)
    assert rates[1] == pytest.approx(8 / 2, rel=0.05)
    assert rates[2] == pytest.approx(7.5)
    assert run_workers(compute, bound=3).histogram().argmax() == 3


def test_an_asynchronous_gradient_of_equal_workers_misses_one_push_of_each_other():
    compute = draw_compute(6, 400, 1.0, jitter=0.05, seed=3)
    assert run_workers(compute).missed[:, 5:-5].mean() == pytest.approx(5, rel=0.01)


def test_a_slow_server_serves_one_push_after_the_other():
    run = run_workers(np.full((10, 50), 1.0), serve=1.0)
    assert run.time == pytest.approx(1.0 + 10 * 50)
    assert run.throughput == pytest.approx(1.0, rel=0.01)
    assert (run.waited == 0).all()


def test_jitter_is_drawn_by_seed_and_keeps_the_mean():
    drawn = draw_compute(4, 20_000, 3.0, jitter=0.5, seed=7)
    assert np.array_equal(drawn, draw_compute(4, 20_000, 3.0, jitter=0.5, seed=7))
    assert drawn.mean() == pytest.approx(3.0, rel=0.02)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: run_workers([1.0]), r"must be \[n_workers, n_iterations\], got shape \(1,\)"),
        (lambda: run_workers([[np.nan]]), "must be 0 or more and finite"),
        (lambda: run_workers([[1.0]], push=-1), "must be 0 or more and finite"),
        (lambda: run_workers([[1.0]], bound=-1), "bound of staleness must be 0 or more, got -1"),
        (lambda: draw_compute(0, 1, 1.0), "workers and iterations must be at least 1"),
    ],
)
def test_what_makes_no_sense_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
