"""Cables that go down while packets are sprayed: all arrives once, switches and senders find other ways."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectives.dense.ring import ring_all_reduce
from commsim.core.errors import InputError
from commsim.core.names.nodes_and_links import find_link
from commsim.core.placement import Placement
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_plan import plan_flows
from commsim.packets.run_packets import run_packets
from commsim.packets.transports.spraying import Spraying
from commsim.routing.flaps import read_flaps
from commsim.traffic.host_messages import run_messages
from commsim.traffic.patterns import incast, permutation
from topologies.leaf_spine import leaf_spine

NETWORK = leaf_spine(3, 3, 3, bandwidth=12.5e9, latency=1e-6)
SENT = permutation(9, 1_000_000, seed=4)
PAYLOAD, HEADER = 4096, 64
ALL = 9 * (1_000_000 + -(-1_000_000 // PAYLOAD) * HEADER)


def run(flap="link:leaf0:spine0@20us+40us", detection=10e-6, transport="nscc", balancing="mixed", seed=1, sent=SENT):
    flaps = read_flaps([flap] if isinstance(flap, str) else flap, NETWORK, detection=detection)
    return run_messages(NETWORK, sent, Spraying(transport, balancing, 16, seed=seed), flaps)


@given(
    flaps=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 60), st.integers(1, 40)),
                   min_size=1, max_size=3, unique_by=lambda f: f[:2]),
    detection=st.sampled_from([0.0, 5e-6, 1e-3]),
    transport=st.sampled_from(["nscc", "rccc", "eqds", "ndp", "dctcp", "swift", "window"]),
    balancing=st.sampled_from(["ecmp", "oblivious", "bitmap", "reps", "mixed", "adaptive", "flowlet"]),
    seed=st.integers(0, 1000),
)  # fmt: skip
def test_every_packet_arrives_once_whatever_flaps(flaps, detection, transport, balancing, seed):
    texts = [f"link:leaf{a}:spine{b}@{at}us+{length}us" for a, b, at, length in flaps]
    found = run(texts, detection, transport, balancing, seed)
    assert found.tables.fabric.flow["received"].sum() == ALL
    assert (found.finished >= found.received).all()
    again = run(texts, detection, transport, balancing, seed)
    assert np.array_equal(found.finished, again.finished)
    assert found.counters == again.counters


@pytest.mark.parametrize("transport", ["nscc", "rccc"])
def test_nothing_is_sent_over_a_cable_that_switches_know_to_be_down(transport):
    whole = run("link:leaf0:spine0@0s+1us", transport=transport)
    end = whole.finished.max()
    found = run(f"link:leaf0:spine0@0s+{end * 0.9:.9f}s", detection=0.0, transport=transport)
    cable = [find_link(NETWORK, name) for name in ("leaf0:spine0", "spine0:leaf0")]
    # it comes up for the last tenth
    assert (found.results[0].link_bytes[cable] < 0.3 * whole.results[0].link_bytes[cable]).all()
    assert found.counters["n_dropped"] == 0


def test_a_cable_may_stay_down_longer_than_the_run():
    found = run("link:leaf0:spine0@20us+9s", detection=0.0)
    assert found.tables.fabric.flow["received"].sum() == ALL
    assert found.finished.max() < 1


def test_the_longer_switches_do_not_know_the_more_is_lost():
    lost = [run(detection=d, balancing="oblivious").counters["n_dropped"] for d in (0.0, 5e-6, 20e-6, 1e-3)]
    assert lost == sorted(lost)
    assert lost[-1] > 3 * lost[1] > 0


@pytest.mark.parametrize("transport", ["rccc", "ndp", "dctcp", "window"])
def test_senders_that_learn_leave_a_dead_path_that_no_switch_knows(transport):
    sent, flap = permutation(9, 4_000_000, seed=4), "link:leaf0:spine0@20us+200us"
    blind, learns = (
        run(flap, 1.0, transport, balancing, sent=sent).counters["n_timeouts"] for balancing in ("oblivious", "bitmap")
    )
    assert learns < 0.6 * blind


def test_what_was_queued_and_under_way_is_lost_with_the_cable():
    incoming = incast(9, 500_000, senders=6)
    # the receiver is on leaf0, and packets come to it over all spines when the cable is cut
    found = run("link:spine0:leaf0@15us+1us", detection=1.0, sent=incoming)
    assert found.counters["n_dropped"] > 0
    assert found.tables.fabric.flow["received"].sum() == 6 * (500_000 + -(-500_000 // PAYLOAD) * HEADER)


@pytest.mark.parametrize(
    ("flap", "message"),
    [
        ("link:h0:leaf0@1us+1us", "is no link between switches, and a sprayed message keeps to the ports of its hosts"),
        ("link:leaf0:spine0@1s+1s", "begins after 1 s, and the run takes"),
        ("link:leaf0:nowhere@1us+1us", "nowhere"),
    ],
)
def test_flaps_that_cannot_be_are_refused(flap, message):
    with pytest.raises(InputError, match=message):
        run(flap)


def test_another_timeout_changes_when_what_was_lost_is_sent_again():
    late, soon = (
        run_messages(
            NETWORK, SENT, Spraying("nscc"), read_flaps(["link:leaf0:spine0@1us+40us"], NETWORK, detection=1.0, rto=rto)
        )
        for rto in (1e-3, 2e-5)
    )
    assert soon.finished.max() < 1e-3 < late.finished.max()


def test_jobs_of_which_some_keep_to_a_path_are_refused():
    jobs = [FlowJob(ring_all_reduce(3), Placement(NETWORK.hosts[k::3])) for k in (0, 1)]
    flaps = read_flaps(["link:leaf0:spine0@1us+1us"], NETWORK, detection=0.0)
    with pytest.raises(InputError, match="all jobs keep to a path, or all spray"):
        run_packets(plan_flows(NETWORK, jobs), 1e5, flaps=flaps, by_job=[Spraying(), None])


def test_messages_that_keep_to_a_path_go_round_what_flaps():
    found = run("link:leaf0:spine0@20us+50us", detection=1e-6, balancing="path")
    assert found.tables.fabric.flow["received"].sum() == ALL
