"""What the packet engine must know of queues and links beside the network itself."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.errors import InputError
from commsim.core.network import SWITCH, Network

from .packet_state import BUFFER_ROW, LINK_ROW

PS = 1e12  # picoseconds per second
ENDLESS = 1 << 61  # bytes
LONGEST = 1e6  # seconds; far inside the range of an int64 of picoseconds


@dataclass(frozen=True, slots=True)
class Fabric:
    """Queues, marks, pauses and losses.

    Parameters
    ----------
    buffer : float, bytes, optional
        Of each queue of a switch; the network's own unless given.
    shared_buffer : float, bytes
        What the queues of a switch have together; infinite by default.
    alpha : float
        A queue may fill `alpha` times what is free of the shared buffer (dynamic threshold).
    ecn_min, ecn_max : float, bytes
        Queue of a switch from which packets are marked at random, and from which all are; 0 for never.
    ecn_probability : float
        Chance of a mark just below `ecn_max`.
    pause_at, resume_at : float, bytes
        What may wait in a switch of one link's packets before that link is paused (PFC), and when it goes on; 0 for
        never.
    loss : float64[n_links] or float, optional
        Chance that a packet is lost on a link (on the link's good state); the network's own unless given.
    loss_burst : float
        Packets that a burst of losses lasts on the average (Gilbert-Elliott, with every packet of the bad state
        lost); 1 for independent losses.
    """

    buffer: float | None = None
    shared_buffer: float = float("inf")
    alpha: float = 1.0
    ecn_min: float = 0.0
    ecn_max: float = 0.0
    ecn_probability: float = 1.0
    pause_at: float = 0.0
    resume_at: float = 0.0
    loss: ArrayLike | None = None
    loss_burst: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.ecn_min <= self.ecn_max:
            raise InputError(f"marking needs 0 <= ecn_min <= ecn_max, got {self.ecn_min} and {self.ecn_max}")
        if not 0 <= self.ecn_probability <= 1:
            raise InputError(f"ecn_probability is in [0, 1], got {self.ecn_probability}")
        if self.pause_at and not 0 <= self.resume_at < self.pause_at:
            raise InputError(f"pausing needs 0 <= resume_at < pause_at, got {self.resume_at} and {self.pause_at}")
        if self.buffer is not None and not self.buffer > 0:
            raise InputError(f"a queue needs a buffer > 0, got {self.buffer}")
        if not self.shared_buffer > 0 or not self.alpha > 0:
            raise InputError(f"a shared buffer needs size and alpha > 0, got {self.shared_buffer} and {self.alpha}")
        if not 1 <= self.loss_burst < math.inf:
            raise InputError(f"a burst of losses is at least 1 packet, and ends, got {self.loss_burst}")


def link_tables(network: Network, fabric: Fabric) -> tuple[NDArray[np.void], NDArray[np.void]]:
    """Lay out the links, and the buffers that links of a switch share.

    Returns
    -------
    LINK_ROW[n_links], BUFFER_ROW[n]

    Raises
    ------
    InputError
        If a loss is not in [0, 1), or a latency or a byte's time does not fit into int64 picoseconds.
    """
    link = np.zeros(network.n_links, LINK_ROW)
    if (network.latency > LONGEST).any():
        raise InputError(f"{network.name}: a latency must be below {LONGEST:g} s, got {network.latency.max()} s")
    if (network.bandwidth * LONGEST < 1).any():
        slowest = network.bandwidth.min()
        raise InputError(f"{network.name}: a byte must leave in less than {LONGEST:g} s, got {slowest:g} B/s")
    link["ps_per_byte"] = PS / network.bandwidth
    link["latency"] = np.rint(network.latency * PS)
    link["first_time"] = np.rint(network.overhead[network.src] * PS)
    for field in ("head", "tail", "pipe_head", "pipe_tail", "shared"):
        link[field] = -1
    at_switch = network.kind[network.src] == SWITCH
    own = network.buffer if fabric.buffer is None else np.where(at_switch, fabric.buffer, network.buffer)
    link["buffer"] = _bytes(own)
    link["ecn_min"], link["ecn_max"] = np.where(at_switch, [[fabric.ecn_min], [fabric.ecn_max]], 0)
    link["ecn_probability"] = fabric.ecn_probability
    link["xoff"] = np.where(network.kind[network.dst] == SWITCH, fabric.pause_at, 0)
    link["xon"] = fabric.resume_at
    _losses(network, fabric, link)
    switches = np.flatnonzero(network.kind == SWITCH) if np.isfinite(fabric.shared_buffer) else np.empty(0, np.intp)
    buffer = np.zeros(max(1, len(switches)), BUFFER_ROW)
    if len(switches):
        buffer["total"], buffer["alpha"] = _bytes(np.full(len(switches), fabric.shared_buffer)), fabric.alpha
        link["shared"][at_switch] = np.searchsorted(switches, network.src[at_switch])
    return link, buffer


def _losses(network: Network, fabric: Fabric, link: NDArray[np.void]) -> None:
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
