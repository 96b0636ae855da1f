"""Flaps packet by packet: what one message says exactly, ways around, conservation, and the flow engine beside it."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from one_path import Dcqcn, Dctcp, play, results_of

from commsim.core.errors import InputError
from commsim.core.placement import Placement
from commsim.engine.flow import simulate_flows
from commsim.jobs.groups import prepare_groups
from commsim.packets.links.queues import Fabric
from commsim.packets.transports.spraying import over_path
from commsim.prediction.build import prepare
from commsim.prediction.inputs import load_network
from commsim.routing.flaps import Flaps, read_flaps

STAR = "star:n_hosts=2,bandwidth=10Gbps,latency=1us"
LEAF_SPINE = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=2,bandwidth=10Gbps,latency=1us"


def point_to_point(network):
    return prepare("binomial_broadcast", network, placement=Placement([0, len(network.endpoints) - 1])).plan


@pytest.mark.parametrize("transport", [Dctcp(rto=1e-3), Dcqcn(rto=1e-3)])
@pytest.mark.parametrize(("length", "repeats"), [("0.5ms", 1), ("2ms", 3), ("6.9ms", 7)])
def test_a_packet_is_repeated_after_doubled_timeouts_until_the_link_is_up(transport, length, repeats):
    network = load_network(STAR)
    plan = point_to_point(network)
    (whole,) = play(plan, 1000, transport=transport).results
    run = play(plan, 1000, transport=transport, flaps=read_flaps([f"link:h0:switch0@0s+{length}"], network))
    # Sent at 0 s; timeouts of 1, 2, 4 ms follow each other.
    assert run.results[0].time == pytest.approx(whole.time + repeats * 1e-3, rel=1e-9)
    assert run.tables.fabric.state["drops_loss"] == np.log2(repeats + 1)


def test_packets_take_another_way_from_when_the_switches_know_until_the_link_is_up_again():
    network = load_network(LEAF_SPINE)
    plan = point_to_point(network)
    spine = network.nodes[network.dst[plan.routes.link[1]]]
    other = "spine1" if spine == "spine0" else "spine0"
    flaps = read_flaps([f"link:leaf0:{spine}@2ms+4ms"], network, detection=1e-3)
    (result,) = results_of(plan, 12.5e6, transport=Dctcp(window=1 << 20, rto=1e-4), flaps=flaps)
    sent = {network.link_name(i): n_bytes for i, n_bytes in enumerate(result.link_bytes)}
    # From 3 ms, when the switches know, until the way back at 7 ms; what is lost is sent again as soon.
    assert 0.95 * 4e-3 * 1.25e9 < sent[f"leaf0:{other}"] < 1.001 * 4e-3 * 1.25e9
    assert sent[f"leaf0:{spine}"] + sent[f"leaf0:{other}"] >= 12.5e6
    assert result.counters["rerouted"] == 1
    assert 1e-3 <= result.counters["flap_lost_s"] < 1.1e-3


@given(
    name=st.sampled_from(["ring_all_reduce", "double_tree_all_reduce", "pairwise_all_to_all", "binomial_broadcast"]),
    transport=st.sampled_from([Dctcp(rto=1e-4), Dcqcn(rto=1e-4)]),
    link=st.sampled_from(["leaf0:spine0", "leaf1:spine1", "h0:leaf0"]),
    at=st.floats(0, 0.5), length=st.floats(0.001, 0.45), detection=st.floats(0, 3e-4),
    loss=st.sampled_from([0.0, 0.01]), seed=st.integers(0, 99),
)  # fmt: skip
@settings(deadline=None, max_examples=settings().max_examples // 2)
def test_every_packet_is_delivered_once_whatever_flaps(name, transport, link, at, length, detection, loss, seed):
    network = load_network(LEAF_SPINE)
    plan = prepare(name, network).plan
    options = {"transport": transport, "fabric": Fabric(loss=loss, ecn_min=3e4, ecn_max=3e4), "seed": seed}
    whole = simulate_flows(plan, 3e6)[0].time
    flap = f"link:{link}@{at * whole:.12f}s+{length * whole:.12f}s"
    flaps = read_flaps([flap], network, detection=detection)
    runs = [play(plan, 3e6, flaps=flaps, **options) for _ in range(2)]
    assert runs[0].results[0].time == runs[1].results[0].time
    fabric = runs[0].tables.fabric
    # Receivers have taken each packet of each message once; the rest came twice, early, or was lost.
    message, flow = fabric.message, fabric.flow
    last = [message["end"][message["flow"] == f].max(initial=0) for f in range(len(flow))]
    assert (flow["expected"] == np.array(last)).all()
    assert (flow["n_early"] == 0).all()
    # What leaves a link arrives, or is still under way.
    assert (fabric.link["n_packets"] >= fabric.link["n_arrived"]).all()


@pytest.mark.parametrize("name", ["ring_all_reduce", "double_tree_all_reduce"])
def test_lost_time_is_that_of_the_flow_engine_where_repeats_are_quick(name):
    network = load_network(LEAF_SPINE)
    plan = prepare(name, network).plan
    # Both cables of leaf0: nothing is sent for 5 ms, and what was under way is repeated at once.
    flaps = read_flaps(["link:leaf0:spine0@2ms+5ms", "link:leaf0:spine1@2ms+5ms"], network, detection=1.0)
    (flow,) = simulate_flows(plan, 12.5e6, flaps=flaps)
    lost = flow.time - simulate_flows(plan, 12.5e6)[0].time
    assert lost == pytest.approx(5e-3, rel=0.01)
    fast = Dcqcn(rto=2e-5)
    (packets,) = results_of(plan, 12.5e6, transport=fast, flaps=flaps, fabric=Fabric())
    assert packets.counters["flap_lost_s"] == pytest.approx(lost, rel=0.35)  # doubled timeouts end up to 2.5 ms late


def test_groups_share_links_packet_by_packet_and_flap_together():
    groups = prepare_groups("ring_all_reduce", LEAF_SPINE, [[0, 2], [1, 3]])
    flow = groups.predict(1e6)
    packets = groups.predict(1e6, engine="packet", transport=over_path("dctcp"))
    assert [r.time for r in packets] == pytest.approx([r.time for r in flow], rel=0.1)
    flaps = read_flaps(["switch:spine0@100us+100us", "switch:spine1@100us+100us"], load_network(LEAF_SPINE))
    late = groups.predict(1e6, engine="packet", transport=over_path("dctcp", rto=1e-5), flaps=flaps)
    assert all(r.counters["flap_lost_s"] > 9e-5 for r in late)


def test_what_cannot_be_is_refused():
    network = load_network(STAR)
    plan = point_to_point(network)
    for begin, shown in (("1", "1"), ("1000000000", "1e+09")):  # later than the clock of a run goes
        with pytest.raises(InputError, match=re.escape(f"begins after {shown} s, and the run takes")):
            results_of(plan, 1e6, transport=Dctcp(), flaps=read_flaps([f"link:h0:switch0@{begin}s+1s"], network))
    assert results_of(plan, 1e6, transport=Dctcp(), flaps=Flaps(()))[0].counters["flap_lost_s"] == 0


def test_a_host_that_is_cut_off_for_hours_is_refused_once_most_packets_are_lost():
    network = load_network(STAR)
    plan, sent = point_to_point(network), Dctcp(rto=1e-5)
    assert results_of(plan, 1e5, transport=sent, flaps=read_flaps(["link:h0:switch0@1us+1s"], network))[0].time > 1
    with pytest.raises(InputError, match=r"\d{7} packets are lost after .* of 32400 s, since senders repeat them; use"):
        results_of(plan, 1e5, transport=sent, flaps=read_flaps(["link:h0:switch0@1us+9h"], network))
