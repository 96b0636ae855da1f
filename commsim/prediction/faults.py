"""Faults as text: links and switches that fail, links that are slower, cables that go down during the run."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError, did_you_mean
from commsim.core.faults.named_links import kinds_of, nic_links
from commsim.core.faults.scaling import cables_at_part, scale_links
from commsim.core.names.hostlist import expand_hosts, spelled_out, split_hosts
from commsim.core.names.nodes_and_links import links_like
from commsim.core.network import SWITCH, Network
from commsim.core.network_queries import partners
from commsim.core.placement import Placement
from commsim.core.remark import Remark
from commsim.core.units import count_text, format_bandwidth, parse_bandwidth, parse_time, si_of
from commsim.routing.routing import is_hashed

if TYPE_CHECKING:
    from commsim.routing.flaps import Flaps

_PART = re.compile(r"(\d{1,9})|(\d{1,9}(?:\.\d+)?)%", re.ASCII)
_FACTOR = re.compile(r"\d{1,9}(\.\d+)?%?", re.ASCII)
_RATE = re.compile(r"\d{1,9}(\.\d+)? ?[A-Za-z/]+", re.ASCII)
_MAX_NAMES = 8
_MOST_FAILED = 100  # whose names are listed
UNWEIGHTED = Remark("ecmp-unweighted", "ECMP weighs no links: a slower one gets as many messages as the others")
DETECTION = "1ms"
DRAWN = ("links", "switches")
__all__ = [
    "DETECTION", "draws_faults", "failed_hosts", "failed_links", "flaps_of", "ranks_left", "with_faults",
]  # fmt: skip


def with_faults(
    network: Network, fail: Sequence[str], scale: Sequence[str], seed: int = 0
) -> tuple[Network, list[Remark]]:
    """Apply faults: first what fails, then what is slower.

    Parameters
    ----------
    network : Network
        Network without faults.
    fail : sequence of str
        ``link:A:B``, ``switch:NAME``, ``nic:NAME``, ``host:NAME``, ``gpu:NAME``, ``rail:N``, ``plane:N``, or a number
        or share that is drawn: ``links:5%``.
    scale : sequence of str
        ``link:PATTERN=FACTOR``, ``nic:NAME=FACTOR`` or ``links:10%=FACTOR``; a rate in place of a factor, ``=200Gbps``,
        is a part of the rate that a cable is sold with.
    seed : int
        Seed of what is drawn.

    Returns
    -------
    Network, list of Remark
        The network that is left, and what was drawn at random.

    Raises
    ------
    InputError
        If a text says nothing that can be understood, or names what is not there.
    """
    notes: list[Remark] = []
    whole = network
    for text in fail:
        network, drawn = _fail(network, text, seed, whole)
        notes += drawn
    left = network
    for text in scale:
        before, network = network, _scale(network, text, seed)
        if draws_faults([text]):
            notes.append(_drawn_cables(before, network, text))
    between = (network.kind[network.src] == SWITCH) & (network.kind[network.dst] == SWITCH)
    is_uneven = bool((network.bandwidth < left.bandwidth)[between].any()) or _has_fewer_beside(whole, left)
    about = [UNWEIGHTED] if is_hashed(network.routing) and is_uneven else []
    if len(scale) > 1:
        network = dataclasses.replace(network, name=_name_of_scaled(left, network))
    return network, [*notes, *about]


def failed_links(whole: Network, left: Network) -> list[Remark]:
    """Name the cables that are missing, each by the first of its links: a page draws only those that are left.

    Parameters
    ----------
    whole, left : Network
        Network without and with its faults.
    """
    first = np.flatnonzero(np.arange(whole.n_links) < partners(whole))
    missing = Counter(whole.link_name(int(i)) for i in first)
    missing -= Counter(left.link_name(i) for i in range(left.n_links))
    names = [name if n == 1 else f"{n} x {name}" for name, n in missing.items()]
    more = [f"and {len(names) - _MOST_FAILED} more"] if len(names) > _MOST_FAILED else []
    text = f"failed links: {', '.join([*names[:_MOST_FAILED], *more])}"
    return [Remark("links-failed", text)] if names else []


def failed_hosts(network: Network, fail: Sequence[str]) -> frozenset[str]:
    """Return the names of the nodes of all hosts and GPUs that are named in ``host:NAME`` or ``gpu:NAME`` of `fail`."""
    from commsim.core.faults.failures import gpu_node, host_nodes

    texts = [(what, name) for what, _, name in (text.partition(":") for text in fail) if name]
    named = {kind: [one for what, name in texts if what == kind for one in _listed(network, name)]
             for kind in ("host", "gpu")}  # fmt: skip
    nodes = [node for name in named["host"] for node in host_nodes(network, name)]
    return frozenset(network.nodes[node] for node in (*nodes, *(gpu_node(network, name) for name in named["gpu"])))


def ranks_left(network: Network, fail: Sequence[str]) -> Placement | None:
    """Return the places that are left to ranks where hosts or GPUs fail; None where none fail or nothing is left."""
    lost = failed_hosts(network, fail)
    left = [node for node in network.endpoints.tolist() if network.nodes[node] not in lost]
    return Placement(left) if left and len(left) < len(network.endpoints) else None


def _listed(network: Network, text: str) -> list[str]:
    """Return the names of a list as placements take it: ``n[019-024]``, ``h0-1`` or ``h0,h3``; of a node, its own."""
    if text in network.nodes:
        return [text]
    words = ([*expand_hosts(word)] if "[" in word else spelled_out([word]) for word in split_hosts(text))
    return list(itertools.chain.from_iterable(words))


def _has_fewer_beside(whole: Network, left: Network) -> bool:
    """Whether of the cables between two nodes some are missing, and not all."""
    were, are = (one.src.astype(np.int64) * one.n_nodes + one.dst for one in (whole, left))
    pairs, counts = np.unique(are, return_counts=True)
    before, many = np.unique(were, return_counts=True)
    return bool((counts < many[np.searchsorted(before, pairs)]).any())


def _name_of_scaled(whole: Network, scaled: Network) -> str:
    """Name a network after all that makes links slower: one phrase, with each rate once."""
    first = np.arange(whole.n_links) <= partners(whole)  # of each cable
    factors, counts = np.unique(np.round((scaled.bandwidth / whole.bandwidth)[first], 9), return_counts=True)
    slower = {float(factor): int(n) for factor, n in zip(factors, counts, strict=True) if factor != 1}
    return f"{whole.name} with {cables_at_part(slower)}" if slower else whole.name


def _drawn_cables(before: Network, after: Network, text: str) -> Remark:
    """Name the cables that were drawn, each by the first of its links."""
    changed = np.flatnonzero(before.bandwidth != after.bandwidth)
    cables = changed[changed < partners(after)[changed]]
    names = _named([after.link_name(int(i)) for i in cables])
    return Remark("faults-drawn", f"scale {text}: {count_text(len(cables), 'cable')}{names}")


def _named(names: Sequence[str]) -> str:
    """List the first of what was drawn, after a colon; nothing where nothing was drawn."""
    more = ["..."] if len(names) > _MAX_NAMES else []
    return f": {', '.join([*names[:_MAX_NAMES], *more])}" if names else ""


def draws_faults(texts: Sequence[str]) -> bool:
    """Whether a fault is drawn at random, so that the seed matters."""
    return any(text.partition(":")[0] in DRAWN for text in texts)


def flaps_of(
    flap: Sequence[str], network: Network, detection: str | float | None = None, rto: str | float | None = None
) -> Flaps | None:
    """Read cables that go down during the run; None where nothing flaps.

    Parameters
    ----------
    flap : sequence of str
        ``link:A:B@START+LENGTH`` or ``switch:NAME@START+LENGTH``.
    network : Network
        Network of the cables.
    detection, rto : str or float, s, optional
        Time until switches route around a cable that is down (default: 1 ms), and until senders repeat what it lost.

    Raises
    ------
    InputError
        If a flap cannot be read or names what is not there, two overlap, or a time is given without one.
    """
    from commsim.routing.flaps import read_flaps

    delays = {"detection": detection, "rto": rto}
    if not flap:
        for name, value in delays.items():
            if value is not None:
                raise InputError(f"{name} goes with flap")
        return None
    usual = {"detection": DETECTION, "rto": "0s"}
    times = [
        si_of(value, parse_time, name)
        for name, value in ((name, usual[name] if value is None else value) for name, value in delays.items())
    ]
    return read_flaps(flap, network, detection=times[0], rto=times[1])


def _fail(network: Network, text: str, seed: int, whole: Network) -> tuple[Network, list[Remark]]:
    """Return what is left, and what was drawn; rails and planes are numbered as in the whole network."""
    from commsim.core.faults import failures, rails_and_planes

    what, _, name = text.partition(":")
    parts = {"rail": rails_and_planes.rail_switches, "plane": rails_and_planes.plane_switches}
    if what in parts and name:
        return failures.remove_switches(network, parts[what](whole, _listed(network, name)), f"{what} {name}"), []
    named = {"link": failures.fail_links, "switch": failures.fail_switches, "nic": failures.fail_nics,
             "host": failures.fail_hosts, "gpu": failures.fail_gpus}  # fmt: skip
    if what in named and name:
        return named[what](network, [name] if what == "link" else _listed(network, name)), []
    if what not in DRAWN:
        meant = kinds_of(network, text)
        wanted = (
            "link:A:B, switch:NAME, nic:NAME, host:NAME, gpu:NAME, rail:N, plane:N, links:5%, links:3 or switches:1"
        )
        raise InputError(f"fail takes {wanted}, got {text!r}{did_you_mean(meant, last=True)}")
    drawn = failures.draw_failures(network, what, _read_fraction(name, f"fail {what}"), seed)
    names = [network.link_name(int(i)) if what == "links" else network.nodes[i] for i in drawn]
    remark = Remark("faults-drawn", f"fail {text}: {len(drawn)} failed{_named(names)}")
    remove = failures.remove_cables if what == "links" else failures.remove_switches
    return remove(network, drawn), [remark]


def _scale(network: Network, text: str, seed: int) -> Network:
    chosen, _, factor = text.rpartition("=")
    what, _, name = chosen.partition(":")
    if what not in ("link", "nic", "links") or not name or not (_FACTOR.fullmatch(factor) or _RATE.fullmatch(factor)):
        meant = [f"{one}={factor}" for one in kinds_of(network, chosen) if one.partition(":")[0] in ("link", "nic")]
        hint = did_you_mean([] if what in ("link", "nic") else meant, last=True)
        wanted = "link:PATTERN=FACTOR, nic:NAME=FACTOR or links:10%=FACTOR, such as link:leaf0:*=0.5"
        raise InputError(f"scale takes {wanted}, or a rate in place of a factor, =200Gbps, got {text!r}{hint}")
    if what == "links":
        if not _FACTOR.fullmatch(factor):
            raise InputError(f"scale links:N takes a factor, such as 0.5, got {text!r}")
        return scale_links(network, _number(factor), part=_read_fraction(name, "scale links"), seed=seed)
    links = nic_links(network, name) if what == "nic" else links_like(network, name)
    value = _number(factor) if _FACTOR.fullmatch(factor) else _part_of(network, links, factor)
    return scale_links(network, value, pattern=name, of_nics=what == "nic")


def _number(factor: str) -> float:
    """Return a factor, which may be in per cent."""
    return float(factor.removesuffix("%")) / (100 if factor.endswith("%") else 1)


def _part_of(network: Network, links: NDArray[np.int64], text: str) -> float:
    """Return the part that a rate is of what links are sold with: of a preset's 388 Gb/s, 200 Gb/s are half.

    Raises
    ------
    InputError
        If the links have several rates.
    """
    from topologies.sold_rates import sold_rate

    rates = np.unique(network.bandwidth[links])
    if len(rates) > 1:
        what = f"{format_bandwidth(rates[0])} to {format_bandwidth(rates[-1])}"
        raise InputError(f"scale: {text} is a different factor for each of these links ({what}); give a factor")
    return parse_bandwidth(text, "scale") / sold_rate(float(rates[0]))


def _read_fraction(text: str, flag: str) -> float:
    """Read a number, or a percentage as a part of 1; a number stays an int."""
    match = _PART.fullmatch(text)
    if match is None:
        raise InputError(f"{flag} takes a number or a percentage, such as 3 or 5%, got {text!r}")
    return int(match[1]) if match[1] else float(match[2]) / 100
