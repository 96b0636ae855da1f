"""Costs of messages, from ranks whose network is a formula."""

import itertools
import math

import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.core.placement import Placement
from commsim.prediction.build import prepare
from commsim.prediction.inputs import load_network
from commsim.real.testbed import calibration, measure
from commsim.real.testbed.cable_shape import FRAME
from commsim.real.testbed.calibration import SeatCosts, calibrate
from commsim.real.testbed.layout import lay_out
from commsim.real.testbed.places import NamesOfTestbed

COSTS = [SeatCosts(1e-4, 3e-5, 0.99), SeatCosts(0.0, 2e-5, 0.985), SeatCosts(2e-4, 0.0, 1.0)]


class Formula:
    """Ranks whose messages take what the flow engine says for known costs."""

    def __init__(self, costs, n_ranks=4):
        self.layout = lay_out(load_network("star:n_hosts=4,bandwidth=200Mbps,latency=0s"))
        self.place = NamesOfTestbed("nobody")
        self.seats, self._network = tuple(range(n_ranks)), costs.on(self.layout.network)

    def run(self, schedule, size, *, iterations):
        ready = prepare(schedule, self._network, placement=Placement(np.array(self.seats, np.int32)))
        return {"samples": [ready.predict(size, framing=FRAME.framing).time] * iterations}


@pytest.mark.parametrize("costs", COSTS)
def test_costs_that_are_known_are_found_again(costs):
    ranks = Formula(costs)
    found = calibrate(ranks)
    assert found.efficiency == pytest.approx(costs.efficiency, rel=4e-3)
    assert found.o == pytest.approx(costs.o, abs=5e-6)
    assert abs(found.L - costs.L) <= 1e-5


@pytest.mark.parametrize("costs", COSTS)
@pytest.mark.parametrize("collective", ["ring_all_reduce", "pairwise_all_to_all"])
def test_what_is_found_predicts_collectives_that_it_has_not_seen(costs, collective):
    ranks = Formula(costs)
    found = Formula(calibrate(ranks))
    for size in (1 << 16, 1 << 20, 1 << 22):
        real, predicted = (one.run(collective, size, iterations=1)["samples"][0] for one in (ranks, found))
        assert predicted == pytest.approx(real, rel=0.01)


@pytest.fixture
def alone(monkeypatch):
    """Take away what other processes of this machine do meanwhile."""
    monkeypatch.setattr(measure, "FOREIGN", math.inf)


def test_a_calibration_that_wanted_processors_is_repeated(alone):
    slow, sound = Formula(SeatCosts(0.0, 2e-5, 0.65)), Formula(COSTS[1])
    runs = itertools.count()
    ranks = Formula(COSTS[1])
    # Two kinds of trains of two lengths each, then exchanges: the first calibration is the slow one.
    per_calibration = 2 + 2 * len(calibration.TRAIN_SIZES) + len(calibration.EXCHANGE_SIZES)
    ranks.run = lambda *args, **kw: (slow if next(runs) < per_calibration else sound).run(*args, **kw)
    found = calibrate(ranks)
    assert not found.disturbed
    assert found.efficiency == pytest.approx(0.985, rel=4e-3)


def test_a_calibration_that_never_has_processors_says_so(alone):
    assert "65% of the links' rate" in calibrate(Formula(SeatCosts(0.0, 2e-5, 0.65))).disturbed


def test_costs_are_never_negative_though_the_times_are_too_short():
    found = calibration._beside(np.array([1.0, 2.0]), np.array([1.5, 2.5]))
    assert found == 0


def test_one_rank_has_nobody_to_measure_with():
    with pytest.raises(InputError, match="two ranks at least"):
        calibrate(Formula(SeatCosts(0.0, 0.0, 1.0), n_ranks=1))
