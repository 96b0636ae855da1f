"""The example files of jobs that share a network, in both engines."""

from pathlib import Path

import pytest

from commsim.jobs.composition import read_composition
from commsim.jobs.several_jobs import prepare_jobs
from commsim.packets.links.queues import usual_queues
from commsim.packets.transports.spraying import over_path
from commsim.prediction.inputs import load_network

FOLDER = Path(__file__).parents[2] / "examples" / "jobs"
TWO_TO_ONE = "leaf_spine:n_leaves=2,n_spines=4,hosts_per_leaf=8,bandwidth=10Gbps"
HOST = 1.25e9  # bytes/s
DCTCP = over_path("dctcp", fabric=usual_queues("dctcp", HOST))


def played(name, network=TWO_TO_ONE, **options):
    found = prepare_jobs(read_composition(FOLDER / f"{name}.toml"), load_network(network), seed=1)
    results, _, _ = found.predict(**options)
    return found, results


def test_switchml_beside_a_ring_and_background_in_packets_and_flows():
    packets = played("switchml_beside_ring", engine="packet", transport=DCTCP)[1]
    flows = played("switchml_beside_ring", engine="flow")[1]
    assert packets[0].counters["exact"] == 1
    for switch, ring in ((packets[0], packets[1]), (flows[0], flows[1])):
        assert switch.time > 1048576 / HOST  # each worker's values leave its host once,
        assert ring.time > 14 / 8 * 1048576 / HOST  # and a ring's nearly twice
    # a fixed window of 512 packets keeps its part of a queue, which equal shares of flows do not know
    assert packets[0].time < flows[0].time


def test_the_second_switchml_job_waits_for_the_first():
    network = "leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=8,bandwidth=10Gbps"
    first, second = played("two_switchml_priorities", network)[1]
    alone = first.time
    assert second.time == pytest.approx(2 * alone, rel=0.01)  # one spine's link carries both


def test_atp_is_slowed_by_dctcp_flows_and_still_exact():
    found, results = played("atp_beside_dctcp", engine="packet", transport=DCTCP)
    assert results[0].counters["exact"] == 1
    assert results[0].time > 1048576 / HOST
    assert len(found.entries) == 1
