from fractions import Fraction

import numpy as np
import pytest
from drawn_inputs import links
from flow_networks import star_of
from hypothesis import given
from hypothesis import strategies as st
from volumes import volumes

from benchmarks.accuracy.byteps_fig12 import colocated_time, dedicated_time, ring_time
from collectives import MAX_CHUNKS
from collectives.servers.byteps import byteps, byteps_bounds, byteps_split
from commsim.core.checking.check import check
from commsim.core.cost import LogGP
from commsim.core.errors import InputError
from commsim.core.placement import place
from commsim.engine.flow import simulate_flows
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_plan import plan_flows
from commsim.prediction.build import prepare

counts = st.integers(1, 12).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n)))


@st.composite
def machines(draw):
    n_ranks = draw(st.integers(2, 12))
    ranks = draw(st.permutations(range(n_ranks)))
    cuts = sorted(draw(st.sets(st.integers(1, n_ranks - 1))))
    return n_ranks, tuple(tuple(ranks[a:b]) for a, b in zip([0, *cuts], [*cuts, n_ranks], strict=True))


@pytest.mark.nojit
@given(counts)
def test_every_split_is_an_all_reduce_that_sends_exactly_what_theorem_1_says(n_and_k):
    n, k = n_and_k
    schedule = byteps(n, k, n_partitions=2)
    check(schedule)
    sent, received, _ = volumes(schedule)
    split = byteps_split(n, k)
    np.testing.assert_allclose(sent, [float(split.gpu_time)] * n + [float(split.cpu_time)] * (k if n > 1 else 0))
    np.testing.assert_allclose(received, sent)


@pytest.mark.nojit
@given(machines(), st.data())
def test_machines_of_any_sizes_make_an_all_reduce(partition, data):
    n_ranks, groups = partition
    least = min(map(len, groups))
    k = data.draw(st.integers(0, len(groups)))
    roots = tuple(data.draw(st.lists(st.integers(0, least - 1), min_size=1, unique=True)))
    n_switches = data.draw(st.integers(0, least))
    schedule = byteps(n_ranks, k, 2, groups, roots, n_switches)
    check(schedule)
    assert schedule.n_helpers == k + (len(groups) if n_switches else 0)


@given(n_and_k=counts, n_partitions=st.integers(1, 5), size=st.floats(1.0, 1e12), link=links)
def test_the_flow_engine_stays_inside_the_bounds(n_and_k, n_partitions, size, link):
    n, k = n_and_k
    low, high = byteps_bounds(n, size, link, k, n_partitions)
    schedule = byteps(n, k, n_partitions)
    network = star_of(schedule.n_participants, link)
    plan = plan_flows(network, [FlowJob(schedule, place(network, schedule.n_participants))])
    assert low * (1 - 1e-9) <= simulate_flows(plan, size)[0].time <= high * (1 + 1e-9)


@pytest.mark.parametrize(("n", "ks"), [(2, range(3)), (3, range(4)), (8, range(9)), (16, (1, 5, 14, 16))])
def test_the_flow_engine_is_within_three_percent_of_theory_for_any_number_of_cpu_machines(n, ks):
    for k in ks:
        ready = prepare(f"byteps:n_servers={k}", f"star:n_hosts={n + k},bandwidth=90Gbps,latency=1us")
        assert ready.schedule.n_ranks == n
        theory = float(byteps_split(n, k).time) * 1e9 / (90e9 / 8)
        assert theory <= ready.predict(1e9).time <= 1.03 * theory


@pytest.mark.nojit
def test_a_slow_summation_service_makes_the_cpu_machines_the_bottleneck():
    link = LogGP(B=1e9, gamma=1e-7)
    low, high = byteps_bounds(8, 1e9, link, 4, 64)
    assert low == pytest.approx(100 * float(byteps_split(8, 4).cpu_time))
    assert high < 1.6 * low


