"""Queues, buffers, marks, pauses and losses of links."""

import numpy as np
import pytest
from one_path import Dcqcn, Dctcp, OnePath, Window, play

from commsim.core.errors import InputError
from commsim.core.network import HOST, SWITCH, Network
from commsim.core.placement import Placement
from commsim.core.program import Program
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_plan import FlowPlan, plan_flows
from commsim.packets import codes
from commsim.packets.finished_run import PacketRun
from commsim.packets.links.loss_kernel import LOSS_DRAW, uniform
from commsim.packets.links.queues import Fabric
from topologies.star import star

RATE = 12.5e9
PACKET = 4178


def plan(network: Network, pairs: list[tuple[str, str]]) -> FlowPlan:
    """One message per pair, all at once, as one job."""
    names = sorted({name for pair in pairs for name in pair})
    p = Program(len(names), len(pairs))
    for chunk, (a, b) in enumerate(pairs):
        p.copy(chunk, src=names.index(a), dst=names.index(b), channel=chunk)
    return plan_flows(network, [FlowJob(p.build(), Placement([network.nodes.index(name) for name in names]))])


def link_between(network: Network, a: str, b: str) -> int:
    ends = (network.nodes.index(a), network.nodes.index(b))
    return next(i for i in range(network.n_links) if (network.src[i], network.dst[i]) == ends)


def lossy(network: Network, link: int, loss: float, n_packets: int, burst: float = 1.0, seed: int = 3) -> PacketRun:
    """A flow from h0 to h1, whose data are lost on one link."""
    losses = np.zeros(network.n_links)
    losses[link] = loss
    fabric = Fabric(loss=losses, loss_burst=burst)
    flow = plan(network, [("h0", "h1")])
    return play(flow, n_packets * 4096.0, transport=Dctcp(), fabric=fabric, seed=seed, tapped=(0, 1, 2, 3))


def survived(run: PacketRun, before: int, after: int) -> np.ndarray:
    """Whether each data packet that left one link left the next one, too; links keep the order."""
    data = run.taps[run.taps["kind"] == codes.DATA]
    first, second = (data["number"][data["link"] == i] for i in (before, after))
    out, k = np.zeros(len(first), bool), 0
    for i, number in enumerate(first):
        if k < len(second) and second[k] == number:
            out[i] = True
            k += 1
    assert k == len(second)
    return out


@pytest.mark.parametrize("loss", [0.001, 0.03, 0.3])
def test_independent_losses_are_as_many_as_their_chance_says(loss: float) -> None:
    network = star(2, RATE, 1e-6)
    up, down = link_between(network, "h0", "switch0"), link_between(network, "switch0", "h1")
    run = lossy(network, up, loss, 20_000 if loss < 0.1 else 2_000)
    good = survived(run, up, down)
    n, lost = len(good), int((~good).sum())
    assert abs(lost - n * loss) < 5 * np.sqrt(n * loss * (1 - loss))
    assert run.tables.fabric.link["n_dropped"][up] == lost == run.results[0].counters["drops_loss"]
    # neighbours are independent: a loss follows a loss as often as it follows a packet that came
    after = (~good[1:])[~good[:-1]]
    assert abs(after.sum() - len(after) * loss) < 5 * np.sqrt(len(after) * loss * (1 - loss) + 1)


def test_bursts_last_as_long_as_they_should_and_lose_as_much() -> None:
    network = star(2, RATE, 1e-6)
    up, down = link_between(network, "h0", "switch0"), link_between(network, "switch0", "h1")
    loss, burst = 0.02, 5.0
    bad = ~survived(lossy(network, up, loss, 60_000, burst), up, down)
    starts = np.flatnonzero(bad[1:] & ~bad[:-1]) + 1
    lengths = np.array([np.argmin(np.append(bad[i:], False)) for i in starts])
    n = len(lengths)
    assert n > 100
    assert abs(lengths.mean() - burst) < 5 * np.sqrt(burst * (burst - 1) / n)  # geometric
    # bursts arrive as a renewal process: the variance of their number is below n, that of their bytes adds to it
    assert abs(bad.sum() - loss * len(bad)) < 5 * np.sqrt(n * (burst**2 + burst * (burst - 1)))


