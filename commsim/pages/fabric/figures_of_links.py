"""Queues, ways and packets over time, of a run whose links were sampled."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import SWITCH, Network
from commsim.core.network_queries import tiers
from commsim.packets.link_samples import LinkSamples
from commsim.pages.figure import Figure, NothingToDraw
from commsim.pages.figure_tables import Column, FigureTable, number_column, word_column

MAX_PARTS, MAX_QUEUES, MAX_SWITCHES, MAX_WAYS = 120, 48, 6, 64
Numbers = NDArray[np.int64]


def figures_of_samples(network: Network, samples: LinkSamples) -> tuple[list[Figure], dict[str, str]]:
    """Return the figures of sampled links, by the names that ``commsim plot`` has for them.

    Parameters
    ----------
    network, samples
        Same as in :func:`queues`.

    Returns
    -------
    list of Figure, dict of str to str
        And why others are left out.
    """
    makers: dict[str, Callable[[], Figure]] = {
        "queues": lambda: queues(network, samples),
        "packets": lambda: packet_counts(samples),
        "fullest": lambda: fullest(network, samples),
        "ways": lambda: ways(network, samples),
    }
    return make_figures(makers)


def make_figures(makers: Mapping[str, Callable[[], Figure]]) -> tuple[list[Figure], dict[str, str]]:
    """Return the figures that can be made, and why others are left out, by name."""
    figures: list[Figure] = []
    left_out: dict[str, str] = {}
    for name, make in makers.items():
        try:
            figures.append(make())
        except NothingToDraw as why:
            left_out[name] = str(why)
    return figures, left_out


def queues(network: Network, samples: LinkSamples, of_run: str = "") -> Figure:
    """Depth of queues over time: the fullest and the mean, by where their links lead.

    Parameters
    ----------
    network : Network
        Network of the run.
    samples : LinkSamples
        Samples of its links.
    of_run : str
        Name of the run, where a page has several.
    """
    first = _parts(samples)
    kinds = _kinds(network)
    names: list[str] = []
    which, depth = [], []
    for kind in dict.fromkeys(kinds.tolist()):
        links = np.flatnonzero((kinds == kind) & (samples.sent[-1] > 0))
        if not len(links):
            continue
        queued = samples.queued[:, links]
        fullest = np.maximum.reduceat(queued.max(axis=1), first[:-1])
        mean = np.add.reduceat(queued.mean(axis=1), first[:-1]) / np.diff(first)
        for word, values in (("fullest", fullest), ("mean", mean)):
            which.append(np.full(len(values), len(names)))
            names.append(f"{kind}, {word}")
            depth.append(values)
    if not names:
        raise NothingToDraw("no link carried a packet")
    table = FigureTable.of((
        Column("queues", np.concatenate(which), "", tuple(names)),
        number_column("time_s", np.tile(samples.times[first[:-1]], len(names))),
        number_column("queue_B", np.concatenate(depth)),
    ))  # fmt: skip
    caption = (
        f"Bytes that queue before links that carried packets, in {len(first) - 1} parts of the time: the fullest queue "
        "at any look in a part, and the mean of all."
    )
    roles = {"x": "time_s", "y": "queue_B", "by": "queues"}
    return Figure("queues", "curves", "Queue depth over time", caption, table, roles, {"x": "time", "y": "queued"},
                  of_run=of_run)  # fmt: skip


def fullest(network: Network, samples: LinkSamples, of_run: str = "") -> Figure:
    """Depth over time of the queues that were fullest, as a share of their room; in bytes where buffers have no end.

    Parameters
    ----------
    network, samples, of_run
        Same as in :func:`queues`.
    """
    first = _parts(samples)
    peak = samples.queued.max(axis=0)
    links = np.argsort(-peak, kind="stable")
    links = links[peak[links] > 0][:MAX_QUEUES]
    if not len(links):
        raise NothingToDraw("no packet queued at any look")
    links = np.sort(links)
    depth = np.maximum.reduceat(samples.queued[:, links], first[:-1], axis=0)
    ends = bool(np.isfinite(samples.room[links]).all())
    n = len(first) - 1
    table = FigureTable.of((
        Column("link", np.repeat(np.arange(len(links)), n), "", tuple(network.link_name(i) for i in links.tolist())),
        number_column("time_s", np.tile(samples.times[first[:-1]], len(links))),
        *([number_column("share_of_room", (depth / samples.room[links]).T.ravel(), "")] if ends else []),
        number_column("queue_B", depth.T.ravel()),
    ))  # fmt: skip
    n_used = int((peak > 0).sum())
    shown = "all queues that held a packet" if n_used == len(links) else f"the {len(links)} fullest of {n_used} queues"
    what = "as a share of its room" if ends else "in bytes, since some buffers have no end"
    caption = f"Most that was in {shown} in each part of the time, {what}."
    value, word = ("share_of_room", "filled") if ends else ("queue_B", "queued")
    return Figure("fullest", "heat", "Fullest queues over time", caption, table,
                  {"x": "time_s", "y": "link", "value": value}, {"x": "time", "value": word},
                  of_run=of_run)  # fmt: skip


def ways(network: Network, samples: LinkSamples, of_run: str = "") -> Figure:
    """Which of its links upwards each switch chose when: the load of each over time.

    Parameters
    ----------
    network, samples, of_run
        Same as in :func:`queues`.

    Raises
    ------
    NothingToDraw
        If no switch that sent has two links upwards.
    """
    first = _parts(samples)
    choice = _upwards(network)
    sent = samples.sent[-1]
    of_switch = np.bincount(network.src[choice], weights=sent[choice], minlength=network.n_nodes)
    of_switch[np.bincount(network.src[choice], minlength=network.n_nodes) < 2] = 0
    chosen = np.argsort(-of_switch, kind="stable")
    chosen = chosen[of_switch[chosen] > 0]
    if not len(chosen):
        raise NothingToDraw("no switch that sent packets had two links to choose from")
    switches = np.sort(chosen[:MAX_SWITCHES])
    links = np.concatenate([choice[network.src[choice] == s][:MAX_WAYS] for s in switches])
    seconds = np.diff(samples.times[first])
    load = np.diff(samples.sent[first][:, links], axis=0) / (seconds[:, np.newaxis] * network.bandwidth[links])
    n, per_link = len(seconds), len(links)
    place = np.searchsorted(switches, network.src[links])
    ends = [network.link_name(i).partition(":")[2] for i in links.tolist()]  # alike in all switches of a tier
    to = word_column("to", [end for end in ends for _ in range(n)])
    table = FigureTable.of((
        Column("switch", np.repeat(place, n), "", tuple(network.nodes[s] for s in switches.tolist())),
        to,
        number_column("time_s", np.tile(samples.times[first[:-1]], per_link)),
        number_column("load", np.minimum(load, 1.0).T.ravel(), ""),
    ))  # fmt: skip
    uneven = max(_unevenness(network, choice, sent, s) for s in chosen.tolist())
    count = (
        f"the {len(switches)} of {len(chosen)} switches that sent most" if len(chosen) > len(switches) else "switches"
    )
    caption = (
        f"Load of the links upwards of {count}: which of them packets took when. Over the whole run the busiest link "
        f"of a switch carried at most {uneven:.3g} times the mean of its links."
    )
    return Figure("ways", "heat", "Path choice over time", caption, table,
                  {"x": "time_s", "y": "to", "value": "load", "facet": "switch"}, {"x": "time", "value": "load"},
                  of_run=of_run)  # fmt: skip


def packet_counts(samples: LinkSamples, of_run: str = "") -> Figure:
    """Packets that were sent again, trimmed, marked or dropped, in each part of the time.

    Parameters
    ----------
    samples : LinkSamples
        Samples of the run.
    of_run : str
        Its name.
    """
    first = _parts(samples)
    met = [name for name, counts in samples.counts.items() if counts[-1] > 0]
    if not met:
        names = ", ".join(samples.counts)
        raise NothingToDraw(f"no packet was {names}")
    per_part = [np.diff(samples.counts[name][first]) for name in met]
    n = len(first) - 1
    table = FigureTable.of((
        Column("packets", np.repeat(np.arange(len(met)), n), "", tuple(met)),
        number_column("time_s", np.tile(samples.times[first[:-1]], len(met))),
        number_column("count", np.concatenate(per_part), ""),
    ))  # fmt: skip
    every = float(samples.times[first[-1]] - samples.times[first[0]]) / n
    totals = ", ".join(f"{samples.counts[name][-1]} {name}" for name in met)
    caption = f"Packets in each part of {every * 1e6:.3g} us; until the last look {totals}."
    return Figure("packets", "curves", "Packets sent again, marked and lost", caption, table,
                  {"x": "time_s", "y": "count", "by": "packets"}, {"x": "time", "y": "packets"},
                  of_run=of_run)  # fmt: skip


def _parts(samples: LinkSamples) -> Numbers:
    """Edges of the parts of the time, at least one part.

    Raises
    ------
    NothingToDraw
        If there are fewer than two samples.
    """
    first = samples.parts(MAX_PARTS)
    if len(first) < 2:
        raise NothingToDraw("links were looked at less than twice: sample more often")
    return first


def _kinds(network: Network) -> NDArray[np.str_]:
    """Name each link by where its queue is and where it leads."""
    from_switch, to_switch = network.kind[network.src] == SWITCH, network.kind[network.dst] == SWITCH
    words = np.where(to_switch, "between switches", "switches to hosts")
    return np.where(from_switch, words, "at hosts")


def _upwards(network: Network) -> Numbers:
    """Links from a switch to one that is no nearer to hosts: those among which a switch chooses."""
    tier = tiers(network)
    between = (network.kind[network.src] == SWITCH) & (network.kind[network.dst] == SWITCH)
    return np.flatnonzero(between & (tier[network.dst] >= tier[network.src]))


def _unevenness(network: Network, choice: Numbers, sent: Numbers, switch: int) -> float:
    """How much more the busiest of a switch's links upwards carried than their mean, in relation to their capacity."""
    links = choice[network.src[choice] == switch]
    share = sent[links] / network.bandwidth[links]
    return float(share.max() / share.mean())
