"""Links whose packets are told when they leave as they come: what events one by one give, in fewer events."""

import dataclasses

import numpy as np
import pytest

from collectives import COLLECTIVES
from commsim.core.network import SWITCH
from commsim.core.placement import place
from commsim.engine.flow_plan import Job, plan_flows
from commsim.engine.packet.messages import run_messages
from commsim.engine.packet.transport import Dcqcn, Dctcp, Fabric, Window
from topologies.leaf_spine import leaf_spine

RATE = 1.25e9
CASES = {
    "window": (Window(), Fabric()),
    "lossy dctcp": (Dctcp(), Fabric(loss=1e-2, ecn_min=8e3, ecn_max=8e3)),
    "shallow dctcp": (Dctcp(), Fabric(buffer=13e3, ecn_min=8e3, ecn_max=8e3)),
    "dcqcn": (Dcqcn(), Fabric(buffer=40e3, ecn_min=5e3, ecn_max=20e3, ecn_probability=0.5)),
}
PER_LINK = ["n_queued", "n_packets", "n_arrived", "n_bytes", "n_dropped", "n_marked", "peak", "queued"]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("collective", ["ring_all_reduce", "direct_all_to_all"])
def test_recording_packets_which_needs_an_event_for_each_that_leaves_changes_nothing(collective, case):
    transport, fabric = CASES[case]
    network = dataclasses.replace(leaf_spine(2, 2, 3, RATE), overhead=1e-6)
    plan = plan_flows(network, [Job(COLLECTIVES[collective].build(6), place(network, 6))])
    options = {"transport": transport, "fabric": fabric, "seed": 5}
    timed = run_messages(plan, 300e3, **options)
    recorded = run_messages(plan, 300e3, tapped=range(network.n_links), **options)
    assert timed.tables.links.link["timed"].all()
    assert not recorded.tables.links.link["timed"].any()
    for name in ("start", "sent", "done"):
        assert (timed.tables.flows.message[name] == recorded.tables.flows.message[name]).all()
    for name in PER_LINK:
        assert (timed.tables.links.link[name] == recorded.tables.links.link[name]).all(), name
    assert (timed.tables.links.route["n_bytes"] == recorded.tables.links.route["n_bytes"]).all()
    counters = [dict(run.results[0].counters) for run in (timed, recorded)]
    assert counters[0] == counters[1]
    if case != "window" and collective == "direct_all_to_all":  # the case is what its name says
        assert counters[0]["drops_loss"] + counters[0]["drops_full"] + counters[0]["marks"] > 0


def test_links_that_may_be_paused_and_buffers_that_are_shared_need_every_event():
    network = leaf_spine(2, 2, 2, RATE)
    plan = plan_flows(network, [Job(COLLECTIVES["ring_all_reduce"].build(4), place(network, 4))])
    paused = run_messages(plan, 1e5, fabric=Fabric(pause_at=1e5, resume_at=5e4))
    assert not paused.tables.links.link["timed"].any()
    shared = run_messages(plan, 1e5, transport=Dctcp(), fabric=Fabric(shared_buffer=1e6)).tables.links.link["timed"]
    assert (shared == (network.kind[network.src] != SWITCH)).all()
    assert np.any(shared)
