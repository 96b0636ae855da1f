"""Time of one NCCL call from its chunks: what a step costs, and how steps overlap in rings and trees.

A step of a ring moves one chunk of every channel to the next rank. A chunk of Simple is up to two slices, and a slice
is passed on while the next one arrives, so that a step of two slices takes ::

    one + max(hop, one)        one = slice + bytes of a slice / rate of a channel

and a step of one slice ``one + hop``. LL and LL128 have flags among the data: a GPU passes on lines as they come. There
a step with LL takes its bytes over the rate of the channel and the hop together (root of the sum of squares), one with
LL128, whose warps pass on 1,920 bytes at once, both after each other, and a chain of GPUs takes a hop for each and a
chunk once. To a network the proxy sends whole chunks, ``one + hop``, and posts the
messages of its channels one after another.

Channels share the links of their GPU: a step takes no less than its chunk over the channel's share of the link. In a
machine all channels take the same steps at once in the first loop and wait for each other: the two limits are joined
as the root of the sum of squares. From the second loop on they are out of step, so that while one waits others have
the link, and the larger limit counts. Over several machines slices of Simple queue at the slowest link from the
start, and chunks of LL128 wait there once, so that no loop differs from another. The larger limit counts also in a
machine with LL from the first loop on: its lines of 16 bytes leave one by one, and those of all channels mix on the
link. With this NVLinks need no efficiency: rings reach the rate that NCCL gives them. The rate of a channel that fits
Hopper is 41 GB/s beside 3 us for each slice; ATLAHS measured 37 in all (receive, reduce, send) on a GH200.

References
----------
NCCL 2.30.7: ``src/device/all_reduce.h`` (loops of rings and trees), ``src/device/prims_simple.h`` (slices).
"""

from __future__ import annotations

from dataclasses import dataclass

from collectives.nccl.call import PROTOCOLS, NcclCall
from collectives.nccl.rules import WIDE_THREADS, cut_call, loops_of
from collectives.nccl.trees import busiest_share, tree_depth

from .gpu_costs import Plugin, Primitives

ORDER = 2
# The same for loops of Simple over several machines, where slices of a chunk and channels of a NIC follow each other so
# closely that its queue is seldom empty (tests/nccl/test_ring_slices.py plays it). A chunk of LL128 is one message.
# With LL each step waits for the other channels' lines.
ORDER_OF_SLICES = 4
JOINED_ONCE = {"ll128": ORDER, "simple": ORDER_OF_SLICES}
# A hop of a tree by that of a ring: NCCL's own (1.25 and 1.9 us over NVLink, `src/graph/tuning.cc`).
TREE_HOP = {"ll128": 1.25 / 1.9}
# Operations whose rings are chains: a rank passes a chunk on once.
CHAINS = ("broadcast", "reduce")
# Time of a slice's bytes in a primitive of Simple, by that of one that receives, adds and passes on: to pass a copy on
# and keep it writes twice. Medians of 1 MiB on a GH200, of the events that ATLAHS publishes (NPKit).
ADDS, SENDS, RECEIVES, COPIES, ADDS_AND_COPIES = 1.0, 0.77, 0.78, 1.36, 1.60
# Of a tree, whose chunks are added on the way up and copied on the way down.
UP_AND_DOWN = (ADDS + COPIES) / 2
# A tree sends up and down at once, with threads of its own for either way: it always has all 640 (a ring with LL or
# Simple has fewer). With Simple halves; with LL and LL128 seven tenths go up, since to add is more work, and 192 are
# left for the way down (src/device/all_reduce.h, runTreeSplit). While the first chunk of Simple is under way only one
# direction is, bounded by its own threads; later both directions share what the channel moves. Lines of LL pass both
# ways as they come, so that the slower one, down, sets the pace.
DOWN_THREADS = 192
SHARE_ALONE = {name: DOWN_THREADS / protocol.threads for name, protocol in PROTOCOLS.items()}
SHARE_ALONE["simple"] = WIDE_THREADS / 2 / PROTOCOLS["simple"].threads
SHARE_TOGETHER = SHARE_ALONE | {"simple": 0.5}


