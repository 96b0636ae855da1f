"""What is to be simulated: messages, their transport, how it spreads packets over paths, and what switches do."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from commsim.core.cost import Framing
from commsim.core.errors import InputError, unknown_name
from commsim.core.network import Network
from commsim.packets import codes
from commsim.packets.links.queues import ACK_BYTES, ROCE, Conditions, Fabric, pauses_in_time, usual_queues
from commsim.packets.transports.control_constants import Constants
from commsim.packets.transports.transports import Transport, transport_of

BALANCINGS = {
    "ecmp": codes.ECMP, "oblivious": codes.OBLIVIOUS, "bitmap": codes.BITMAP, "reps": codes.REPS,
    "mixed": codes.MIXED, "adaptive": codes.ADAPTIVE, "flowlet": codes.FLOWLET, "path": codes.PATH,
}  # fmt: skip
MOST_ENTROPIES = 1 << 16
# How losses are made good: what is missing alone, or all that was sent since the first packet that is missing.
RECOVERIES = ("selective", "go-back-n")


@dataclass(frozen=True, slots=True)
class Spraying(Conditions):
    """How hosts send and switches forward; what is not given follows from the network.

    Parameters
    ----------
    transport : str
        One of ``TRANSPORTS``, with constants: ``NAME:key=value,...``.
    balancing : str
        One of ``BALANCINGS``: how a sender chooses a packet's entropy, ``adaptive`` or ``flowlet`` for the switch's
        choice, ``path`` for the one path that the routing gives each message.
    entropies : int
        Paths that a message tries, a power of two.
    payload, header : int, bytes
        Payload and header of a packet; a trimmed packet is a header long.
    ack_bytes : int, bytes, optional
        Size of an answer; by default that of a header.
    ack_every : int, optional
        Packets that one acknowledgement may answer; by default what the transport says.
    recovery : str
        One of ``RECOVERIES``: after a loss only what is missing is sent again, or all since then, of which the receiver
        keeps nothing (go-back-N); that is for one path, and for ``window``, ``dctcp`` and ``dcqcn``.
    queue : float, bytes, optional
        Data that a switch's link holds, if the network's buffer is not less; by default rate times round trip, and
        without end for messages that keep to a path by ``window``, ``dctcp`` or ``dcqcn``.
    ecn : (float, float[, float]), bytes, optional
        Queue at which marks begin, and at which they are certain, and their probability just below that (default 1); by
        default a quarter and three quarters of the queue, except for transports with marks of their own. (0, 0) marks
        nothing.
    rto : float, s, optional
        Time without an answer after which a packet is sent again; by default 15 us and six full queues, or 1 ms where
        queues have no end.
    window : float, bytes, optional
        Initial window, and the most credit at a time; by default one and a half times rate times round trip.
    trims : bool
        Whether a full queue trims; else it drops.
    loss, loss_burst, shared_buffer, alpha, pause_at, resume_at, class_weights
        Same as in :class:`commsim.packets.links.queues.Conditions`; pauses need switches that do not trim.
    choices : int
        Links that an adaptive switch compares.
    flowlet_gap : float, s
        Pause in a message after which a switch chooses its link anew; 0 for a round trip.
    sample : float, s
        Interval between two samples of queues and links; 0 for none.
    seed : int
        Seed of all random draws.

    Raises
    ------
    InputError
        If a name is unknown or a number is out of its range.
    """

    transport: str = "nscc"
    balancing: str = "mixed"
    entropies: int = 128
    payload: int = 4096
    header: int = 64
    ack_bytes: int | None = None
    ack_every: int | None = None
    rto: float | None = None
    recovery: str = "selective"
    queue: float | None = None
    ecn: tuple[float, ...] | None = None
    window: float | None = None
    trims: bool = True
    choices: int = 2
    flowlet_gap: float = 0.0
    sample: float = 0.0
    seed: int = 1

    def __post_init__(self) -> None:
        rules, _ = self.settled
        if self.balancing not in BALANCINGS:
            raise unknown_name("balancing", self.balancing, BALANCINGS)
        if rules.one_path and self.entropies > 1 and self.balancing not in ("ecmp", "flowlet", "path"):
            raise InputError(f"{self.transport} follows the links of one path: balancing ecmp, flowlet or path")
        if self.recovery not in RECOVERIES:
            raise InputError(f"recovery is one of {', '.join(RECOVERIES)}, got {self.recovery!r}")
        if self.recovery != "selective" and not (self.on_path and rules.usual_path and not self.trims):
            raise InputError(
                "recovery go-back-n needs packets in order, and switches that drop: transport window, dctcp or dcqcn "
                "over one path, without trimming"
            )
        if not 1 <= self.entropies <= MOST_ENTROPIES or self.entropies & (self.entropies - 1):
            raise InputError(f"entropies are a power of two from 1 to {MOST_ENTROPIES}, got {self.entropies}")
        if not 1 <= self.payload <= 1 << 20 or not 0 <= self.header <= 1 << 20:
            sizes = f"{self.payload} and {self.header}"
            raise InputError(f"a packet has 1 byte to 1 MiB and a header of at most 1 MiB, got {sizes}")
        if not 0 <= (self.ack_bytes or 0) < 2**15 or (self.ack_every is not None and not 1 <= self.ack_every < 2**31):
            got = f"{self.ack_bytes} and {self.ack_every}"
            raise InputError(f"acknowledgements have 0 to 32767 bytes and answer 1 packet or more, got {got}")
        mtu = self.payload + self.header
        for name in ("queue", "window"):
            if (value := getattr(self, name)) is not None and not (mtu <= value < 1e12 or value == np.inf):
                raise InputError(f"a {name} holds at least one packet of {mtu} bytes, got {value:g}")
        if self.ecn is not None and not 0 <= self.ecn[0] <= self.ecn[1]:
            raise InputError(f"marks begin before they are certain, got {self.ecn[0]:g} and {self.ecn[1]:g} bytes")
        if self.ecn is not None and len(self.ecn) > 2 and not 0 <= self.ecn[2] <= 1:
            raise InputError(f"the chance of a mark is above 0 and at most 1, got {self.ecn[2]:g}")
        if self.pause_at and self.trims:
            raise InputError("switches that pause (PFC) drop nothing, and trim nothing: add --no-trimming")
        Conditions.__post_init__(self)
        if not (self.sample == 0 or 1e-9 <= self.sample < 1e3):
            raise InputError(f"a time between samples is from 1 ns to 1000 s, got {self.sample:g} s")
        if self.rto is not None and not 1e-9 <= self.rto <= 1e3:
            raise InputError(f"rto is between 1 ns and 1000 s, got {self.rto} s")
        if not 0 <= self.flowlet_gap < 1:
            raise InputError(f"a pause between flowlets is from 0 to 1 s, got {self.flowlet_gap:g} s")
        if self.choices < 1:
            raise InputError(f"an adaptive switch compares at least 1 link, got {self.choices}")

    @property
    def on_path(self) -> bool:
        """Whether all packets of a message keep to the path that the routing gives it."""
        return self.balancing == "path"

    @property
    def fabric(self) -> Fabric:
        """What packets meet; queues and marks that are not given follow from the network, and are none here."""
        low, high, chance = (*(self.ecn or (0.0, 0.0)), 1.0)[:3]
        return Fabric(buffer=self.queue, ecn_min=low, ecn_max=high, ecn_probability=chance, **self.conditions)

    def with_fabric(self, fabric: Fabric) -> Spraying:
        """Return the same where packets meet other queues, marks, pauses and losses."""
        marks = (fabric.ecn_min, fabric.ecn_max, fabric.ecn_probability)
        return dataclasses.replace(self, queue=fabric.buffer, ecn=marks, **fabric.conditions)

    @property
    def settled(self) -> tuple[Transport, Constants]:
        """The transport and its constants."""
        return transport_of(self.transport)


def over_path(
    transport: str = "window",
    *,
    fabric: Fabric | None = None,
    window: float | None = None,
    ack_every: int | None = None,
    rto: float | None = None,
    recovery: str = "selective",
    ack_bytes: int = ACK_BYTES,
    framing: Framing = ROCE,
) -> Spraying:
    """Return how messages are sent that keep to the path which the routing gives each.

    Parameters
    ----------
    transport : str
        One of ``TRANSPORTS``, with constants.
    fabric : Fabric, optional
        Queues, marks, pauses and losses; by default queues without end.
    window : float, bytes, optional
        Payload outstanding at most, in whole packets; by default what the transport says.
    ack_every, rto, recovery, ack_bytes
        As in :class:`Spraying`.
    framing : Framing
        How messages are cut into packets; by default RoCE's 4,096 and 82 bytes.
    """
    fabric = fabric or Fabric()
    if window is not None:
        window = max(ack_every or 1, window // framing.payload) * (framing.payload + framing.header)
    how = Spraying(transport, "path", 1, ack_every=ack_every, rto=rto, ack_bytes=ack_bytes, trims=False,
                   recovery=recovery)  # fmt: skip
    return dataclasses.replace(in_packets(how, framing), window=window).with_fabric(fabric)


def usual_path(
    transport: str,
    network: Network,
    *,
    window: float | None = None,
    ack_every: int | None = None,
    recovery: str = "selective",
    **queues: Any,
) -> Spraying:
    """Return a transport over one path with the queues that it usually meets on a network.

    Parameters
    ----------
    transport, window, ack_every, recovery
        Same as in :func:`over_path`.
    network : Network
        Network whose fastest link decides the usual marks, and whose finite queues decide when pauses begin.
    **queues
        What differs: fields of :class:`commsim.packets.links.queues.Fabric`.
    """
    usual = usual_queues(transport_of(transport)[0].queues, float(network.bandwidth.max(initial=1.0)))
    if usual.pause_at and "pause_at" not in queues:
        usual = pauses_in_time(usual, network, queues.get("buffer"))
    fabric = dataclasses.replace(usual, **queues)
    return over_path(transport, fabric=fabric, window=window, ack_every=ack_every, recovery=recovery)


def in_packets(spraying: Spraying, framing: Framing | None) -> Spraying:
    """Return the same with packets of another size.

    Raises
    ------
    InputError
        If they are no whole numbers of bytes, or out of their range.
    """
    if framing is None:
        return spraying
    if not (np.isfinite(framing.payload) and framing.payload % 1 == framing.header % 1 == 0):
        sizes = f"{framing.payload:g} and {framing.header:g}"
        raise InputError(
            f"the packet engine needs packets of whole bytes, such as 4096 of payload and 64 of header, got {sizes}"
        )
    return dataclasses.replace(spraying, payload=int(framing.payload), header=int(framing.header))
