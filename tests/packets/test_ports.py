"""Sprayed messages of hosts with several links, and of machines whose inside is modelled."""

import dataclasses

import numpy as np
import pytest

from collectives import COLLECTIVES
from commsim.core.cost import Framing
from commsim.core.errors import InputError
from commsim.core.network import GPU, HOST, NIC, Network
from commsim.core.placement import Placement, place
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_plan import plan_flows
from commsim.packets.aggregated.aggregation_jobs import aggregation_job
from commsim.packets.run_packets import run_beside, run_packets, simulate_aggregation
from commsim.packets.transports.spraying import Spraying, over_path
from commsim.packets.transports.transports import TRANSPORTS
from commsim.prediction.inputs import load_network
from commsim.routing.flaps import Flap, Flaps
from commsim.traffic.host_messages import plan_messages, run_messages
from commsim.traffic.patterns import HostMessages, all_to_all, incast, permutation
from commsim.traffic.slowdown import alone, busiest_host, busiest_port
from switch_model.systems import SYSTEMS
from topologies.leaf_spine import leaf_spine
from topologies.torus import torus

RATE, LATENCY = 50e9, 500e-9
PACKETS = Framing(4096, 64)
PLAIN = leaf_spine(4, 4, 4, bandwidth=RATE, latency=LATENCY)
DGX = "dgx-h100@leaf_spine:machines=2,n_leaves=4,n_spines=2,hosts_per_leaf=4"


def with_gpus(plain, bandwidth, latency):
    """The same network where each host is a NIC, and a GPU behind it the endpoint."""
    hosts = np.flatnonzero(plain.kind == HOST)
    kind = np.where(plain.kind == HOST, NIC, plain.kind)
    n, m = plain.n_nodes, len(hosts)
    gpus = np.arange(n, n + m)
    machine = np.full(n + m, -1)
    machine[hosts] = machine[gpus] = np.arange(m)
    return Network(
        name="machines", nodes=(*plain.nodes, *(f"gpu{i}" for i in range(m))), kind=np.append(kind, np.full(m, GPU)),
        src=np.concatenate((plain.src, gpus, hosts)), dst=np.concatenate((plain.dst, hosts, gpus)),
        bandwidth=np.append(plain.bandwidth, np.full(2 * m, bandwidth)),
        latency=np.append(plain.latency, np.full(2 * m, latency)), machine=machine,
    )  # fmt: skip


def with_hosts(plain, bandwidth, latency):
    """The same network whose hosts have other links."""
    at_host = (plain.kind[plain.src] == HOST) | (plain.kind[plain.dst] == HOST)
    rates, times = np.where(at_host, bandwidth, plain.bandwidth), np.where(at_host, latency, plain.latency)
    return dataclasses.replace(plain, bandwidth=rates, latency=times)


def played(network, name, how, size=1_000_003, **options):
    schedule = COLLECTIVES[name].build(len(network.endpoints))
    plan = plan_flows(network, [FlowJob(schedule, place(network, schedule.n_ranks))])
    return plan, run_packets(plan, size, how, **options)


@pytest.mark.parametrize("name", ["ring_all_reduce", "direct_all_to_all"])
@pytest.mark.parametrize("transport", ["nscc", "rccc"])
def test_what_is_inside_adds_its_latency_and_bounds_the_port(name, transport):
    for slower in (4.0, 0.5):  # links inside, in rates of the ports
        machines = with_gpus(PLAIN, slower * RATE, 200e-9)
        hosts = with_hosts(PLAIN, min(slower, 1.0) * RATE, LATENCY + 200e-9)
        ours, theirs = (played(network, name, Spraying(transport))[1] for network in (machines, hosts))
        np.testing.assert_array_equal(ours.times.done, theirs.times.done)
        np.testing.assert_array_equal(ours.results[0].link_bytes[: PLAIN.n_links], theirs.results[0].link_bytes)


def test_costs_of_messages_are_those_of_the_endpoints():
    machines = with_gpus(PLAIN, 4 * RATE, 0.0)
    costly = dataclasses.replace(machines, overhead=np.where(machines.kind == GPU, 1e-6, 0.0))
    hosts = dataclasses.replace(PLAIN, overhead=np.where(PLAIN.kind == HOST, 1e-6, 0.0))
    ours, theirs = (played(network, "ring_all_reduce", Spraying())[1] for network in (costly, hosts))
    np.testing.assert_array_equal(ours.times.done, theirs.times.done)


