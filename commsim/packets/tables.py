"""All tables of a packet run: laid out, and enlarged when packets need more room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import FORWARDING, Network
from commsim.core.placement import joined
from commsim.packets import codes
from commsim.packets import event_rows as s
from commsim.packets import packet_rows as rows_of
from commsim.packets.aggregated.packet_plan import AggregationRows, aggregation_rows
from commsim.packets.aggregated.traffic_state import AggregationState
from commsim.packets.hosts.work import FlowWork, PacketLayout
from commsim.packets.links.equal_cost_links import EqualCostWays
from commsim.packets.links.link_tables import check_room, check_times, link_tables, with_packets
from commsim.packets.links.wheel_kernel import bucket_shift
from commsim.packets.packet_rows import RunState
from commsim.packets.transports.credit_kernel import INTERVAL
from commsim.packets.transports.own_controls import TOLD_ROW
from commsim.packets.transports.rules_of_run import RULES_ROW, Rules, rules_of
from commsim.packets.transports.spraying import MOST_ENTROPIES, Spraying
from commsim.routing.message_engines import crowded_engines

SAMPLES = 1024  # at first
TAP_SPARE = 1 << 14  # packets of tapped flows that one event may record: a link is served when somebody comes to it
MOST_NEEDED = 16  # packets that one event may make
MOST_EARLY = 4096  # packets that a receiver can hold before one that it lacks


class Tables(NamedTuple):
    """All state of a run; changed in place."""

    fabric: RunState
    jobs: AggregationState


def build(
    laid: PacketLayout,
    of_jobs: AggregationRows | None = None,
    *,
    tapped: Sequence[int] = (),
    flows: Sequence[int] = (),
    flaps: bool = False,
) -> Tables:
    """Lay out all tables of a run.

    Parameters
    ----------
    laid : PacketLayout
        What is sent, over which links, and how; seed, samples, losses, pauses, shared buffers and weights of classes
        are those of the first way in which messages are sent.
    of_jobs : AggregationRows, optional
        Tables of jobs that switches aggregate; by default there are none.
    tapped : sequence of int
        Links whose packets are recorded.
    flows : sequence of int
        Flows whose packets are recorded, on all links; nothing else changes.
    flaps : bool
        Whether links go down.

    Raises
    ------
    InputError
        If a number is out of its range.
    """
    network, ways, work, hows, spraying = laid.network, laid.ways, laid.work, laid.hows, laid.hows[0]
    of_jobs = of_jobs or aggregation_rows(laid)
    n_hosts, n_switches, n_flows = len(ways.hosts), len(ways.switches), len(work.flow)
    rules = [rules_of(network, ways, one, flaps=flaps) for one in hows]
    if n_flows:
        mtu = max(rule["mtu"] for rule in rules)
        check_times(network, float(work.message["end"][work.queue[work.flow["end"] - 1]].sum()) * mtu)
    generator = np.random.default_rng(spraying.seed)
    link, buffer = _links(network, ways, spraying, rules, of_jobs)
    taps = np.isin(ways.links, tapped)
    link["tapped"][: len(taps)] = taps
    link["evented"][: len(taps)] |= taps  # so that packets are recorded in the order of time
    flow = s.on_lines(work.flow)
    if len(flows):
        link["tapped"], flow["tapped"][list(flows)] = True, True
    engine_of, engine = _engines(laid)
    if len(engine_of):  # what uses one must be in the order of time
        link["evented"] |= (link["first_time"] > 0) | (link["last_time"] > 0)
    ring = _fill_flows(flow, work, hows, rules, generator)
    least_rate = min(rule["least_rate"] for rule in rules)
    host = _hosts(n_hosts, least_rate, generator)
    n_links, n_workers, n_jobs = len(link), len(of_jobs.jobs.worker), work.n_jobs + len(of_jobs.jobs.job)
    state = np.zeros(1, rows_of.STATE_ROW)[0]
    state["draws"], state["seed"] = generator.integers(1 << 62), spraying.seed % 2**63
    state["n_hosts"], state["n_edges"] = n_hosts, int(ways.edge.max(initial=0)) + 1
    state["n_unfinished"], state["first_free"], state["sent_head"] = n_flows + n_workers, -1, -1
    state["taps_flows"] = len(flows) > 0
    state["n_tapped"] = state["tap_spare"] = TAP_SPARE if len(flows) else 0
    state["most_needed"] = MOST_NEEDED + int(flow["turns"].max(initial=1))
    firsts = np.cumsum([3 * n_links, (codes.ADDED + 1) * n_flows, n_hosts, n_hosts])
    for name, first in zip(("first_timer", "first_pacer", "first_rate", "first_worker_timer"), firsts, strict=True):
        state[name] = first
    stream, route = _streams(laid, of_jobs)
    n_classes = 1 + max(int(flow["rank"].max(initial=0)), int(stream["priority"].max(initial=0)))
    state["n_classes"] = n_classes
    learns = any(one.balancing in ("bitmap", "reps", "mixed") for one in hows)
    flowlets = any(one.balancing == "flowlet" for one in hows)
    let = np.zeros(n_switches * rows_of.N_FLOWLETS if flowlets else 1, rows_of.FLOWLET_ROW)
    let["link"] = -1
    row = np.zeros(len(rules), RULES_ROW)
    for name in RULES_ROW.names or ():
        row[name] = [rule.get(name, 0) for rule in rules]  # what the transport does not have
    state["pauses"], state["shares"] = link["xoff"].any(), (link["shared"] >= 0).any()
    state["n_entropies"], state["least_rate"] = max(one.entropies for one in hows), least_rate
    every = round(s.PS * spraying.sample)
    state["sample_every"], state["sample_at"] = every, every or s.NEVER
    watched = np.arange(len(ways.links) if every else 0, dtype=np.int32)
    width = rows_of.N_COUNTED + 2 * len(watched)
    longest = float((link["latency"] + rules[0]["mtu"] * link["ps_per_byte"]).max(initial=1.0))
    events = s.event_queue(int(firsts[-1]) + n_workers + 1, bucket_shift(longest))
    state["n_notes"] = notes = int(max(rule["n_notes"] for rule in rules))
    noted = np.zeros(notes * n_flows, rows_of.NOTE_ROW)
    noted["link"] = -1
    weight = np.array(spraying.class_weights, np.float64)
    per_class = np.zeros((2, n_links * n_classes), np.int64)
    fabric = RunState(
        state, row, link, host, flow, np.zeros(0, rows_of.PACKET_ROW), ways.way, ways.ways,
        ways.edge, ways.edge_switch, generator.integers(1 << 63, size=n_switches, dtype=np.uint64), work.receiver,
        work.message, np.full((3, len(work.message)), -1, np.int64), work.queue, *work.successors, work.adding,
        np.zeros(work.n_nodes if work.adding.size else 0, np.int64),
        np.zeros(n_jobs * n_links if n_jobs > 1 else 0, np.int64),
        np.zeros(ring, np.uint8), np.zeros(ring, np.int32), np.zeros(ring if learns else 0, np.uint16),
        np.zeros(n_flows * int(state["n_entropies"]), np.uint8),
        np.zeros(n_flows * rows_of.N_RECYCLED, np.uint16), let, events,
        np.zeros(0, rows_of.NOTE_ROW), noted, watched, np.zeros(SAMPLES * width, np.int64),
        stream, route, buffer, per_class[0], per_class[1], weight / weight.min(initial=np.inf),
        np.zeros(2 * TAP_SPARE if len(flows) else 0, s.TAP_ROW), engine_of, engine, np.zeros(engine[-1], np.int64),
        _told(n_flows if row["function"].any() else 0),
    )  # fmt: skip
    fabric = with_more_packets(fabric)
    return Tables(fabric, with_packets(of_jobs.jobs, len(fabric.packet)))


def _links(
    network: Network, ways: EqualCostWays, spraying: Spraying, rules: Sequence[Rules], of_jobs: AggregationRows
) -> tuple[s.Rows, s.Rows]:
    """Fill the tables of links, and of the buffers that those of a switch share; aggregation units come last."""
    laid, buffer = link_tables(network, spraying.fabric)
    sizes = [of_jobs.jobs.job[name].max(initial=0) for name in ("bytes_first", "bytes_middle", "bytes_last")]
    check_room(network, spraying.fabric, laid, int(max(sizes)))  # what never fits would be repeated for ever
    n, n_hosts, unit = len(ways.links), len(ways.hosts), of_jobs.unit
    link: s.Rows = s.zeros_on_lines(n + len(unit), s.LINK_ROW)
    link[:n], link[n:] = laid[ways.links], unit
    link["to"][:n], link["to"][n:] = ways.to, n_hosts
    link["latency"][np.flatnonzero(ways.place[ways.links] != np.arange(n))] = 0  # of doubles: the port has it
    room = network.buffer[ways.links].copy()
    at_switch = np.isin(network.kind[network.src[ways.links]], FORWARDING)
    at_switch[: ways.n_ports] = False  # a NIC may be one
    room[at_switch] = np.minimum(room[at_switch], max(rule["queue"] for rule in rules))
    link["room"][:n] = np.minimum(room, s.ENDLESS)
    check_room(network, spraying.fabric, link[:n], int(max(rule["mtu"] for rule in rules)))
    link["costs"] = (link["packet_time"] > 0) | (link["first_time"] > 0) | (link["last_time"] > 0)
    link["evented"] = bool(link["xoff"].any() or (link["shared"] >= 0).any())
    link["evented"][:n_hosts] = True  # hosts choose when they can send
    to_switch = np.isin(network.kind[network.dst[ways.links]], FORWARDING)
    to_switch[n_hosts : n_hosts + ways.n_ports] = False
    link["marks"][:n] = np.where(at_switch, np.where(to_switch, codes.BETWEEN, codes.AT_HOST), codes.NO_MARKS)
    return link, buffer


def _streams(laid: PacketLayout, of_jobs: AggregationRows) -> tuple[s.Rows, s.Rows]:
    """Fill the tables of ways that packets keep to: of each flow there, of each flow back, then of jobs."""
    work = laid.work
    stream: s.Rows = np.zeros(0, s.STREAM_ROW)
    hops = np.zeros(0, np.int64)
    if work.routes:
        n, before = len(work.routes[0].first) - 1, 0
        stream = np.zeros((2, len(work.flow)), s.STREAM_ROW)  # tasks take no links
        for rows, way in zip(stream, work.routes, strict=True):
            rows["begin"][:n], rows["end"][:n] = way.first[:-1] + before, way.first[1:] + before
            before += way.first[-1]
        stream["owner"], stream["priority"] = np.arange(len(work.flow)), work.flow["rank"]
        stream, hops = stream.ravel(), np.concatenate([way.link for way in work.routes]).astype(np.int64)
    stream, hops = np.concatenate((stream, of_jobs.stream)), np.concatenate((hops, of_jobs.hops))
    route: s.Rows = np.zeros(len(hops), s.ROUTE_ROW)
    route["link"] = laid.rows(stream["end"] - stream["begin"], hops)
    route["last"][stream["end"][stream["end"] > stream["begin"]] - 1] = True
    return stream, s.on_lines(route)


def _engines(laid: PacketLayout) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Find the groups of message engines that flows use, where several links do; and the first engine of each."""
    sizes = [np.zeros(1, np.int64)]
    if laid.plan is None:
        return np.empty(0, np.int32), sizes[0]
    group = np.full((len(laid.plan.ends), 2), -1, np.int32)
    network, routes = laid.plan.network, laid.plan.routes
    nodes = joined([job.placement for job in laid.plan.jobs]).nodes[laid.plan.ends]
    for end in (0, 1):
        engines = crowded_engines(network, nodes, routes, end)
        if engines is not None:
            group[engines.connection, end] = sum(map(len, sizes)) - 1 + engines.number
            sizes.append(network.message_engines[engines.node].astype(np.int64))
    return group.ravel() if len(sizes) > 1 else np.empty(0, np.int32), np.cumsum(np.concatenate(sizes))


