import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.placement.cluster import Cluster, read_cluster
from commsim.placement.clusters.machines import machines_of
from commsim.placement.clusters.models import Assumptions
from commsim.placement.clusters.placement_choices import spreads, whole_spreads
from topologies.leaf_spine import leaf_spine

NETWORK = leaf_spine(3, 2, 4)
SEATS = np.where(NETWORK.kind == NETWORK.kind[NETWORK.hosts[0]], 8, 0)
MACHINES = machines_of(Cluster(NETWORK, SEATS), Assumptions())
FULL = np.ones(12)


@given(
    st.lists(st.integers(0, 8), min_size=12, max_size=12), st.integers(1, 60),
    st.sampled_from(["packed", "fragments", "demand"]), st.integers(1, 10),
)  # fmt: skip
def test_every_way_takes_free_gpus_and_as_many_as_asked_for(free, n, order, limit):
    free = np.array(free)
    ways = spreads(MACHINES, free, n, order, FULL, limit)
    assert bool(ways) == (free.sum() >= n)
    assert len(set(ways)) == len(ways) <= limit
    for way in ways:
        assert sum(count for _, count in way) == n
        assert len({host for host, _ in way}) == len(way)
        assert all(1 <= count <= free[host] for host, count in way)


def test_packed_takes_the_fullest_host_then_the_fullest_rack_then_few_racks():
    free = np.array([8, 3, 8, 8, 4, 8, 5, 0, 8, 8, 8, 8])
    assert spreads(MACHINES, free, 3, "packed", FULL, 9) == [((1, 3),)]
    first = spreads(MACHINES, free, 10, "packed", FULL, 9)
    assert first[0] == ((5, 8), (6, 2))
    assert any({host // 4 for host, _ in way} == {2} for way in first)
    wide = spreads(MACHINES, free, 40, "packed", FULL, 9)
    assert len({host // 4 for host, _ in wide[0]}) == 2


def test_fragments_come_first_for_jobs_that_do_not_mind():
    free = np.array([8, 3, 8, 8, 4, 8, 5, 0, 8, 8, 8, 8])
    assert spreads(MACHINES, free, 10, "fragments", FULL, 1) == [((1, 3), (4, 4), (6, 3))]
    assert spreads(MACHINES, free, 2, "fragments", FULL, 1) == [((1, 2),)]


def test_demand_goes_where_room_is():
    room = np.linspace(0.0, 1.0, 12)
    assert spreads(MACHINES, np.full(12, 8), 2, "demand", room, 1) == [((11, 2),)]


@pytest.mark.parametrize("n", [97, 200])
def test_there_is_no_way_without_room(n):
    assert spreads(MACHINES, np.full(12, 8), n, "packed", FULL, 10) == []


@given(
    st.lists(st.integers(0, 8), min_size=12, max_size=12), st.integers(1, 6), st.integers(1, 12),
    st.sampled_from(["packed", "fragments", "demand"]), st.integers(1, 10),
)  # fmt: skip
def test_a_job_with_a_number_of_gpus_on_each_host_gets_no_other(free, k, n_hosts, order, limit):
    free = np.array(free)
    ways = whole_spreads(MACHINES, free, k * n_hosts, k, order, FULL, limit)
    assert bool(ways) == ((free >= k).sum() >= n_hosts)
    assert len(set(ways)) == len(ways) <= limit
    for way in ways:
        assert {count for _, count in way} == {k}
        assert len({host for host, _ in way}) == n_hosts
        assert all(free[host] >= k for host, _ in way)


def test_it_gets_the_fullest_hosts_that_do_and_stays_in_one_rack():
    free = np.array([8, 3, 8, 8, 4, 8, 5, 0, 8, 8, 8, 8])
    assert whole_spreads(MACHINES, free, 4, 4, "packed", FULL, 9) == [((4, 4),)]
    free[0] = 0
    assert whole_spreads(MACHINES, free, 12, 4, "packed", FULL, 1) == [((4, 4), (6, 4), (5, 4))]


def test_gpus_of_one_machine_are_on_one_host():
    machines = machines_of(read_cluster({"topology": {"spec": "dgx-h100@star:machines=3"}}), Assumptions())
    free = np.ones(24, np.int64)
    free[:3] = 0  # of machine 0
    (way,) = whole_spreads(machines, free, 12, 6, "packed", np.ones(24), 1)
    assert sorted({host // 8 for host, _ in way}) == [1, 2]
    assert whole_spreads(machines, free, 18, 6, "packed", np.ones(24), 1) == []
