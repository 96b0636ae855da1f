"""What each message of a call costs: the rate of a channel, and the latency of a hop, so that all take the call's time.

The time of a call counts what steps take together; an engine that plays the schedule needs what one message takes by
itself. A message occupies its connection for its bytes over the channel's rate and arrives a hop later. The hops are
those of the primitives. The rate is the one with which the longest chain of messages takes the time of the call less
its launch: the wait of channels for each other at a full link is so part of what a message occupies. All messages
together never ask more of a healthy link than it has; where that leaves too little time, hops are shortened.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from collectives.nccl.call import BY_RANK, PROTOCOLS, NcclCall
from collectives.nccl.rules import ChannelPart, cut_call
from collectives.nccl.trees import busiest_share, tree_depth
from commsim.nccl.call_times import CHAINS, CallLinks
from commsim.nccl.in_switch import ExchangeTime, crossing, loop_of, paced

# Halvings of the interval in which a rate, or a share of the hops, is looked for.
HALVINGS = 60
# Part of a loop of NVLink SHARP that its messages show besides the loops themselves: parts of heads come back while
# others are still on their way to the switch.
SHOWN = 0.5
# From the rate of a channel, and the share of the hops that counts, to the time of the longest chain of messages.
Chain = Callable[[float, float], float]


class CallMessageCosts(NamedTuple):
    """Costs of one call's messages.

    Parameters
    ----------
    rate : float, bytes/s
        Rate of one channel on the wire.
    inside, between : float, s
        Latency of a hop in a machine, and from one to another.
    fixed : float, s
        Time of the call that is in no message: its launch, and what fills the pipeline of NVLink SHARP.
    """

    rate: float
    inside: float
    between: float
    fixed: float


def messages_of(ways: CallLinks, call: NcclCall, seconds: float, switch_rate: float) -> CallMessageCosts:
    """Return what the messages of a call with an algorithm cost.

    Parameters
    ----------
    ways : CallLinks
        Links and costs.
    call : NcclCall
        What is called.
    seconds : float
        Time of the call.
    switch_rate : float, bytes/s
        Rate of a GPU's NVLinks to their switch.
    """
    if call.algorithm in ("nvls", "nvls_tree"):
        return _in_switch(ways, call, switch_rate)
    parts, launch = cut_call(call), ways.primitives.launch
    rail = PROTOCOLS[call.protocol].wire / PROTOCOLS[call.protocol].payload
    hops = _hops(ways, call, parts, rail)
    if call.algorithm == "ring":
        chain, most = _ring(ways, call, parts, hops)
    elif call.algorithm == "collnet_direct":
        chain, most = _direct(ways, call, parts, hops)
    else:
        chain, most = _tree(ways, call, parts, hops)
    rate, share = _solve_rate(chain, seconds - launch, most)
    return CallMessageCosts(rate * rail, hops[0] * share, hops[1] * share, launch)


def _hops(ways: CallLinks, call: NcclCall, parts: Sequence[ChannelPart], rail: float) -> tuple[float, float]:
    """Return the latency of a hop in a machine and between machines, where channels of a NIC are posted in turn."""
    if ways.plugin is None:
        return ways.hop(call.protocol, call.algorithm), 0.0
    wire = _largest(parts[0]) * rail
    hop = ways.plugin.hop(call.protocol, wire, ways.nics_of(len(parts)))
    in_turn = (ways.sharing(len(parts)) - 1) * ways.plugin.post
    return ways.hop(call.protocol, call.algorithm), hop + in_turn


def _largest(part: ChannelPart) -> int:
    return part.chunk if part.n_loops > 1 else part.last_chunk


def _loops(part: ChannelPart) -> list[tuple[int, int, int]]:
    """Chunk, slices and number of the loops that are alike."""
    loops = [(part.chunk, part.slices, part.n_loops - 1), (part.last_chunk, part.last_slices, 1)]
    return [loop for loop in loops if loop[2]]


def _ring(
    ways: CallLinks, call: NcclCall, parts: Sequence[ChannelPart], hops: tuple[float, float]
) -> tuple[Chain, float]:
    """Return the chain of a ring, and the most that a channel moves: a rank's turn on the link and on the NIC."""
    turns = 2 if call.operation == "all_reduce" else 1
    n_steps, loops = turns * (call.n_ranks - 1), _loops(parts[0])
    crossing = 0 if ways.plugin is None else min(n_steps, turns * call.n_nodes)
    is_chain = call.operation in CHAINS

    latency = (n_steps - crossing) * hops[0] + crossing * hops[1]

    def chain(rate: float, share: float) -> float:
        total = 0.0
        for number, (chunk, slices, times) in enumerate(loops):
            seconds = chunk / slices / rate
            # A slice goes round with all latencies, and a rank sends all slices of all steps.
            whole = max(n_steps * seconds + share * latency, n_steps * slices * seconds) + (slices - 1) * seconds
            if is_chain:  # chunks follow each other down the chain
                total += (times - 1) * slices * seconds + (slices * seconds if number else whole)
            else:
                total += times * whole
        return total

    n = len(parts)
    most = min(ways.primitives.rate(call.protocol), *_link_rates(ways, call, n))
    return chain, most


def _link_rates(ways: CallLinks, call: NcclCall, n: int) -> tuple[float, float]:
    """Return what the links of a GPU, and the NICs of a machine, leave for each of n channels."""
    inside = float("inf") if call.n_nodes == call.n_ranks else ways.inside(call.protocol) / n
    return inside, ways.outside(call.protocol) / n


