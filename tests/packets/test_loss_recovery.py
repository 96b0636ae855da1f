"""What is acknowledged and, after a loss over one path, sent again: what is missing, or all since then; by hand."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from one_path import Dcqcn, Dctcp, Window, play

from collectives import COLLECTIVES
from commsim import predict
from commsim.core.errors import InputError
from commsim.core.placement import place
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_plan import plan_flows
from commsim.networks import load_network
from commsim.packets.links.loss_kernel import LOSS_DRAW, uniform
from commsim.packets.links.queues import ACK_BYTES, Fabric
from commsim.packets.transports.spraying import Spraying, over_path
from topologies.star import star

RATE, HOP, PAYLOAD, HEADER = 50e9, 1e-6, 4096, 82
N, LOSS, LAST_LINK = 200, 0.002, 3  # packets of the message; only the link from the switch to the receiver loses some
TX = (PAYLOAD + HEADER) / RATE


def plan_of_one_message(loss=LOSS):
    network = star(2, RATE, HOP)
    network = dataclasses.replace(network, loss=np.where(np.arange(network.n_links) == LAST_LINK, loss, 0.0))
    return plan_flows(network, [FlowJob(COLLECTIVES["binomial_broadcast"].build(2), place(network, 2))])


def lost(seed, n):
    """Numbers of the packets that are lost of the first `n` that arrive over the link, from 0."""
    return [k for k in range(n) if uniform(seed, LOSS_DRAW, LAST_LINK, k + 1) < LOSS]


# Seeds with one loss among all that is sent, early enough for the answer to meet a sender that still sends.
SEEDS = list(itertools.islice((s for s in range(400) if len(gone := lost(s, 2 * N)) == 1 and gone[0] < N // 2), 4))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("transport", [Window, Dcqcn], ids=["window", "dcqcn"])
def test_go_back_n_costs_a_round_trip_and_all_that_was_sent_in_it(seed, transport):
    (k,) = lost(seed, 2 * N)
    window = {"window": 2.0 * N * PAYLOAD} if transport is Window else {}
    there, back = 2 * TX + 2 * HOP, 2 * ACK_BYTES / RATE + 2 * HOP
    told = (k + 1) * TX + there + back  # the packet behind the lost one comes, and its answer is at the sender
    resumes = math.ceil(told / TX)  # packets that it has begun by then
    run = play(plan_of_one_message(), N * PAYLOAD, transport=transport(recovery="go-back-n", **window), seed=seed)
    (result,) = run.results
    assert result.counters["drops_loss"] == 1
    assert result.counters["retransmissions"] == resumes - k
    assert result.counters["timeouts"] == 0
    assert result.time == pytest.approx((resumes + N - k - 1) * TX + there, rel=1e-5)


@pytest.mark.parametrize("seed", SEEDS)
def test_selective_repeat_costs_one_packet(seed):
    (result,) = play(plan_of_one_message(), N * PAYLOAD, transport=Window(window=2.0 * N * PAYLOAD), seed=seed).results
    assert result.counters["retransmissions"] == 1
    assert result.time == pytest.approx((N + 2) * TX + 2 * HOP, rel=1e-5)


@pytest.mark.parametrize("n", [1, 255, 256, 257, 1000])
def test_roce_acknowledges_every_256_packets_and_the_end_of_a_message(n):
    """Linux, drivers/infiniband/hw/mlx5/qp.c: MLX5_IB_ACK_REQ_FREQ = 8, a power of two."""
    run = play(plan_of_one_message(0.0), n * PAYLOAD, transport=Dcqcn())
    assert run.tables.fabric.state["n_acks"] == math.ceil(n / 256)
    every = play(plan_of_one_message(0.0), n * PAYLOAD, transport=Dcqcn(ack_every=1))
    assert every.tables.fabric.state["n_acks"] == n


def test_roce_tells_of_marks_by_notifications_and_acknowledges_no_more_for_them():
    network = star(3, RATE, HOP)
    plan = plan_flows(network, [FlowJob(COLLECTIVES["direct_gather"].build(3), place(network, 3))])
    run = play(plan, 3 * 1000 * PAYLOAD, transport=Dcqcn(), fabric=Fabric(ecn_min=5e3, ecn_max=20e3))
    assert run.results[0].counters["marks"] > 100
    assert run.tables.fabric.state["n_notified"] > 0
    assert run.tables.fabric.state["n_acks"] == 2 * math.ceil(1000 / 256)


def test_what_is_sent_again_and_lost_again_waits_for_the_timer():
    """The receiver answers a gap once; a packet that is lost twice is found by the sender's timer alone."""
    seed = next(
        s for s in range(32_000, 100_000)  # the first one after 0 is 32,306: 5 s of looking
        if len(gone := lost(s, 2 * N)) == 2 and gone[0] < N // 2 and gone[1] - gone[0] == _behind(gone[0])
    )  # fmt: skip
    rto = 50e-6
    how = Window(recovery="go-back-n", window=2.0 * N * PAYLOAD, rto=rto)
    (result,) = play(plan_of_one_message(), N * PAYLOAD, transport=how, seed=seed).results
    assert result.counters["drops_loss"] == 2
    assert result.counters["timeouts"] == 1
    k = lost(seed, 2 * N)[0]
    again = (k + _behind(k)) * TX  # the lost packet is sent for the second time
    assert result.time == pytest.approx(again + rto + (N - k + 1) * TX + 2 * HOP, rel=1e-4)


