"""That plans of too many transfers are not made."""

import pytest

from collectives.dense.halving_doubling import halving_doubling_all_reduce
from commsim.core.placement import place
from commsim.engine.flow_job import FlowJob
from commsim.engine.recurrence import moves
from topologies.star import star


def test_schedules_of_too_many_transfers_are_left_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    network = star(8, 1e9, 1e-6)
    job = FlowJob(halving_doubling_all_reduce(8), place(network, 8))
    assert moves.plan_moves(network, job, routing=None, seed=0) is not None
    monkeypatch.setattr(moves, "MAX_MOVES", 47)
    assert moves.plan_moves(network, job, routing=None, seed=0) is None