def _tree(
    ways: CallLinks, call: NcclCall, parts: Sequence[ChannelPart], hops: tuple[float, float]
) -> tuple[Chain, float]:
    """Return the chain of a tree, of PAT and of a CollNet chain, and the most that a channel moves."""
    part, per_node = parts[0], call.n_ranks // call.n_nodes
    chunk, n = _largest(part), len(parts)
    if call.algorithm == "pat":
        pieces, depth, times = call.n_ranks - 1, (0, math.ceil(math.log2(call.n_ranks))), 1
    else:
        levels = tree_depth(call.n_nodes) if call.algorithm == "tree" else 1
        pieces, times = 0, 2
        depth = per_node - 1, levels if ways.plugin is not None else 0
    loops = part.n_bytes / chunk if part.n_loops > 1 else 1.0
    inside, outside = _link_rates(ways, call, n)
    # A switch that adds is half way from one machine to another.
    between = hops[1] / 2 if call.algorithm == "collnet_chain" else hops[1]
    # A NIC is a limit of its own; only without GPUs beside each other is it that of all messages.
    most = min(inside, ways.primitives.rate(call.protocol)) if depth[0] else outside
    slowest = min(inside, outside)
    if call.algorithm == "tree":  # later a GPU sends up and down at once, and inner machines have two children
        slowest = min(inside * per_node / max(1, 2 * (per_node - 1)), outside / max(1.0, busiest_share(call.n_nodes)))

    def chain(rate: float, share: float) -> float:
        seconds = chunk / rate
        if pieces:
            return pieces * part.n_bytes / rate + depth[1] * share * between
        up = depth[0] * (seconds + share * hops[0]) + depth[1] * (max(seconds, chunk / outside) + share * between)
        return times * up + (loops - 1) * max(seconds, chunk / slowest)

    return chain, most


def _direct(
    ways: CallLinks, call: NcclCall, parts: Sequence[ChannelPart], hops: tuple[float, float]
) -> tuple[Chain, float]:
    """Return the chain of CollNet direct: to the heads, out, back and to all; a connection has a chunk a loop.

    A half of an all-reduce goes there or back only, and a connection has a chunk of each machine.
    """
    part, n, heads = parts[0], len(parts), call.n_heads
    chunk, is_half = _largest(part), call.operation in BY_RANK
    loops = max(1.0, part.n_bytes / (chunk if is_half else heads * chunk))
    inside, outside = _link_rates(ways, call, n * max(1, heads - 1))[0], ways.outside("simple") / (n * heads)

    def chain(rate: float, share: float) -> float:
        seconds = chunk / rate
        if is_half:
            out = seconds + share * (hops[0] + hops[1]) + max(seconds, chunk / outside)
            return out + loops * max(call.n_nodes * max(seconds, chunk / inside), crossing(call) * chunk / outside)
        there = (
            seconds + share * hops[0] + max(seconds, chunk / outside) + share * hops[1] / 2
        )  # the switch is half way
        # Later a GPU gives to other heads and returns to them at once.
        return 2 * there + (loops - 1) * max(seconds, 2 * chunk / inside, chunk / outside)

    return chain, min(inside, ways.primitives.rate(call.protocol))


def _solve_rate(chain: Chain, seconds: float, most: float) -> tuple[float, float]:
    """Return the rate, and the share of the hops, with which a chain takes so many seconds."""
    if chain(most, 1.0) >= seconds:  # at full rate the hops take too long
        return most, _bisected(lambda share: chain(most, share) >= seconds, 0.0, 1.0)
    least = most
    while chain(least, 1.0) < seconds:
        least /= 2
    return _bisected(lambda rate: chain(rate, 1.0) < seconds, least, most), 1.0


def _bisected(is_above: Callable[[float], bool], low: float, high: float) -> float:
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if is_above(middle) else (middle, high)
    return low


def _in_switch(ways: CallLinks, call: NcclCall, switch_rate: float) -> CallMessageCosts:
    """NVLink SHARP: a channel serves all heads in a loop, of which it has three under way."""
    part, p, heads = cut_call(call)[0], ways.primitives, call.n_heads
    n, chunk = len(cut_call(call)), _largest(part)
    by_head = call.n_nodes if call.operation in BY_RANK else 1
    loop = loop_of(p, call, n, chunk, switch_rate)
    fixed = p.launch + max(0.0, loop.first - (1 + SHOWN) * loop.later)
    if ways.plugin is None:
        return CallMessageCosts(heads * chunk / loop.later, 0.0, 0.0, fixed)
    by_nic = n * heads * chunk * crossing(call) / ways.outside("simple")
    # Loops and NICs wait for each other, which messages show in part: between a channel's own rate and the steady one.
    pace = math.sqrt(loop.later * paced(call, loop.later, by_nic))
    return CallMessageCosts(heads * by_head * chunk / pace, 0.0, ways.plugin.hop("simple") + p.slice, fixed)


def messages_of_exchange(exchange: ExchangeTime, at_once: float, together: int, between: float) -> CallMessageCosts:
    """Return what the messages of an all-to-all or a send-receive cost.

    Parameters
    ----------
    exchange : ExchangeTime
        Its fixed time, and the rate of what leaves a rank or a machine.
    at_once : float
        Messages of a rank that are under way together.
    together : int
        Ranks that share this rate.
    between : float, s
        Latency of a hop between machines.
    """
    return CallMessageCosts(exchange.rate / (at_once * together), 0.0, between, exchange.fixed - between)
