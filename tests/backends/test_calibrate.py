import itertools

import numpy as np
import pytest
from numeric_run import run_reference
from thread_transport import ThreadTransport, World

from commsim.backends.calibrate import Costs, as_network, calibrate, fit_samples
from commsim.backends.execute import run_once
from commsim.backends.point_to_point import Samples, exchange, ping_pong, run_point_to_point, train
from commsim.core.errors import BackendError
from commsim.core.schedule import Schedule

SIZE = 4096.0 * 2 ** np.arange(13)
TRAIN = 1024.0 * 2 ** np.arange(9)
KNOWN = Costs(L=3e-6, o=2e-6, bandwidth=8e9, shared_bandwidth=12e9, gamma=2.5e-11)


def samples_of(costs: Costs, n_ranks: int, noise: float = 0.0) -> Samples:
    rng = np.random.default_rng(3)

    def noisy(times: list[float]) -> np.ndarray:
        return np.array([times, times]) * rng.lognormal(0, noise, (2, len(times)))

    add = costs.gamma * SIZE + 4e-7
    gaps = [
        np.array([time(s) - costs.L for s in TRAIN]) for time in (costs.alone, lambda s: costs.together(s, n_ranks))
    ]
    return Samples(
        SIZE,
        noisy([costs.alone(s) for s in SIZE]),
        noisy([costs.together(s, n_ranks) for s in SIZE]),
        TRAIN,
        *gaps,
        add,
        add,
        n_ranks,
    )


def test_a_fit_of_exact_samples_finds_the_known_costs() -> None:
    got = fit_samples(samples_of(KNOWN, 2))
    for field in ("L", "o", "bandwidth", "shared_bandwidth", "gamma"):
        assert getattr(got, field) == pytest.approx(getattr(KNOWN, field), rel=1e-4), field


def test_noise_of_a_tenth_moves_the_costs_by_less_than_a_tenth() -> None:
    got = fit_samples(samples_of(KNOWN, 2, noise=0.1))
    for field in ("bandwidth", "shared_bandwidth", "gamma"):
        assert getattr(got, field) == pytest.approx(getattr(KNOWN, field), rel=0.1), field


def test_without_sharing_every_message_gets_what_one_gets_alone() -> None:
    free = Costs(L=3e-6, o=2e-6, bandwidth=8e9, shared_bandwidth=32e9, gamma=1e-11)
    got = fit_samples(samples_of(free, 4))
    assert got.shared_bandwidth == pytest.approx(4 * got.bandwidth, rel=0.02)


def test_the_network_gives_back_the_times_that_were_fitted() -> None:
    from commsim.run import prepare

    network = as_network(KNOWN, 4, "known")
    for schedule, wanted in (
        (ping_pong(4, over_sent=True), 2 * KNOWN.alone(1e6)),
        (exchange(4, over_sent=True), 2 * KNOWN.together(1e6, 4)),
    ):
        got = prepare(schedule, network).predict(1e6 * schedule.n_chunks).time
        assert got == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("n_ranks", [2, 3, 4, 5])
@pytest.mark.parametrize("over_sent", [False, True])
def test_in_an_exchange_every_rank_sends_and_receives_once_a_hop(n_ranks: int, over_sent: bool) -> None:
    several = [exchange(n_ranks, over_sent=over_sent), train(n_ranks, 2, all_pairs=True)]
    for transfers, hop in itertools.product((schedule.expand() for schedule in several), (0, 1)):
        now = transfers[transfers["hop"] == hop]
        assert sorted(now["src"]) == sorted(now["dst"]) == list(range(n_ranks))
        assert (now["src"] != now["dst"]).all()


@pytest.mark.parametrize("build", [ping_pong, exchange])
@pytest.mark.parametrize("over_sent", [False, True])
def test_point_to_point_runs_move_what_they_say(build: object, over_sent: bool) -> None:
    schedule: Schedule = build(2, over_sent=over_sent)
    inputs = np.random.default_rng(0).standard_normal((2, 12)).astype(np.float32)
    got = World(2).run(lambda t: run_once(t, schedule, inputs[t.rank]))
    np.testing.assert_array_equal(np.stack(got), run_reference(schedule, inputs))


def test_all_ranks_get_the_same_samples() -> None:
    first, second = World(2).run(lambda t: run_point_to_point(t, (4096, 8192), passes=1, repeats=2))
    for field in ("alone", "together", "gap_alone", "gap_together", "add_alone", "add_together"):
        np.testing.assert_array_equal(getattr(first, field), getattr(second, field))
        assert (getattr(first, field) > 0).all()


def test_one_rank_alone_cannot_be_calibrated() -> None:
    with pytest.raises(BackendError, match="at least 2 ranks: start it with mpirun -n 2"):
        calibrate(ThreadTransport(World(1), 0))
