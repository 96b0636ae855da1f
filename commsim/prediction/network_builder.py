"""A network of one's own in a few lines: hosts, switches and cables by name."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from commsim.core.errors import InputError, alike, did_you_mean
from commsim.core.network import HOST, SWITCH, Network, both_ways
from commsim.core.units import parse_bandwidth, parse_time, si_of

PER_LINK = ("bandwidth", "latency", "buffer", "loss")


@dataclass(frozen=True, slots=True)
class _Node:
    kind: int
    overhead: float | None
    aggregates: bool
    forwards: bool = True


@dataclass(frozen=True, slots=True)
class _Cable:
    a: str
    b: str
    bandwidth: float
    latency: float
    buffer: float
    loss: float


class NetworkBuilder:
    """Collect hosts, switches and cables, and make a :class:`~commsim.core.network.Network` of them.

    Parameters
    ----------
    name : str
        Name of the network.

    Examples
    --------
    >>> import commsim as cs
    >>> lab = cs.NetworkBuilder("lab").hosts("a", "b", "c").switch("s")
    >>> for host in "abc":
    ...     lab = lab.cable(host, "s", bandwidth="100Gbps", latency="500ns")
    >>> lab.build().n_links
    6
    >>> round(cs.predict("ring_all_reduce", lab, "1MiB").time * 1e6, 1)
    119.8
    """

    def __init__(self, name: str = "network") -> None:
        self.name = name
        self._nodes: dict[str, _Node] = {}
        self._cables: list[_Cable] = []

    def __repr__(self) -> str:
        return f"NetworkBuilder({self.name!r}: {len(self._nodes)} nodes, {len(self._cables)} cables)"

    def hosts(self, *names: str, overhead: float | str | None = None, forwards: bool = False) -> NetworkBuilder:
        """Add hosts, on which ranks sit.

        Parameters
        ----------
        *names : str
            One for each.
        overhead : float, s, or str, optional
            Time per message at the sender. Default: not known, so that doors take the usual one.
        forwards : bool
            Whether they pass on what is for others, as hosts that are cabled to each other without a switch must.

        Raises
        ------
        InputError
            If there is a node of that name already.
        """
        for name in names:
            self._add(
                name, _Node(HOST, None if overhead is None else si_of(overhead, parse_time, "overhead"), True, forwards)
            )
        return self

    def switch(self, *names: str, aggregates: bool = False) -> NetworkBuilder:
        """Add switches.

        Parameters
        ----------
        *names : str
            One for each.
        aggregates : bool
            Whether they can add what passes through them.

        Raises
        ------
        InputError
            If there is a node of that name already.
        """
        for name in names:
            self._add(name, _Node(SWITCH, None, aggregates))
        return self

    def cable(
        self,
        a: str,
        b: str,
        *,
        bandwidth: float | str,
        latency: float | str = 0.0,
        buffer: float = float("inf"),
        loss: float = 0.0,
        count: int = 1,
    ) -> NetworkBuilder:
        """Join two nodes, in both directions; the nodes may be added afterwards.

        Parameters
        ----------
        a, b : str
            Names of the ends.
        bandwidth : float, bytes/s, or str
            Bandwidth, one way, such as ``100Gbps``.
        latency : float, s, or str
            Propagation latency.
        buffer : float, bytes
            Queue at the sending end.
        loss : float
            Probability that a packet is lost.
        count : int
            Parallel cables.

        Raises
        ------
        InputError
            If a quantity is none, or there is less than one cable.
        """
        if count < 1:
            raise InputError(f"cable {a}-{b}: count must be at least 1, got {count}")
        rate = si_of(bandwidth, parse_bandwidth, "bandwidth")
        self._cables += [_Cable(a, b, rate, si_of(latency, parse_time, "latency"), buffer, loss)] * count
        return self

    def build(self) -> Network:
        """Make the network.

        Raises
        ------
        InputError
            If a cable ends nowhere, a node has no cable, or a number is out of its range.
        """
        number = {name: i for i, name in enumerate(self._nodes)}
        for cable in self._cables:
            for end in (cable.a, cable.b):
                if end not in number:
                    hint = did_you_mean(alike(end, number), last=True) or f"; nodes: {', '.join(list(number)[:8])}"
                    raise InputError(f"{self.name}: cable {cable.a}-{cable.b} dangles: no node {end!r}{hint}")
        joined = {end for cable in self._cables for end in (cable.a, cable.b)}
        alone = [name for name in number if name not in joined]
        if alone and len(number) > 1:
            raise InputError(f"{self.name}: node {alone[0]!r} has no cable; join it with cable({alone[0]!r}, ...)")
        src, dst = both_ways([number[c.a] for c in self._cables], [number[c.b] for c in self._cables])
        nodes = list(self._nodes.values())
        bandwidth, latency, buffer, loss = (np.tile([getattr(c, f) for c in self._cables], 2) for f in PER_LINK)
        return Network(
            self.name,
            tuple(number),
            np.array([node.kind for node in nodes], np.uint8),
            src,
            dst,
            bandwidth,
            latency,
            buffer,
            loss,
            forwards=np.array([node.forwards for node in nodes], np.bool_),
            aggregates=np.array([node.aggregates for node in nodes], np.bool_),
            overhead=None if all(node.overhead is None for node in nodes) else [node.overhead or 0.0 for node in nodes],
        )

    def _add(self, name: str, node: _Node) -> None:
        if name in self._nodes:
            raise InputError(f"{self.name}: there is a node {name!r} already; each needs a name of its own")
        self._nodes[name] = node
