"""Time of calls that are neither ring nor tree: NVLink SHARP, PAT, and exchanges of messages.

With NVLink SHARP each rank (head) owns a part of what the switch adds. A channel serves all heads in each loop, one
after another, in ``heads (head + chunk / rate)``; meanwhile its own part is read from the switch, added and written to
all, which takes ``loop`` and three passes over the chunk however many heads there are. Groups of warps (scatter,
reduce, gather) work on different loops at once, so that the longest of them sets the pace, and the first loop goes
through all. NCCL gives each group its share of 20 warps by the kind of call: with trees between machines fewer warps
are left to gather, and all heads take longer. The switch bounds a loop: in an all-reduce a GPU sends all bytes and the
results of its own part, ``(1 + 1/heads) S``; in an all-gather it receives all, in a reduce-scatter it sends all. Of the
links' rate it reaches NCCL's share, 0.85 on Hopper and 0.74 on Blackwell (nvlsEfficiency in ``src/graph/tuning.cc``),
and less of it with more parts under way at once than 24 channels of a rack have. Between machines trees join the heads:
the busiest NIC carries S/heads on two machines, twice as much on more than three. In a half of an all-reduce each head
has the parts of its whole rail: the network passes on (or adds) one for each machine, of which all but the own one
cross a NIC.

References
----------
NCCL 2.30.7: ``src/device/all_reduce.h`` (NVLS, its warps), ``src/enqueue.cc`` (chunks by size),
``src/graph/connect.cc`` (connectNvls: trees by channel).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from collectives.nccl.call import BY_RANK, NEWEST, NcclCall
from collectives.nccl.point_to_point import message, peer_channels, power_above, receiving_warps
from collectives.nccl.rules import cut_call
from collectives.nccl.trees import busiest_share, tree_depth

from .call_times import UP_AND_DOWN, CallLinks, joint_limit, ring_work
from .gpu_costs import Primitives

# Passes of a rank's own part: it is read from the switch, added, and written to all.
OWN_PASSES = 3
# Warps that gather, and that reduce: of one machine with more than six ranks, with fewer, of a tree between machines,
# and where the network adds. The rate of a channel is that of the first, which fits know.
WARPS, WARPS_OF_FEW, WARPS_OF_TREE, WARPS_OF_NETWORK = (7, 5), (6, 7), (5, 5), (7, 3)
FEW_RANKS = 6
# Parts that are under way at once, channels x heads, up to which the switch reaches all of its share: 24 channels of 32
# heads. With 32 channels one rack with NCCL 2.26 and two racks are slower than one rack with 24, whose warps do less.
# Since 2.27 NCCL has the other eight only over several racks.
CROWD = 24 * 32
# What a chunk that the network adds takes longer than one of another machine, s: NCCL's own hop of CollNet direct less
# that of a tree, 31 and 14 us (src/graph/tuning.cc). The proxy posts one operation of the plugin, which ends when the
# chunks of all machines are added. Of the chain NCCL takes the network's hop 16 us longer, and the 14 hops over NVLink
# of 8 GPUs 17 us shorter: nothing in all.
ADDED_OUTSIDE = 17e-6
# Chunks of a message that each add a cost; later ones overlap.
SEPARATE_CHUNKS = 2


class NvlsLoops(NamedTuple):
    """Loops of a channel of NVLink SHARP.

    Parameters
    ----------
    first : float, s
        Time of the first loop, through all groups of warps.
    later : float, s
        Time of each further one.
    """

    first: float
    later: float


def loop_of(primitives: Primitives, call: NcclCall, n_channels: int, chunk: float, switch_rate: float) -> NvlsLoops:
    """Return the times of a channel's loops: its heads one after another, its own part's way, or the link's bytes.

    Parameters
    ----------
    primitives : Primitives
        Costs of the GPUs.
    call : NcclCall
        Call with ``algorithm="nvls"`` or ``"nvls_tree"``.
    n_channels : int
        Channels that have work.
    chunk : float, bytes
        Chunk of a loop.
    switch_rate : float, bytes/s
        Rate of a GPU's NVLinks to their switch, which no data rate exceeds.
    """
    p, heads = primitives, call.n_heads
    is_half = call.operation in BY_RANK  # each loop then has a chunk of every rank's part
    served = chunk * (call.n_nodes if is_half else 1)
    gather, reduce = _warps(call)
    one_pass = served / p.nvls_rate * WARPS[0]
    serve = heads * (p.nvls_head + one_pass / gather)
    own = p.nvls_loop + OWN_PASSES * one_pass / reduce
    by_link = n_channels * heads * (served if is_half else chunk * (1 + 1 / heads)) / switch_rate
    by_link /= p.nvls_crowded if n_channels * heads > CROWD else 1.0
    later = max(serve, own, by_link)
    return NvlsLoops(max((1 if is_half else 2) * serve + own, later), later)


def _warps(call: NcclCall) -> tuple[int, int]:
    if call.algorithm == "nvls_tree":
        return WARPS_OF_TREE
    if call.n_nodes > 1:
        return WARPS_OF_NETWORK
    return WARPS if call.n_ranks > FEW_RANKS else WARPS_OF_FEW


def nvls_time(ways: CallLinks, call: NcclCall, switch_rate: float) -> float:
    """Return the seconds of NVLink SHARP; with several machines, a tree or an adding network joins the heads of a rail.

    Parameters
    ----------
    ways : CallLinks
        Links and costs.
    call : NcclCall
        Call with ``algorithm="nvls"`` or ``"nvls_tree"``.
    switch_rate : float, bytes/s
        Rate of a GPU's NVLinks to their switch, which no data rate exceeds.
    """
    parts = cut_call(call)
    part, n, p, heads = parts[0], len(parts), ways.primitives, call.n_heads
    chunk = part.chunk if part.n_loops > 1 else part.last_chunk
    loop = loop_of(p, call, n, chunk, switch_rate)
    loops = max(1.0, part.n_bytes / (part.chunk if call.operation in BY_RANK else heads * part.chunk))
    if ways.plugin is None:
        return p.launch + loop.first + (loops - 1) * loop.later
    is_tree = call.algorithm == "nvls_tree"
    depth = tree_depth(call.n_nodes) if is_tree else 1  # else the network adds: there and back
    hop = ways.plugin.hop("simple") + p.slice
    by_nic = n * heads * chunk * crossing(call) / ways.outside("simple")
    # The first chunks go up and then down: either way the busiest NIC carries half of what it does in a loop.
    one_way = by_nic * busiest_share(call.n_nodes) / 2 if is_tree else by_nic
    filling = 2 * depth * (hop + joint_limit(UP_AND_DOWN * chunk / p.rate_simple, one_way)) + loop.first
    return p.launch + filling + (loops - 1) * paced(call, loop.later, by_nic)


def paced(call: NcclCall, loop: float, by_nic: float) -> float:
    """Return the pace of loops and NICs, whose chunks wait for each other in buffers of several steps.

    Parameters
    ----------
    call : NcclCall
        Call over several machines.
    loop : float, s
        Time of a loop inside a machine.
    by_nic : float, s
        Time in which the NICs of a machine send the bytes of a loop once.
    """
    return max(loop, by_nic * (busiest_share(call.n_nodes) if call.algorithm == "nvls_tree" else 1.0))


def direct_time(ways: CallLinks, call: NcclCall) -> float:
    """Return the seconds of CollNet direct: a GPU near each NIC heads a part, which it adds, sends out and returns.

    A head's links carry what it gives to the h - 1 other heads and what it returns to the p - 1 other GPUs, (h + p - 2)
    / h of the bytes; its channels copy each of these once; the NICs carry all bytes once, and the network adds. In an
    all-gather or a reduce-scatter all GPUs are heads and have the parts of their whole rail.

    Parameters
    ----------
    ways : CallLinks
        Links and costs; with several machines.
    call : NcclCall
        Call with ``algorithm="collnet_direct"``.
    """
    parts, p, heads = cut_call(call), ways.primitives, call.n_heads
    part, n, per_node = parts[0], len(parts), call.n_ranks // call.n_nodes
    chunk = part.chunk if part.n_loops > 1 else part.last_chunk
    is_half = call.operation in BY_RANK
    ways_inside = 1 if is_half else 2
    passed = (call.n_nodes * (heads - 1) if is_half else heads + per_node - 2) * chunk
    inside = n * passed / ways.inside("simple")
    steady = joint_limit(2 * p.slice + passed / p.rate_simple, inside)
    hop = 0.0
    if ways.plugin is not None:
        by_nic = n * heads * chunk * crossing(call) / ways.outside("simple")
        added = p.slice + ways.plugin.hop("simple") + ADDED_OUTSIDE + chunk / p.rate_simple
        hop = joint_limit(added, by_nic)
        steady = max(steady, by_nic)
    loops = max(1.0, part.n_bytes / (part.chunk if is_half else heads * part.chunk))
    return p.launch + ways_inside * p.hop_simple + hop + loops * steady


def crossing(call: NcclCall) -> int:
    """Return how many chunks of a head cross its NIC in a loop, where the network passes on or adds."""
    return max(1, call.n_nodes - 1) if call.operation in BY_RANK else 1


def pat_time(ways: CallLinks, call: NcclCall) -> float:
    """Return the seconds of PAT, which has one GPU in each machine: log2(n) hops, then the NIC's rate.

    As in a ring a chunk is copied into the buffer of each hop, and out of the last one (``src/device/prims_simple.h``).
    """
    p, part = ways.primitives, cut_call(call)[0]
    if ways.plugin is None:
        return p.launch
    chunk = (part.chunk if part.n_loops > 1 else part.last_chunk) / p.rate_simple
    _, work, last = ring_work(call)
    hops = math.ceil(math.log2(call.n_ranks)) * (ways.plugin.hop("simple") + p.slice + work * chunk)
    on_wire = call.size * (call.n_ranks - 1) / call.n_ranks / ways.outside("simple")
    return p.launch + hops + p.slice + last * chunk + on_wire


class ExchangeTime(NamedTuple):
    """Time of an exchange: what does not depend on the links, and the bytes over their rate.

    Parameters
    ----------
    fixed : float, s
        Launch, protocol, posting and the first chunks.
    out : float, bytes
        What leaves a rank, or a machine if there are several.
    rate : float, bytes/s
        Rate of the links that it leaves by.
    """

    fixed: float
    out: float
    rate: float

    @property
    def seconds(self) -> float:
        """Time of the whole."""
        return self.fixed + self.out / self.rate


def exchange_of(
    ways: CallLinks, each: int, n_ranks: int, near: int, n_channels: int, bare_link: float, together: int = 1,
    buffer: int = 0, works: int = 0, version: tuple[int, ...] = NEWEST, net_chunk: int = 0,
) -> ExchangeTime:  # fmt: skip
    """Return the time of an all-to-all; of one send to one peer for two ranks that exchange the whole.

    Parameters
    ----------
    ways : CallLinks
        Links and costs.
    each : int, bytes
        Size of what one rank has for one peer.
    n_ranks, near : int
        Ranks, and those that a rank reaches without the network.
    n_channels : int
        Number of channels of a rank.
    bare_link : float, bytes/s
        Rate of a GPU's links.
    together : int
        Ranks that share a machine's NICs.
    buffer : int, bytes
        Buffer of a connection with Simple; 0 for NCCL's own.
    works : int
        Peers that a rank has messages for, itself among them; 0 for all ranks.
    version : (int, int)
        Release of NCCL.
    net_chunk : int, bytes
        Chunk over several machines; 0 for NCCL's own.

    Notes
    -----
    All peers are served at once, so that the link or the NIC bounds what the latency of protocol and chunks leaves.
    """
    p, many = ways.primitives, ways.plugin is not None
    channels = power_above(n_channels)  # NCCL opens more for messages (ncclTopoComputeP2pChannels)
    least, most = peer_channels(channels, n_ranks, ways.nics / ways.n_nics if many else None, version)
    sent = message(
        each, least, most, network=many, many_nodes=many, buffer=buffer, version=version, net_chunk=net_chunk
    )  # fmt: skip
    out = float(each * (n_ranks - 1))
    if ways.plugin is None:
        if sent.protocol == "ll":
            return ExchangeTime(
                p.launch + p.p2p_ll, out, out / joint_limit(sent.part / p.rate_ll, out / ways.inside("ll"))
            )
        chunks = min(float(SEPARATE_CHUNKS), sent.part / sent.chunk)
        rate = bare_link * p.p2p_efficiency
        used = min(channels, sent.n_channels * (works or n_ranks))  # peers have channels of their own
        rate = min(rate, used * receiving_warps(works or n_ranks) * p.p2p_warp)
        return ExchangeTime(p.launch + p.p2p_simple + chunks * p.p2p_chunk, out, rate)
    peers = n_ranks - near
    hop = ways.plugin.hop("simple")
    chunks = min(float(SEPARATE_CHUNKS), each / sent.chunk)
    fixed = p.launch + p.p2p_simple + hop + peers * ways.plugin.post + chunks * (hop + p.slice)
    return ExchangeTime(fixed, float(each * peers * together), ways.outside("simple") * ways.plugin.exchange)


def send_of(ways: CallLinks, size: int, bare_link: float) -> ExchangeTime:
    """Return the time of one send over NVLink, in the sender's kernel.

    The kernel ends when the last step is in the receiver's buffer. It waits for no chunk from the peer, as an exchange
    does; its start and its bytes bound it together.

    Parameters
    ----------
    ways : CallLinks
        Links and costs.
    size : int, bytes
        Size of the message.
    bare_link : float, bytes/s
        Rate of the GPU's links.
    """
    p = ways.primitives
    return ExchangeTime(p.launch, float(size), size / joint_limit(p.p2p_ll, size / bare_link))
