import numpy as np
import pytest
from drawn_traces import some, traces
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.training.backward_trace import BackwardTrace
from commsim.training.cost_by_formula import closed_form_costs
from commsim.training.data_parallel import train
from commsim.training.data_parallel_setting import TrainingSetting

# The last layer's gradient is small, the front layer's long; an all-reduce of 2 workers takes a second per byte.
TRACE = BackwardTrace(np.array([1.0, 4.0]), np.array([2.0, 4.0]), np.array([1.0, 1.0]))
SETTING = TrainingSetting(TRACE, 2, closed_form_costs(0.0, 1.0))


def test_the_front_layers_gradient_leaves_before_the_last_layers_is_computed():
    """In order it leaves at 4 and arrives at 8; after one second less of other layers' weights, a second earlier."""
    assert train("out_of_order:first=0", SETTING).iteration_time == 4 + 4 + 2
    assert train("out_of_order:first=2", SETTING).iteration_time == 3 + 4 + 2
    assert train("out_of_order:first=2,share=0.25", SETTING).iteration_time == 3.5 + 4 + 2
    assert train("out_of_order", SETTING).iteration_time == 9


def test_one_tensor_reversed_is_the_order_as_it_was():
    assert (
        train("out_of_order:first=1", SETTING).iteration_time == train("out_of_order:first=0", SETTING).iteration_time
    )


@given(trace=traces, overhead=some, share=st.sampled_from([0.0, 0.5, 1.0]))
def test_the_chosen_number_is_never_slower_than_the_usual_order_and_computes_as_long(trace, overhead, share):
    setting = TrainingSetting(trace, 2, closed_form_costs(overhead / 2, 1.0))
    usual, chosen = (train(f"out_of_order:{more}share={share}", setting) for more in ("first=0,", ""))
    assert chosen.iteration_time <= usual.iteration_time
    assert chosen.alone == pytest.approx(usual.alone)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("out_of_order:first=3", "first must be 0 to the 2 tensors, got 3"),
        ("out_of_order:first=-1", "first must be 0 to the 2 tensors, got -1"),
        ("out_of_order:share=1.5", "share must be 0 to 1, got 1.5"),
    ],
)
def test_what_makes_no_sense_is_refused(policy, message):
    with pytest.raises(InputError, match=message):
        train(policy, SETTING)
