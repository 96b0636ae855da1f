import math

import numpy as np
import pytest
from drawn_traces import some, traces
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.cost import LogGP
from commsim.core.errors import InputError
from commsim.training.backward_trace import BackwardTrace
from commsim.training.cost_by_formula import closed_form_costs
from commsim.training.data_parallel import train
from commsim.training.data_parallel_setting import TrainingSetting
from commsim.training.policies.priority import bytescheduler, p3
from commsim.training.task_graph import simulate_graph
from commsim.training.tensor_queue import Discipline, run_iteration


@given(
    trace=traces,
    overhead=some,
    partition=st.sampled_from([0.3, 1.0, math.inf]),
    credit=st.sampled_from([0.1, 1.0, 4.0, math.inf]),
    priority=st.booleans(),
    barrier=st.booleans(),
)
def test_the_graph_takes_as_long_as_the_queue_that_it_was_made_from(
    trace, overhead, partition, credit, priority, barrier
):
    # an all-reduce of 2 workers is 2 steps and S bytes
    setting = TrainingSetting(trace, 2, closed_form_costs(overhead / 2, 1.0))
    graph = bytescheduler(setting, partition=partition, credit=credit, priority=priority, barrier=barrier)
    queue = run_iteration(trace, LogGP(o=overhead, B=1.0), Discipline(True, partition, priority, credit, barrier))
    assert simulate_graph(graph, setting.time_of).iteration_time == pytest.approx(queue.time)


def test_the_front_layer_overtakes_by_hand():
    # the last layer's 8 bytes are ready at 0, the first layer's 1 byte at 1; forward takes 1 and 6
    trace = BackwardTrace(np.array([8.0, 1.0]), np.array([0.0, 1.0]), np.array([6.0, 1.0]))
    setting = TrainingSetting(trace, 2, closed_form_costs(0.0, 1.0))
    assert simulate_graph(p3(setting, partition=1.0), setting.time_of).iteration_time == 9 + 6
    assert train("bytescheduler:partition=1B,credit=1B", setting).iteration_time == 9 + 6
    # what has the credit of everything is not overtaken any more: 9 bytes, then 1 and 6
    assert train("bytescheduler:partition=1B,credit=9B", setting).iteration_time == 9 + 1 + 6


def test_a_partition_of_nothing_is_refused():
    setting = TrainingSetting(BackwardTrace(np.ones(1), np.ones(1), np.ones(1)), 2, closed_form_costs(0.0, 1.0))
    for policy in ("bytescheduler:partition=0B", "bytescheduler:credit=0B", "p3:partition=0B"):
        with pytest.raises(InputError, match="must be more than 0 bytes"):
            train(policy, setting)