def test_bytes_inside_machines_are_counted_once():
    machines = with_gpus(PLAIN, 4 * RATE, 0.0)
    plan, run = played(machines, "direct_all_to_all", Spraying("nscc"))
    src, dst = plan.ends[plan.connection_of].T
    on_wire = np.where(src != dst, run.times.bytes_on_wire, 0.0)
    sent, came = np.bincount(src, on_wire), np.bincount(dst, on_wire)
    found = run.results[0].link_bytes[PLAIN.n_links :]
    np.testing.assert_array_equal(found, np.concatenate((sent, came)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("transport", "name"),
    [(transport, "direct_all_to_all") for transport in TRANSPORTS if transport != "hpcc"]
    + [("nscc", "ring_all_reduce"), ("rccc", "double_tree_all_reduce")],
)
def test_machines_of_eight_gpus_spray_between_them_and_keep_to_paths_inside(transport, name):
    network = load_network(DGX)
    plan, run = played(network, name, Spraying(transport))
    fabric = np.array([node.startswith(("leaf", "spine")) for node in network.nodes])
    crosses = np.zeros(len(plan.ends), bool)
    row = np.repeat(np.arange(len(plan.ends)), np.diff(plan.routes.first))
    crosses[row[fabric[network.dst[plan.routes.link]]]] = True
    assert 0 < crosses.sum() < len(crosses)
    link_bytes, on_wire = run.results[0].link_bytes, np.bincount(plan.connection_of, run.times.bytes_on_wire)
    into = link_bytes[fabric[network.src] & ~fabric[network.dst]].sum()  # data, answers and what is sent again
    assert into >= on_wire[crosses].sum()
    nvswitch = np.array(["nvswitch" in node for node in network.nodes])
    out = link_bytes[~nvswitch[network.src] & nvswitch[network.dst]].sum()
    assert out >= on_wire[~crosses & (np.diff(plan.routes.first) > 0)].sum() > 0


def test_a_port_of_a_plane_is_the_routes():
    network = load_network("multi_plane:n_planes=4,n_leaves=2,n_spines=2,hosts_per_leaf=4")
    plan, run = played(network, "direct_all_to_all", Spraying("nscc"))
    of_link = np.bincount(
        plan.routes.link, np.bincount(plan.connection_of, run.times.bytes_on_wire)[
            np.repeat(np.arange(len(plan.ends)), np.diff(plan.routes.first))
        ], minlength=network.n_links,
    )  # fmt: skip
    at_host = network.kind[network.src] == HOST
    data = run.results[0].link_bytes[at_host] - of_link[at_host]
    assert (data >= 0).all()  # answers
    assert data.sum() < 0.1 * of_link[at_host].sum()
    assert (of_link[at_host] > 0).sum() > 8  # hosts use more than one plane


def test_a_cable_between_switches_may_flap():
    network = load_network(DGX)
    cable = np.flatnonzero([network.link_name(i) in ("leaf0:spine0", "spine0:leaf0") for i in range(network.n_links)])
    flaps = Flaps((Flap("leaf0:spine0", tuple(int(i) for i in cable), 5e-6, 20e-6),))
    _, late = played(network, "direct_all_to_all", Spraying("nscc"), size=4e6, flaps=flaps)
    _, whole = played(network, "direct_all_to_all", Spraying("nscc"), size=4e6)
    assert late.results[0].time > whole.results[0].time


def test_a_cable_of_one_of_several_planes_may_flap():
    """What is on the cable is lost and sent again; switches of other planes still have no path to it."""
    network = load_network("multi_plane:n_planes=2,n_leaves=2,n_spines=2,hosts_per_leaf=4")
    names = ("plane0_leaf0:plane0_spine0", "plane0_spine0:plane0_leaf0")
    cable = tuple(i for i in range(network.n_links) if network.link_name(i) in names)
    flaps = Flaps((Flap(names[0], cable, 20e-6, 50e-6),))
    _, late = played(network, "direct_all_to_all", Spraying("nscc"), size=4e6, flaps=flaps)
    _, whole = played(network, "direct_all_to_all", Spraying("nscc"), size=4e6)
    assert late.results[0].counters["drops_loss"] > whole.results[0].counters["drops_loss"] == 0


def test_networks_without_switches_between_hosts_are_refused():
    with pytest.raises(InputError, match="need switches between hosts"):
        played(torus((4,)), "ring_all_reduce", Spraying())
    with pytest.raises(InputError, match="and those between h1 and h2 go another way"):
        played(load_network("bcube:n=2,k=1"), "direct_all_to_all", Spraying())


@pytest.mark.parametrize("pattern", [permutation, incast, all_to_all])
def test_a_pattern_between_gpus_is_one_between_hosts_with_their_latency(pattern):
    machines, hosts = with_gpus(PLAIN, 0.5 * RATE, 200e-9), with_hosts(PLAIN, 0.5 * RATE, LATENCY + 200e-9)
    sent = pattern(16, 300_003)
    ours, theirs = (run_messages(network, sent, Spraying("nscc")) for network in (machines, hosts))
    np.testing.assert_array_equal(ours.received, theirs.received)
    np.testing.assert_array_equal(ours.finished, theirs.finished)
    assert ours.counters == theirs.counters
    np.testing.assert_array_equal(*(alone(run.layout, sent, PACKETS) for run in (ours, theirs)))
    bounds = [busiest_port(run.layout.plan, run.layout.network, sent, PACKETS) for run in (ours, theirs)]
    assert bounds[0] == bounds[1] < ours.received.max()


PORTED = (DGX, "multi_plane:n_planes=4,n_leaves=2,n_spines=2,hosts_per_leaf=4",
          "rail_optimized:n_hosts=2,preset=dgx-h100:pxn=false",  # with PXN other messages come through a seat too
          "dual_tor:n_racks=2,n_spines=2,hosts_per_rack=4")  # fmt: skip


@pytest.mark.parametrize("name", PORTED)
@pytest.mark.parametrize("how", [Spraying("nscc"), Spraying("rccc", "oblivious")], ids=["nscc", "rccc"])
def test_a_window_of_all_to_all_gets_to_each_of_the_ranks_seats_once(name, how):
    network = load_network(name)
    n = len(network.endpoints)
    sent = all_to_all(n, 50_000, window=3)
    run = run_messages(network, sent, how)
    wire = PACKETS.on_wire(sent.nbytes)
    np.testing.assert_array_equal(run.times.bytes_on_wire, wire)
    carried, seats = run.results[0].link_bytes, np.isin(network.dst, network.endpoints)
    came = np.bincount(network.dst[seats], carried[seats], minlength=network.n_nodes)[network.endpoints]
    data = (n - 1) * wire[0]
    assert (data <= came).all()
    assert (came < 1.2 * data).all()  # with what is sent again, and answers
    # a message that waits begins when the one that it waits for is complete
    assert (run.received >= alone(run.layout, sent, PACKETS) * (1 - 1e-9)).all()
    assert busiest_port(run.layout.plan, run.layout.network, sent, PACKETS) <= run.times.done.max()


def test_the_busiest_port_is_the_one_that_the_routes_of_most_bytes_choose():
    network = load_network("multi_plane:n_planes=4,n_leaves=2,n_spines=2,hosts_per_leaf=4")
    sent = all_to_all(8, 4096)
    plan = plan_messages(network, sent)
    per_port = np.bincount(plan.routes.link[plan.routes.first[:-1]], minlength=network.n_links)
    per_port += np.bincount(plan.routes.link[plan.routes.first[1:] - 1], minlength=network.n_links)
    assert 2 < per_port.max() < 7  # messages of a host have several planes, and some meet
    bound = busiest_port(plan, network, sent, Framing(4096, 0))
    assert bound == pytest.approx(per_port.max() * 4096 / network.bandwidth[0])
    # 7 messages of a host over its 4 ports
    assert busiest_host(plan, sent, Framing(4096, 0)) == pytest.approx(7 / 4 * 4096 / network.bandwidth[0])


def test_a_machine_has_the_rate_of_all_its_ports():
    network = load_network(DGX)
    sent = all_to_all(16, 4096)
    rate = network.bandwidth[[network.nodes[i].startswith("leaf") for i in network.dst]][0]
    # each of 8 GPUs sends to 8 of the other machine
    found = busiest_host(plan_messages(network, sent), sent, Framing(4096, 0))
    assert found == pytest.approx(64 * 4096 / (8 * rate))


def test_a_message_inside_a_machine_takes_no_port():
    network = load_network(DGX)
    sent = HostMessages(np.array([0]), np.array([3]), np.array([1_000_000]), np.zeros(1))
    run = run_messages(network, sent, Spraying("nscc"))
    fabric = np.array([node.startswith(("leaf", "spine")) for node in network.nodes])
    assert run.results[0].link_bytes[fabric[network.src] | fabric[network.dst]].sum() == 0
    assert 1 <= run.received[0] / alone(run.layout, sent, PACKETS)[0] < 1.02
    assert busiest_port(run.layout.plan, run.layout.network, sent, PACKETS) < run.received[0]


def beside(network, system, how, start):
    """A job of a switch system, and a ring on the same ranks' seats that begins then."""
    seats = network.endpoints[[0, 3, 8, 9]]
    job = aggregation_job(system, network, seats.tolist(), 100_000)
    schedule = COLLECTIVES["ring_all_reduce"].build(4)
    plan = plan_flows(network, [FlowJob(schedule, Placement(seats))])
    return job, plan, run_beside(plan, 1e6, [job], how, starts=start)


MIXED = (with_gpus(PLAIN, 4 * RATE, 200e-9), load_network("dual_tor:n_racks=4,n_spines=2,hosts_per_rack=4"),
         load_network("multi_plane:n_planes=4,n_leaves=4,n_spines=2,hosts_per_leaf=4"))  # fmt: skip


@pytest.mark.parametrize("network", MIXED, ids=["machines", "dual_tor", "multi_plane"])
@pytest.mark.parametrize("system", ["switchml_rdma", "atp", "sharp"])
def test_a_switch_system_beside_sprayed_messages_adds_exactly_and_has_its_own_latency_once(network, system):
    one, how = SYSTEMS[system].build(), Spraying("nscc", queue=1e9, ecn=(0, 0))
    job, plan, run = beside(network, one, how, 0.0)
    assert run.results[1].counters["exact"] == 1
    alone_of_job = simulate_aggregation(network, [job]).results[0]
    # until the ring begins, the switch system has the network to itself: latencies inside machines count once
    _, _, later = beside(network, one, how, 10 * alone_of_job.time)
    assert later.results[1].time == alone_of_job.time <= run.results[1].time
    np.testing.assert_array_equal(later.results[1].link_bytes, alone_of_job.link_bytes)
    (ring,) = run_packets(plan, 1e6, how).results
    assert later.results[0].time_from_last_start == pytest.approx(ring.time, rel=1e-6)
    np.testing.assert_array_equal(later.results[0].link_bytes, ring.link_bytes)


@pytest.mark.parametrize("name", [DGX, "rail_optimized:n_hosts=2"])
def test_a_switch_system_of_machines_adds_exactly_beside_sprayed_messages(name):
    """Buses of these machines are slower than their ports, and bound these beside sprayed messages."""
    network = load_network(name)
    for system in ("switchml_rdma", "netreduce", "atp"):
        job, _, run = beside(network, SYSTEMS[system].build(), Spraying("nscc"), 0.0)
        assert run.results[1].counters["exact"] == 1
        alone_of_job = simulate_aggregation(network, [job]).results[0]
        np.testing.assert_array_equal(run.results[1].link_bytes > 0, alone_of_job.link_bytes > 0)


def test_messages_that_keep_to_paths_beside_sprayed_ones_have_their_latency_once():
    network = with_gpus(PLAIN, 4 * RATE, 200e-9)
    schedule = COLLECTIVES["ring_all_reduce"].build(4)
    nodes = network.endpoints[[0, 3, 8, 9]]
    jobs = [FlowJob(schedule, Placement(nodes), number=7), FlowJob(schedule, Placement(nodes), number=8)]
    plan = plan_flows(network, jobs)
    window = over_path("window")
    by_job = [window, Spraying("nscc")]
    late = np.repeat([0.0, 1.0], 4)
    run = run_packets(plan, 1e6, Spraying("nscc"), starts=late, by_job=by_job)
    first = run_packets(plan_flows(network, jobs[:1]), 1e6, window).results[0]
    assert run.results[0].time == first.time
    np.testing.assert_array_equal(run.results[0].link_bytes, first.link_bytes)
