"""The collectives of RCCL, on AMD's GPUs: NCCL's rules for chunks, and rings that use all links of a full mesh."""

from __future__ import annotations

from collectives import collective
from commsim.core.schedule import Schedule

from .builders import Text, rccl_collective
from .exchanges import all_to_all_cost, exchange_all, send_next, send_recv_cost
from .launch import SIZE, Machines

_SOURCE = """RCCL 2.22: ``src/graph/rome_models.cc`` (rings of eight MI300X), ``src/enqueue.cc`` (chunks). Rings are
in :mod:`collectives.nccl.mesh_rings`."""
_RINGS = """A ring for each channel over an equal part of the array. On machines whose GPUs form a full mesh, rings use
    each link equally, and leave machines by each rail equally."""
_CHAINS = "A chain for each channel, which is its ring cut at the root; chunks are one step of the protocol."

rccl_all_reduce = rccl_collective("rccl_all_reduce", "all_reduce", Text(
    "All-reduce of RCCL over C rings, one loop: 2(p-1)(C o + L + S/(pB)) + (p-1) gamma S/p seconds.",
    ("ring", "tree"), _RINGS, _SOURCE,
))  # fmt: skip

rccl_all_gather = rccl_collective("rccl_all_gather", "all_gather", Text(
    "All-gather of RCCL over C rings, one loop: (p-1)(C o + L + S/(pB)) seconds.",
    ("ring",), _RINGS, _SOURCE,
))  # fmt: skip

rccl_reduce_scatter = rccl_collective("rccl_reduce_scatter", "reduce_scatter", Text(
    "Reduce-scatter of RCCL over C rings, one loop: (p-1)(C o + L + S/(pB) + gamma S/p) seconds.",
    ("ring",), _RINGS, _SOURCE,
))  # fmt: skip

rccl_broadcast = rccl_collective("rccl_broadcast", "broadcast", Text(
    "Broadcast of RCCL over C chains, k chunks in all: (p-2+k/C)(C o + C S/(kB)) + (p-1)L seconds.",
    ("ring",), _CHAINS, _SOURCE, "Rank that has the data.",
))  # fmt: skip

rccl_reduce = rccl_collective("rccl_reduce", "reduce", Text(
    "Reduce of RCCL over C chains, k chunks in all: (p-2+k/C)(C o + C S/(kB)) + (p-1)(L + C gamma S/k) seconds.",
    ("ring",), _CHAINS, _SOURCE, "Rank that gets the sum.",
))  # fmt: skip


@collective("all_to_all", cost=all_to_all_cost, needs=("nccl",))
def rccl_all_to_all(
    n_ranks: int, channels: int | None = None, n_bytes: int = SIZE, machines: Machines | None = None
) -> Schedule:
    """All-to-all of RCCL, C parts of each message, all peers at once: (p-1)(C o + S/(pB)) + L seconds.

    Parameters
    ----------
    n_ranks : int
        p, at least 1.
    channels : int, optional
        Channels of a rank; default 16.
    n_bytes : int
        Size of the array; ``commsim run`` takes each size that it runs.
    machines : tuple of tuple of int, optional
        Ranks of each machine; ``commsim run`` takes them from the network. Default: all in one.

    Returns
    -------
    Schedule
        That of ``nccl_all_to_all``: RCCL cuts messages by the same rules.

    References
    ----------
    RCCL 2.22, ``src/enqueue.cc``; the rules are in :mod:`collectives.nccl.point_to_point`.
    """
    return exchange_all(n_ranks, channels, n_bytes, machines)


@collective("send_recv", cost=send_recv_cost, needs=("nccl",))
def rccl_send_recv(
    n_ranks: int, channels: int | None = None, n_bytes: int = SIZE, machines: Machines | None = None
) -> Schedule:
    """Send to the next rank and receive from the previous one by RCCL, in C parts: C o + L + S/B seconds.

    Parameters
    ----------
    n_ranks : int
        p, at least 1.
    channels : int, optional
        Channels of a rank; default 16.
    n_bytes : int
        Size of the message; ``commsim run`` takes each size that it runs.
    machines : tuple of tuple of int, optional
        Ranks of each machine; ``commsim run`` takes them from the network. Default: all in one.

    Returns
    -------
    Schedule
        That of ``nccl_send_recv``: RCCL cuts messages by the same rules.

    References
    ----------
    RCCL 2.22, ``src/enqueue.cc``; the rules are in :mod:`collectives.nccl.point_to_point`.
    """
    return send_next(n_ranks, channels, n_bytes, machines)
