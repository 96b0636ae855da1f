import dataclasses

import numpy as np
import pytest
import random_order as module
from hypothesis import given, settings
from hypothesis import strategies as st
from random_order import check_order

from collectives import COLLECTIVES
from commsim.core.data_order.dependencies import dependencies
from commsim.core.data_order.dependencies_kernel import FENCE, READ_AFTER_WRITE, WRITE_AFTER_READ, WRITE_AFTER_WRITE
from commsim.core.errors import ScheduleError
from commsim.core.program import Program


def without(kind):
    """`dependencies` with all edges of one kind missing."""

    def broken(schedule, transfers):
        order = dependencies(schedule, transfers)
        kept = order.kind != kind
        first = np.concatenate(([0], np.cumsum(kept)))[order.first]
        return dataclasses.replace(order, first=first, pred=order.pred[kept], kind=order.kind[kept])

    return broken


@pytest.mark.parametrize("name", list(COLLECTIVES))
@given(n_ranks=st.integers(1, 9), seed=st.integers(0, 99))
@settings(max_examples=settings().max_examples // 4)
def test_no_allowed_order_of_any_collective_changes_its_result(name, n_ranks, seed):
    entry = COLLECTIVES[name]
    parameters = {"n_chunks": 3} if "n_chunks" in entry.parameters else {}
    check_order(entry.build(n_ranks, **parameters), seeds=[seed])


def test_overwriting_while_sending_is_found_when_the_order_of_writes_after_reads_is_lost(monkeypatch):
    p = Program(3, n_chunks=1)
    p.copy(0, src=0, dst=1)
    p.copy(0, src=2, dst=0)
    check_order(p.build())
    monkeypatch.setattr(module, "dependencies", without(WRITE_AFTER_READ))
    found = r"chunk 0 of participant 0 is overwritten while it is being sent in hop 0|depends on the order"
    with pytest.raises(ScheduleError, match=found):
        check_order(p.build(), seeds=range(20))


@pytest.mark.parametrize("kind", [READ_AFTER_WRITE, WRITE_AFTER_WRITE])
def test_a_lost_dependency_is_found(monkeypatch, kind):
    p = Program(4, n_chunks=1)
    p.copy(0, src=0, dst=1)
    p.copy(0, src=2, dst=1)
    p.copy(0, src=1, dst=3)
    check_order(p.build())
    monkeypatch.setattr(module, "dependencies", without(kind))
    with pytest.raises(ScheduleError):
        check_order(p.build(), seeds=range(20))


def test_fences_are_not_needed_for_the_result(monkeypatch):
    schedule = COLLECTIVES["binomial_broadcast"].build(8)
    monkeypatch.setattr(module, "dependencies", without(FENCE))
    check_order(schedule)


def test_reads_of_a_hop_are_kept_before_its_writes():
    p = Program(3, n_chunks=1)
    p.copy(0, src=[0, 1, 2], dst=[1, 2, 0])
    check_order(p.build(), seeds=range(20))
