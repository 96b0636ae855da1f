import numpy as np

from commsim.workload.backward_trace import BackwardTrace
from commsim.workload.cost_of import closed_form_costs
from commsim.workload.data_parallel import train
from commsim.workload.setting import Setting

# the last layer's 8 bytes are ready at 0, the first layer's 1 byte at 1; forward takes 1 and 6
TRACE = BackwardTrace(np.array([8.0, 1.0]), np.array([0.0, 1.0]), np.array([6.0, 1.0]))


def test_each_tensor_goes_by_itself_and_forward_waits_for_all():
    training = train("wfbp", Setting(TRACE, 2, closed_form_costs(0.0, 1.0)))
    exchanges = [(row["size_B"], row["start_s"]) for row in training.timeline.rows() if "operation" in row]
    assert exchanges == [(8, 0), (1, 8)]
    assert training.iteration_time == 9 + 7


def test_without_overlap_the_network_waits_for_the_backward_pass():
    assert train("wfbp:overlap=false", Setting(TRACE, 2, closed_form_costs(0.0, 1.0))).iteration_time == 10 + 7
