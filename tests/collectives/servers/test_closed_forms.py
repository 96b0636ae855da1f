from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from volumes import volumes

from collectives.dense.all_to_all import direct_all_to_all
from collectives.servers.closed_forms import FullyConnected, byteps_split, colocated_time, dedicated_time, ring_time
from collectives.servers.parameter_server import parameter_server
from commsim.core.errors import InputError

pytestmark = pytest.mark.nojit
machines = st.integers(2, 500).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n)))


@given(machines)
def test_everything_is_summed_once_and_both_kinds_of_machines_are_busy_equally_long(counts):
    n, k = counts
    split = byteps_split(n, k)
    assert k * split.per_cpu + n * split.per_gpu == 1
    assert split.gpu_time == split.time == Fraction(2 * n * (n - 1), n * n + k * n - 2 * k)
    assert split.cpu_time == (split.gpu_time if k else 0)


@given(machines)
def test_no_other_equal_split_is_faster(counts):
    n, k = counts
    best = byteps_split(n, k).time
    for per_gpu in (Fraction(i, 97 * n) for i in range(98)):
        per_cpu = (1 - n * per_gpu) / k if k else Fraction(0)
        if k or n * per_gpu == 1:
            assert max(1 + (n - 2) * per_gpu, n * per_cpu) >= best


@given(st.integers(2, 500))
def test_the_ends_are_all_reduce_and_servers_on_hosts_of_their_own(n):
    assert byteps_split(n, 0).time == ring_time(n) == colocated_time(n, n)
    assert byteps_split(n, n).time == dedicated_time(n, n) == 1
    assert byteps_split(n, n).per_gpu == 0


@given(machines)
def test_gains_are_the_formulas_of_the_notes(counts):
    n, k = counts
    split, q = byteps_split(n, k), n * n + k * n - 2 * k
    assert split.gain_over_all_reduce == Fraction(q, n * n) == 1 + Fraction(k, n) - Fraction(2 * k, n * n)
    assert split.to_cpus == Fraction(2 * k * (n - 1), q)
    if k:
        assert split.gain_over_dedicated == Fraction(q, 2 * k * (n - 1))


def test_the_relative_times_of_eight_machines_are_the_published_ones():
    times = [round(float(byteps_split(8, k).time), 4) for k in range(9)]
    assert times == [1.75, 1.6, 1.4737, 1.3659, 1.2727, 1.1915, 1.12, 1.0566, 1.0]


def test_one_machine_sends_nothing():
    for k in (0, 1):
        assert byteps_split(1, k).time == 0
        assert byteps_split(1, k).gain_over_all_reduce == byteps_split(1, k).gain_over_dedicated == 1
    assert ring_time(1) == colocated_time(1, 1) == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: byteps_split(0, 0), "needs at least 1 GPU machine, got 0"),
        (lambda: byteps_split(4, -1), "n_servers of at least 0, got n_servers=-1"),
        (lambda: byteps_split(4, 5), r"n_servers of 0\.\.4 fit 4 of these, got n_servers=5"),
        (lambda: dedicated_time(4, 0), "n_servers of at least 1, got n_servers=0"),
        (lambda: colocated_time(4, 5), r"n_servers must be 1\.\.4, got n_servers=5"),
        (lambda: colocated_time(4, 0), r"n_servers must be 1\.\.4, got n_servers=0"),
    ],
)
def test_counts_that_make_no_sense_are_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()


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
