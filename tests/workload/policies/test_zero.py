import numpy as np
import pytest

from commsim.workload.backward_trace import BackwardTrace
from commsim.workload.cost_of import closed_form_costs
from commsim.workload.data_parallel import sent_bytes, train
from commsim.workload.setting import Setting

pytestmark = pytest.mark.nojit
# 2 workers at 1 byte/s: scattering or gathering 4 bytes takes 2 s; a backward step 2 s, a forward step 1 s
SETTING = Setting(BackwardTrace(np.full(3, 4.0), np.array([2.0, 4.0, 6.0]), np.ones(3)), 2, closed_form_costs(0.0, 1.0))


def test_zero_2_overlaps_what_zero_1_leaves_to_the_end():
    one, two = (train(f"{name}:bucket=1B", SETTING).iteration_time for name in ("zero1", "zero2"))
    assert one == 6 + 3 * 2 + 6 + 3
    assert two == 6 + 2 + 6 + 3


@pytest.mark.parametrize("policy", ["zero1", "zero2"])
def test_gradients_are_scattered_in_buckets_and_parameters_gathered_once(policy):
    graph = train(f"{policy}:bucket=8B", SETTING).timeline.graph
    assert [(t.operation, t.size) for t in graph.tasks if t.operation] == [
        ("reduce_scatter", 8),
        ("reduce_scatter", 4),
        ("all_gather", 12),
    ]
    assert sent_bytes(graph) == 2 * 12 / 2
