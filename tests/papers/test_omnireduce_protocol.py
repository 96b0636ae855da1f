"""The protocol of one thread, in cases of which the time can be counted."""

import dataclasses

import numpy as np
import pytest

from benchmarks.accuracy.omnireduce_published import COPY_RATE, staged_time
from commsim.core.errors import InputError
from commsim.papers import omnireduce_protocol as protocol
from commsim.papers.omnireduce_protocol import OmniReduceInput, direct_time, protocol_time
from commsim.sparse.generate import drawn_occupancy

DENSE = OmniReduceInput(8 * 64 * 20 * 32, 32, 1.0)  # 20 rounds of 64 slots for each of 8 threads
SPARSE = OmniReduceInput(8 * 64 * 50 * 32, 32, 0.02)


def longest_column(case):
    """Count the rounds of the slot that has the most."""
    data = drawn_occupancy(
        case.n_workers, case.n_elements // protocol.THREADS, density=case.density, block=case.block, pattern="random"
    )
    union = np.logical_or.reduce([data.bitmap_of(worker) for worker in range(case.n_workers)])
    n_slots = protocol.AGGREGATORS * protocol.SLOTS_EACH
    union[:n_slots] = True  # the first burst sends blocks of zeros as well
    return int(np.bincount(np.flatnonzero(union) % n_slots).max())


def simulate(owned, handle=0.0, adding=0.0, transmit=0.0, latency=0.0, n_slots=2, n_aggregators=1):
    costs = (handle, adding, transmit, latency)
    return protocol._simulate(np.array(owned, bool), n_slots, n_aggregators, costs)


def test_a_slot_takes_two_latencies_for_each_round_of_its_column():
    assert simulate([[1] * 6], latency=1.0) == 6  # 3 rounds, there and back
    assert simulate([[1, 1, 0, 0, 0, 1], [1, 1, 0, 0, 0, 0]], latency=1.0) == 4  # the first burst, and one block
    assert simulate([[0, 0, 0, 0], [0, 0, 0, 0]], latency=1.0) == 2  # the first burst is sent whatever is in it


def test_a_thread_handles_its_own_messages_and_all_results():
    """One slot and worker, and an aggregator: a message is handled at both ends on both ways."""
    assert simulate([[1, 1, 1]], handle=1.0, n_slots=1) == 3 * 4
    both = simulate([[1, 1, 1], [0, 0, 0]], handle=1.0, n_slots=1)
    assert both > simulate([[1, 1, 1]], handle=1.0, n_slots=1)  # the other's results take the aggregator's time


def test_an_aggregator_adds_what_it_receives_and_sends_it_for_nothing():
    assert simulate([[1] * 6], adding=1.0, n_slots=6) == 6
    assert simulate([[1] * 6] * 3, adding=1.0, n_slots=6) == 18
    assert simulate([[1] * 6] * 3, adding=1.0, n_slots=6, n_aggregators=2) == 9


def test_with_gpu_direct_dense_time_is_that_of_the_aggregators_threads():
    """Each handles a message from and to every worker for each of its blocks, and adds the elements that came."""
    case = OmniReduceInput(26_214_400, 256, 1.0)
    blocks = 26_214_400 // 256 // protocol.THREADS // protocol.AGGREGATORS
    per_block = 8 * (protocol.MESSAGE + protocol.ELEMENT / 2 * 256)
    assert direct_time(case) == pytest.approx(protocol.FIXED + blocks * per_block, rel=0.02)
    staged = staged_time(case)  # of which workers' copies are left out
    assert direct_time(case) < staged


def test_when_threads_decide_the_time_is_that_of_d_plus_u_messages():
    cost = 1e-3  # far more than links and latencies take
    n_blocks = 64 * 50
    sent = 0.02 * n_blocks + 64 * 0.98  # the first burst sends blocks of zeros as well
    received = (1 - 0.98**8) * (n_blocks - 64) + 64
    assert protocol_time(SPARSE, cost) == pytest.approx((sent + received) * cost / 2, rel=0.15)
    assert protocol_time(DENSE, cost) == pytest.approx(64 * 20 * cost, rel=0.05)


def test_when_links_decide_the_time_is_that_of_the_bytes():
    assert protocol_time(DENSE, 0.0) == pytest.approx(4 * DENSE.n_elements / protocol.GOODPUT, rel=0.05)


def test_with_more_workers_columns_are_longer_and_the_time_grows():
    cases = [dataclasses.replace(SPARSE, n_workers=n) for n in (2, 4, 8)]
    assert longest_column(cases[0]) < longest_column(cases[1]) < longest_column(cases[2])
    times = [direct_time(case) for case in cases]
    assert times == sorted(times)
    assert len(set(times)) == 3


def test_through_the_host_the_copies_decide_or_the_last_threads_part():
    one_way = 4 * SPARSE.n_elements / COPY_RATE
    large = dataclasses.replace(SPARSE, n_elements=100 * SPARSE.n_elements)
    assert staged_time(dataclasses.replace(large, density=1e-3)) == pytest.approx(200 * one_way)
    arrived = 7 / 8 * one_way
    assert staged_time(SPARSE, 0.0) == pytest.approx(arrived + protocol.FIXED + protocol_time(SPARSE, protocol.MESSAGE))


@pytest.mark.parametrize(
    "change", [{"block": 0}, {"density": 0.0}, {"density": 1.1}, {"n_workers": 0}, {"n_elements": 9}]
)
def test_what_makes_no_sense_is_refused(change):
    with pytest.raises(InputError, match="needs a block and a worker at least"):
        dataclasses.replace(SPARSE, **change)
