"""What packets meet, and how the packet engine carries ordinary messages: an ideal window, DCTCP or DCQCN."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.cost import Framing
from commsim.core.errors import InputError

from .packet_state import ECN_CAPABLE, PS

# transports
WINDOW, DCTCP, DCQCN = range(3)
N_TIMERS = (1, 2, 3)  # of a flow of each
UNLIMITED = 1 << 60

TRANSPORT_ROW = np.dtype(
    [
        ("kind", np.uint8),
        ("flags", np.uint8),  # of data packets
        ("keeps_early", np.bool_),  # whether receivers keep packets that come early
        ("ack_every", np.int32),  # packets
        ("packet_size", np.int32),  # bytes on the wire
        ("ack_size", np.int32),
        ("n_words", np.int32),  # of 64 packets each, that a receiver can note as early
        ("max_window", np.int64),  # packets that may be outstanding
        ("rto", np.int64),  # ps; 0 for never
        ("gain", np.float64),
        ("cnp_interval", np.int64),  # ps
        ("decay_time", np.int64),
        ("rise_time", np.int64),
        ("rise_bytes", np.int64),
        ("n_recovery", np.int32),  # rises that go half-way back
        ("additive", np.float64),  # bytes per ps
        ("hyper", np.float64),
        ("min_rate", np.float64),
    ],
    align=True,
)

# RoCEv2: preamble and gap 20, Ethernet 14 and 4, IPv4 20, UDP 8, BTH 12 and ICRC 4 bytes for 4,096 of payload.
ROCE = Framing(4096, 82)

# The same headers, and the AETH of an acknowledgement.
ACK_BYTES = 86

LEAST_WINDOW = 64  # packets that a DCTCP receiver can keep, at least


@dataclass(frozen=True, slots=True)
class Fabric:
    """Queues, marks, pauses and losses.

    Parameters
    ----------
    buffer : float, bytes, optional
        Buffer of each queue of a switch; by default the network's own.
    shared_buffer : float, bytes
        What the queues of a switch have together; infinite by default.
    alpha : float
        A queue may fill `alpha` times what is free of the shared buffer (dynamic threshold).
    ecn_min, ecn_max : float, bytes
        Queue of a switch from which packets are marked at random, and from which all are; 0 for never.
    ecn_probability : float
        Chance of a mark just below `ecn_max`.
    pause_at, resume_at : float, bytes
        What may wait in a switch of one link's packets of a priority before that link is paused for it (PFC, IEEE
        802.1Qbb), and when it goes on; 0 for never.
    loss : float64[n_links] or float, optional
        Chance that a packet is lost on a link (on the link's good state); by default the network's own.
    loss_burst : float
        Packets that a burst of losses lasts on the average (Gilbert-Elliott, with every packet of the bad state
        lost); 1 for independent losses.
    class_weights : tuple of float
        Share of a link that packets of each priority of jobs may have, the first one's first; none where the first one
        goes first.
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
    class_weights: tuple[float, ...] = ()

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
        if not all(0 < weight < math.inf for weight in self.class_weights):
            raise InputError(f"weights of priorities are above 0, got {self.class_weights}")


@dataclass(frozen=True, slots=True)
class Window:
    """An ideal transport: a fixed window, no losses.

    Parameters
    ----------
    window : float, bytes
        Payload outstanding at most; by default twice the bandwidth-delay product of each flow's own path.
    ack_bytes : int
        Size of an acknowledgement on the wire.
    ack_every : int
        Packets for which there is one; the last packet of a message always has one.
    """

    window: float | None = None
    ack_bytes: int = ACK_BYTES
    ack_every: int = 1

    def row(self) -> NDArray[np.void]:
        """Return what the kernel must know."""
        return _row(WINDOW, self.ack_bytes, self.ack_every)

    def windows(self, bdp: NDArray[np.float64], payload: float) -> tuple[NDArray[np.float64], int]:
        """Window of each flow in packets, and the most packets that one may have outstanding."""
        window = np.ceil(2 * bdp) if self.window is None else np.full(len(bdp), float(self.window // payload))
        return np.maximum(window, self.ack_every), UNLIMITED

    def fabric(self, fastest: float) -> Fabric:  # noqa: ARG002 - the others need it
        """Return what is assumed of the switches unless something else is given: queues without end."""
        return Fabric()


@dataclass(frozen=True, slots=True)
class Dctcp:
    """DCTCP: a window that is cut by the share of packets with a mark, and NewReno's answer to losses.

    Parameters
    ----------
    window : float, bytes
        Payload outstanding at most, which receivers can keep while a packet before it is missing; by default four
        times the largest bandwidth-delay product.
    initial_window : int
        Packets.
    gain : float
        Weight of the newest round in the estimate of the share of marks.
    rto : float, s
        Least time without acknowledgement after which a sender begins again; doubled each time.
    ack_bytes : int
        Size of an acknowledgement on the wire; every packet has one, which echoes its mark.

    References
    ----------
    Alizadeh et al., "Data center TCP (DCTCP)", SIGCOMM 2010; RFC 8257. RFC 6582 (NewReno), RFC 6298 (timer).
    """

    window: float | None = None
    initial_window: int = 10
    gain: float = 1 / 16
    rto: float = 1e-3
    ack_bytes: int = ACK_BYTES

    def row(self) -> NDArray[np.void]:
        """Return what the kernel must know."""
        row = _row(DCTCP, self.ack_bytes, 1)
        row["flags"], row["keeps_early"], row["gain"] = ECN_CAPABLE, True, self.gain
        row["rto"] = _picoseconds("rto", self.rto)
        return row

    def windows(self, bdp: NDArray[np.float64], payload: float) -> tuple[NDArray[np.float64], int]:
        """Window of each flow at first in packets, and the most packets that one may have outstanding."""
        given = 4 * bdp.max(initial=0.0) if self.window is None else self.window // payload
        most = max(int(given), LEAST_WINDOW if self.window is None else 1)
        return np.full(len(bdp), float(min(self.initial_window, most))), most

    def fabric(self, fastest: float) -> Fabric:
        """Return the switches' defaults: marks from a queue of 30 KB per 10 Gb/s on."""
        queue = 30e3 * fastest / 1.25e9
        return Fabric(ecn_min=queue, ecn_max=queue)


@dataclass(frozen=True, slots=True)
class Dcqcn:
    """DCQCN over RoCE: a rate that notifications cut, go-back-N when a packet is missing.

    Parameters
    ----------
    window : float, bytes
        Payload outstanding at most; by default no bound.
    gain : float
        Weight of a notification in the estimate of congestion.
    cnp_interval : float, s
        Least time between two notifications to one sender; they ride on acknowledgements.
    decay_time, rise_time : float, s
        Interval after which the estimate decays, and after which the rate rises.
    rise_bytes : float
        Bytes sent after which the rate rises, too.
    n_recovery : int
        Rises that only go half-way back to the rate before the cut.
    additive, hyper : float, bytes/s
        Increase of the target after `n_recovery` rises, and when both timers have passed `n_recovery`.
    rto : float, s
        Least time without acknowledgement after which a sender goes back.
    ack_bytes, ack_every : int
        Same as in :class:`Window`.

    References
    ----------
    Zhu et al., "Congestion control for large-scale RDMA deployments", SIGCOMM 2015, section 5 and table 14.
    """

    window: float | None = None
    gain: float = 1 / 256
    cnp_interval: float = 50e-6
    decay_time: float = 55e-6
    rise_time: float = 55e-6
    rise_bytes: float = 10e6
    n_recovery: int = 5
    additive: float = 5e6
    hyper: float = 50e6
    rto: float = 1e-3
    ack_bytes: int = ACK_BYTES
    ack_every: int = 1

    def row(self) -> NDArray[np.void]:
        """Return what the kernel must know."""
        row = _row(DCQCN, self.ack_bytes, self.ack_every)
        row["flags"], row["gain"], row["n_recovery"] = ECN_CAPABLE, self.gain, self.n_recovery
        for field in ("cnp_interval", "decay_time", "rise_time", "rto"):
            row[field] = _picoseconds(field, getattr(self, field))
        row["rise_bytes"] = self.rise_bytes
        row["additive"], row["hyper"], row["min_rate"] = self.additive / PS, self.hyper / PS, self.additive / PS
        return row

    def windows(self, bdp: NDArray[np.float64], payload: float) -> tuple[NDArray[np.float64], int]:
        """Window of each flow in packets, and the most packets that one may have outstanding."""
        most = UNLIMITED if self.window is None else max(int(self.window // payload), self.ack_every)
        return np.full(len(bdp), float(most)), most

    def fabric(self, fastest: float) -> Fabric:
        """Return the switches' defaults: random marks from 5 to 200 KB per 40 Gb/s, and pauses."""
        scale = fastest / 5e9
        return Fabric(ecn_min=5e3 * scale, ecn_max=200e3 * scale, ecn_probability=0.01,
                      pause_at=500e3 * scale, resume_at=400e3 * scale)  # fmt: skip


Transport = Window | Dctcp | Dcqcn
TRANSPORTS: dict[str, type[Window] | type[Dctcp] | type[Dcqcn]] = {"window": Window, "dctcp": Dctcp, "dcqcn": Dcqcn}


def _row(kind: int, ack_bytes: int, ack_every: int) -> NDArray[np.void]:
    if not 0 <= ack_bytes < 2**31 or not 1 <= ack_every < 2**31:
        raise InputError(f"acknowledgements have ack_bytes >= 0 and ack_every >= 1, got {ack_bytes} and {ack_every}")
    row = np.zeros(1, TRANSPORT_ROW)
    row["kind"], row["ack_size"], row["ack_every"] = kind, ack_bytes, ack_every
    return row


def _picoseconds(name: str, seconds: float) -> int:
    if not 1e-9 <= seconds <= 1e3:
        raise InputError(f"{name} is between 1 ns and 1000 s, got {seconds} s")
    return round(seconds * PS)
