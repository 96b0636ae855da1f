"""The network: nodes of several kinds, directed links between them, and how messages find their way."""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .cost import MessageProtocol
from .errors import InputError
from .machines.hardware import read_hardware, write_hardware
from .remark import Remark
from .units import MIN_RATE, count_text
from .value import NumberedNames, PickedNames, Value, freeze, wrong_name
from .value import node_names as node_names

if TYPE_CHECKING:
    from .curves import Curves

HOST, SWITCH, GPU, CPU, NIC, MEMORY = range(6)
KINDS = ("host", "switch", "gpu", "cpu", "nic", "memory")

# Traffic of others may pass through these. Through a GPU it passes only where the network says so.
FORWARDING = (SWITCH, CPU, NIC)

# A helper, such as a parameter server, may sit on these.
AGGREGATING = (HOST, GPU, CPU, MEMORY)
# A rank may sit on these; by default on the first of them that the network has.
SEATS = (GPU, HOST, MEMORY)
PLURALS = ("hosts", "switches", "GPUs", "CPUs", "NICs", "memories")
ROUTINGS = ("ecmp", "shortest", "spray", "ecmp_polarised", "dmodk", "dimension_order", "minimal", "valiant")
_checked: list[Sequence[str]] = [()]  # names of the network that was made last: most are made of another one,
_checked_links: dict[str, tuple[weakref.ref[NDArray[Any]], ...]] = {}  # with the same columns, which are read-only
MAX_METRIC = 2**20  # so that no sum along a path exceeds 31 bits


