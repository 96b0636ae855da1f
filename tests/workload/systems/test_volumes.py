import pytest

from commsim.core.errors import InputError
from commsim.workload.systems.volumes import (
    activation_intensity,
    bandwidth_needed,
    efficiency,
    intensity,
    offload_bytes,
)

PEAK = 70e12


def test_parameters_at_70_gb_per_s_leave_half_of_a_v100_at_the_smallest_batch():
    """ZeRO-Infinity, section 4.2: over 50 % with one example of 1024 tokens."""
    assert intensity("parameters", 1, 1024) == 1024
    assert efficiency(1024, 70e9, PEAK) == pytest.approx(0.506, abs=1e-3)
    assert bandwidth_needed(1024, PEAK, 0.5) == pytest.approx(68.4e9, rel=1e-3)


def test_optimizer_states_need_four_times_the_bandwidth_and_1500_gb_per_s_give_90_percent_at_batch_2():
    assert intensity("parameters", 2, 1024) == 4 * intensity("optimizer", 2, 1024)
    assert efficiency(intensity("optimizer", 2, 1024), 1.5e12, PEAK) > 0.9
    assert bandwidth_needed(intensity("optimizer", 2, 1024), PEAK, 0.9) < 1.5e12


def test_activation_checkpoints_of_a_hidden_size_of_8192_need_about_a_third_of_a_gb_per_s():
    needed = bandwidth_needed(activation_intensity(8192), PEAK, 0.5)
    assert needed == pytest.approx(0.356e9, rel=1e-3)
    assert efficiency(activation_intensity(8192), needed, PEAK) == pytest.approx(0.5)
    assert activation_intensity(8192, 2) == 2 * activation_intensity(8192)


def test_zero_offload_sends_2_bytes_per_parameter_each_way_and_shares_them_among_gpus():
    assert offload_bytes(10e9) == (20e9, 20e9)
    assert offload_bytes(10e9, 16) == (1.25e9, 1.25e9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: intensity("gradients", 1, 1), "unknown state 'gradients'; known: parameters, optimizer"),
        (lambda: bandwidth_needed(1.0, 1.0, 1.0), "between 0 and 1, got 1.0"),
        (lambda: offload_bytes(1.0, 0), "parameters and GPUs must be positive"),
    ],
)
def test_what_makes_no_sense_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