def test_whether_a_packet_is_lost_depends_on_the_seed_the_link_and_its_number_only() -> None:
    draws = np.array([uniform(1, LOSS_DRAW, link, n) for link in range(8) for n in range(500)]).reshape(8, 500)
    again = np.array([[uniform(1, LOSS_DRAW, link, n) for link in range(8)] for n in range(500)]).T
    assert (draws == again).all()
    assert len(np.unique(draws)) == draws.size
    assert abs(draws.mean() - 0.5) < 5 / np.sqrt(12 * draws.size)
    network = star(4, RATE, 1e-6)
    fabric = Fabric(loss=0.01)
    alone = play(plan(network, [("h0", "h1")]), 4e7, transport=Dctcp(), fabric=fabric, seed=5)
    beside = play(plan(network, [("h0", "h1"), ("h2", "h3")]), 8e7, transport=Dctcp(), fabric=fabric, seed=5)
    assert alone.times.done[0] == beside.times.done[0]
    other = play(plan(network, [("h0", "h1")]), 4e7, transport=Dctcp(), fabric=fabric, seed=6)
    assert alone.times.done[0] != other.times.done[0]


def incast(n: int) -> tuple[Network, FlowPlan]:
    network = star(n + 1, RATE, 1e-6)
    return network, plan(network, [(f"h{i}", "h0") for i in range(1, n + 1)])


@pytest.mark.parametrize("n_packets", [12, 20])
def test_a_full_queue_drops_its_tail(n_packets: int) -> None:
    """Two hosts at line rate fill a third one's queue by one packet per packet that leaves."""
    network, flows = incast(2)
    down = link_between(network, "switch0", "h0")
    transport = Window(window=n_packets * 4096.0)
    fabric = Fabric(buffer=10 * PACKET)
    run = play(flows, 2 * n_packets * 4096.0, transport=transport, fabric=fabric)
    assert run.tables.fabric.link["peak"][down] == min(10, n_packets) * PACKET
    first_flight = 2 * n_packets - (n_packets + 10)
    assert (run.results[0].counters["drops_full"] >= max(0, first_flight)) == (first_flight >= 0)
    assert (run.results[0].counters["drops_full"] > 0) == (n_packets > 10)


@pytest.mark.parametrize(("alpha", "n_queues"), [(1.0, 1), (1.0, 2), (0.5, 1), (2.0, 2)])
def test_queues_that_share_a_buffer_each_get_the_dynamic_threshold(alpha: float, n_queues: int) -> None:
    """Where n queues are full, each holds alpha B / (1 + n alpha): Choudhury and Hahne, 1998, equation 2."""
    network = star(3 * n_queues, RATE, 1e-6)
    pairs = [(f"h{n_queues + 2 * q + k}", f"h{q}") for k in range(2) for q in range(n_queues)]
    total = 120 * PACKET
    fabric = Fabric(shared_buffer=total, alpha=alpha)
    run = play(plan(network, pairs), 600 * 4096.0 * len(pairs), transport=Window(window=600 * 4096.0), fabric=fabric)
    share = alpha * total / (1 + n_queues * alpha)
    for q in range(n_queues):
        peak = run.tables.fabric.link["peak"][link_between(network, "switch0", f"h{q}")]
        assert abs(peak - share) <= (1 + alpha) * PACKET
    assert run.results[0].counters["drops_full"] > 0


def marks_of(fabric: Fabric) -> tuple[np.ndarray, np.ndarray]:
    """Bytes that each data packet left behind in the queue of an incast of two, and whether it was marked."""
    network, flows = incast(2)
    ups, down = [link_between(network, f"h{i}", "switch0") for i in (1, 2)], link_between(network, "switch0", "h0")
    transport = Window(window=400 * 4096.0)
    run = play(flows, 2 * 400 * 4096.0, transport=transport, fabric=fabric, tapped=(*ups, down))
    data = run.taps[run.taps["kind"] == codes.DATA]
    taps = data[data["link"] == down]
    came_at = {(row["stream"], row["number"]): row["time"] + 10**6 for row in data if row["link"] != down}
    came = np.array([came_at[row["stream"], row["number"]] for row in taps])
    # what comes at the time at which a packet leaves comes after it
    found = np.array([(came[i + 1 :] < taps["time"][i]).sum() for i in range(len(taps))]) * PACKET
    return found, taps["flags"] & codes.MARKED != 0


def test_a_step_marks_all_packets_that_leave_more_than_it_behind_and_no_others() -> None:
    found, marked = marks_of(Fabric(ecn_min=20 * PACKET, ecn_max=20 * PACKET))
    assert marked.any()
    assert not marked.all()
    np.testing.assert_array_equal(marked, found > 20 * PACKET)


