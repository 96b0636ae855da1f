import dataclasses
import itertools

import numpy as np
import pytest
from numeric_run import run_reference
from one_path import Window

from collectives import COLLECTIVES
from commsim.core.cost import Framing
from commsim.core.errors import InputError
from commsim.core.placement import Placement
from commsim.core.schedule import REDUCE
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_plan import plan_flows
from commsim.packets.links.queues import Fabric
from commsim.packets.run_packets import simulate_packets
from commsim.packets.transports.spraying import BALANCINGS, Spraying
from commsim.packets.transports.transports import TRANSPORTS
from commsim.traffic.host_messages import run_messages
from commsim.traffic.patterns import HostMessages
from topologies.leaf_spine import leaf_spine
from topologies.star import star

RATE, MTU = 50e9, 4160
NETWORK = leaf_spine(4, 4, 4, bandwidth=RATE, latency=500e-9)
ONE_PATH = ("ecmp", "flowlet", "path")
PAIRS = [pair for pair in itertools.product(TRANSPORTS, BALANCINGS) if pair[0] != "hpcc" or pair[1] in ONE_PATH]


def planned(name, n=16, network=NETWORK, **more):
    schedule = COLLECTIVES[name].build(n)
    return plan_flows(network, [FlowJob(schedule, Placement(network.hosts[:n]), **more)])


def played(schedule, trace, inputs):
    """Output of every rank, when transfers read what is there as they start and write it as they are complete."""
    transfers = schedule.expand()
    sources, targets = schedule.src_address(transfers), schedule.dst_address(transfers)
    memory = np.zeros((schedule.n_participants, schedule.n_addresses), np.int64)
    memory[: schedule.n_ranks, : schedule.n_chunks] = inputs
    read = {}
    events = [(when, k, i) for k, times in enumerate((trace.done, trace.start)) for i, when in enumerate(times)]
    # of one time, what is complete comes first; but what crosses no link starts and is complete at once
    for _, starts, i in sorted(events, key=lambda e: (e[0], e[1] if trace.done[e[2]] > trace.start[e[2]] else 2, e[2])):
        t = transfers[i]
        if starts or i not in read:
            read[i] = memory[t["src"], sources[i] : sources[i] + t["count"]].copy()
        if not starts or trace.done[i] == trace.start[i]:
            target = memory[t["dst"], targets[i] : targets[i] + t["count"]]
            target[:] = target + read[i] if t["op"] == REDUCE else read[i]
    first = int(schedule.buffer_offsets[1])
    return memory[: schedule.n_ranks, first : first + schedule.n_chunks]


def test_sends_of_one_time_go_in_the_order_of_the_schedule_s_steps():
    """All ranks send to all at once, each first to the next one: no queue grows beyond a few packets."""
    network = star(16, RATE)
    run = simulate_packets(planned("direct_all_to_all", network=network), 2**20, Spraying("nscc"))[0]
    assert run.counters["trimmed"] == run.counters["retransmissions"] == 0
    assert run.counters["peak_queue_bytes"] <= 4 * MTU


