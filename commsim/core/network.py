"""The network: nodes, directed links between them, and how messages find their way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import InputError
from .value import Value, freeze

HOST, SWITCH = 0, 1
KINDS = ("host", "switch")
ROUTINGS = ("ecmp", "shortest", "spray")


@dataclass(frozen=True, slots=True, eq=False)
class Network(Value):
    """Nodes and directed links; frozen, compared by value. Scalars broadcast over links or nodes.

    Parameters
    ----------
    name : str
        What it is, with the arguments that made it.
    nodes : tuple of str
        One unique name per node.
    kind : uint8[n_nodes]
        ``HOST`` or ``SWITCH``. Ranks sit on hosts only.
    src, dst : int32[n_links]
        The ends of each directed link. A cable is two links.
    bandwidth : float64[n_links], bytes/s
        Capacity of each link.
    latency : float64[n_links], s
        Propagation delay; occupies nothing.
    buffer : float64[n_links], bytes
        Queue at the sending end, for the packet engine; infinite unless given.
    loss : float64[n_links]
        Probability that a packet is lost on the link, for the packet engine.
    forwards : bool[n_nodes]
        Whether traffic of others may pass through the node; all switches and no host, unless given.
    aggregates : bool[n_nodes]
        Whether a helper (an aggregator) may be placed on the node; all hosts and no switch, unless given.
    overhead, recv_overhead : float64[n_nodes], s
        ``o`` per message, occupying the node's port when it sends, and when it receives.
    gamma : float64[n_nodes], s/byte
        Time to reduce one byte that has arrived.
    routing : {"ecmp", "shortest", "spray"}
        Default way of choosing among shortest paths: one by a hash per flow, the first, or all of them equally.

    Raises
    ------
    InputError
        If an end does not exist, a link starts where it ends, or a number is out of its range.
    """

    name: str
    nodes: tuple[str, ...]
    kind: NDArray[np.uint8]
    src: NDArray[np.int32]
    dst: NDArray[np.int32]
    bandwidth: NDArray[np.float64]
    latency: NDArray[np.float64]
    buffer: NDArray[np.float64] = np.inf  # type: ignore[assignment]  # scalars broadcast in __post_init__
    loss: NDArray[np.float64] = 0.0  # type: ignore[assignment]
    forwards: NDArray[np.bool_] = None  # type: ignore[assignment]
    aggregates: NDArray[np.bool_] = None  # type: ignore[assignment]
    overhead: NDArray[np.float64] = 0.0  # type: ignore[assignment]
    recv_overhead: NDArray[np.float64] = 0.0  # type: ignore[assignment]
    gamma: NDArray[np.float64] = 0.0  # type: ignore[assignment]
    routing: str = "ecmp"

    if TYPE_CHECKING:  # what may be given is wider than what is kept

        def __init__(
            self,
            name: str,
            nodes: Sequence[str],
            kind: ArrayLike,
            src: ArrayLike,
            dst: ArrayLike,
            bandwidth: ArrayLike,
            latency: ArrayLike,
            buffer: ArrayLike = ...,
            loss: ArrayLike = ...,
            forwards: ArrayLike | None = ...,
            aggregates: ArrayLike | None = ...,
            overhead: ArrayLike = ...,
            recv_overhead: ArrayLike = ...,
            gamma: ArrayLike = ...,
            routing: str = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        n, m = len(self.nodes), np.size(self.src)
        put: Any = object.__setattr__
        put(self, "nodes", tuple(self.nodes))
        for field, dtype in (("src", np.int32), ("dst", np.int32)):
            put(self, field, freeze(getattr(self, field), dtype, (m,), f"{self.name}: {field}"))
        for field in ("bandwidth", "latency", "buffer", "loss"):
            put(self, field, freeze(getattr(self, field), np.float64, (m,), f"{self.name}: {field}"))
        for field in ("overhead", "recv_overhead", "gamma"):
            put(self, field, freeze(getattr(self, field), np.float64, (n,), f"{self.name}: {field}"))
        put(self, "kind", freeze(self.kind, np.uint8, (n,), f"{self.name}: kind"))
        for field, default in (("forwards", self.kind == SWITCH), ("aggregates", self.kind == HOST)):
            given = getattr(self, field)
            put(self, field, freeze(default if given is None else given, np.bool_, (n,), f"{self.name}: {field}"))
        self._check()

    def _check(self) -> None:
        n = len(self.nodes)
        if not self.name.isprintable():
            raise InputError(f"the name of a network is printable text, got {self.name!r}")
        for name in self.nodes:
            if not (isinstance(name, str) and name and name.isprintable()):
                raise InputError(f"{self.name}: a node name is printable text, got {name!r}")
        if len(set(self.nodes)) != n:
            raise InputError(f"{self.name}: node name {_first_repeated(self.nodes)!r} is used twice")
        if not (self.kind == HOST).any():
            raise InputError(f"{self.name}: a network needs at least one host")
        if (self.kind >= len(KINDS)).any():
            raise InputError(f"{self.name}: node kinds are {', '.join(KINDS)}")
        if self.routing not in ROUTINGS:
            raise InputError(f"{self.name}: unknown routing {self.routing!r}; known: {', '.join(ROUTINGS)}")
        ends = np.concatenate((self.src, self.dst))
        if ends.size and (ends.min() < 0 or ends.max() >= n):
            raise InputError(f"{self.name}: a link ends at node {ends.min() if ends.min() < 0 else ends.max()} of {n}")
        self._require(self.src != self.dst, "joins a node to itself", self.src)
        self._require((self.bandwidth > 0) & np.isfinite(self.bandwidth), "needs a positive bandwidth", self.bandwidth)
        self._require((self.latency >= 0) & np.isfinite(self.latency), "needs a latency of 0 or more", self.latency)
        self._require(self.buffer > 0, "needs a positive buffer", self.buffer)
        self._require((self.loss >= 0) & (self.loss < 1), "needs a loss in [0, 1)", self.loss)
        for field in ("overhead", "recv_overhead", "gamma"):
            values = getattr(self, field)
            bad = np.flatnonzero(~((values >= 0) & np.isfinite(values)))
            if bad.size:
                raise InputError(f"{self.name}: node {self.nodes[bad[0]]} needs {field} >= 0, got {values[bad[0]]}")

    def _require(self, good: NDArray[np.bool_], wanted: str, values: NDArray[Any]) -> None:
        bad = np.flatnonzero(~good)
        if bad.size:
            raise InputError(f"{self.name}: link {self.link_name(int(bad[0]))} {wanted}, got {values[bad[0]]}")

    @property
    def n_nodes(self) -> int:
        """Number of nodes of every kind."""
        return len(self.nodes)

    @property
    def n_links(self) -> int:
        """Number of directed links."""
        return len(self.src)

    @property
    def hosts(self) -> NDArray[np.intp]:
        """Indices of the hosts, in order."""
        return np.flatnonzero(self.kind == HOST)

    def link_name(self, link: int) -> str:
        """Name of a directed link: ``h0->leaf0``, with ``#1`` and so on for the next parallel ones."""
        src, dst = self.src[link], self.dst[link]
        nth = int(np.count_nonzero((self.src[:link] == src) & (self.dst[:link] == dst)))
        return f"{self.nodes[src]}->{self.nodes[dst]}" + (f"#{nth}" if nth else "")


def both_ways(a: ArrayLike, b: ArrayLike) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Directed links of cables between `a` and `b`: all a->b, then all b->a.

    Parameters
    ----------
    a, b : int32[n_cables]
        The two ends of each cable.
    """
    a, b = np.asarray(a, np.int32).ravel(), np.asarray(b, np.int32).ravel()
    return np.concatenate((a, b)), np.concatenate((b, a))


def kinds(n_hosts: int, n_switches: int) -> NDArray[np.uint8]:
    """Kinds of a network's nodes when the hosts come first.

    Returns
    -------
    uint8[n_hosts + n_switches]
        ``HOST`` for the first `n_hosts`, ``SWITCH`` for the rest.
    """
    return np.repeat(np.array([HOST, SWITCH], np.uint8), [n_hosts, n_switches])


def node_names(**counts: int) -> tuple[str, ...]:
    """Names ``h0, h1, …, leaf0, …`` from ``node_names(h=16, leaf=4)``, in that order."""
    return tuple(f"{prefix}{i}" for prefix, n in counts.items() for i in range(n))


def _first_repeated(names: tuple[str, ...]) -> str:
    seen: set[str] = set()
    return next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
