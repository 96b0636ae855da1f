"""What packets meet: queues, marks, pauses and losses."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from commsim.core.cost import ROCE_HEADER, Framing
from commsim.core.errors import InputError
from commsim.core.network import SWITCH, Network

ROCE = Framing(4096, ROCE_HEADER)

# The same headers, and the AETH of an acknowledgement.
ACK_BYTES = 86

# Queues of DCQCN's paper, bytes, on links of 40 Gbit/s: marks at random from and up to, the chance just below that; and
# where its switches pause.
DCQCN_RATE, DCQCN_MARKS, DCQCN_PAUSE = 5e9, (5e3, 200e3, 0.01), 500e3

# Share of the threshold of a pause down to which the link stays paused.
RESUME = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What packets of all transports of a run meet alike: losses, shared buffers, pauses and classes.

    Parameters
    ----------
    loss : float64[n_links] or float, optional
        Chance that a packet is lost on a link (on the link's good state); by default the network's own.
    loss_burst : float
        Packets that a burst of losses lasts on the average (Gilbert-Elliott, with every packet of the bad state
        lost); 1 for independent losses.
    shared_buffer : float, bytes
        What the queues of a switch have together; infinite by default.
    alpha : float
        A queue may fill `alpha` times what is free of the shared buffer (dynamic threshold).
    pause_at, resume_at : float, bytes
        What may wait in a switch of one link's packets of a priority before that link is paused for it (PFC, IEEE
        802.1Qbb), and when it goes on; 0 for never.
    class_weights : tuple of float
        Share of a link that packets of each priority of jobs may have, the first one's first; none where the first one
        goes first.
    """

    loss: ArrayLike | None = None
    loss_burst: float = 1.0
    shared_buffer: float = float("inf")
    alpha: float = 1.0
    pause_at: float = 0.0
    resume_at: float = 0.0
    class_weights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.pause_at and not 0 <= self.resume_at < self.pause_at:
            raise InputError(f"pausing needs 0 <= resume_at < pause_at, got {self.resume_at} and {self.pause_at}")
        if not self.shared_buffer > 0 or not self.alpha > 0:
            raise InputError(f"a shared buffer needs size and alpha > 0, got {self.shared_buffer} and {self.alpha}")
        if not 1 <= self.loss_burst < math.inf:
            raise InputError(f"a burst of losses is at least 1 packet, and ends, got {self.loss_burst}")
        if not all(0 < weight < math.inf for weight in self.class_weights):
            raise InputError(f"weights of priorities are above 0, got {self.class_weights}")

    @property
    def conditions(self) -> dict[str, Any]:
        """Values of these, by name."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(Conditions)}


@dataclass(frozen=True, slots=True)
class Fabric(Conditions):
    """Queues, marks, pauses and losses.

    Parameters
    ----------
    buffer : float, bytes, optional
        Buffer of each queue of a switch; by default the network's own.
    ecn_min, ecn_max : float, bytes
        Queue of a switch from which packets are marked at random, and from which all are; 0 for never.
    ecn_probability : float
        Chance of a mark just below `ecn_max`.
    loss, loss_burst, shared_buffer, alpha, pause_at, resume_at, class_weights
        Same as in :class:`Conditions`.
    """

    buffer: float | None = None
    ecn_min: float = 0.0
    ecn_max: float = 0.0
    ecn_probability: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.ecn_min <= self.ecn_max:
            raise InputError(f"marking needs 0 <= ecn_min <= ecn_max, got {self.ecn_min} and {self.ecn_max}")
        if not 0 <= self.ecn_probability <= 1:
            raise InputError(f"ecn_probability is in [0, 1], got {self.ecn_probability}")
        if self.buffer is not None and not self.buffer > 0:
            raise InputError(f"a queue needs a buffer > 0, got {self.buffer}")
        Conditions.__post_init__(self)


def usual_queues(transport: str, fastest: float) -> Fabric:
    """Return what a transport over one path assumes of switches unless something else is given.

    Parameters
    ----------
    transport : str
        Name of a transport. ``dctcp`` marks from a queue of 30 kB per 10 Gbit/s on; ``dcqcn`` marks at random from 5 to
        200 kB per 40 Gbit/s and pauses; others have queues without end.
    fastest : float, bytes/s
        Rate of the network's fastest link.
    """
    if transport == "dctcp":
        queue = 30e3 * fastest / 1.25e9
        return Fabric(ecn_min=queue, ecn_max=queue)
    if transport == "dcqcn":
        scale, (low, high, chance) = fastest / DCQCN_RATE, DCQCN_MARKS
        return Fabric(ecn_min=low * scale, ecn_max=high * scale, ecn_probability=chance,
                      pause_at=DCQCN_PAUSE * scale, resume_at=RESUME * DCQCN_PAUSE * scale)  # fmt: skip
    return Fabric()


def least_buffer(network: Network, buffer: float | None) -> float:
    """Return the size of the smallest queue of a switch, in bytes; infinity where queues have no end.

    Parameters
    ----------
    network : Network
        Network, whose own buffers count where they are smaller.
    buffer : float, bytes, optional
        Size of each queue.
    """
    own = network.buffer[network.kind[network.src] == SWITCH]
    return float(own.min(initial=math.inf if buffer is None else buffer))


def pauses_in_time(usual: Fabric, network: Network, buffer: float | None) -> Fabric:
    """Return the usual queues, with pauses that begin before a queue of this size is full.

    All other links of a switch may send to one queue: each has an equal part of it. A link goes on for a round trip
    after it is told to pause, and for a packet at each end, so that much of its part stays free.

    Parameters
    ----------
    usual : Fabric
        What is assumed of switches with deep queues.
    network : Network
        Network whose switch with the most links decides.
    buffer : float, bytes, optional
        Size of each queue; by default the network's own.
    """
    room = least_buffer(network, buffer)
    if math.isinf(room):
        return usual
    into = network.kind[network.dst] == SWITCH
    n_links = int(np.bincount(network.dst[into]).max(initial=2)) - 1
    packet = ROCE.payload + ROCE.header
    late = float((2 * network.latency * network.bandwidth)[into].max(initial=0.0)) + 2 * packet
    pause_at = min(usual.pause_at, max(room / max(n_links, 1) - late, packet))
    return dataclasses.replace(usual, pause_at=pause_at, resume_at=RESUME * pause_at)
