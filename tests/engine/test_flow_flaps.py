"""Flaps in the flow engine against what a message, a ring, and a network without the cable say."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.core.faults.failures import fail_links
from commsim.core.placement import Placement
from commsim.engine.flow import simulate_flows
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_plan import plan_flows
from commsim.prediction.build import prepare
from commsim.prediction.inputs import load_network
from commsim.prediction.read import with_costs
from commsim.routing.flaps import Flap, Flaps, read_flaps

LEAF_SPINE = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=2,bandwidth=10Gbps,latency=1us"
SIZE = 12.5e6  # 10 ms at 10 Gb/s


def point_to_point(network):
    prepared = prepare("binomial_broadcast", network, placement=Placement([0, len(network.endpoints) - 1]))
    return prepared.plan


def time_of(plan, size=SIZE, flaps=None):
    return simulate_flows(plan, size, flaps=flaps)[0].time


def test_a_message_without_another_way_waits_as_long_as_its_link_is_down():
    network = load_network("star:n_hosts=2,bandwidth=10Gbps,latency=1us")
    plan = prepare("binomial_broadcast", network).plan
    flaps = read_flaps(["link:h0:switch0@2ms+3ms"], network, detection=1e-3)
    assert time_of(plan, flaps=flaps) == pytest.approx(time_of(plan) + 3e-3, rel=1e-12)


def test_a_sender_that_repeats_goes_on_with_the_first_repeat_that_finds_a_path():
    network = load_network("star:n_hosts=2,bandwidth=10Gbps,latency=1us")
    plan = prepare("binomial_broadcast", network).plan
    # Lost at 2 ms, repeats 1, 3 and 7 ms later: at 9 ms the link, which is down until 6 ms, takes them.
    flaps = read_flaps(["link:h0:switch0@2ms+4ms"], network, rto=1e-3)
    assert time_of(plan, flaps=flaps) == pytest.approx(time_of(plan) + 7e-3, rel=1e-12)


@given(st.floats(1e-6, 1.0), st.floats(1e-9, 10.0))
def test_repeats_double_and_the_first_after_the_path_is_taken(rto, outage):
    resumes = Flaps((), rto=rto).resumes(5.0, 5.0 + outage)
    repeats = [5.0 + rto * (2**k - 1) for k in range(1, 60)]
    assert resumes == pytest.approx(next(r for r in repeats if r >= (5.0 + outage) * (1 - 1e-12)), rel=1e-9)


def test_a_message_with_another_way_waits_until_the_switches_know():
    network = load_network(LEAF_SPINE)
    plan = point_to_point(network)
    spine = network.nodes[network.dst[plan.routes.link[1]]]
    (result,) = simulate_flows(plan, SIZE, flaps=read_flaps([f"link:leaf0:{spine}@2ms+4ms"], network, detection=1e-3))
    assert result.time == pytest.approx(time_of(plan) + 1e-3, rel=1e-9)
    assert (result.counters["stalled"], result.counters["rerouted"]) == (1, 1)
    # 2 ms and what follows the 6 + 1 ms when the old way is taken again go over one spine, 4 ms over the other.
    other = "spine1" if spine == "spine0" else "spine0"
    over = {name: result.link_bytes[[network.link_name(i) for i in range(network.n_links)].index(f"leaf0:{name}")]
            for name in (spine, other)}  # fmt: skip
    assert over[other] == pytest.approx(4e-3 * 1.25e9, rel=1e-9)
    assert over[spine] + over[other] == pytest.approx(SIZE, rel=1e-12)


def test_a_sender_with_a_timer_waits_for_acknowledgements_that_a_cut_cable_drops():
    network = load_network(LEAF_SPINE)
    # h0 sends to h3 over spine1; what h3 answers goes to h0 over spine0.
    prepared = prepare("binomial_broadcast", network, placement=Placement([0, 3]), routing="dmodk")
    assert "spine1" in [network.nodes[node] for node in network.dst[prepared.plan.routes.link]]
    for rto, lost in ((0.0, 0.0), (3e-3, 3e-3)):
        flaps = read_flaps(["link:leaf0:spine0@2ms+1ms"], network, detection=1.0, rto=rto)
        assert time_of(prepared.plan, flaps=flaps) == pytest.approx(time_of(prepared.plan) + lost, rel=1e-12)


def test_an_unnoticed_flap_changes_no_route():
    network = load_network(LEAF_SPINE)
    plan = point_to_point(network)
    spine = network.nodes[network.dst[plan.routes.link[1]]]
    flaps = read_flaps([f"link:leaf0:{spine}@2ms+500us"], network, detection=1e-3)
    (result,) = simulate_flows(plan, SIZE, flaps=flaps)
    assert result.counters["rerouted"] == 0
    assert result.time == pytest.approx(time_of(plan) + 500e-6, rel=1e-9)


@pytest.mark.parametrize("name", ["ring_all_reduce", "double_tree_all_reduce", "pairwise_all_to_all"])
def test_a_cable_that_is_down_nearly_all_the_time_is_one_that_has_failed(name):
    network = load_network("leaf_spine:n_leaves=4,n_spines=2,hosts_per_leaf=2,bandwidth=10Gbps,latency=1us")
    plan = prepare(name, network).plan
    failed = prepare(name, fail_links(network, ["leaf1:spine0"])).plan
    wanted = time_of(failed, 1e7)
    flaps = read_flaps([f"link:leaf1:spine0@0s+{wanted * 0.9999:.9f}s"], network)
    assert time_of(plan, 1e7, flaps) == pytest.approx(wanted, rel=1e-3)


@settings(max_examples=12, deadline=None)
@given(st.data())
def test_no_byte_is_lost_or_carried_twice_under_any_flaps(data):
    network = load_network(LEAF_SPINE)
    jobs = [
        FlowJob(p.schedule, p.placement, priority=k)
        for k, p in enumerate(
            prepare(name, network, placement=Placement([0, 2, 1, 3]))
            for name in ("ring_all_reduce", "binomial_broadcast")
        )
    ]
    plan = plan_flows(network, jobs)
    whole = simulate_flows(plan, SIZE)
    end = max(r.time for r in whole)
    cables = data.draw(st.lists(st.integers(0, network.n_links - 1), max_size=3, unique=True))
    flaps = []
    for link in cables:
        at, length = data.draw(st.floats(0, 0.5)) * end, data.draw(st.floats(0.001, 0.4)) * end
        flaps.append(Flap(str(link), (link,), at, length))
    detection, rto = data.draw(st.sampled_from([0.0, 1e-4, 1e-3])), data.draw(st.sampled_from([0.0, 1e-3]))
    results = simulate_flows(plan, SIZE, flaps=Flaps(tuple(flaps), detection, rto))
    again = simulate_flows(plan, SIZE, flaps=Flaps(tuple(flaps), detection, rto))
    for result, before, same in zip(results, whole, again, strict=True):
        hosts = network.kind == 0
        for ends in (network.src, network.dst):  # what each host sends and receives is what the schedule says
            host_links = hosts[ends]
            np.testing.assert_allclose(result.link_bytes[host_links], before.link_bytes[host_links], rtol=1e-6, atol=1)
        assert result == same


@given(st.floats(0, 0.999), st.floats(1e-6, 1e-2), st.floats(1e-7, 1e-3))
def test_an_overhead_takes_what_it_does_however_long_its_message_waits(when, length, overhead):
    network = with_costs(load_network("star:n_hosts=2,bandwidth=10Gbps,latency=1us"), overhead=overhead)
    plan = prepare("binomial_broadcast", network).plan
    sent = overhead + SIZE / 1.25e9
    flaps = Flaps((Flap("cable", (0, 1), when * sent, length),))
    assert time_of(plan, flaps=flaps) == pytest.approx(time_of(plan) + length, rel=1e-9)


@settings(max_examples=settings().max_examples // 2, deadline=None)
@given(
    st.sampled_from(["ring_all_reduce", "double_tree_all_reduce", "halving_doubling_all_reduce",
                     "pairwise_all_to_all", "chain_broadcast", "parameter_server"]),
    st.sampled_from([1e-6, 1e-4, 0.0]), st.sampled_from([0.0, 1e-6]), st.sampled_from([1e-4, 0.0]), st.data(),
)  # fmt: skip
@pytest.mark.filterwarnings("error")
def test_every_transfer_ends_whatever_flaps_and_whatever_messages_cost(name, sending, receiving, detection, data):
    network = with_costs(load_network(LEAF_SPINE), overhead=sending, recv_overhead=receiving, gamma=1e-10)
    plan = prepare(name, network).plan
    (whole,) = simulate_flows(plan, 1e6)
    flaps = []
    for link in data.draw(st.lists(st.integers(0, network.n_links - 1), min_size=1, max_size=3, unique=True)):
        at, length = data.draw(st.floats(0, 0.5)) * whole.time, data.draw(st.floats(0.001, 0.4)) * whole.time
        flaps.append(Flap(str(link), (link,), at, length))
    (result,) = simulate_flows(plan, 1e6, flaps=Flaps(tuple(flaps), detection))
    hosts = network.kind[network.src] == 0
    np.testing.assert_allclose(result.link_bytes[hosts], whole.link_bytes[hosts], rtol=1e-6, atol=1)


def test_a_cable_that_stays_down_longer_than_the_run_is_one_that_has_failed():
    network = load_network("leaf_spine:n_leaves=4,n_spines=2,hosts_per_leaf=2,bandwidth=10Gbps,latency=1us")
    failed = prepare("ring_all_reduce", fail_links(network, ["leaf1:spine0"])).plan
    flaps = read_flaps(["link:leaf1:spine0@0s+100s"], network)
    assert time_of(prepare("ring_all_reduce", network).plan, 1e7, flaps) == pytest.approx(
        time_of(failed, 1e7), rel=1e-9
    )


def test_overlapping_flaps_and_those_that_begin_after_the_run_are_refused():
    network = load_network(LEAF_SPINE)
    with pytest.raises(InputError, match="overlap"):
        read_flaps(["link:leaf0:spine0@1ms+2ms", "link:spine0:leaf0@2ms+1ms"], network)
    read_flaps(["link:leaf0:spine0@1ms+1ms", "link:spine0:leaf0@2ms+1ms"], network)
    with pytest.raises(InputError, match="begins after 1 s, and the run takes"):
        time_of(point_to_point(network), flaps=read_flaps(["link:leaf0:spine0@1s+2s"], network))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("link:leaf0:spine0@1ms", "takes link:A:B@START"),
        ("leaf0:spine0@1ms+1ms", "takes link:A:B@START"),
        ("link:leaf0:spine9@1ms+1ms", "no node 'spine9'"),
        ("link:leaf0:spine0@1ms+0ms", "lasts longer than 0 s"),
        ("link:leaf0:spine0@1+1ms", "a time such as"),
        ("switch:h0@1ms+1ms", "takes a switch"),
    ],
)
def test_a_flap_that_cannot_be_is_refused_with_what_would_be_right(text, message):
    with pytest.raises(InputError, match=message):
        read_flaps([text], load_network(LEAF_SPINE))
