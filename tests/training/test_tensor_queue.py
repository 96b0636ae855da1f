import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
from drawn_traces import some, traces
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.cost import LogGP
from commsim.core.errors import InputError
from commsim.training.backward_trace import BackwardTrace, read_backward_trace
from commsim.training.tensor_queue import BYTE_SCHEDULER, WAIT_FREE, Discipline, run_iteration

TRACES = Path(__file__).resolve().parents[3] / "shared" / "data" / "traces"
links = st.builds(LogGP, L=some, o=some, B=st.floats(0.2, 10.0))
disciplines = st.builds(
    Discipline,
    overlap=st.booleans(),
    partition=st.sampled_from([0.3, 1.0, math.inf]),
    priority=st.booleans(),
    credit=st.sampled_from([0.1, 1.0, 4.0, math.inf]),
    barrier=st.booleans(),
)


@given(trace=traces, link=links, discipline=disciplines)
def test_an_iteration_is_never_shorter_than_its_computation_nor_than_the_link_is_busy(trace, link, discipline):
    run = run_iteration(trace, link, discipline)
    assert run.time >= run.compute * (1 - 1e-12)
    assert run.time >= run.communication + link.L - 1e-9
    assert run.communication == pytest.approx(run.n_messages * link.o + trace.n_bytes.sum() / link.B, abs=1e-9)
    assert (run.done >= trace.ready + trace.n_bytes / link.B + link.o + link.L - 1e-9).all()
    assert run.exposed >= -1e-12


@given(trace=traces, link=links)
def test_without_overlap_communication_is_added_to_computation(trace, link):
    run = run_iteration(trace, link, Discipline(overlap=False))
    assert run.exposed == pytest.approx(run.communication + link.L)
    assert run_iteration(trace, link, WAIT_FREE).time <= run.time + 1e-9


@pytest.mark.slow
@given(trace=traces, link=links)
def test_wait_free_is_the_queue_of_one_server(trace, link):
    free = 0.0
    for n_bytes, ready, done in zip(trace.n_bytes, trace.ready, run_iteration(trace, link).done, strict=True):
        free = max(free, ready) + link.o + n_bytes / link.B
        assert done == pytest.approx(free + link.L)


@given(trace=traces, link=links, discipline=disciplines)
def test_layers_that_wait_for_their_own_gradients_only_are_never_later_than_behind_a_barrier(trace, link, discipline):
    alone, behind = (run_iteration(trace, link, dataclasses.replace(discipline, barrier=b)) for b in (False, True))
    assert alone.time <= behind.time + 1e-9


def test_priority_partition_and_credit_let_the_first_layer_overtake_by_hand():
    # the last layer's 8 bytes are ready at 0, the first layer's 1 byte at 1; forward takes 1 and 6
    trace = BackwardTrace(np.array([8.0, 1.0]), np.array([0.0, 1.0]), np.array([6.0, 1.0]))
    link = LogGP(B=1.0)
    assert run_iteration(trace, link).time == 9 + 7
    without_barrier = run_iteration(trace, link, Discipline(barrier=False))
    assert without_barrier.done.tolist() == [8, 9]
    assert without_barrier.time == 10 + 6
    scheduled = run_iteration(trace, link, Discipline(partition=1, priority=True, credit=1, barrier=False))
    assert scheduled.done.tolist() == [9, 2]
    assert scheduled.time == 9 + 6
    # with the whole tensor under way there is nothing left to overtake
    assert run_iteration(trace, link, Discipline(partition=1, priority=True, barrier=False)).done.tolist() == [8, 9]


def test_a_small_credit_leaves_the_link_idle_while_messages_travel():
    trace = BackwardTrace(np.array([10.0]), np.array([0.0]), np.array([1.0]))
    link = LogGP(L=2.0, B=1.0)
    times = [run_iteration(trace, link, Discipline(partition=1, credit=c)).done[0] for c in (1, 2, 3, math.inf)]
    assert times == [10 * 3, 5 * 3 + 1, 10 + 2, 10 + 2]


def test_with_small_partitions_an_iteration_tends_to_the_larger_of_computing_and_communicating():
    rng = np.random.default_rng(0)
    gaps = rng.uniform(0.5, 1.5, 60)
    trace = BackwardTrace(rng.uniform(0.5, 1.5, 60), np.cumsum(gaps), 0.5 * gaps)
    for bandwidth in (0.2, 5.0):
        run = run_iteration(trace, LogGP(L=0.01, B=bandwidth), Discipline(math.inf, 0.01, True, 0.03, False))
        assert run.time == pytest.approx(max(run.compute, trace.ready[0] + run.communication), rel=0.02)


if TRACES.is_dir():  # beside a checkout only where the team works; a test that is not there skips nothing

    @pytest.mark.parametrize("gbps", [10, 25])
    def test_scheduling_pays_more_for_vgg_than_for_resnet_and_reaches_its_bound(gbps):
        gains, link = {}, LogGP(L=20e-6, o=15e-6, B=gbps * 1e9 / 8)
        for name in ("vgg16", "resnet50"):
            trace = read_backward_trace(TRACES / f"netai20_{name}.csv")
            plain, scheduled = (run_iteration(trace, link, how) for how in (WAIT_FREE, BYTE_SCHEDULER))
            gains[name] = plain.time / scheduled.time - 1
            until_first = trace.ready[0]
            if name == "vgg16":  # the link is the bottleneck, and next to nothing of it is left unused
                assert scheduled.time == pytest.approx(until_first + scheduled.communication, rel=0.02)
        assert gains["vgg16"] > gains["resnet50"] >= 0


def test_numbers_that_make_no_sense_are_refused():
    for name in ("partition", "credit"):
        with pytest.raises(InputError, match=f"{name} must be more than 0 bytes, got 0"):
            Discipline(**{name: 0})
