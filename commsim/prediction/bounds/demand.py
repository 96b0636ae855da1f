"""What an operation asks of the network, whatever the schedule: bytes that have to get across, and links for them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from commsim.core.layouts import Layout, home_of_chunks
from commsim.core.network import Network
from commsim.core.operations import operation as known_operation

Kind = Literal["signals", "routed", "routed_back", "pairs", "all_pairs", "spread", "collect", "all_reduce"]
Floats = NDArray[np.float64]
# Kinds whose rows are pairs of ranks.
BY_PAIR = ("pairs", "routed", "routed_back")
NO_PAIRS: Callable[[], NDArray[Any]] = functools.partial(np.empty, 0, np.intp)


@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    """Bytes per byte of the operation's size.

    Parameters
    ----------
    kind : str
        ``routed``: chunks of some ranks go to several others; ``routed_back``: their sums come back. ``pairs``: some
        ranks have something for some others; ``all_pairs``: every rank has 1/p for every other.
        ``spread``: some ranks have data that all ranks need. ``collect``: some ranks need sums over all ranks.
        ``all_reduce``: every rank needs the sum of everything. ``signals``: all must have heard of all; no bytes.
    n_ranks : int
        p.
    amount : float64[n_pairs] or float64[n_ranks]
        Demand of each pair; or what each rank has for all, or needs of all.
    src, dst : intp[n_pairs]
        Pairs of ranks of ``pairs``, or of each chunk of ``routed``; empty for other kinds.
    chunk : int64[n_pairs]
        Number of the chunk of ``routed``: a chunk that goes to several ranks has several rows. Else empty.
    """

    kind: Kind
    n_ranks: int
    amount: Floats
    src: NDArray[np.intp] = field(default_factory=NO_PAIRS)
    dst: NDArray[np.intp] = field(default_factory=NO_PAIRS)
    chunk: NDArray[np.int64] = field(default_factory=NO_PAIRS)

    def crossing(self, group: NDArray[np.integer[Any]], k: int) -> tuple[Floats, Floats]:
        """Bytes that must leave, and enter, each of k groups of ranks.

        What leaves is what the ranks inside have and some rank outside needs. Data that several outside need need not
        leave more than once, and parts of one sum can be added before they leave.

        Parameters
        ----------
        group : int[n_ranks]
            0..k-1, or -1 for ranks that are in none.
        k : int
            Groups, each without some rank.

        Returns
        -------
        float64[k], float64[k]
        """
        if self.kind == "pairs":
            a, b = group[self.src], group[self.dst]
            out, into = (a != b) & (a >= 0), (a != b) & (b >= 0)
            return _sums(a[out], self.amount[out], k), _sums(b[into], self.amount[into], k)
        if self.kind in BY_PAIR[1:]:
            leaving, entering = self._routed(group, k)
            return (leaving, entering) if self.kind == "routed" else (entering, leaving)
        inside = group >= 0
        if self.kind == "all_pairs":
            n = np.bincount(group[inside], minlength=k)
            both = n * (self.n_ranks - n) / self.n_ranks
            return both, both
        if self.kind == "all_reduce":
            return np.ones(k), np.ones(k)
        if self.kind == "signals":
            return np.zeros(k), np.zeros(k)
        own = _sums(group[inside], self.amount[inside], k)
        others = self.amount.sum() - own
        return (own, others) if self.kind == "spread" else (others, own)

    def _routed(self, group: NDArray[np.integer[Any]], k: int) -> tuple[Floats, Floats]:
        """Bytes of chunks that some rank outside needs, and of those that come in; each once for a group."""
        a, b = group[self.src], group[self.dst]
        out, into = (a != b) & (a >= 0), (a != b) & (b >= 0)
        _, first = np.unique(self.chunk[out], return_index=True)
        leaving = _sums(a[out][first], self.amount[out][first], k)
        _, first = np.unique(self.chunk[into] * k + b[into], return_index=True)
        return leaving, _sums(b[into][first], self.amount[into][first], k)

    def between(self, k: int) -> float:
        """Bytes that messages between k groups of ranks carry together, at least, when only ranks send on.

        Data that all need enters each of the other k-1 groups, by a message that enters no second one; sums the other
        way round. All-reduce is both: take the group that first holds a complete sum. Before, each of the other k-1 has
        sent something; after, each must still receive something, and a message that completes one group has not been
        sent to complete another. So it takes 2(k-1) times the data.

        References
        ----------
        Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 2009,
        theorem 1, for all-reduce over single ranks with equal links.
        """
        if self.kind == "all_reduce":
            return 2.0 * (k - 1)
        return float(self.amount.sum()) * (k - 1) if self.kind in ("spread", "collect") else 0.0

    @property
    def sums(self) -> float:
        """Bytes whose contributions from all ranks have to be added."""
        if self.kind == "routed_back":  # each contribution but the first of a chunk, shared among the ranks
            added = len(self.chunk) - len(np.unique(self.chunk))
            return added * float(self.amount[:1].sum()) / max(self.n_ranks - 1, 1)
        return {"all_reduce": 1.0, "collect": float(self.amount.sum())}.get(self.kind, 0.0)


def demand_of(operation: str, n_ranks: int, root: int = 0, layout: Layout = ()) -> Demand:
    """Return what an operation demands.

    Parameters
    ----------
    operation : str
        Name of the operation.
    n_ranks, root : int
        Number of ranks and root of its schedule.
    layout : tuple of int
        Layout of its schedule, where the operation needs one.

    Raises
    ------
    InputError
        If the operation is unknown, or the layout does not fit.
    """
    op, n_chunks = known_operation(operation), 1
    if layout or op.layout != "none" or op.needs_equal_blocks:
        n_chunks = op.least_chunks(n_ranks, layout)
    at_root = np.bincount([root], minlength=n_ranks).astype(np.float64)
    if op.signals:
        return Demand("signals", n_ranks, at_root * 0)
    if op.moves is not None:
        if op.starts == "blocks":
            return Demand("all_pairs", n_ranks, at_root * 0)
        rank, at, origin, chunk = op.moves(np.arange(n_ranks), n_ranks, n_chunks, layout)
        if op.layout == "runs":
            has, needs, number = (rank, origin, rank * n_chunks + at) if op.reduces else (
                origin, rank, origin * n_chunks + chunk,
            )  # fmt: skip
            sent = has != needs
            kind: Kind = "routed_back" if op.reduces else "routed"
            whole = np.full(int(sent.sum()), 1 / n_chunks)
            return Demand(kind, n_ranks, whole, has[sent], needs[sent], number[sent])
        pair, times = np.unique(np.stack((origin, rank))[:, origin != rank], axis=1, return_counts=True)
        return Demand("pairs", n_ranks, times / n_chunks, pair[0], pair[1])
    match (op.starts, op.ends):
        case ("all", "all"):
            return Demand("all_reduce", n_ranks, at_root * 0)
        case ("root", "all"):
            return Demand("spread", n_ranks, at_root)
        case ("all", "root"):
            return Demand("collect", n_ranks, at_root)
    home = np.bincount(home_of_chunks(n_ranks, n_chunks, layout), minlength=n_ranks) / n_chunks
    match (op.starts, op.ends):
        case ("home", "all"):
            return Demand("spread", n_ranks, home)
        case ("all", "home"):
            return Demand("collect", n_ranks, home)
    others = np.flatnonzero(np.arange(n_ranks) != root)
    ends = (np.full(len(others), root), others)
    src, dst = ends if op.starts == "root" else ends[::-1]
    return Demand("pairs", n_ranks, home[others], src, dst)


def _sums(group: NDArray[np.integer[Any]], amount: Floats, k: int) -> Floats:
    return np.bincount(group, amount, k).astype(np.float64)


@dataclass(frozen=True, eq=False)
class UsableLinks:
    """Links that can carry something, and where ranks sit.

    Parameters
    ----------
    network : Network
        Network that the operation runs on.
    ranks : int32[n_ranks]
        Node of each rank.
    anywhere : bool
        Whether any node may store, add up and send on: parameter servers on spare hosts, and switches that aggregate.
        If not, only ranks do, and what lies between them only forwards.
    on_ranks : bool[n_nodes]
        Which nodes hold a rank.
    passes : bool[n_nodes]
        Nodes that pass traffic on, or hold a rank; usable links are those between two of them.
    helpers : int32[n_helpers]
        Nodes without ranks that store, add and send on as well, where not any node does.
    is_turned : bool
        Whether every link is taken the other way round.
    """

    network: Network
    ranks: NDArray[np.int32]
    anywhere: bool
    on_ranks: NDArray[np.bool_]
    passes: NDArray[np.bool_]
    helpers: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    is_turned: bool = False

    @property
    def n_nodes(self) -> int:
        """Nodes of the network, used or not."""
        return self.network.n_nodes

    @functools.cached_property
    def link(self) -> NDArray[np.intp]:
        """Links of the network that are usable, intp[m]."""
        return np.flatnonzero(self.passes[self.network.src] & self.passes[self.network.dst])

    @functools.cached_property
    def src(self) -> NDArray[np.int32]:
        """Where usable links begin, int32[m]."""
        return (self.network.dst if self.is_turned else self.network.src)[self.link]

    @functools.cached_property
    def dst(self) -> NDArray[np.int32]:
        """Where usable links end, int32[m]."""
        return (self.network.src if self.is_turned else self.network.dst)[self.link]

    @functools.cached_property
    def bandwidth(self) -> NDArray[np.float64]:
        """Bandwidth of usable links, float64[m], bytes/s."""
        return self.network.bandwidth[self.link]

    @functools.cached_property
    def latency(self) -> NDArray[np.float64]:
        """Latency of usable links, float64[m], s."""
        return self.network.latency[self.link]

    @property
    def computes(self) -> NDArray[np.bool_]:
        """Which nodes store, add and send on."""
        if self.anywhere:
            return np.ones(self.network.n_nodes, np.bool_)
        computes = self.on_ranks.copy()
        computes[self.helpers] = True
        return computes


def usable(
    network: Network, ranks: NDArray[np.int32], anywhere: bool, helpers: NDArray[np.int32] | None = None
) -> UsableLinks:
    """Return the graph that schedules of one kind can use.

    Routing is left out: any path is allowed, also over the nodes of other ranks, since these may send on what they
    received. So what holds here holds for every routing.

    Parameters
    ----------
    network : Network
        Network that the operation runs on.
    ranks : int32[n_ranks]
        Node of each rank.
    anywhere : bool
        Whether nodes without ranks may store, add and send on.
    helpers : int32[n_helpers], optional
        Nodes without ranks that may do so, where not any node may.
    """
    helpers = np.empty(0, np.int32) if helpers is None else helpers
    on_ranks = np.zeros(network.n_nodes, np.bool_)
    on_ranks[ranks] = True
    passes = on_ranks | network.forwards | anywhere
    passes[helpers] = True
    graph = UsableLinks(network, ranks, anywhere, on_ranks, passes, helpers)
    if passes.all():  # then columns are the network's own, not copies
        vars(graph).update({name: getattr(network, name) for name in ("src", "dst", "bandwidth", "latency")})
    return graph
