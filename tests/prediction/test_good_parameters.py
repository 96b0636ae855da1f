import pytest
from remark_codes import codes
from servers_by_network import check_servers

from commsim import predict
from commsim.prediction.build import prepare
from commsim.prediction.inputs import load_network
from commsim.prediction.plans.cut_by_size import with_partitions_that_fit
from commsim.prediction.read import with_costs

DGX = "rail_optimized:n_hosts=4,preset=dgx-h100"
STAR = "star:n_hosts=16,bandwidth=100Gbps,latency=1us"


def test_rings_are_as_many_as_rails_and_use_them_all():
    size = 2**28
    ready = prepare("multi_ring_all_reduce", DGX)
    assert ready.parameters["n_channels"] == 8
    assert "multi_ring_all_reduce: n_channels=8, a ring for each rail of a machine" in [*map(str, ready.notes)]
    two = predict("multi_ring_all_reduce:n_channels=2", DGX, size, overhead="0us")
    assert ready.predict(size).busbw == pytest.approx(8 / 2 * two.busbw, rel=0.01)
    assert ready.predict(size).busbw < 8 * 48.5e9  # the rails' rate


def test_rings_that_are_given_and_ranks_without_nics_are_left_alone():
    assert prepare("multi_ring_all_reduce:n_channels=3", DGX).parameters["n_channels"] == 3
    for network in (STAR, "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4", "dgx-h100"):
        ready = prepare("multi_ring_all_reduce", network)
        assert "n_channels" not in ready.parameters
        assert ready.schedule == prepare("multi_ring_all_reduce:n_channels=2", network).schedule


PCIE = "pcie_host:n_gpus=4,n_nics={},n_cpus={},nic=100Gbps@star:machines=6"


def test_two_nics_of_four_gpus_carry_half_each_and_take_half_the_time():
    name, size = "multi_ring_all_reduce", 2**26
    one, two = (predict(name, PCIE.format(n, 1), size, overhead="0us") for n in (1, 2))
    assert two.time == pytest.approx(one.time / 2, rel=0.06)
    network = load_network(PCIE.format(2, 1))
    (switch,) = [node for node, name in enumerate(network.nodes) if name == "switch0"]
    sent = two.link_bytes[network.dst == switch]
    assert len(sent) == 12
    assert sent.min() > 0.95 * sent.max()


def test_rings_leave_by_the_gpu_that_is_nearest_to_the_nic():
    """The NIC is below the second CPU: a ring that left below the first would cross between them twice each way."""
    time = predict("multi_ring_all_reduce", PCIE.format(1, 2), 2**26, overhead="0us").time
    assert time == pytest.approx(predict("ring_all_reduce", PCIE.format(1, 2), 2**26, overhead="0us").time, rel=0.01)


def test_servers_sit_on_all_hosts_that_are_free():
    check_servers("parameter_server", "n_servers", STAR)


def test_parallax_has_a_server_for_each_rank_where_hosts_are_free():
    for n_ranks, n_servers in ((8, 8), (12, 4)):
        assert prepare("parallax", STAR, n_ranks=n_ranks).schedule.n_helpers == n_servers
    every = prepare("parallax", STAR)
    assert (every.schedule.n_ranks, every.schedule.n_helpers) == (15, 1)


def test_servers_of_a_plain_default_are_said_beside_those_that_follow_from_the_network():
    told = "byteps: n_servers=0, its default; 8 hosts beside the ranks are free"
    assert told in [*map(str, prepare("byteps", STAR, n_ranks=8).notes)]
    assert "parameter_server: n_servers=8, on hosts beside the ranks" in [
        *map(str, prepare("parameter_server", STAR, n_ranks=8).notes)
    ]
    for spec, network, n_ranks in (("byteps:n_servers=0", STAR, 8), ("byteps", STAR, None), ("byteps", "dgx-h100", 8)):
        assert not {"servers", "servers-default"} & codes(prepare(spec, network, n_ranks=n_ranks).notes)


def test_with_a_usual_overhead_servers_are_not_best_at_every_size():
    network = with_costs(load_network(STAR), overhead=1e-6)
    small = {name: predict(name, network, 4096, n_ranks=8).time for name in ("byteps", "recursive_doubling_all_reduce")}
    assert small["recursive_doubling_all_reduce"] < small["byteps"]


@pytest.mark.parametrize("size", [2**12, 2**18, 2**20, 2**24])
def test_servers_get_the_partitions_that_are_fastest_at_a_size(size):
    network = with_costs(load_network(STAR), overhead=1e-6)
    fitted = with_partitions_that_fit(prepare("parameter_server", network, n_ranks=8))
    every = [predict(f"parameter_server:n_partitions={k}", network, size, n_ranks=8).time for k in range(1, 65)]
    assert fitted.predict(size).time <= 1.02 * min(every)
    given = prepare("parameter_server:n_partitions=64", network, n_ranks=8)
    assert with_partitions_that_fit(given) is given
    free = prepare("parameter_server", STAR, n_ranks=8)
    assert with_partitions_that_fit(free) is free  # pieces cost nothing there


@pytest.mark.parametrize("spec", ["byteps:n_servers=7", "parallax:n_servers=1"])
def test_partitions_count_the_messages_of_a_partition(spec):
    """A partition of byteps has up to 112 messages of a GPU machine here, one of parallax those of servers alone."""
    network = with_costs(load_network(STAR), overhead=1e-6)
    fitted = prepare(spec, network, n_ranks=8).predict(1e8).time
    tried = (1, 2, 4, 6, 8, 11, 16, 23, 32) if "byteps" in spec else range(1, 9)
    every = [predict(f"{spec},n_partitions={k}", network, 1e8, n_ranks=8).time for k in tried]
    assert fitted <= 1.02 * min(every)
