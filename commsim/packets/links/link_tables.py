"""The tables of links, from the network and what packets meet on it; and how tables are enlarged when they are full."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.limits import expect_bytes
from commsim.core.network import SWITCH, Network
from commsim.packets import event_rows as s
from commsim.packets.aggregated import traffic_state as m
from commsim.packets.event_rows import ENDLESS, LINK_ROW, LONGEST, PS, zeros_on_lines
from commsim.packets.links.queues import Fabric

# Bytes from which on a table that is full grows by a 32nd part, and not to its double.
LARGE = 1 << 24
# Fields of the state that every result has as counters.
COUNTERS = ("duplicates", "drops_loss", "drops_full", "marks", "out_of_order", "timeouts")


def with_packets(jobs: m.AggregationState, n: int) -> m.AggregationState:
    """Return the tables with room for the workers of so many packets more; packets are the last that have sets."""
    if not len(jobs.workers):  # slots are not shared
        return jobs
    more = np.zeros((n, jobs.workers.shape[1]), np.uint64)
    return jobs._replace(workers=np.concatenate((jobs.workers, more)))


def more_records(name: str, table: Any, used: int, room: int, now: int) -> Any:
    """Return a table with room for so many records more than are used; a full one grows where it is.

    The system moves pages of a large table, and copies nothing, so that no run has its records twice.

    Raises
    ------
    InputError
        If a run needs too much memory; see :func:`commsim.core.limits.expect_bytes`.
    """
    n = len(table)
    if used + room <= n:
        return table
    more = n // 32 if n * table.itemsize > LARGE else max(n, 1 << 12)
    what = f"a run of {now / PS:g} s so far has {used} records ({name}); {n + more} of them"
    expect_bytes(float((n + more) * table.itemsize), what, "less")
    if not n:
        return np.zeros(more, table.dtype)
    table.resize(n + more, refcheck=False)  # of kernels, which have returned
    return table


def idle_links(n: int) -> s.Rows:
    """Lay out links without packets, whose buffers are endless and which take no time."""
    link: s.Rows = zeros_on_lines(n, LINK_ROW)
    for name in ("serving", "low_head", "low_tail", "high_head", "high_tail", "pipe_head", "pipe_tail", "shared"):
        link[name] = -1
    link["room"] = ENDLESS
    return link


def check_room(network: Network, fabric: Fabric, link: s.Rows, size: int) -> None:
    """Refuse queues into which a packet never fits.

    Parameters
    ----------
    network, fabric : Network, Fabric
        Network and its queues.
    link : LINK_ROW[n_links]
        Laid out of them.
    size : int, bytes
        Size of the largest packet on the wire.
    """
    room = min(float(link["room"].min(initial=ENDLESS)), fabric.shared_buffer * min(1.0, fabric.alpha))
    if room < size:
        raise InputError(f"{network.name}: every buffer must hold a packet of {size} bytes, got {room:g}")


def check_links(network: Network) -> None:
    """Refuse latencies, overheads and rates whose times do not fit into int64 picoseconds."""
    times = {
        "latency": network.latency,
        "sender's overhead": network.overhead,
        "receiver's overhead": network.recv_overhead,
    }
    for name, values in times.items():
        if values.max(initial=0.0) > LONGEST:
            raise InputError(f"{network.name}: a {name} must be below {LONGEST:g} s, got {values.max()} s")
    if (network.bandwidth * LONGEST < 1).any():
        slowest = network.bandwidth.min()
        raise InputError(f"{network.name}: a byte must leave in less than {LONGEST:g} s, got {slowest:g} B/s")


def link_tables(network: Network, fabric: Fabric) -> tuple[s.Rows, s.Rows]:
    """Lay out the links, and the buffers that links of a switch share.

    Returns
    -------
    LINK_ROW[n_links], BUFFER_ROW[n]

    Raises
    ------
    InputError
        If a loss is not in [0, 1), or a latency or a byte's time does not fit into int64 picoseconds.
    """
    check_links(network)
    link = idle_links(network.n_links)
    link["ps_per_byte"] = PS / network.bandwidth
    link["latency"] = np.rint(network.latency * PS)
    link["first_time"] = np.rint(network.overhead[network.src] * PS)
    link["last_time"] = np.rint(network.recv_overhead[network.dst] * PS)
    at_switch = network.kind[network.src] == SWITCH
    own = network.buffer if fabric.buffer is None else np.where(at_switch, fabric.buffer, network.buffer)
    link["room"] = _bytes(own)
    pause_at, link["xon"] = _bytes(np.array([fabric.pause_at, fabric.resume_at], np.float64))
    link["xoff"] = np.where(network.kind[network.dst] == SWITCH, pause_at, 0)
    _losses(network, fabric, link)
    link["lossy"] = (link["loss"] > 0) | (link["to_bad"] > 0)
    switches = np.flatnonzero(network.kind == SWITCH) if np.isfinite(fabric.shared_buffer) else np.empty(0, np.intp)
    buffer = np.zeros(max(1, len(switches)), s.BUFFER_ROW)
    if len(switches):
        buffer["total"], buffer["alpha"] = _bytes(np.full(len(switches), fabric.shared_buffer)), fabric.alpha
        link["shared"][at_switch] = np.searchsorted(switches, network.src[at_switch])
    return link, buffer


def check_times(network: Network, n_bytes: float) -> None:
    """Refuse bytes that the slowest link would send for longer than times can be.

    Parameters
    ----------
    network : Network
        Network with its rates.
    n_bytes : float, bytes
        Most that one link has to carry, headers included.

    Raises
    ------
    InputError
        If it takes longer than ``LONGEST``.
    """
    slowest = float(network.bandwidth.min(initial=np.inf))
    if n_bytes > LONGEST * slowest:
        raise InputError(
            f"{network.name}: packets are simulated for up to {LONGEST:g} s, and {n_bytes:.3g} bytes in all take "
            f"{n_bytes / slowest:.3g} s at {slowest:g} B/s: use the flow engine, or faster links"
        )


def _losses(network: Network, fabric: Fabric, link: s.Rows) -> None:
    loss = np.broadcast_to(np.asarray(network.loss if fabric.loss is None else fabric.loss, np.float64), len(link))
    if not ((loss >= 0) & (loss < 1)).all():
        raise InputError(f"a loss is in [0, 1), got {loss[~((loss >= 0) & (loss < 1))][0]}")
    if fabric.loss_burst == 1:
        link["loss"] = loss
        return
    # in the long run to_bad / (to_bad + to_good) of the packets are lost
    link["loss_bad"], link["to_good"] = 1.0, 1.0 / fabric.loss_burst
    link["to_bad"] = link["to_good"] * loss / (1 - loss)
    if (link["to_bad"] > 1).any():
        raise InputError(
            f"a loss of {loss.max()} in bursts of {fabric.loss_burst} packets cannot be: use longer bursts"
        )


def _bytes(values: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.minimum(values, ENDLESS).astype(np.int64)
