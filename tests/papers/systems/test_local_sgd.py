import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.papers.systems.local_sgd import ad_psgd, gossip, local_sgd


@pytest.mark.parametrize("period", [1, 4, 24])
def test_without_jitter_an_iteration_costs_its_share_of_an_all_reduce(period):
    answer = local_sgd(n_workers=8, period=period, compute=0.02, jitter=0.0, alpha=1e-5, size=80e6, bandwidth=1e9)
    ring = 14 * 1e-5 + 1.75 * 80e6 / 1e9
    assert answer["all_reduce_s"] == pytest.approx(ring)
    assert answer["iteration_s"] == pytest.approx(0.02 + ring / period)
    assert answer["synchronous_iteration_s"] == pytest.approx(0.02 + ring)


def test_longer_periods_even_out_jitter_too():
    """A maximum of sums is at most the sum of maxima, and no less than the mean."""
    times = [local_sgd(period=period, jitter=0.5, size=0.0, alpha=0.0)["iteration_s"] for period in (1, 2, 8, 40, 240)]
    assert times == sorted(times, reverse=True)
    assert times[-1] > 0.1 * 0.9
    assert times[0] > 1.5 * times[-1]


def test_a_slow_worker_costs_gossip_its_own_share_and_synchronous_training_everything():
    """AD-PSGD: one of n workers at a tenth of the speed leaves (n - 0.9)/n of the rate, where all-reduce leaves 0.1."""
    common = {"n_workers": 16, "jitter": 0.0, "size": 1.0, "alpha": 0.0, "iterations": 200}
    even, uneven = ad_psgd(**common), ad_psgd(**common, slow=10.0)
    assert uneven["iterations_per_s"] / even["iterations_per_s"] == pytest.approx((16 - 0.9) / 16, rel=0.01)
    assert uneven["synchronous_iterations_per_s"] / even["synchronous_iterations_per_s"] == pytest.approx(0.1)


def test_a_port_has_one_average_at_a_time():
    """Five askers share four answering workers, each of which has one average after the other."""
    times = np.full((2, 2000), 1e-3)
    done, averages = gossip(times, 0.1, 1.0 + 1e-9)
    assert (done[0], averages) == (10, 10), "the asker waits for its average"
    assert done[1] == 1000, "who answers computes on"
    done, averages = gossip(np.full((9, 2000), 1e-3), 0.1, 1.0 + 1e-9)
    assert averages <= 4 * 10, "four answering workers have at most ten averages each"
    assert done[::2].sum() == averages


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: local_sgd(period=7), "iterations must be a multiple of the period, got 240 and 7"),
        (lambda: local_sgd(slow=0.5), "slow at least 1"),
        (lambda: local_sgd(n_workers=0), "must be at least 1"),
        (lambda: ad_psgd(iterations=10**6), "workers times iterations must be at most 1000000"),
        (lambda: ad_psgd(n_workers=1), "a pair needs 2 workers, got 1"),
    ],
)
def test_what_makes_no_sense_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
