"""The flow engine and the packet engine agree on in-network aggregation when both count header bytes."""

from __future__ import annotations

import pytest

from commsim.core.cost import Framing
from commsim.engine.packet.aggregation import simulate_aggregation
from commsim.run import prepare
from commsim.run.inputs import load_network
from commsim.run.packet_job import aggregation_job
from switch_model.systems import SYSTEMS


@pytest.mark.parametrize("name", ["switchml_udp", "switchml_rdma"])
@pytest.mark.parametrize(
    "where",
    [
        "star:n_hosts=8,bandwidth=100Gbps,latency=1us",
        "star:n_hosts=16,bandwidth=10Gbps,latency=2us",
        "leaf_spine:n_leaves=4,n_spines=2,hosts_per_leaf=4,bandwidth=100Gbps,latency=1us",
    ],
)
def test_switchml_takes_the_same_time_in_both_engines(name: str, where: str) -> None:
    system, network, size = SYSTEMS[name].build(), load_network(where), 32 << 20
    # far more than 100 bandwidth-delay products of at most 100 Gbit/s times 8 us
    assert size > 100 * 12.5e9 * 8e-6 or "10Gbps" in where
    job = aggregation_job(system, network, network.endpoints.tolist(), size // 4)
    packet = simulate_aggregation(network, [job]).results[0]
    header = system.message_bytes / system.packets_per_message - system.payload
    flow = prepare("switchml:n_chunks=1024", network).predict(size, framing=Framing(system.payload, header))
    assert packet.counters["exact"]
    assert flow.time == pytest.approx(packet.time, rel=0.03)
    assert flow.link_bytes.sum() == pytest.approx(packet.link_bytes.sum(), rel=0.001)
