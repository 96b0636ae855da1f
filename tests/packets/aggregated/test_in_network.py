"""In-network aggregation on the flow engine: closed forms on a star and on trees, bytes on links, and the window."""

import dataclasses

import numpy as np
import pytest
from drawn_inputs import links
from hypothesis import given, settings
from hypothesis import strategies as st

from collectives import COLLECTIVES
from collectives.dense.ring import ring_cost
from collectives.in_network.switchml import switchml, switchml_cost
from commsim import predict
from commsim.core.cost import LogGP
from commsim.core.data_order.dependencies import dependencies
from commsim.core.errors import InputError
from commsim.core.network import SWITCH, Network
from commsim.core.placement import Placement
from commsim.prediction.build import prepare
from commsim.prediction.inputs import load_network
from switch_model.systems import SYSTEMS
from topologies.leaf_spine import leaf_spine
from topologies.star import star

ON_SWITCHES = [name for name in COLLECTIVES if COLLECTIVES[name].metadata["systems"]]
sizes = st.floats(1.0, 1e12)
LEAF_SPINE = "leaf_spine:n_leaves=4,n_spines=2,hosts_per_leaf=4,bandwidth=100Gbps,latency=1us"


def costing(network: Network, link: LogGP) -> Network:
    """Give every node, switches too, the same overhead and the same rate of adding."""
    return dataclasses.replace(network, overhead=link.o, gamma=link.gamma)


def drawn_parameters(data: st.DataObject, name: str) -> str:
    known = COLLECTIVES[name].parameters
    parts = ["system=none"] + [f"n_chunks={data.draw(st.integers(1, 9))}"] * data.draw(st.booleans())
    if "pool" in known and data.draw(st.booleans()):
        parts.append(f"pool={data.draw(st.integers(1, 9))}")
    return f"{name}:{','.join(parts)}"