def _behind(k):
    """Packets that are sent from a lost one on, before it is sent again."""
    told = (k + 1) * TX + 2 * TX + 2 * HOP + 2 * ACK_BYTES / RATE + 2 * HOP
    return math.ceil(told / TX) - k


@pytest.mark.parametrize("transport", [Window, Dctcp, Dcqcn], ids=["window", "dctcp", "dcqcn"])
def test_whatever_is_lost_all_bytes_come_once_and_go_back_n_takes_longer(transport):
    network = star(4, RATE, HOP)
    plan = plan_flows(network, [FlowJob(COLLECTIVES["direct_all_to_all"].build(4), place(network, 4))])
    runs = [
        play(plan, 4e6, transport=transport(recovery=name, rto=100e-6), fabric=Fabric(loss=0.003), seed=3).results[0]
        for name in ("selective", "go-back-n")
    ]
    few, many = (run.counters["retransmissions"] for run in runs)
    assert runs[0].counters["drops_loss"] > 0
    assert many > 3 * few
    assert runs[1].time > runs[0].time


def test_what_overtakes_a_lost_packet_by_more_than_an_answer_tells_is_not_taken_for_it():
    """Over four spines packets overtake each other; an answer has one bit for each of 64."""
    network = load_network("leaf_spine:n_leaves=2,n_spines=4,hosts_per_leaf=2,latency=2us")
    times = []
    for loss in (0.0, 0.003):
        lossy = dataclasses.replace(network, loss=np.full(network.n_links, loss))
        how = {"engine": "packet", "transport": "nscc", "routing": "spray"}
        result = predict("direct_all_to_all", lossy, "8MiB", **how)
        times.append(result.time)
    assert result.counters["out_of_order"] > 1000
    assert 0 < result.counters["retransmissions"] <= result.counters["drops_loss"]
    assert times[0] < times[1] < 2 * times[0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: over_path(recovery="go-back"), "recovery is one of selective, go-back-n, got 'go-back'"),
        (lambda: over_path("nscc", recovery="go-back-n"), "go-back-n needs packets in order"),
        (lambda: Spraying("dcqcn", "adaptive", trims=False, recovery="go-back-n"), "go-back-n needs packets in order"),
        (lambda: Spraying("dcqcn", "path", 1, recovery="go-back-n"), "without trimming"),
    ],
)
def test_go_back_n_is_for_one_path_and_switches_that_drop(make, message):
    with pytest.raises(InputError, match=message):
        make()