def test_between_two_thresholds_marks_are_as_frequent_as_the_ramp_says() -> None:
    low, high, most = 20 * PACKET, 200 * PACKET, 0.6
    found, marked = marks_of(Fabric(ecn_min=low, ecn_max=high, ecn_probability=most))
    assert not marked[found <= low].any()
    assert marked[found > high].all()
    ramp = (found > low) & (found <= high)
    chance = most * (found[ramp] - low) / (high - low)
    assert abs(marked[ramp].sum() - chance.sum()) < 5 * np.sqrt((chance * (1 - chance)).sum())


@pytest.mark.parametrize("transport", [Window(window=1e6), Dcqcn()])
def test_pauses_keep_a_small_buffer_from_overflowing_and_everything_arrives(transport: OnePath) -> None:
    """What may come after a pause was asked for: two propagation delays, and a packet at either end."""
    _, flows = incast(6)
    headroom = 2 * 1e-6 * RATE + 3 * PACKET
    pause_at = 4 * PACKET
    fabric = Fabric(shared_buffer=6 * (pause_at + headroom), alpha=1e9, pause_at=pause_at, resume_at=2 * PACKET)
    run = play(flows, 6 * 2e6, transport=transport, fabric=fabric)
    assert run.results[0].counters["drops_full"] == 0
    assert run.results[0].counters["retransmissions"] == 0
    assert run.tables.fabric.link["peak"].max() <= 6 * (pause_at + headroom)
    assert run.results[0].time < 1.05 * 6 * 2e6 * (PACKET + 86 / 6) / 4096 / RATE + 1e-4
    small = Fabric(shared_buffer=6 * pause_at, alpha=1e9, pause_at=pause_at, resume_at=2 * PACKET)
    assert play(flows, 6 * 2e6, transport=transport, fabric=small).results[0].counters["drops_full"] > 0


def test_a_pause_blocks_flows_that_only_share_the_link_with_its_cause() -> None:
    """Two hosts send to c, a third one to d, all over one fast link: paused for c's sake, it gives a third to each."""
    names = ("a0", "a1", "b", "c", "d", "s0", "s1")
    cables = [("a0", "s0"), ("a1", "s0"), ("b", "s0"), ("c", "s1"), ("d", "s1"), ("s0", "s1")]
    ends = np.array([[names.index(x) for x in cable] for cable in cables])
    speed = np.array([RATE] * 5 + [4 * RATE])
    network = Network(
        "dumbbell", names, [HOST] * 5 + [SWITCH] * 2, np.concatenate((ends[:, 0], ends[:, 1])),
        np.concatenate((ends[:, 1], ends[:, 0])), np.tile(speed, 2), 1e-6,
    )  # fmt: skip
    flows = plan(network, [("a0", "c"), ("a1", "c"), ("b", "d")])
    victim = int(np.flatnonzero(flows.ends[flows.connection_of, 0] == 2)[0])
    size = 1e7
    alone = size / 4096 * PACKET / RATE
    free = play(flows, 3 * size, transport=Window(window=1e6))
    fabric = Fabric(pause_at=20 * PACKET, resume_at=10 * PACKET)
    blocked = play(flows, 3 * size, transport=Window(window=1e6), fabric=fabric)
    assert free.times.done[victim] == pytest.approx(alone, rel=0.02)
    assert blocked.times.done[victim] == pytest.approx(2 * alone, rel=0.05)
    assert blocked.results[0].time == pytest.approx(free.results[0].time, rel=0.05)


def test_an_hour_is_simulated_to_the_picosecond() -> None:
    network = star(2, 1e3, 1e-3)
    run = play(plan(network, [("h0", "h1")]), 3.6e6, transport=Window(window=1e9))
    n, rest = divmod(3_600_000, 4096)
    ps = 10**9 * (n * PACKET + rest + 82)  # the first link sends without a pause
    _, sent, done = run.tables.fabric.times[:, 0]
    assert sent == ps > 3600 * 10**12
    assert done == ps + 2 * 10**9 + 10**9 * PACKET  # behind a full packet at the switch


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ecn_min": 2.0, "ecn_max": 1.0}, "0 <= ecn_min <= ecn_max"),
        ({"pause_at": 1.0, "resume_at": 1.0}, "0 <= resume_at < pause_at"),
        ({"loss_burst": 0.5}, "at least 1 packet"),
        ({"buffer": 0.0}, "a buffer > 0"),
        ({"shared_buffer": 0.0}, "size and alpha > 0"),
    ],
)
def test_a_fabric_that_cannot_be_is_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Fabric(**options)
