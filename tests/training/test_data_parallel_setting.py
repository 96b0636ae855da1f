import math

import numpy as np
import pytest
from drawn_traces import traces
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.training.backward_trace import BackwardTrace
from commsim.training.cost_by_formula import closed_form_costs
from commsim.training.data_parallel_setting import Bucket, TrainingSetting, bucketed_graph, fill_buckets
from commsim.training.task_graph import simulate_graph


def setting(trace, n_workers=2, bandwidth=1.0, **more):
    return TrainingSetting(trace, n_workers, closed_form_costs(0.0, bandwidth), **more)


@pytest.mark.slow
@given(trace=traces, limit=st.sampled_from([0.0, 1.0, 4.0, math.inf]), first=st.sampled_from([0.0, 0.5, 2.0]))
def test_buckets_hold_every_tensor_once_in_order_and_only_the_last_may_be_too_small(trace, limit, first):
    buckets = list(fill_buckets(trace, range(len(trace.n_bytes)), first, limit))
    assert [t for bucket in buckets for t in bucket.tensors] == list(range(len(trace.n_bytes)))
    for i, bucket in enumerate(buckets):
        of = [float(trace.n_bytes[t]) for t in bucket.tensors]
        capacity = limit if i else first
        assert sum(of[:-1]) < capacity or len(of) == 1
        assert sum(of) >= capacity or bucket is buckets[-1]


@given(trace=traces, limit=st.sampled_from([0.0, 1.0, 4.0, math.inf]), overlap=st.booleans())
def test_exchanges_are_the_queue_of_one_server_between_two_passes(trace, limit, overlap):
    buckets = list(fill_buckets(trace, range(len(trace.n_bytes)), limit))
    free = 0.0
    for bucket in buckets:
        ready = trace.ready[bucket.tensors[-1]] if overlap else trace.backward_time
        free = max(free, ready) + sum(trace.n_bytes[t] for t in bucket.tensors)  # 2 workers at 1 byte/s
    timeline = simulate_graph(bucketed_graph(setting(trace), buckets, overlap=overlap), closed_form_costs(0.0, 1.0))
    expected = max(free, trace.backward_time) + trace.forward.sum()
    assert timeline.iteration_time == pytest.approx(expected)
    assert timeline.exposed_communication <= expected - trace.compute_time + 1e-9


TRACE = BackwardTrace(np.array([4.0, 2.0, 6.0]), np.array([1.0, 2.0, 3.0]), np.ones(3))


def times(buckets, **options):
    graph = bucketed_graph(setting(TRACE), buckets, **options)
    timeline = simulate_graph(graph, closed_form_costs(0.0, 1.0))
    return {t.name: (float(timeline.start[i]), float(timeline.end[i])) for i, t in enumerate(graph.tasks)}


def test_a_bucket_that_may_not_go_yet_holds_up_those_behind_it():
    of = times([Bucket((0,), not_before=2.5), Bucket((1, 2))])
    assert of["bucket 0"] == (2.5, 6.5)
    assert of["bucket 1"] == (6.5, 14.5)
    assert of["forward"] == (14.5, 17.5)


def test_nothing_waits_for_an_unused_tensor_but_it_is_sent():
    of = times([Bucket((2,)), Bucket((0, 1))], unused=frozenset({2}))
    assert of["bucket 0"] == (0, 6)
    assert of["bucket 1"] == (6, 12)


def test_all_batches_but_the_last_go_without_exchange():
    of = times([Bucket((0, 1, 2))], micro_iterations=3)
    assert of["batch 1 without exchange"] == (6, 12)
    assert of["bucket 0"] == (15, 27)
    assert of["forward"] == (27, 30)
    unused = times([Bucket((0, 1)), Bucket((2,), not_before=1.0)], micro_iterations=3, unused=frozenset({0, 1, 2}))
    assert unused["bucket 0"] == (12, 18)
    with pytest.raises(InputError, match="at least 1 batch, got 0"):
        times([Bucket((0, 1, 2))], micro_iterations=0)


def test_compressed_bytes_travel_and_whole_ones_are_added():
    given_ = setting(TRACE, 4, compression=2.0, add_time=lambda n_bytes: n_bytes)
    task = given_.exchange("x", "all_reduce", 8.0, ())
    assert (task.size, task.duration, task.group) == (4.0, 3 * 2.0, (0, 1, 2, 3))
    assert given_.exchange("x", "all_gather", 8.0, ()).duration == 0
    assert Bucket((0, 1), "all_gather").n_bytes(given_) == 4 * 6.0


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"n_workers": 0}, "workers must be at least 1 and at most 1048576, got 0"),
        ({"compression": 0.5}, "compression must be 1 or more, got 0.5"),
        ({"compression": math.nan}, "compression must be 1 or more, got nan"),
    ],
)
def test_a_wrong_setting_is_refused(fields, message):
    with pytest.raises(InputError, match=message):
        TrainingSetting(**{"trace": TRACE, "n_workers": 2, "time_of": closed_form_costs(), **fields})
