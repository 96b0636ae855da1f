import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.workload.backward_trace import BackwardTrace
from commsim.workload.cost_of import closed_form_costs
from commsim.workload.data_parallel import train
from commsim.workload.setting import Setting

TRACE = BackwardTrace(np.array([1.0, 2.0, 4.0, 8.0]), np.array([1.0, 2.0, 3.5, 4.5]), np.ones(4))


def exchanges(policy, alpha=0.0, n_workers=2):
    training = train(policy, Setting(TRACE, n_workers, closed_form_costs(alpha, 100.0)))
    return [(row["size_B"], row["start_s"]) for row in training.timeline.rows() if "operation" in row]


def test_tensors_go_at_the_end_of_the_negotiation_of_their_cycle():
    assert exchanges("horovod:cycle=2s") == [(3, 2), (4, 4), (8, 6)]
    assert exchanges("horovod:cycle=2s,negotiation=250ms") == [(3, 2.25), (4, 4.25), (8, 6.25)]
    assert exchanges("horovod:cycle=100s") == [(15, 100)]


def test_a_tensor_that_would_overflow_the_buffer_starts_the_next():
    assert [size for size, _ in exchanges("horovod:cycle=100s,fusion=7B")] == [7, 8]
    assert [size for size, _ in exchanges("horovod:cycle=100s,fusion=0B")] == [1, 2, 4, 8]


def test_unless_given_a_negotiation_is_two_barriers_and_a_long_one_makes_the_cycle_longer():
    # 4 workers: 2 x 2 steps of 0.25 s
    assert exchanges("horovod:cycle=2s", 0.25, 4)[0][1] == pytest.approx(2 + 1)
    assert [start for _, start in exchanges("horovod:cycle=10ms,negotiation=5s")] == [5 + 5]


def test_a_cycle_of_no_time_is_refused():
    with pytest.raises(InputError, match="a cycle must take more than 0 s"):
        exchanges("horovod:cycle=0s")
