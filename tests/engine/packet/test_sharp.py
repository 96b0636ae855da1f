"""SHARP against its published points, on a tree of 128 hosts; its unit and host times are fitted, see `sharp`."""

import pytest

from commsim.engine.packet.aggregation import simulate_aggregation
from commsim.run.inputs import load_network
from commsim.run.packet_job import aggregation_job
from switch_model.systems import SYSTEMS

TREE = "leaf_spine:n_leaves=8,n_spines=1,hosts_per_leaf=16,bandwidth=100Gbps,latency=0.1us"


def seconds(n_bytes: int, mode: str = "low_latency") -> float:
    network = load_network(TREE)
    job = aggregation_job(SYSTEMS["sharp"].build(mode=mode), network, network.endpoints.tolist(), n_bytes // 4)
    result = simulate_aggregation(network, [job]).results[0]
    assert result.counters["exact"]
    return result.time


@pytest.mark.parametrize(("n_bytes", "published"), [(8, 2.83e-6), (4096, 14.48e-6)])
def test_small_operations_meet_the_two_published_points(n_bytes: int, published: float) -> None:
    assert seconds(n_bytes) == pytest.approx(published, rel=0.05)


def test_segments_follow_each_other_at_the_pace_of_the_unit() -> None:
    pace = (14.48e-6 - 2.83e-6) / 15
    assert seconds(16 * 256) - seconds(8 * 256) == pytest.approx(8 * pace, rel=0.01)


def test_streams_reach_the_published_share_of_the_links() -> None:
    n_bytes = 1 << 24
    assert n_bytes / seconds(n_bytes, "streaming") == pytest.approx(0.95 * 12.5e9, rel=0.01)
