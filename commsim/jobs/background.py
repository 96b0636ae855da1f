"""Background traffic: which host sends how much to which other, and when."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.prediction.node_lists import ranks_named

from .job_entries import Background

MAX_MESSAGES = 20_000
# Bytes, and part of the messages that are no larger: a web search's traffic, as simulators of congestion control take
# it (Alizadeh et al., "Data center TCP (DCTCP)", SIGCOMM 2010, figure 4, in the steps of HPCC's simulator).
WEB_SEARCH = np.array(
    [(1, 0), (1e4, 0.15), (2e4, 0.2), (3e4, 0.3), (5e4, 0.4), (8e4, 0.53), (2e5, 0.6), (1e6, 0.7), (2e6, 0.8),
     (5e6, 0.9), (1e7, 0.97), (3e7, 1)]
)  # fmt: skip
Drawn = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]
__all__ = ["BackgroundMessages", "draw_messages", "mean_size"]


@dataclass(frozen=True, slots=True)
class BackgroundMessages:
    """Messages between hosts.

    Parameters
    ----------
    src, dst : int32[n]
        Nodes.
    size, start : float64[n], bytes and s
        Size and start of each message, in rising order of starts.
    of : int64[n]
        Which entry of the background each message is of.
    priority : int64[n]
        Priority of each, as of jobs: smaller numbers go first.
    """

    src: NDArray[np.int32]
    dst: NDArray[np.int32]
    size: NDArray[np.float64]
    start: NDArray[np.float64]
    of: NDArray[np.int64]
    priority: NDArray[np.int64]

    @classmethod
    def none(cls) -> BackgroundMessages:
        """Return no messages."""
        nodes, numbers, whole = np.empty(0, np.int32), np.empty(0), np.empty(0, np.int64)
        return cls(nodes, nodes, numbers, numbers, whole, whole)


def draw_messages(network: Network, background: tuple[Background, ...], seed: int) -> BackgroundMessages:
    """Draw all background traffic.

    Raises
    ------
    InputError
        If there are fewer than two hosts, more senders than hosts, or too many messages to simulate one by one.
    """
    rng = np.random.default_rng([seed, 1])
    draw = {"poisson": _poisson, "incast": _incast, "send": _send}
    drawn = [draw[b.kind](network, b, rng) for b in background]
    src, dst, size, start = (np.concatenate([part[k] for part in drawn]) if drawn else np.empty(0) for k in range(4))
    of = np.repeat(np.arange(len(drawn)), [len(part[3]) for part in drawn])
    order = np.argsort(start, kind="stable")
    if len(order) > MAX_MESSAGES:
        raise InputError(
            f"{len(order)} background messages are more than the {MAX_MESSAGES} that one run takes; "
            "give a smaller load, larger sizes, or an earlier end (until)"
        )
    of = of[order]
    priority = np.array([b.priority for b in background], np.int64)[of]
    return BackgroundMessages(
        src[order].astype(np.int32), dst[order].astype(np.int32), size[order], start[order], of, priority
    )


def mean_size(size: float | None) -> float:
    """Mean of the sizes that are drawn, bytes."""
    if size is not None:
        return size
    middle = (WEB_SEARCH[1:, 0] + WEB_SEARCH[:-1, 0]) / 2
    return float((middle * np.diff(WEB_SEARCH[:, 1])).sum())


def _poisson(network: Network, b: Background, rng: np.random.Generator) -> Drawn:
    hosts = _hosts(network, 2)
    rate = np.zeros(network.n_nodes)  # what a host can send: all its links together
    np.add.at(rate, network.src, network.bandwidth)
    wanted = b.load * rate[hosts].sum() / mean_size(b.size) * b.until
    if wanted > 2 * MAX_MESSAGES:  # before anything of that length is drawn
        raise InputError(
            f"about {wanted:.3g} background messages are more than the {MAX_MESSAGES} that one run takes; "
            "give a smaller load, larger sizes, or an earlier end (until)"
        )
    n = int(rng.poisson(wanted))
    src = rng.choice(len(hosts), n, p=rate[hosts] / rate[hosts].sum())
    dst = (src + rng.integers(1, len(hosts), n)) % len(hosts)
    sizes = np.full(n, b.size or 0.0)
    if b.size is None:
        sizes = np.ceil(np.interp(rng.uniform(size=n), WEB_SEARCH[:, 1], WEB_SEARCH[:, 0]))
    return hosts[src], hosts[dst], sizes, rng.uniform(0.0, b.until, n)


def _incast(network: Network, b: Background, rng: np.random.Generator) -> Drawn:
    hosts = _hosts(network, b.senders + 1)
    starts = np.arange(0.0, b.until, b.every)
    if len(starts) * b.senders > MAX_MESSAGES:
        raise InputError(f"incasts of {len(starts) * b.senders} messages, but one run takes {MAX_MESSAGES}")
    chosen = np.array([rng.choice(hosts, b.senders + 1, replace=False) for _ in starts])
    dst = np.repeat(chosen[:, 0], b.senders)
    return chosen[:, 1:].ravel(), dst, np.full(len(dst), b.size or 0.0), np.repeat(starts, b.senders)


def _send(network: Network, b: Background, rng: np.random.Generator) -> Drawn:  # noqa: ARG001 - nothing is drawn
    senders, receivers = (_named(network, text) for text in (b.source, b.target))
    src, dst = (pairs.ravel() for pairs in np.meshgrid(senders, receivers, indexing="ij"))
    if both := sorted({network.nodes[node] for node in src[src == dst].tolist()}):
        raise InputError(f"background: {both[0]} sends to itself: name it on one side only")
    starts = np.arange(0.0, b.until, b.every) if b.every else np.zeros(1)
    if len(starts) * len(src) > MAX_MESSAGES:
        raise InputError(f"background of {len(starts) * len(src)} messages, but one run takes {MAX_MESSAGES}")
    size = np.full(len(starts) * len(src), (b.size or 0.0) / len(receivers))
    return np.tile(src, len(starts)), np.tile(dst, len(starts)), size, np.repeat(starts, len(src))


def _named(network: Network, text: str) -> NDArray[np.int64]:
    try:
        nodes = ranks_named(text, network)
    except InputError:
        nodes = None
    if nodes is None:
        first, last = (network.nodes[network.endpoints[i]] for i in (0, -1))
        raise InputError(f"background: from and to must name hosts, {first} to {last}, or machines, got {text!r}")
    return np.asarray(nodes, np.int64)


def _hosts(network: Network, least: int) -> NDArray[np.int64]:
    hosts = np.asarray(network.endpoints, np.int64)
    if len(hosts) < least:
        raise InputError(f"background traffic needs {least} hosts, {network.name} has {len(hosts)}")
    return hosts