def with_more_packets(fabric: RunState) -> RunState:
    """Double the packets' table; the new rows are free."""
    old, state = fabric.packet, fabric.state
    new = s.zeros_on_lines(max(2 * len(old), 1024), rows_of.PACKET_ROW)
    new[: len(old)] = old
    new["next"][len(old) : -1] = np.arange(len(old) + 1, len(new))
    new["next"][-1] = state["first_free"]
    state["first_free"] = len(old)
    state["n_free"] += len(new) - len(old)
    note = np.zeros(len(new) * int(state["n_notes"]), rows_of.NOTE_ROW)
    note[: len(fabric.note)] = fabric.note
    return fabric._replace(packet=new, note=note)


def _fill_flows(
    flow: s.Rows, work: FlowWork, hows: Sequence[Spraying], rules: Sequence[Rules], generator: np.random.Generator
) -> int:
    """Fill what flows have from their rules and at the beginning; return the length of their rings in all."""
    count = work.message["end"][work.queue[flow["end"] - 1]].astype(np.int64)
    flow["n_packets"], flow["received_at"], flow["finished_at"] = count, -1, -1
    flow["blind"], flow["give_up"] = True, s.NEVER
    for name in ("rise_at", "cut_at", "next_cut_at", "last_cut_at"):
        flow[name] = s.NEVER
    for name in ("decayed_at", "notified_at", "latest", "next_pull", "next_idle"):
        flow[name] = -1
    for number, (how, rule) in enumerate(zip(hows, rules, strict=True)):
        _begin_flows(flow, np.flatnonzero(flow["rule"] == number), how, rule, generator)
    mtu = np.array([rule["mtu"] for rule in rules])[flow["rule"]]
    fits = np.minimum(flow["window"] // mtu + 1, count)
    early = np.maximum(np.where(flow["window"] < 1e12, fits, 1), MOST_EARLY)
    # a window that counts packets is never exceeded, whatever is lost
    counted = np.array([rule["counts_packets"] for rule in rules], np.bool_)[flow["rule"]]
    length = 1 << np.ceil(np.log2(np.where(counted, fits, np.minimum(count, early)))).astype(np.int64)
    flow["ring"], flow["ring_mask"] = np.cumsum(length) - length, length - 1
    return int(length.sum())


def _begin_flows(
    flow: s.Rows, which: NDArray[np.intp], how: Spraying, rules: Rules, generator: np.random.Generator
) -> None:
    """Fill what flows have from the rules that they are under."""
    one: s.Rows = flow[which]
    if not (how.on_path and rules["transport"] == codes.WINDOW and how.window is None):
        one["window"] = rules["window"]
    grows = how.settled[0].grows and not (how.on_path and how.window)
    one["most"] = 1e15 if grows else np.maximum(one["window"], rules["window"])
    one["credit"], one["base_rtt"] = rules["window"], rules["rtt"]
    # HPCC's first window is that of a round trip
    one["rate"], one["aim"] = rules.get("begin", 1.0) / rules["ps_per_byte"], rules["window"]
    one["marked"] = 1.0 if rules["transport"] == codes.DCQCN else 0.0
    one["flip"] = generator.integers(how.entropies, size=len(which))
    one["upper"] = generator.integers(MOST_ENTROPIES // how.entropies, size=len(which)) * how.entropies
    if how.balancing == "ecmp":
        one["upper"] += one["flip"]
    flow[which] = one


def _hosts(n_hosts: int, least_rate: float, generator: np.random.Generator) -> s.Rows:
    """Fill the hosts' table."""
    host = np.zeros(n_hosts, rows_of.HOST_ROW)
    for name in ("pull_head", "idle_head"):
        host[name] = -1
    host["pacer"] = host["rate_at"] = s.NEVER
    host["rate"] = 1.0
    if least_rate < 1.0:
        host["rate_at"] = (0.75 + 0.5 * generator.random(n_hosts)) * INTERVAL
    return host


def _told(n_flows: int) -> s.Rows:
    """Rows of what a user's function is told; no timer is set."""
    told = np.zeros(n_flows, TOLD_ROW)
    told["timer"], told["timers"] = -1, np.inf
    return told
