"""The max-plus recurrence gives the event engine's times to the picosecond."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.packets.aggregated.aggregation_jobs import aggregation_job, with_loss
from commsim.packets.aggregated.tree_times import simulate_recurrence
from commsim.packets.run_packets import simulate_aggregation
from commsim.prediction.inputs import load_network
from switch_model.systems import SYSTEMS

NETWORKS = (
    "star:n_hosts=8,bandwidth=100Gbps,latency=1us",
    "leaf_spine:n_leaves=3,n_spines=2,hosts_per_leaf=3,bandwidth=90Gbps,latency=700ns",
    "fat_tree:k=4,bandwidth=10Gbps,latency=300ns",
)


@pytest.mark.sample(1, each="name")
@pytest.mark.slow
@pytest.mark.parametrize("where", NETWORKS)
@pytest.mark.parametrize("name", ["switchml_udp", "switchml_rdma", "sharp", "nvls", "flare", "iswitch"])
@settings(max_examples=settings().max_examples // 3)
@given(data=st.data())
def test_times_equal_the_event_engines_to_the_picosecond(where: str, name: str, data: st.DataObject) -> None:
    network = load_network(where)
    draw = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    network = dataclasses.replace(
        network,
        bandwidth=network.bandwidth * draw.uniform(0.3, 1.7, network.n_links),
        latency=network.latency * draw.uniform(0.0, 2.0, network.n_links),
        overhead=np.where(draw.random(network.n_nodes) < 0.5, 1e-7, 0.0),
    )
    n = data.draw(st.integers(1, len(network.endpoints)))
    workers = draw.permutation(network.endpoints)[:n].tolist()
    sizes = data.draw(st.lists(st.integers(1, 40_000), min_size=1, max_size=3))
    pool = data.draw(st.sampled_from((4, 16, 64)))
    starts = tuple(draw.uniform(0, data.draw(st.sampled_from((0.0, 1e-6, 1e-4))), n).tolist())
    system = SYSTEMS[name].build(pool_size=pool)
    floats = data.draw(st.booleans()) and system.quantizer == "block_exponent"
    job = aggregation_job(system, network, workers, sizes, starts=starts, floats=floats)
    events = simulate_aggregation(network, [job], values=False).results[0]
    recurrence = simulate_recurrence(network, job)
    assert recurrence.time == events.time
    assert recurrence.time_from_last_start == events.time_from_last_start
    assert (recurrence.link_bytes == events.link_bytes).all()
    for counter in ("packet_hops", "events", "elements_per_s"):
        assert recurrence.counters[counter] == events.counters[counter]


@pytest.mark.parametrize(
    ("system", "loss", "reason"),
    [("atp", 0.0, "shares its slots"), ("switchml_udp", 0.1, "lose packets"), ("panama", 0.0, "adapts its window")],
)
def test_what_is_no_recurrence_is_refused_with_the_reason(system: str, loss: float, reason: str) -> None:
    network = with_loss(load_network(NETWORKS[1]), loss, 0.0)
    job = aggregation_job(SYSTEMS[system].build(), network, network.endpoints[:4].tolist(), 1000)
    with pytest.raises(InputError, match=reason):
        simulate_recurrence(network, job)
