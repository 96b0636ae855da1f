"""Ordinary collectives packet by packet: closed forms, conservation, agreement with the flow engine, refusals."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from conserved import listed
from flow_cases import Case, cases
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from one_path import Dcqcn, Dctcp, OnePath, Window, play
from slow_packets import Simulation

from collectives import COLLECTIVES
from commsim.core.cost import Framing
from commsim.core.errors import InputError
from commsim.core.network import HOST, SWITCH, Network
from commsim.core.placement import Placement, place
from commsim.core.program import Program
from commsim.engine.flow import simulate_flows
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_plan import FlowPlan, plan_flows
from commsim.packets.event_rows import PS
from commsim.packets.links.queues import ROCE, Fabric, usual_queues
from commsim.packets.packet_rows import COMPLETE, SENT, STARTED
from commsim.packets.transports.spraying import over_path
from topologies.leaf_spine import leaf_spine
from topologies.star import star

RATE = 12.5e9
TRANSPORTS = [Window(), Dctcp(), Dcqcn()]


def planned(collective: str, network: Network, n_ranks: int, **options: Any) -> FlowPlan:
    return plan_flows(network, [FlowJob(COLLECTIVES[collective].build(n_ranks), place(network, n_ranks))], **options)


def chain(speeds: list[float], latency: float) -> Network:
    n = len(speeds) - 1
    names = ["a", *(f"s{i}" for i in range(n)), "b"]
    here, there = np.arange(n + 1), np.arange(1, n + 2)
    return Network("chain", names, [HOST, *[SWITCH] * n, HOST], np.concatenate((here, there)),
                   np.concatenate((there, here)), np.tile(speeds, 2), latency)  # fmt: skip


@pytest.mark.nojit
@given(
    speeds=st.lists(st.sampled_from([1e9, 2.5e9, 5e9, 12.5e9]), min_size=1, max_size=5),
    n_bytes=st.integers(0, 40_000),
    overhead=st.sampled_from([0.0, 3e-6]),
    recv_overhead=st.sampled_from([0.0, 2e-6]),
)
def test_a_message_on_a_chain_is_stored_and_forwarded_packet_by_packet(
    speeds: list[float], n_bytes: int, overhead: float, recv_overhead: float
) -> None:
    """Every packet leaves a link after it has come, and after the packet before it has left."""
    network = dataclasses.replace(chain(speeds, 1e-6), overhead=overhead, recv_overhead=recv_overhead)
    p = Program(2, 1)
    p.copy(0, src=0, dst=1)
    schedule = dataclasses.replace(p.build(), operation="barrier") if n_bytes == 0 else p.build()
    plan = plan_flows(network, [FlowJob(schedule, Placement([0, len(speeds)]))])
    run = play(plan, n_bytes, transport=Window(1e9))
    n_packets = max(1, -(-n_bytes // 4096))
    sizes = [4178] * (n_packets - 1) + [n_bytes - (n_packets - 1) * 4096 + 82]
    free = [0] * len(speeds)
    for k, size in enumerate(sizes):
        at = 0
        for hop, speed in enumerate(speeds):
            more = round(overhead * 1e12) if k == 0 and hop == 0 else 0
            more += round(recv_overhead * 1e12) if k == n_packets - 1 and hop == len(speeds) - 1 else 0
            free[hop] = max(at, free[hop]) + more + int(size * (1e12 / speed) + 0.5)
            at = free[hop] + 10**6
    assert int(run.tables.fabric.times[COMPLETE][0]) == at
    assert int(run.tables.fabric.times[SENT][0]) == free[0]
    if not recv_overhead and n_bytes and len(set(speeds)) == 1:
        serial = int(4178 * 1e12 / speeds[0] + 0.5)
        hops, last = len(speeds), int(sizes[-1] * (1e12 / speeds[0]) + 0.5)
        first = serial if n_packets > 1 else last
        # the first packet pays every hop, the others follow it at the line's rate; a short last one waits behind them
        wait = 0 if n_packets == 1 else (n_packets - 2) * serial + last
        assert at == round(overhead * 1e12) + hops * (first + 10**6) + wait


@given(
    transport=st.sampled_from(
        [Dctcp(), Dcqcn(), Dctcp(window=40960.0), Dcqcn(ack_every=4), Dcqcn(recovery="go-back-n")]
    ),
    loss=st.sampled_from([0.0, 1e-3, 0.03, 0.2]),
    buffer=st.sampled_from([float("inf"), 20_000.0]),
    burst=st.sampled_from([1.0, 4.0]),
    seed=st.integers(0, 10**9),
    collective=st.sampled_from(["ring_all_reduce", "direct_all_to_all", "binomial_broadcast"]),
)
def test_every_message_arrives_whatever_is_lost_and_no_packet_vanishes(
    transport: OnePath, loss: float, buffer: float, burst: float, seed: int, collective: str
) -> None:
    fabric = Fabric(buffer=buffer, loss=loss, loss_burst=burst, ecn_min=8e3, ecn_max=16e3)
    run = play(planned(collective, star(4, RATE, 1e-6), 4), 4e5, transport=transport, fabric=fabric, seed=seed)
    tables, state = run.tables, run.tables.fabric.state
    assert (tables.fabric.times[COMPLETE] >= tables.fabric.times[SENT]).all()
    assert (tables.fabric.times[SENT] >= tables.fabric.times[STARTED]).all()
    assert (tables.fabric.times[STARTED] >= 0).all()
    counters = run.results[0].counters
    assert tables.fabric.link["n_dropped"].sum() == counters["drops_loss"] + counters["drops_full"]
    # every packet is in one place: free, in a queue, being sent, or on a link
    assert len(tables.fabric.packet) - state["n_free"] == len(listed(tables.fabric))
    # data that hosts made: all packets once, and what was repeated
    flow = tables.fabric.flow
    made = flow["n_packets"][~flow["local"]].sum()
    assert state["n_sent"] == made + counters["retransmissions"]
    if loss == 0 and not np.isfinite(buffer):
        assert counters["retransmissions"] == 0


@pytest.mark.parametrize("transport", TRANSPORTS, ids=lambda t: t.name)
def test_links_carry_the_data_and_their_acknowledgements(transport: OnePath) -> None:
    network, size = star(4, RATE, 1e-6), 4 * 40960.0
    run = play(planned("ring_all_reduce", network, 4), size, transport=transport)
    flows = simulate_flows(planned("ring_all_reduce", network, 4), size, framing=ROCE)[0]
    # of the 10 packets of each of 6 hops, of RoCE of the last one of them; the last may be under way
    acks, missing = (6, 1) if transport.name == "dcqcn" else (6 * 10, 8)
    more = (run.results[0].link_bytes - flows.link_bytes) / 86
    assert ((acks - missing <= more) & (more <= acks) & (more % 1 == 0)).all()
    assert run.results[0].bytes_on_wire == flows.bytes_on_wire


WINDOWED = [
    ("ring_all_reduce", "star", 8, 1),
    ("direct_all_to_all", "star", 8, 1),
    ("halving_doubling_all_reduce", "star", 8, 1),
    ("ring_all_reduce", "leaf_spine", 8, 1),
    ("direct_all_to_all", "leaf_spine", 8, 1),
    ("halving_doubling_all_reduce", "leaf_spine", 8, 1),
]


@pytest.mark.parametrize(("collective", "where", "n", "every"), WINDOWED)
def test_with_an_ideal_window_the_two_engines_agree_within_3_percent(
    collective: str, where: str, n: int, every: int
) -> None:
    """Messages of 100 bandwidth-delay products, headers counted in both; acknowledgements are only here."""
    network = star(n, RATE, 1e-6) if where == "star" else leaf_spine(2, 1, n // 2, RATE, oversubscription=2.0)
    plan = planned(collective, network, n)
    bdp = 2 * 4 * 1e-6 * RATE
    shares = COLLECTIVES[collective].build(n)
    smallest = shares.expand()["count"].min() / shares.n_chunks
    size = 100 * bdp / smallest
    ours = play(plan, size, transport=Window(ack_every=every)).results[0]
    theirs = simulate_flows(plan, size, framing=ROCE)[0]
    assert ours.time == pytest.approx(theirs.time, rel=0.03)
    assert ours.time > theirs.time


@pytest.mark.parametrize("transport", TRANSPORTS, ids=lambda t: t.name)
def test_the_same_inputs_give_the_same_bits(transport: OnePath) -> None:
    fabric = None if transport.name == "window" else dataclasses.replace(usual_queues(transport.name, RATE), loss=0.01)
    runs = [
        play(planned("direct_all_to_all", star(5, RATE, 1e-6), 5), 1e6, transport=transport, fabric=fabric,
                     seed=3, trace=True)
        for _ in range(2)
    ]  # fmt: skip
    assert runs[0].results == runs[1].results


@settings(max_examples=settings().max_examples * 2 // 3)
@given(order=st.permutations(range(6)), transport=st.sampled_from(TRANSPORTS))
def test_flows_that_start_together_do_not_depend_on_the_order_in_which_they_were_written(
    order: list[int], transport: OnePath
) -> None:
    pairs = [(0, 1), (0, 2), (1, 2), (2, 0), (3, 2), (3, 1)]

    def times(order: list[int]) -> list[int]:
        p = Program(4, 6)
        src, dst = np.array([pairs[k] for k in order]).T
        p.copy(order, src=src, dst=dst, channel=order)
        p.copy(order, src=dst, dst=(dst + 1) % 4, channel=order)
        network = star(4, RATE, 1e-6)
        run = play(plan_flows(network, [FlowJob(p.build(), place(network, 4))]), 6e5, transport=transport)
        done = run.tables.fabric.times[COMPLETE]
        return [int(done[order.index(k)]) for k in range(6)]

    assert times(list(order)) == times(list(range(6)))


@pytest.mark.nojit
def test_what_stays_on_a_node_takes_no_time_and_late_ranks_are_waited_for() -> None:
    network = star(2, RATE, 1e-6)
    p = Program(2, 1, n_helpers=1)
    p.copy(0, src=0, dst=2)
    p.copy(0, src=2, dst=1)
    plan = plan_flows(network, [FlowJob(p.build(), Placement([0, 1, 0]))])
    run = play(plan, 1000, starts=[0.0, 9e-6, 5e-6])
    assert run.tables.fabric.times[COMPLETE][0] == 5 * 10**6
    assert run.tables.fabric.times[STARTED].tolist() == [5 * 10**6, 9 * 10**6]
    assert run.results[0].time_from_last_start == pytest.approx(2e-6 + 2 * 1082 / RATE)


@pytest.mark.nojit
def test_one_rank_has_nothing_to_send() -> None:
    result = play(planned("ring_all_reduce", star(2, RATE, 1e-6), 1), 1e6).results[0]
    assert result.time == 0
    assert result.link_bytes.sum() == 0


def test_dctcp_keeps_the_queue_at_its_threshold_and_the_link_busy() -> None:
    network, step = star(5, RATE, 1e-6), 37 * 4178
    p = Program(5, 4)
    p.copy(np.arange(4), src=np.arange(1, 5), dst=0)
    plan = plan_flows(network, [FlowJob(p.build(), place(network, 5))])
    run = play(plan, 4 * 2e7, transport=Dctcp(), fabric=Fabric(ecn_min=step, ecn_max=step), sample_every=1e-6)
    assert run.results[0].time == pytest.approx(4 * 2e7 / 4096 * 4178 / RATE, rel=0.02)
    late = run.series["queued"][len(run.series) // 2 : -200]
    assert 0.4 * step < late.mean() < 1.5 * step
    assert run.results[0].counters["retransmissions"] == 0


def test_dcqcn_slows_down_for_marks_and_shares_fairly() -> None:
    network = star(5, RATE, 1e-6)
    p = Program(5, 4)
    p.copy(np.arange(4), src=np.arange(1, 5), dst=0)
    plan = plan_flows(network, [FlowJob(p.build(), place(network, 5))])
    run = play(plan, 4 * 2e8, transport=Dcqcn())
    alone = 4 * 2e8 / 4096 * 4178 / RATE
    assert alone < run.results[0].time < 1.4 * alone
    assert run.results[0].counters["drops_full"] == 0
    assert (run.tables.fabric.flow["by_time"] > 5).any()  # beyond fast recovery
    done = run.times.done
    assert done.max() < 1.25 * done.min()


@pytest.mark.parametrize("transport", [Dctcp(), Dcqcn()], ids=lambda t: t.name)
def test_a_loss_costs_a_round_trip_and_seldom_a_timeout(transport: OnePath) -> None:
    plan = planned("ring_all_reduce", star(2, RATE, 1e-6), 2)
    run = play(plan, 4e7, transport=transport, fabric=Fabric(loss=1e-3), seed=1)
    counters = run.results[0].counters
    assert counters["drops_loss"] > 20
    assert counters["timeouts"] <= 0.1 * counters["drops_loss"]
    per_loss = counters["retransmissions"] / counters["drops_loss"]
    assert per_loss < (1.5 if transport.name == "dctcp" else 40)  # one packet, or all since


def with_nodes(**changes: Any) -> FlowPlan:
    return planned("ring_all_reduce", dataclasses.replace(star(2, RATE, 1e-6), **changes), 2)


@pytest.mark.nojit
@pytest.mark.parametrize(
    ("plan", "options", "message"),
    [
        (with_nodes(gamma=1e3), {}, "must be added in less than"),
        (with_nodes(buffer=1e3), {"transport": Dctcp()}, "must hold a packet of 4178 bytes, got 1000"),
        (with_nodes(), {"framing": Framing(float("inf"), 10)}, "packets of whole bytes"),
        (with_nodes(), {"framing": Framing(100.5, 10)}, "packets of whole bytes"),
        (with_nodes(), {"starts": 1e7}, "a start must be below"),
        (with_nodes(latency=1e7), {}, "where a round trip takes up to 1e\\+06 s, and here it takes 4e\\+07 s"),
        (with_nodes(overhead=1e7), {}, "a sender's overhead must be below"),
        (with_nodes(recv_overhead=1e7), {}, "a receiver's overhead must be below"),
    ],
)
def test_what_this_engine_does_not_have_is_refused(plan: FlowPlan, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        play(plan, 1e6, **options)


@pytest.mark.nojit
def test_routing_over_several_paths_is_refused() -> None:
    network = leaf_spine(2, 2, 2, RATE)
    with pytest.raises(InputError, match="spray uses several; a preset such as uec"):
        play(planned("ring_all_reduce", network, 4, routing="spray"), 1e6)


@pytest.mark.nojit
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: over_path(ack_every=0), "answer 1 packet or more"),
        (lambda: over_path("dctcp", rto=0.0), "rto is between"),
        (lambda: over_path("dcqcn:rise_time=0s"), "rise_time is above 0"),
    ],
)
def test_a_transport_that_cannot_be_is_refused(make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


def test_messages_within_a_host_end_once_each_also_when_one_waits_for_the_one_before():
    """Two copies into one place of a helper on the same host: the second begins as the first completes."""
    p = Program(2, 1, n_helpers=1)
    p.copy(0, src=0, dst=2)
    p.copy(0, src=0, dst=2)
    p.copy(0, src=2, dst=1)
    placement = Placement([0, 1, 0])
    run = play(plan_flows(star(2, RATE, 1e-6), [FlowJob(p.build(), placement)]), 1e4, transport=Window())
    assert (run.times.done >= 0).all()
    assert run.results[0].time == run.times.done[-1] > run.times.done[0] == run.times.done[1] == 0


# The packet engine without loss against the slow oracle, on random networks with random jobs: equal picoseconds.
@pytest.mark.slow
@pytest.mark.nojit
@given(
    case=cases(plain=True, routings=("ecmp", "shortest")),
    payload=st.sampled_from([300, 1000]),
    header=st.sampled_from([0, 60]),
    window=st.integers(1, 6),
    ack_every=st.integers(1, 3),
    ack_size=st.sampled_from([0, 40, 86]),
)
def test_every_transfer_starts_and_ends_when_the_oracle_says(
    case: Case, payload: int, header: int, window: int, ack_every: int, ack_size: int
) -> None:
    # answers that take no time reach their hosts at the same time as others, in an order that no physics decides
    assume(ack_size > 0 or (case.network.latency > 0).all())
    network = dataclasses.replace(
        case.network, bandwidth=case.network.bandwidth * 1e9, latency=case.network.latency * 1e-6,
        overhead=case.network.overhead * 1e-6, recv_overhead=0.0, gamma=0.0,
    )  # fmt: skip
    sizes, starts = [size * 3000 for size in case.sizes], [start * 1e-6 for start in case.starts]
    plan = plan_flows(network, case.jobs, routing=case.routing, seed=case.seed)
    transport = Window(float(window * payload), ack_every, ack_bytes=ack_size)
    run = play(plan, sizes, transport=transport, framing=Framing(payload, header), starts=starts)
    oracle = Simulation(network, max(window, ack_every), ack_every, ack_size, payload, header)
    oracle.add(case.jobs, sizes, starts, routing=case.routing, seed=case.seed)
    ours = run.tables.fabric.times.T
    assert ours.tolist() == [list(times) for times in oracle.play()]
    assert run.times.done.tolist() == (ours[:, COMPLETE] / PS).tolist()
