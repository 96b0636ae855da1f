"""Packets of a flow: recording them changes nothing, and every copy ends where the counters of the run say."""

from collections import Counter

import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.packets.flow_capture import FlowCapture
from commsim.packets.run_packets import run_packets
from commsim.packets.transports.spraying import Spraying, usual_path
from commsim.prediction.read import scenario_of
from commsim.prediction.solve import plan_of

NARROW = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4,uplink_bandwidth=50Gbps"
SIZE = 1 << 20


class Everything(FlowCapture):
    """Records all flows, as counters of a run are of all."""

    def flows(self, plan):
        return np.flatnonzero(np.diff(plan.routes.first)).tolist()


def plan_on(network):
    return plan_of(scenario_of("direct_all_to_all", network, overhead="0us")).paths.plan


def counted(events, packet):
    return Counter(one.event for one in events if one.packet == packet)


@pytest.mark.parametrize(
    "how",
    [None, Spraying("nscc"), Spraying("nscc", balancing="path"), Spraying("rccc"), Spraying("swift", trims=False)],
    ids=lambda how: "window" if how is None else f"{how.transport} {how.balancing}",
)
def test_a_run_is_the_same_to_the_last_bit_and_counters_are_those_of_its_packets(how):
    """Taps of links have events of their own, by which marks were drawn in another order."""
    plan, capture = plan_on(NARROW), Everything(0, 1)
    plain, taken = (run_packets(plan, SIZE, how, capture=one) for one in (None, capture))
    assert (taken.times.done == plain.times.done).all()
    assert taken.counters == plain.counters
    events, counters = capture.events(), taken.counters
    assert [one.time_s for one in events] == sorted(one.time_s for one in events)
    data = counted(events, "data")
    assert data["sent"] + data["sent again"] == counters["n_sent"]
    assert data["sent again"] == counters["n_resent"]
    trimmed, dropped = (sum(one.event == word for one in events) for word in ("trimmed", "dropped"))
    assert (trimmed, dropped) == (counters["n_trimmed"], counters["n_dropped"])
    assert (data["marked"] > 0) == (counters["n_marked"] > 0)
    assert data["delivered"] == data["sent"] + counters["n_duplicates"]


def test_packets_that_links_lose_are_sent_again():
    network = "star:n_hosts=4"
    plan, capture = plan_on(network), Everything(0, 1)
    fabric = usual_path("window", plan.network, loss=0.01)
    run = run_packets(plan, 4 * SIZE, fabric, capture=capture, seed=3)
    events = capture.events()
    assert sum(one.event == "lost" for one in events) == run.counters["n_dropped"] > 0
    lost = {(one.seq, one.link) for one in events if one.event == "lost" and one.packet == "data"}
    assert lost
    assert counted(events, "data")["sent again"] == run.counters["n_resent"] > 0


def test_one_flow_has_each_packet_once_in_order_and_the_times_of_its_message(tmp_path):
    plan, capture = plan_on("star:n_hosts=4,bandwidth=100Gbps,latency=1us"), FlowCapture(0, 2)
    run = run_packets(plan, SIZE, capture=capture)
    (flow,) = capture.flows(plan)
    events = capture.events()
    assert {one.link for one in events if one.event == "sent" and one.packet == "data"} == {"h0:switch0"}
    sent = [one.seq for one in events if (one.packet, one.event) == ("data", "sent")]
    assert sent == list(range(run.tables.fabric.flow["n_packets"][flow]))
    last = max(one.time_s for one in events if (one.packet, one.event) == ("data", "delivered"))
    assert last == pytest.approx(run.times.done[plan.connection_of == flow].max(), rel=1e-12)
    assert capture.write(tmp_path / "x.csv") == len(events)
    lines = (tmp_path / "x.csv").read_text().splitlines()
    assert lines[0] == "time_s,seq,packet,event,link,size_B"
    assert len(lines) == 1 + len(events)


def test_ranks_that_send_each_other_nothing_are_refused():
    plan = plan_of(scenario_of("ring_all_reduce", "star:n_hosts=4", overhead="0us")).paths.plan
    with pytest.raises(InputError, match="rank 0 sends nothing to 2; it sends to 1"):
        run_packets(plan, SIZE, capture=FlowCapture(0, 2))
    with pytest.raises(InputError, match="rank 9 sends nothing to 2; it sends to nobody"):
        FlowCapture(9, 2).flows(plan)
    with pytest.raises(InputError, match="what rank 0 sends to 0 crosses no link"):
        FlowCapture(0, 0).flows(plan_on("star:n_hosts=4"))
