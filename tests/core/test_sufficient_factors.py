from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from volumes import volumes

from collectives.all_to_all import direct_all_to_all
from collectives.parameter_server import parameter_server
from commsim.core.errors import InputError
from commsim.core.sufficient_factors import FullyConnected

pytestmark = pytest.mark.nojit
layers = st.builds(
    FullyConnected,
    st.integers(1, 9000),
    st.integers(1, 9000),
    st.integers(1, 512),
    st.integers(1, 64),
    st.integers(1, 64),
)


@pytest.mark.parametrize("p1", [2, 3, 8])
def test_volumes_are_those_that_schedules_send(p1):
    layer = FullyConnected(400, 300, 32, p1, p1)
    sent, received, _ = volumes(parameter_server(p1, colocated=True))
    assert (sent + received) * layer.m * layer.n == pytest.approx(float(layer.ps_colocated))
    sent, received, _ = volumes(parameter_server(p1, n_servers=p1))
    both = (sent + received) * layer.m * layer.n
    assert both == pytest.approx([layer.ps_worker] * p1 + [float(layer.ps_server)] * p1)
    # every worker sends its factors to each other one: an all-to-all of p1 times as much per rank
    sent, received, _ = volumes(direct_all_to_all(p1))
    assert (sent + received) * p1 * layer.batch * (layer.m + layer.n) == pytest.approx(layer.broadcast)


@given(layers)
def test_the_choice_is_the_rule_of_the_notes(layer):
    left = 2 * layer.batch * (layer.n_workers - 1) * (layer.m + layer.n)
    right = Fraction(2 * layer.m * layer.n * (layer.n_workers + layer.n_servers - 2), layer.n_servers)
    assert layer.broadcasts == (left <= right)


@given(layers.filter(lambda layer: layer.n_workers > 1))
def test_factors_are_broadcast_up_to_the_largest_batch_and_no_further(layer):
    limit = layer.largest_batch
    for batch in (int(limit), int(limit) + 1):
        if batch:
            other = FullyConnected(layer.m, layer.n, batch, layer.n_workers, layer.n_servers)
            assert other.broadcasts == (batch <= limit)


def test_what_adam_does_is_bad_for_its_server():
    layer = FullyConnected(4096, 4096, 32, 8, 8)
    assert layer.adam_worker == 32 * 8192 + 4096 * 4096
    assert layer.adam_server == 8 * layer.adam_worker > layer.ps_colocated > layer.broadcast


def test_layers_that_make_no_sense_are_refused():
    with pytest.raises(InputError, match="n_servers of at least 1, got n_servers=0"):
        FullyConnected(1, 1, 1, 1, 0)
    with pytest.raises(InputError, match="give n_workers of at least 2"):
        _ = FullyConnected(1, 1, 1, 1, 1).largest_batch