@pytest.mark.parametrize(("hosts_per_leaf", "n_spines"), [(8, 8), (12, 4)])
def test_a_window_that_shrinks_below_what_is_acknowledged_at_a_time_waits_for_no_timeout(hosts_per_leaf, n_spines):
    """A receiver acknowledges every 16 KiB, and trimming has windows shrink to a packet: the sender asks then."""
    n = 4 * hosts_per_leaf * (n_spines // 4)
    network = leaf_spine(n // hosts_per_leaf, n_spines, hosts_per_leaf, bandwidth=RATE, latency=500e-9)
    src, dst = np.divmod(np.arange(n * n, dtype=np.int32), np.int32(n))
    src, dst = src[src != dst], dst[src != dst]
    messages = HostMessages(src, dst, np.full(len(src), 4 * 4096), np.zeros(len(src)))  # first all to one host
    counters = run_messages(network, messages, Spraying("nscc")).results[0].counters
    assert counters["trimmed"] > 50
    assert counters["timeouts"] == 0
    assert counters["retransmissions"] == counters["trimmed"]


@pytest.mark.parametrize("transport", ["nscc", "rccc"])
def test_a_packet_of_a_flow_that_takes_turns_with_many_is_not_sent_again_while_its_answer_is_not_due(transport):
    """Four packets, which one answer is for, take 63 flows of a host longer than the timer: senders ask for answers."""
    plan = planned("direct_all_to_all", 64, leaf_spine(8, 8, 8, bandwidth=12.5e9, latency=500e-9))
    run = simulate_packets(plan, 64 * 16 * 4096, Spraying(transport))[0]
    n_packets, resent = 64 * 63 * 16, run.counters["retransmissions"]  # what a rank keeps is in no packet
    assert run.counters["packets"] == n_packets
    assert run.bytes_on_wire == (n_packets + resent) * MTU
    assert resent > 0
    assert run.counters["duplicates"] <= 5e-4 * n_packets
    assert run.counters["timeouts"] <= 1e-3 * n_packets


@pytest.mark.parametrize("transport", ["rccc", "eqds", "ndp"])
def test_a_message_that_begins_as_the_first_answer_comes_asks_for_credit(transport):
    """What may go before the first answer is over by the message's turn, and no packet before it asked for more."""
    simulate_packets(planned("double_tree_all_reduce"), 3e5 + 1, Spraying(transport=transport, balancing="path"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["ring_all_reduce", "direct_all_to_all", pytest.param("double_tree_all_reduce", marks=pytest.mark.deep)]
)
def test_every_transport_and_balancing_plays_a_schedule_with_its_bytes_once(name):
    plan = planned(name)
    schedule = plan.jobs[0].schedule
    inputs = np.random.default_rng(1).integers(1, 1000, (16, schedule.n_chunks))
    promised = run_reference(schedule, inputs)
    crosses = (np.diff(plan.routes.first) > 0)[plan.connection_of]
    for transport, balancing in PAIRS:
        # sizes of no whole packets; delivery once and the order of all transfers are checked by the engine
        run = simulate_packets(plan, 1_000_003, Spraying(transport, balancing, 16), trace=True)[0]
        payload = np.ceil(1_000_003 / schedule.n_chunks * plan.count * (1 - 1e-12))
        assert run.counters["packets"] == np.ceil(payload / 4096)[crosses].sum()
        wire = (payload + 64 * np.ceil(payload / 4096))[crosses].sum()
        np.testing.assert_array_equal(played(schedule, run.trace, inputs), promised, f"{transport} {balancing}")
        if run.counters["trimmed"] == run.counters["drops_full"] == 0:
            from_hosts = run.link_bytes[np.isin(NETWORK.src, NETWORK.hosts)].sum()
            to_hosts = run.link_bytes[np.isin(NETWORK.dst, NETWORK.hosts)].sum()
            assert wire <= to_hosts <= from_hosts  # a few answers are still under way


def test_a_window_without_queues_takes_what_it_takes_over_one_path():
    network = dataclasses.replace(
        NETWORK, overhead=np.full(len(NETWORK.nodes), 1e-6), gamma=np.where(NETWORK.kind == 0, 1e-11, 0.0)
    )
    plan = planned("ring_all_reduce", network=network)
    spraying = Spraying("window", "ecmp", queue=1e9, window=1e9, ecn=(0, 0))
    here = simulate_packets(plan, 4e6, spraying)[0]
    there = simulate_packets(plan, 4e6, Window(1e9, ack_bytes=64).on(plan, Fabric(), Framing(4096, 64)))[0]
    # an answer goes first here, and takes its turn there
    assert here.time == pytest.approx(there.time, rel=2e-3)


def test_jobs_share_links_and_each_has_its_bytes():
    ring = COLLECTIVES["ring_all_reduce"].build(8)
    jobs = [FlowJob(ring, Placement(NETWORK.hosts[first::2])) for first in (0, 1)]
    both = simulate_packets(plan_flows(NETWORK, jobs), [1e6, 2e6], Spraying())
    alone = [
        simulate_packets(plan_flows(NETWORK, [job]), size, Spraying())[0]
        for job, size in zip(jobs, (1e6, 2e6), strict=True)
    ]
    for shared, single in zip(both, alone, strict=True):
        up = np.isin(NETWORK.src, NETWORK.hosts)
        assert shared.link_bytes[up].sum() == pytest.approx(single.link_bytes[up].sum(), rel=0.01)
        assert shared.time >= single.time * (1 - 1e-3)


def test_weights_pins_and_priorities_are_refused():
    plan = planned("ring_all_reduce")
    capped = dataclasses.replace(plan, jobs=(dataclasses.replace(plan.jobs[0], rate_cap=1e9),))
    with pytest.raises(InputError, match="rate_cap"):
        simulate_packets(capped, 1e6, Spraying())
