"""Faults in time: cables that go down during a run and come up again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.faults.named_links import named_links, nic_links
from commsim.core.names.nodes_and_links import find_node
from commsim.core.network import SWITCH, Network
from commsim.core.network_queries import partners
from commsim.core.units import parse_time

GRAMMAR = (
    "link:A:B@START+LENGTH, nic:NAME@... or switch:NAME@..., such as link:leaf0:spine0@10ms+5ms, or with a pattern "
    "link:leaf0:*@10ms+5ms"
)
__all__ = ["GRAMMAR", "Flap", "Flaps", "read_flaps"]


@dataclass(frozen=True, slots=True)
class Flap:
    """Cables that are down for a while.

    Parameters
    ----------
    name : str
        Name that the user gave.
    links : tuple of int
        Both directions of each cable.
    at, length : float, s
        Time at which they go down, and duration.
    """

    name: str
    links: tuple[int, ...]
    at: float
    length: float

    @property
    def end(self) -> float:
        """When the cables are up again, s."""
        return self.at + self.length

    def __post_init__(self) -> None:
        if not (0 <= self.at < math.inf and 0 < self.length < math.inf):
            raise InputError(f"a flap starts at 0 s or later and lasts longer than 0 s, got {self.name}")


@dataclass(frozen=True, slots=True)
class Flaps:
    """All flaps of a run, and how network and hosts answer them.

    Parameters
    ----------
    flaps : tuple of Flap
        None of a cable that is down already.
    detection : float, s
        Time from a cable's going down, or up, until switches route around it, or over it. Shorter flaps are not
        noticed.
    rto : float, s
        Timeout after which a sender repeats what was lost, doubled each time; 0 where messages go on as soon as a path
        is up.
    """

    flaps: tuple[Flap, ...]
    detection: float = 0.0
    rto: float = 0.0

    def __post_init__(self) -> None:
        if not (0 <= self.detection < math.inf and 0 <= self.rto < math.inf):
            raise InputError(f"detection and rto are 0 s or more, got {self.detection} and {self.rto}")
        for i, flap in enumerate(self.flaps):
            for other in self.flaps[:i]:
                if set(flap.links) & set(other.links) and flap.at < other.end and other.at < flap.end:
                    raise InputError(f"flaps {other.name} and {flap.name} overlap: the same cable is down in both")

    def require_begun(self, end: float) -> None:
        """Refuse a flap that begins after the run; one that lasts longer is a cable that stays down.

        Parameters
        ----------
        end : float, s
            When the run ends.

        Raises
        ------
        InputError
            If a cable was to go down after that.
        """
        for flap in self.flaps:
            if flap.at >= end:
                raise InputError(
                    f"flap {flap.name} begins after {flap.at:g} s, and the run takes {end:g} s; begin earlier, or give "
                    "a larger size"
                )

    def changes(self) -> list[float]:
        """Return the times at which a link or the routing changes, rising, s."""
        times = {t for flap in self.flaps for t in (flap.at, flap.end)}
        times |= {t + self.detection for f in self.flaps if f.length >= self.detection for t in (f.at, f.end)}
        return sorted(times)

    def down(self, network: Network, now: float) -> NDArray[np.bool_]:
        """Find the links that are down from `now` on: bool[n_links]."""
        return self._links(network, [flap for flap in self.flaps if flap.at <= now < flap.end])

    def avoided(self, network: Network, now: float) -> NDArray[np.bool_]:
        """Find the links that switches route around from `now` on: bool[n_links]."""
        noticed = [f for f in self.flaps if f.length >= self.detection]
        late = self.detection
        return self._links(network, [f for f in noticed if f.at + late <= now < f.end + late])

    def resumes(self, lost_at: float, path_at: float) -> float:
        """When a sender that has lost a packet sends again: with the first repeat that finds a path, s."""
        if not self.rto or path_at <= lost_at:
            return path_at
        waited, interval = self.rto, 2 * self.rto
        while lost_at + waited < path_at * (1 - 1e-12):  # times that differ by rounding only are one time
            waited, interval = waited + interval, 2 * interval
        return lost_at + waited

    @staticmethod
    def _links(network: Network, flaps: Sequence[Flap]) -> NDArray[np.bool_]:
        chosen = np.zeros(network.n_links, np.bool_)
        for flap in flaps:
            chosen[list(flap.links)] = True
        return chosen


def read_flaps(texts: Sequence[str], network: Network, *, detection: float = 0.0, rto: float = 0.0) -> Flaps | None:
    """Read flaps as the command line names them; None without any.

    Parameters
    ----------
    texts : sequence of str
        Such as ``link:leaf0:spine0@10ms+5ms``; both directions of the cable, of each that a pattern with ``*`` fits, or
        of all of ``switch:NAME`` or ``nic:NAME``.
    network : Network
        Network with the links.
    detection, rto
        Same as in :class:`Flaps`.

    Raises
    ------
    InputError
        If a text cannot be read, names what is not there, or two of one cable overlap.
    """
    if not texts:
        return None
    return Flaps(tuple(_read_flap(text, network) for text in texts), detection, rto)


def _read_flap(text: str, network: Network) -> Flap:
    named, _, when = text.rpartition("@")
    what, _, name = named.partition(":")
    start, plus, length = when.partition("+")
    if what not in ("link", "nic", "switch") or not name or not plus:
        raise InputError(f"flap takes {GRAMMAR}, got {text!r}")
    if what != "switch":
        links = named_links(network, name) if what == "link" else nic_links(network, name)
    else:
        node = find_node(network, name)
        if network.kind[node] != SWITCH:
            raise InputError(f"flap switch:NAME takes a switch, but {name} of {network.name} is not one")
        links = np.flatnonzero((network.src == node) | (network.dst == node))
    both = np.unique(np.concatenate((links, partners(network)[links])))
    at, lasts = parse_time(start, "flap: the start"), parse_time(length, "flap: the length")
    return Flap(text, tuple(both.tolist()), at, lasts)