@pytest.mark.parametrize("name", ON_SWITCHES)
@settings(max_examples=settings().max_examples // 3)
@given(data=st.data(), n_ranks=st.integers(1, 17), size=sizes, link=links)
def test_the_flow_engine_meets_the_closed_form_on_a_star(
    name: str, data: st.DataObject, n_ranks: int, size: float, link: LogGP
) -> None:
    network = costing(star(n_ranks + 1, link.B, link.L), link)
    ready = prepare(drawn_parameters(data, name), network, n_ranks=n_ranks)
    expected = COLLECTIVES[name].metadata["cost"](n_ranks, size, link, **ready.parameters)
    assert ready.predict(size).time == pytest.approx(expected, rel=1e-9, abs=0)
    assert ready.predict(size, engine="closed-form").time == pytest.approx(expected, rel=1e-9, abs=0)
    assert ready.predict(size, engine="alpha-beta").time == pytest.approx(expected, rel=1e-9, abs=0)


@pytest.mark.parametrize("name", ["switchml", "sharp"])
@settings(max_examples=settings().max_examples // 2)
@given(data=st.data(), n_leaves=st.integers(2, 4), per_leaf=st.integers(1, 4), size=sizes, link=links)
def test_the_flow_engine_meets_the_closed_form_on_a_tree_of_two_levels(
    name: str, data: st.DataObject, n_leaves: int, per_leaf: int, size: float, link: LogGP
) -> None:
    network = leaf_spine(n_leaves, 2, per_leaf, link.B, link.B, latency=link.L)
    ready = prepare(drawn_parameters(data, name), costing(network, link))
    expected = COLLECTIVES[name].metadata["cost"](n_leaves * per_leaf, size, link, **ready.parameters)
    if per_leaf == 1:  # no paths join on a leaf, and a message to the spine has two links before it
        expected = COLLECTIVES[name].metadata["cost"](
            n_leaves, size, dataclasses.replace(link, L=2 * link.L), **ready.parameters
        )
    assert ready.predict(size).time == pytest.approx(expected, rel=1e-9, abs=0)


@given(first=st.integers(2, 4), others=st.lists(st.integers(1, 4), min_size=1, max_size=3), pool=st.integers(1, 6))
def test_racks_may_be_unequal_where_adding_takes_no_time(first: int, others: list[int], pool: int) -> None:
    network = load_network("leaf_spine:n_leaves=4,n_spines=1,hosts_per_leaf=4,bandwidth=10Gbps,latency=1us")
    hosts = [4 * rack + i for rack, n in enumerate([first, *others]) for i in range(n)]
    ready = prepare(f"switchml:system=none,n_chunks=7,pool={pool}", network, placement=Placement(hosts))
    # a rank that is alone in its rack has one level less and a connection that is twice as long: it is never the last
    expected = switchml_cost(len(hosts), 1e7, LogGP(L=1e-6, B=1.25e9), **ready.parameters)
    assert ready.predict(1e7).time == pytest.approx(expected, rel=1e-9, abs=0)


@pytest.mark.parametrize(
    "spec",
    [
        LEAF_SPINE,
        "fat_tree:k=4",
        "three_tier:n_pods=2,racks_per_pod=2,hosts_per_rack=4,switches_per_pod=2,n_cores=2",
        "dragonfly:p=2,a=4,h=2",
        "jellyfish:n_switches=10,degree=4,hosts_per_switch=3",
    ],
)
@pytest.mark.parametrize("name", ["switchml", "sharp"])
def test_no_link_between_switches_carries_more_than_one_stream_whatever_is_below_it(name: str, spec: str) -> None:
    network, size = load_network(spec), 2.0**24
    carried = predict(f"{name}:system=none", network, size, overhead="0us").link_bytes
    inner = (network.kind[network.src] == SWITCH) & (network.kind[network.dst] == SWITCH)
    assert {0.0, size} >= set(np.round(carried[inner], 3).tolist())
    assert (carried[inner] > 0).any()
    np.testing.assert_allclose(carried[~inner], size)


def test_a_ring_needs_nearly_twice_as_long_as_switches_that_add() -> None:
    size, n = 2.0**30, 16
    network = star(n, 12.5e9, 0.0)
    ours = predict("switchml:system=none,n_chunks=4096", network, size, overhead="0us").time
    ring = predict("ring_all_reduce", network, size, overhead="0us").time
    assert ring == pytest.approx(ring_cost(n, size, LogGP(B=12.5e9)))
    assert ring / ours == pytest.approx(2 * (n - 1) / n * 4096 / 4097)


@pytest.mark.parametrize("n_ranks", [4, 8, 16])
@pytest.mark.parametrize("system", ["switchml_udp", "switchml_rdma", "sharp"])
def test_the_rate_tends_to_the_systems_line_rate_whatever_the_number_of_ranks(system: str, n_ranks: int) -> None:
    it = SYSTEMS[system].build()
    size = 65536.0 * it.payload
    ready = prepare("switchml:system=none,n_chunks=4096", star(n_ranks, 12.5e9, 1e-6))
    rate = size / 4 / ready.predict(size, framing=it.framing).time
    assert rate == pytest.approx(it.line_rate(12.5e9), rel=0.02)
    assert rate < it.line_rate(12.5e9)


def test_below_a_round_trip_the_pool_decides_and_above_it_the_link() -> None:
    bandwidth, latency, chunk, n_chunks = 12.5e9, 5e-6, 1024.0, 20_000
    round_trip = 2 * (latency + chunk / bandwidth)
    knee = round_trip * bandwidth / chunk
    network = star(4, bandwidth, latency)
    for pool in (8, 32, 64, 256, 1024):
        time = predict(
            f"switchml:system=none,n_chunks={n_chunks},pool={pool}", network, n_chunks * chunk, overhead="0us"
        ).time
        rate = n_chunks * chunk / time
        bound = min(pool * chunk / round_trip, bandwidth)
        assert rate == pytest.approx(bound, rel=0.01), (pool, knee)


@pytest.mark.parametrize("collision", [0.0, 0.125, 0.5, 1.0])
def test_the_server_receives_what_collides_from_every_rank_and_the_rest_once(collision: float) -> None:
    n, size = 8, 2.0**26
    network = star(n + 1, 12.5e9, 1e-6)
    ready = prepare(f"atp:system=none,collision={collision}", network, n_ranks=n)
    result = ready.predict(size)
    server = ready.placement.nodes[-1]
    into = result.link_bytes[network.dst == server]
    np.testing.assert_allclose(into, (1 + collision * (n - 1)) * size)
    np.testing.assert_allclose(result.link_bytes[network.src == server], size)
    assert result.time >= into[0] / 12.5e9
    assert result.time == pytest.approx(into[0] / 12.5e9, rel=0.03)


def test_all_chunks_that_collide_make_a_parameter_server() -> None:
    n, size, k, link = 8, 2.0**26, 64, LogGP(L=1e-6, o=2e-6, B=12.5e9, gamma=1e-11)
    network = costing(star(n + 1, link.B, link.L), link)
    chunk = size / k
    into, adding, out = link.o + n * chunk / link.B, n * link.gamma * chunk, link.message(chunk)
    # up over two links, then back over one link and a switch that sends copies on
    expected = into + 2 * link.L + adding + 2 * out + (k - 1) * max(into, adding)
    assert predict(f"atp:system=none,collision=1,n_chunks={k}", network, size, n_ranks=n).time == pytest.approx(
        expected, rel=1e-9
    )


def test_atp_adds_in_the_racks_and_again_beside_the_server() -> None:
    network, size = load_network(LEAF_SPINE), 2.0**26
    ready = prepare("atp:system=none", network)
    names = [network.nodes[node] for node in ready.placement.nodes[15:]]
    assert names == ["leaf3", "leaf0", "leaf1", "leaf2", "h15"]
    carried = dict(zip(map(network.link_name, range(network.n_links)), ready.predict(size).link_bytes, strict=True))
    assert carried["leaf3:h15"] == pytest.approx(size)
    assert sum(carried[f"leaf{i}:spine{j}"] for i in range(3) for j in range(2)) == pytest.approx(3 * size)
    assert sum(carried[f"spine{j}:leaf3"] for j in range(2)) == pytest.approx(3 * size)


def test_each_rank_on_rails_sends_through_its_own_nic() -> None:
    network = load_network("rail_optimized:n_hosts=4")
    ready = prepare("switchml:system=none", network)
    result = ready.predict(2.0**26)
    nics = np.array([".nic" in name for name in network.nodes])
    out = nics[network.src] & (network.kind[network.dst] == SWITCH) & (network.machine[network.dst] < 0)
    np.testing.assert_allclose(result.link_bytes[out], 2.0**26)
    assert np.count_nonzero(out) == 32


def test_a_thousand_ranks_take_a_second_or_two() -> None:
    ready = prepare("switchml:system=none", "leaf_spine:n_leaves=32,n_spines=8,hosts_per_leaf=32,latency=500ns")
    assert ready.schedule.n_transfers == 256 * (2 * (1024 + 32) + 33)
    assert sum(len(block.body) for block in ready.schedule.blocks) == 2 * (1024 + 32) + 33
    link = LogGP(L=500e-9, B=12.5e9)
    expected = switchml_cost(1024, 2.0**26, link, **ready.parameters)
    assert ready.predict(2.0**26).time == pytest.approx(expected, rel=1e-9)


def test_the_waits_of_an_aggregator_grow_with_its_children_and_not_with_their_square() -> None:
    def waits(n_ranks: int) -> int:
        schedule = switchml(n_ranks, n_chunks=1)
        return len(dependencies(schedule, schedule.expand()).pred)

    assert waits(512) < 4.1 * 512


@pytest.mark.parametrize(
    "spec",
    ["switchml:system=switchml_udp", "switchml:system=switchml_udp,window=16", "switchml", "atp", "sharp"],
)
@pytest.mark.parametrize("latency", [1e-7, 5e-6])
def test_with_packets_as_chunks_it_is_what_the_packet_engine_says(spec: str, latency: float) -> None:
    ready = prepare(spec, star(9, 12.5e9, latency), n_ranks=8)
    size = 2000.0 * ready.system.system(2.0**20).payload
    assert ready.at(size).schedule.n_chunks == 2000
    assert ready.predict(size).time == pytest.approx(ready.predict(size, engine="packet").time, rel=2e-4)


def test_what_only_the_schedule_of_the_flow_engine_has_is_refused_for_packets():
    network = load_network("star:n_hosts=4,bandwidth=100Gbps,latency=1us")
    assert (
        predict("atp:collision=0.5", network, 65536, overhead="0us").time
        > predict("atp", network, 65536, overhead="0us").time
    )
    with pytest.raises(InputError, match=r"collision=0\.5 is a parameter of the flow engine's schedule"):
        predict("atp:collision=0.5", network, 65536, engine="packet", overhead="0us")


@pytest.mark.parametrize("messages", [1, 2, 8])
@pytest.mark.parametrize("per_message", [1, 4, 16])
def test_small_windows_of_whole_messages_take_what_packets_take(messages, per_message):
    spec = f"switchml:window={messages * per_message},packets_per_message={per_message}"
    network = load_network("star:n_hosts=8,bandwidth=100Gbps,latency=1us")
    flow, packets = (predict(spec, network, 2**20, engine=engine, overhead="0us").time for engine in ("flow", "packet"))
    assert flow == pytest.approx(packets, rel=0.01)