@dataclass(frozen=True, slots=True)
class CallLinks:
    """Links that a call has.

    Parameters
    ----------
    link : float, bytes/s
        Bandwidth of a GPU to the others of its machine that rings reach.
    primitives : Primitives
        Primitives of its generation.
    plugin : Plugin or None
        Plugin of the network, with several machines.
    nics : float, bytes/s
        Bandwidth of all NICs of a machine that are used.
    ll_link : float
        Share of `link` that LL reaches besides its flags.
    n_nics, per_node : int
        NICs of a machine, and its ranks.
    exchange : float
        Part of `link` that messages of an all-to-all reach over PCIe.
    host : float, bytes/s
        Bandwidth of the links by which a machine's GPUs reach the NICs that are used.
    """

    link: float
    primitives: Primitives
    plugin: Plugin | None = None
    nics: float = 0.0
    ll_link: float = 1.0
    n_nics: int = 1
    per_node: int = 1
    exchange: float = 1.0
    host: float = float("inf")

    def hop(self, protocol: str, algorithm: str = "ring") -> float:
        """Return the latency of a hop inside a machine: of a tree, or of a ring."""
        share = TREE_HOP.get(protocol, 1.0) if algorithm == "tree" else 1.0
        return self.primitives.hop(protocol) * share

    def inside(self, protocol: str) -> float:
        """Return the data rate of a GPU's links."""
        p = PROTOCOLS[protocol]
        return self.link * p.payload / p.wire * (self.ll_link if protocol == "ll" else 1.0)

    def outside(self, protocol: str) -> float:
        """Return the data rate of a machine's NICs, and of the way to them."""
        if self.plugin is None:
            return float("inf")
        p = PROTOCOLS[protocol]
        flags = self.plugin.ll_efficiency if protocol == "ll" else 1.0
        rate = min(self.nics * self.plugin.efficiency, self.host, self.plugin.copy * self.per_node)
        return rate * flags * p.payload / p.wire

    def sharing(self, n_channels: int) -> int:
        """Return how many of so many channels leave the machine by the same rank, whose proxy serves one at a time."""
        return -(-n_channels // min(self.n_nics, self.per_node))

    def nics_of(self, n_channels: int) -> int:
        """Return by how many NICs so many channels leave the machine."""
        return min(n_channels, self.n_nics)

    def network_hop(self, protocol: str, chunk: float, n_channels: int, turns: int) -> float:
        """Return the latency of a hop between machines, as the slowest channel has it on average over its hops.

        Parameters
        ----------
        protocol : str
            Name of the protocol.
        chunk : float, bytes
            Data of a message.
        n_channels, turns : int
            Channels of the call, and hops that a channel takes one after another.
        """
        assert self.plugin is not None
        nics, wire = self.nics_of(n_channels), chunk * PROTOCOLS[protocol].wire / PROTOCOLS[protocol].payload
        hop = self.plugin.hop(protocol, wire, nics) + (self.sharing(n_channels) - 1) * self.plugin.post
        return hop + self.plugin.varied(protocol, nics, turns) / turns


def joint_limit(a: float, b: float, order: float = ORDER) -> float:
    """Join two limits that a step has at once."""
    return float((a**order + b**order) ** (1 / order))


def step_times(
    ways: CallLinks, protocol: str, chunk: float, slices: int, hop: float, *, over_network: bool = False,
    work: float = ADDS,
) -> tuple[float, float]:  # fmt: skip
    """Return what a step takes without contention: while nothing else is under way, and one after another."""
    p = ways.primitives
    if protocol != "simple":
        one = chunk / p.rate(protocol)
        return (joint_limit(one, hop) if protocol == "ll" and not over_network else one + hop), max(one, hop)
    one = p.slice + work * chunk / slices / p.rate_simple
    return one + max(hop, (slices - 1) * one), slices * one


def ring_work(call: NcclCall) -> tuple[float, float, float]:
    """Return the work of a ring's first primitive, the mean of all that send, and the last one, which does not.

    Out of place the first primitive of an all-gather or a broadcast also copies the own part.
    """
    others = call.n_ranks - 2
    if call.protocol != "simple":
        return 1.0, 1.0, 1.0
    if call.operation == "all_reduce":
        steps = SENDS + others * ADDS + ADDS_AND_COPIES + others * COPIES
        return SENDS, steps / (2 * (call.n_ranks - 1)), RECEIVES
    if call.operation in ("all_gather", "broadcast"):
        return COPIES, COPIES, RECEIVES
    return SENDS, (SENDS + others * ADDS) / (call.n_ranks - 1), ADDS


def ring_time(ways: CallLinks, call: NcclCall) -> float:
    """Return the seconds of a ring.

    Parameters
    ----------
    ways : CallLinks
        Links and costs.
    call : NcclCall
        Call with ``algorithm="ring"``.

    Notes
    -----
    The channel with the most bytes decides. Its first loop pays each hop's latency and waits at
    the links; later loops overlap with it.
    """
    parts = cut_call(call)
    part, total = parts[0], ways.primitives.launch
    n_steps = (2 if call.operation == "all_reduce" else 1) * (call.n_ranks - 1)
    loops = [(part.chunk, part.slices, part.n_loops - 1), (part.last_chunk, part.last_slices, 1)]
    is_first = True
    for chunk, slices, times in loops:
        if times:
            first, later = _ring_loop(ways, call, len(parts), chunk, slices, n_steps)
            if call.operation in CHAINS:  # chunks follow each other down the chain, a step apart
                later /= n_steps
            total += first + (times - 1) * later if is_first else times * later
            is_first = False
    return total


def _ring_loop(ways: CallLinks, call: NcclCall, n: int, chunk: int, slices: int, n_steps: int) -> tuple[float, float]:
    p, protocol = ways.primitives, call.protocol
    begins, work, last = ring_work(call)
    first, later = step_times(ways, protocol, chunk, slices, ways.hop(protocol), work=work)
    by_link = chunk * n / ways.inside(protocol)
    cost = p.slice if protocol == "simple" else 0.0
    more = slices * cost + last * chunk / p.rate(protocol)
    if ways.plugin is None:
        waited = max(first, by_link) if protocol == "ll" else joint_limit(first, by_link)
        return n_steps * waited + more, n_steps * max(later, by_link) + more
    crossing = -(-n_steps // (call.n_ranks // call.n_nodes))  # of the way round that has most of them
    if crossing == n_steps:
        by_link = 0.0
    elif min(ways.n_nics, n) >= ways.per_node:  # each rank sends its share of the channels out, the others on
        by_link *= (ways.per_node - 1) / ways.per_node
    wire = chunk * PROTOCOLS[protocol].wire / PROTOCOLS[protocol].payload
    sharing = ways.sharing(n)  # channels whose messages follow each other
    turn = sharing * ways.plugin.post + ways.plugin.announced(protocol, wire, ways.nics_of(n), sharing)
    hop = ways.network_hop(protocol, chunk, n, crossing)
    net_first, net_later = step_times(ways, protocol, chunk, slices, hop, over_network=True, work=work)
    # Where the CPU copies, the receiver's copy of the last slice of a step has nothing left to overlap with.
    net_first += chunk / slices * n / (ways.plugin.copy * ways.per_node)
    by_nic = chunk * n / ways.outside(protocol)
    on_wire = chunk / slices * ways.n_nics / ways.outside(protocol)  # of a message, by its NIC
    path = (n_steps - crossing) * first + crossing * (net_first + on_wire)
    on_link, slowest = n_steps * max(by_link, by_nic), n_steps * max(by_link, by_nic, turn)
    if protocol in JOINED_ONCE and ways.plugin.copy == float("inf"):  # all channels fill the slowest link
        gap = more / slices
        if crossing == n_steps:  # a NIC serves its channels in turn, so that all of them begin a loop together
            gap += cost + begins * chunk / slices / p.rate(protocol) + hop
        loop = max(joint_limit(path + more, on_link + gap, JOINED_ONCE[protocol]), slowest + gap)
        return loop, loop
    # With flags among the data a chunk goes round in lines: by fast and slow hops, on links that other channels share.
    round_trip = (n_steps - crossing) * joint_limit(first, by_link) + crossing * joint_limit(net_first, by_nic)
    if crossing == n_steps:  # the chunk has waited for the others of its loop on every hop
        return round_trip + more, n_steps * max(later, net_later, by_nic) + more
    # Later loops follow each other round the ring: its hops count together, the slowest link alone.
    later_loop = max((n_steps - crossing) * later + crossing * net_later, slowest)
    return max(joint_limit(round_trip, on_link), slowest) + more, later_loop + more


def tree_time(ways: CallLinks, call: NcclCall) -> float:
    """Return the seconds of a tree: the first chunk goes up and down, the others follow at the slowest link's pace.

    Parameters
    ----------
    ways : CallLinks
        Links and costs.
    call : NcclCall
        Call with ``algorithm="tree"``, or one of CollNet's, whose machines are joined by a network that reduces.

    Notes
    -----
    Inside a machine a tree is a chain in which a GPU sends ``2 (p - 1) / p`` of the bytes on average over channels.
    Between machines the busiest NIC carries a chunk once with two machines, 1.5 times with three, twice with more,
    whose inner nodes have two children. The first chunk goes up and then down: either way a NIC carries half of that,
    since of two trees each machine is a leaf in one, and of two machines each is the root of every other channel. A
    network that reduces (SHARP) takes a chunk and returns the sum in one operation of its plugin, however many machines
    there are; a NIC carries a chunk once.
    """
    parts = cut_call(call)
    part, n, p, protocol = parts[0], len(parts), ways.primitives, call.protocol
    per_node = call.n_ranks // call.n_nodes
    chunk = part.chunk if part.n_loops > 1 else part.last_chunk
    cost, work = (p.slice, UP_AND_DOWN) if protocol == "simple" else (0.0, 1.0)
    one, later = (
        work * chunk / (share * p.rate(protocol)) + cost for share in (SHARE_ALONE[protocol], SHARE_TOGETHER[protocol])
    )
    by_link = chunk * n / ways.inside(protocol)
    inner = 2 * (per_node - 1)
    if protocol == "simple":  # a chunk is passed on when it is there
        total = p.launch + inner * joint_limit(one + ways.hop(protocol, call.algorithm), by_link)
    else:  # its lines are passed on as they come, the whole passes once
        total = p.launch + inner * ways.hop(protocol, call.algorithm) + (joint_limit(one, by_link) if inner else 0.0)
    steady = joint_limit(later, by_link * 2 * (per_node - 1) / per_node)
    if ways.plugin is not None:
        in_network = call.algorithm != "tree"
        by_nic = chunk * n / ways.outside(protocol) * (1.0 if in_network else busiest_share(call.n_nodes))
        turns = 1 if in_network else 2 * tree_depth(call.n_nodes)
        hop = ways.network_hop(protocol, chunk, n, turns)
        if in_network:
            total += joint_limit(one + hop, by_nic)
        else:
            # Where the CPU copies, each way the receiver copies the chunk after it has come.
            copied = chunk * n / (2 * ways.plugin.copy * ways.per_node)
            total += turns * (joint_limit(one + hop, by_nic / 2) + copied)
        # With more machines than three a GPU waits for both children before it sends, which nothing else fills; a
        # network that adds has no children.
        steady = max(steady, by_nic) if in_network or call.n_nodes <= 3 else joint_limit(steady, by_nic)
        if not in_network and call.n_nodes > 2:
            # A chunk has a message from and to each child and the parent, which the proxy posts one after another. With
            # one neighbour no table shows that chunk after chunk waits.
            steady = max(steady, 2 * busiest_share(call.n_nodes) * ways.sharing(n) * ways.plugin.post)
    return total + (loops_of(part) - 1) * steady