@pytest.mark.nojit
def test_roots_send_for_their_machine_and_each_for_an_equal_part():
    groups = ((0, 1, 2), (3, 4, 5), (6, 7, 8))
    transfers = byteps(9, 0, 1, groups, (1, 2)).expand()
    between = transfers[transfers["src"] // 3 != transfers["dst"] // 3]
    assert sorted(set(between["src"].tolist())) == [1, 2, 4, 5, 7, 8]
    share = np.bincount(between["src"], between["count"], 9) / byteps(9, 0, 1, groups, (1, 2)).n_chunks
    np.testing.assert_allclose(share[[1, 2, 4, 5, 7, 8]], float(byteps_split(3, 0).time) / 2)


def cpu_links(collective):
    ready = prepare(collective, "pcie_host:n_gpus=8,n_pcie_switches=2")
    network, carried = ready.network, ready.predict(8e8).link_bytes
    names = [network.link_name(i) for i in range(network.n_links)]
    return [carried[names.index(name)] / 8e8 for name in ("pcie0:cpu0", "cpu0:pcie0", "pcie1:cpu1", "cpu1:pcie1")]


def test_two_pcie_switches_load_the_cpu_links_with_m_where_a_ring_loads_them_with_seven_quarters():
    assert cpu_links("byteps:n_switches=2") == pytest.approx([1.0] * 4)
    assert cpu_links("ring_all_reduce") == pytest.approx([7 / 4] * 4)


def test_machines_and_their_memories_are_taken_from_the_network():
    network = "pcie_host@leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=2"
    ready = prepare("byteps:n_switches=2", network, placement="spread")
    assert ready.parameters["machines"] == (tuple(range(0, 16, 2)), tuple(range(1, 16, 2)))
    for helper, ranks in enumerate(ready.parameters["machines"], 16):
        memory, gpu = ready.placement.nodes[helper], ready.placement.nodes[ranks[0]]
        assert ready.network.nodes[memory] == f"m{ready.network.machine[gpu]}.memory0"
    assert prepare("byteps:roots=2x3", network).schedule.n_helpers == 0


@pytest.mark.nojit
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_servers": 5}, r"at most as many CPU machines as GPU machines: n_servers of 0\.\.4 fit 4 of these"),
        ({"n_servers": -1}, "n_servers of at least 0, got n_servers=-1"),
        ({"n_servers": 3, "machines": ((0, 1), (2, 3))}, r"n_servers of 0\.\.2 fit 2 of these, got n_servers=3"),
        ({"machines": ((0, 1), (2,))}, r"machines must hold each rank 0\.\.3 exactly once"),
        ({"machines": ((0, 1), (2, 3)), "roots": (2,)}, r"different places 0\.\.1 of a machine, got \(2,\)"),
        ({"roots": (1, 1)}, r"different places 0\.\.3 of a machine"),
        ({"roots": ()}, "roots must be different places"),
        ({"n_switches": -1}, "n_switches of at least 0"),
        ({"machines": ((0, 1), (2, 3)), "n_switches": 3}, r"2 ranks has 1\.\.2 PCIe switches, got n_switches=3"),
        ({"n_partitions": 0}, "n_partitions of at least 1"),
        ({"n_partitions": MAX_CHUNKS}, f"which is {MAX_CHUNKS // 4} partitions here"),
    ],
)
def test_what_does_not_fit_is_refused(given, message):
    with pytest.raises(InputError, match=message):
        byteps(4, **given)


@pytest.mark.nojit
def test_bounds_are_for_one_gpu_per_machine():
    with pytest.raises(InputError, match="bounds for one GPU per machine only"):
        byteps_bounds(4, 1.0, LogGP(), n_switches=2)


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
def test_cpu_machines_sum_the_published_share(counts):
    n, k = counts
    split, q = byteps_split(n, k), n * n + k * n - 2 * k
    assert split.to_cpus == Fraction(2 * k * (n - 1), q)
    assert ring_time(n) / split.time == Fraction(q, n * n) == 1 + Fraction(k, n) - Fraction(2 * k, n * n)
    if k:
        assert dedicated_time(n, k) / split.time == Fraction(q, 2 * k * (n - 1))


def test_the_relative_times_of_eight_machines_are_the_published_ones():
    times = [round(float(byteps_split(8, k).time), 4) for k in range(9)]
    assert times == [1.75, 1.6, 1.4737, 1.3659, 1.2727, 1.1915, 1.12, 1.0566, 1.0]


def test_one_machine_sends_nothing():
    for k in (0, 1):
        assert byteps_split(1, k).time == 0
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