@dataclass(frozen=True, slots=True, eq=False)
class Network(Value):
    """Nodes and directed links; frozen, compared by value. Scalars broadcast over links or nodes.

    :class:`commsim.NetworkBuilder` makes one of hosts, switches and cables by name.

    Parameters
    ----------
    name : str
        What it is, with the arguments that made it.
    nodes : sequence of str
        One unique name per node: a tuple, or names that are written out when they are read
        (:class:`commsim.core.value.NumberedNames`).
    kind : uint8[n_nodes]
        An index of ``KINDS``. A host is a box whose inside does not matter; a machine whose inside does is made of
        GPUs, CPUs (sockets), memories (of a socket), NICs and switches (NVLink or PCIe).
    src, dst : int32[n_links]
        The ends of each directed link. A cable is two links.
    bandwidth : float64[n_links], bytes/s
        Capacity of each link.
    latency : float64[n_links], s
        Propagation delay; occupies nothing.
    buffer : float64[n_links], bytes
        Queue at the sending end, for the packet engine; by default infinite.
    loss : float64[n_links]
        Probability that a packet is lost on the link, for the packet engine.
    forwards : bool[n_nodes]
        Whether traffic of others may pass through the node; by default switches, CPUs and NICs.
    aggregates : bool[n_nodes]
        Whether a helper (an aggregator) may be placed on the node; by default all but switches and NICs.
    overhead, recv_overhead : float64[n_nodes], s
        ``o`` per message, occupying a message engine of the node, and the port that the message uses, when it sends,
        and when it receives. What is left out says nothing, and doors take the usual value
        (:data:`commsim.prediction.read.DEFAULT_OVERHEAD`); 0 says that messages cost nothing.
    gamma : float64[n_nodes], s/byte
        Time to reduce one byte that has arrived.
    routing : str
        Default way of choosing paths, one of ``ROUTINGS``; ``routing/routing.py`` says what each is.
    machine : int32[n_nodes]
        Number of the machine that the node is a part of; by default -1, for what is a machine of its own.
    metric : int32[n_links]
        What routing adds up to say which path is shortest; by default 1, so that the links are counted.
    coordinates : int32[n_nodes, n_dims]
        Position of each node in a grid, for dimension order; the first coordinate is its group, for minimal and Valiant
        routing. A switch that spans a dimension is at -1 in it. Default: no dimensions.
    hardware : str
        What is known of the machines that no link shows, as ``gpu=hopper,cpu=intel``
        (:mod:`commsim.core.machines.hardware`); by default empty.
    curves : Curves, optional
        What messages between ranks were measured to cost, in place of overhead, bytes over bandwidth, latency and
        gamma. Bandwidths then only say how messages share links: a single one takes what its curve says.
    software : str
        Communication library whose rates the ports have (:mod:`commsim.prediction.software`); by default empty.
    protocol : MessageProtocol, optional
        How that library sends small and large messages between machines; by default all cost a line.
    family : str
        Topology that made it, such as ``leaf_spine``; empty for a network of a file, and for one with a part missing or
        slower. Two networks that differ in nothing else are equal.
    left_out : str
        Switches that were asked for and would get no cable, such as ``2 of 4 spines``; by default empty. Not compared.
    told : tuple of Remark
        What is to be said of it beside any number, such as ports that are down. A file does not keep it. Not compared.
    overhead_given : bool
        Whether it is known what messages cost, also where that is nothing; by default whether an overhead is given.
    message_engines : int32[n_nodes]
        Messages whose overheads the node can spend at once; by default 1. In a machine it is a NIC that a message
        leaves or comes in by which spends them, else the node itself. Sending and receiving do not hinder each other.

    Attributes
    ----------
    n_nodes, n_links : int
        Number of nodes of every kind, and of directed links.
    seat_kind : int
        Kind of the nodes that ranks sit on by default: GPUs if there are any, else hosts, else memories.
    has_nics : bool
        Whether there are NICs.

    Raises
    ------
    InputError
        If an end does not exist, a link starts where it ends, or a number is out of its range.
    """

    name: str
    nodes: Sequence[str]
    kind: NDArray[np.uint8]
    src: NDArray[np.int32]
    dst: NDArray[np.int32]
    bandwidth: NDArray[np.float64]
    latency: NDArray[np.float64]
    buffer: NDArray[np.float64] = np.inf  # type: ignore[assignment]  # scalars broadcast in __post_init__
    loss: NDArray[np.float64] = 0.0  # type: ignore[assignment]
    forwards: NDArray[np.bool_] = None  # type: ignore[assignment]
    aggregates: NDArray[np.bool_] = None  # type: ignore[assignment]
    overhead: NDArray[np.float64] = None  # type: ignore[assignment]
    recv_overhead: NDArray[np.float64] = None  # type: ignore[assignment]
    gamma: NDArray[np.float64] = 0.0  # type: ignore[assignment]
    routing: str = "ecmp"
    machine: NDArray[np.int32] = -1  # type: ignore[assignment]
    metric: NDArray[np.int32] = 1  # type: ignore[assignment]
    coordinates: NDArray[np.int32] = None  # type: ignore[assignment]
    hardware: str = ""
    curves: Curves | None = None
    software: str = ""
    protocol: MessageProtocol | None = None
    family: str = dataclasses.field(default="", compare=False)
    left_out: str = dataclasses.field(default="", compare=False)
    message_engines: NDArray[np.int32] = 1  # type: ignore[assignment]
    overhead_given: bool = None  # type: ignore[assignment]
    told: tuple[Remark, ...] = dataclasses.field(default=(), compare=False)
    n_nodes: int = dataclasses.field(init=False, repr=False, compare=False)
    n_links: int = dataclasses.field(init=False, repr=False, compare=False)
    seat_kind: int = dataclasses.field(init=False, repr=False, compare=False)
    has_nics: bool = dataclasses.field(init=False, repr=False, compare=False)
    facts: dict[Any, Any] = dataclasses.field(default_factory=dict, init=False, repr=False, compare=False)

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
            overhead: ArrayLike | None = ...,
            recv_overhead: ArrayLike | None = ...,
            gamma: ArrayLike = ...,
            routing: str = ...,
            machine: ArrayLike = ...,
            metric: ArrayLike = ...,
            coordinates: ArrayLike | None = ...,
            hardware: str = ...,
            curves: Curves | None = ...,
            software: str = ...,
            protocol: MessageProtocol | None = ...,
            family: str = ...,
            left_out: str = ...,
            message_engines: ArrayLike = ...,
            overhead_given: bool | None = ...,
            told: tuple[Remark, ...] = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        n, m = len(self.nodes), np.size(self.src)
        put: Any = object.__setattr__
        put(self, "nodes", self.nodes if isinstance(self.nodes, NumberedNames | PickedNames) else tuple(self.nodes))
        for field in ("src", "dst", "metric"):
            put(self, field, freeze(getattr(self, field), np.int32, (m,), f"{self.name}: {field}"))
        for field in ("bandwidth", "latency", "buffer", "loss"):
            where = f"{self.name}: {field}"
            put(self, field, freeze(getattr(self, field), np.float64, (m,), where, repeats=field in ("buffer", "loss")))
        overhead: Any = self.overhead_given
        costs: Any = (self.overhead, self.recv_overhead)
        if overhead is None:
            put(self, "overhead_given", any(cost is not None for cost in costs))
        for field in ("overhead", "recv_overhead"):
            put(self, field, 0.0 if getattr(self, field) is None else getattr(self, field))
        for field in ("overhead", "recv_overhead", "gamma"):
            put(self, field, freeze(getattr(self, field), np.float64, (n,), f"{self.name}: {field}", repeats=True))
        for field in ("machine", "message_engines"):
            where = f"{self.name}: {field}"
            put(self, field, freeze(getattr(self, field), np.int32, (n,), where, repeats=field == "message_engines"))
        put(self, "kind", freeze(self.kind, np.uint8, (n,), f"{self.name}: kind"))
        for field, usual in (("forwards", FORWARDING), ("aggregates", AGGREGATING)):
            flags = getattr(self, field)
            flags = np.isin(self.kind, usual) if flags is None else flags
            put(self, field, freeze(flags, np.bool_, (n,), f"{self.name}: {field}"))
        at = np.empty((n, 0), np.int32) if self.coordinates is None else np.asarray(self.coordinates)
        put(self, "coordinates", freeze(at, np.int32, (n, *(at.shape or (1,))[-1:]), f"{self.name}: coordinates"))
        put(self, "n_nodes", n)
        put(self, "n_links", m)
        has = [bool((self.kind == kind).any()) for kind in range(len(KINDS))]
        put(self, "has_nics", has[NIC])
        put(self, "seat_kind", next((kind for kind in SEATS if has[kind]), -1))
        if self.hardware:
            put(self, "hardware", write_hardware(read_hardware(self.hardware, f"{self.name}: hardware")))
        try:
            self._check()
        except InputError:
            _checked_links.clear()  # columns are noted when they are looked at
            raise

    def __repr__(self) -> str:
        counts = ((PLURALS[kind], int((self.kind == kind).sum())) for kind in range(len(KINDS)))
        shown = ", ".join(f"{n} {name if n > 1 else KINDS[PLURALS.index(name)]}" for name, n in counts if n)
        return f"Network({self.name}: {shown}, {count_text(self.n_links, 'link')})"

    def _check(self) -> None:
        n = len(self.nodes)
        if not self.name.isprintable():
            raise InputError(f"the name of a network is printable text, got {self.name!r}")
        if self.nodes is not _checked[0]:
            if wrong := wrong_name(self.nodes):
                raise InputError(f"{self.name}: {wrong}")
            _checked[0] = self.nodes
        if (self.kind >= len(KINDS)).any():
            raise InputError(f"{self.name}: node kinds are {', '.join(KINDS)}")
        if self.seat_kind < 0:
            raise InputError(f"{self.name}: a network needs at least one host, GPU or memory, for its ranks")
        if n and self.message_engines.min() < 1:
            raise InputError(f"{self.name}: a node has at least 1 message engine, got {self.message_engines.min()}")
        if n and self.machine.min() < -1:
            raise InputError(f"{self.name}: machines are numbered from 0, or -1 for none, got {self.machine.min()}")
        if self.routing not in ROUTINGS:
            raise InputError(f"{self.name}: unknown routing {self.routing!r}; known: {', '.join(ROUTINGS)}")
        if len(self.src) and not _are_checked("ends", self.src, self.dst, self.kind):
            first, last = min(self.src.min(), self.dst.min()), max(self.src.max(), self.dst.max())
            if first < 0 or last >= n:
                raise InputError(f"{self.name}: a link ends at node {first if first < 0 else last} of {n}")
            if (self.src == self.dst).any():
                self._refuse(self.src != self.dst, "joins a node to itself", self.src)
        largest = np.finfo(np.float64).max
        for values, least, most, wanted in (
            (self.bandwidth, MIN_RATE, largest, "needs a positive bandwidth"),
            (self.latency, 0.0, largest, "needs a latency of 0 or more"),
            (self.metric, 1, MAX_METRIC, f"needs a metric 1..{MAX_METRIC}"),
            (self.buffer, np.nextafter(0.0, 1.0), np.inf, "needs a positive buffer"),
            (self.loss, 0.0, np.nextafter(1.0, 0.0), "needs a loss in [0, 1)"),
        ):
            if len(values) and not _are_checked(wanted, values):
                low, high = values.min(), values.max()  # of millions of links: no column of booleans; NaN is no number
                if not (low >= least and high <= most):
                    self._refuse((values >= least) & (values <= most), wanted, values)
        for field in ("overhead", "recv_overhead", "gamma"):
            values = getattr(self, field)
            if n and not (values.min() >= 0 and values.max() <= largest):
                bad = np.flatnonzero(~((values >= 0) & np.isfinite(values)))[0]
                raise InputError(f"{self.name}: node {self.nodes[bad]} needs {field} >= 0, got {values[bad]}")
            if self.curves is not None and values.any():
                raise InputError(
                    f"{self.name}: measured curves hold what a message costs; {field} beside them must be 0"
                )

    def _refuse(self, good: NDArray[np.bool_], wanted: str, values: NDArray[Any]) -> None:
        bad = int(np.flatnonzero(~good)[0])
        raise InputError(f"{self.name}: link {self.link_name(bad)} {wanted}, got {values[bad]}")

    @property
    def hosts(self) -> NDArray[np.intp]:
        """Indices of the hosts, in order."""
        return np.flatnonzero(self.kind == HOST)

    @property
    def endpoints(self) -> NDArray[np.intp]:
        """Indices of the nodes that ranks sit on by default, in order."""
        return np.flatnonzero(self.kind == self.seat_kind)

    @property
    def is_cabled(self) -> bool:
        """Whether the second half of the links is the first, the other way round, with the same numbers."""
        half = self.n_links // 2
        pairs = [(self.src, self.dst), (self.dst, self.src)]
        pairs += [(getattr(self, name),) * 2 for name in ("bandwidth", "latency", "buffer", "loss", "metric")]
        return self.n_links > 0 and all(np.array_equal(a[:half], b[half:]) for a, b in pairs)

    def link_name(self, link: int) -> str:
        """Name of a directed link: ``h0:leaf0``, with ``#1`` and so on for the next parallel ones."""
        src, dst = self.src[link], self.dst[link]
        nth = int(np.count_nonzero((self.src[:link] == src) & (self.dst[:link] == dst)))
        return f"{self.nodes[src]}:{self.nodes[dst]}" + (f"#{nth}" if nth else "")


def both_ways(a: ArrayLike, b: ArrayLike) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Directed links of cables between `a` and `b`: all a:b, then all b:a.

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


def _are_checked(what: str, *columns: NDArray[Any]) -> bool:
    """Whether these columns were the last that were looked at for that; they are from now on."""
    known = _checked_links.get(what, ())
    _checked_links[what] = tuple(map(weakref.ref, columns))
    return len(known) == len(columns) and all(one() is column for one, column in zip(known, columns, strict=True))
