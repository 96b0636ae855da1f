"""The transports of sprayed fabrics: what tells one from another, and the constants that can be given to each.

``NAME:key=value,...`` names a transport with constants, such as ``dcqcn:notify_delay=55us``.
"""

from __future__ import annotations

from dataclasses import dataclass

from commsim.core.errors import InputError
from commsim.core.spec import is_own_file, read_arguments, split_spec
from commsim.core.units import Bandwidth, Bytes, Seconds
from commsim.packets import codes
from commsim.packets.transports.own_controls import CONTROLS, Own, own_control

# Marks of DCQCN from 5 to 200 kB at 40 Gbit/s, at most 1 %; queues up to where its paper's switches pause.
_RED = (5e3 / 5e9, 200e3 / 5e9, 0.01)
_SHARES = ("load", "shrinking", "most_shrunk", "smoothing", "gain", "begin")
_MAY_BE_ZERO = ("scaling", "notify_delay", "recovery", "stages")


@dataclass(frozen=True, slots=True)
class NoConstants:
    """Constants of a transport that takes none."""


@dataclass(frozen=True, slots=True)
class Swift:
    """Constants of Swift; times that are not given are half of the round trip without queues.

    Parameters
    ----------
    target : float, s
        Queueing delay that the largest windows aim at.
    scaling : float, s
        Largest increase of the target delay, for small windows ("flow scaling").
    growth : float, packets
        A round trip, below the target.
    shrinking : float
        Share of the excess delay that a window shrinks by.
    most_shrunk : float
        Share of a window that is left at least.

    References
    ----------
    Kumar et al., "Swift: delay is simple and effective for congestion control in the datacenter", SIGCOMM 2020,
    algorithm 1 and section 3.5.
    """

    target: Seconds | None = None
    scaling: Seconds | None = None
    growth: float = 1.0
    shrinking: float = 0.8
    most_shrunk: float = 0.5


@dataclass(frozen=True, slots=True)
class Hpcc:
    """Constants of HPCC.

    Parameters
    ----------
    load : float
        Share of the busiest link that senders aim at, with what queues before it.
    stages : int
        Round trips of additive growth before a window may jump.
    flows : float
        Messages that share a link without a queue: each grows by `(1 - load) / flows` of rate times round trip.

    References
    ----------
    Li et al., "HPCC: high precision congestion control", SIGCOMM 2019, algorithm 1 and section 3.3.
    """

    load: float = 0.95
    stages: int = 5
    flows: float = 100.0


@dataclass(frozen=True, slots=True)
class Timely:
    """Constants of TIMELY, by default also of its patched form.

    Parameters
    ----------
    low, high : float, s
        Round trips below which the rate always grows, and above which it always shrinks; by default one and a
        half and five times the one without queues.
    step : float, bytes/s
        Step by which the rate grows; by default a thousandth of the link's, as 10 Mbit/s of 10 Gbit/s.
    shrinking : float
        Share of the gradient that the rate shrinks by, 0.8; of the excess queue where patched, 0.008.
    smoothing : float
        Weight of the newest difference of two round trips.
    segment : float, bytes
        Acknowledged between two looks at the round trip.
    begin : float
        Share of the link's rate that a message begins with; the paper's is one over the messages of a host.

    References
    ----------
    Mittal et al., "TIMELY: RTT-based congestion control for the datacenter", SIGCOMM 2015, algorithm 1. Zhu et al.,
    "ECN or delay: lessons learnt from analysis of DCQCN and TIMELY", CoNEXT 2016, algorithm 2 (the patched form).
    """

    low: Seconds | None = None
    high: Seconds | None = None
    step: Bandwidth | None = None
    shrinking: float | None = None
    smoothing: float = 0.875
    segment: Bytes = 16384.0
    begin: float = 1.0


@dataclass(frozen=True, slots=True)
class Dcqcn:
    """Constants of DCQCN: the paper's, for 40 Gbit/s, but for the delay of notifications.

    Parameters
    ----------
    gain : float
        Weight of a notification in the estimate of congestion.
    notify_every : float, s
        Least time between two notifications of one message.
    notify_delay : float, s
        Time that the receiver's NIC takes to send a notification.
    decay_time, rise_time : float, s
        Interval after which the estimate decays, and after which the rate rises.
    rise_bytes : float, bytes
        Bytes sent after which the rate rises, too.
    recovery : int
        Rises that only go half-way back to the rate before the cut.
    additive, hyper : float, bytes/s
        Increase of the target rate after `recovery` rises, and when both counts of rises have passed `recovery`.

    References
    ----------
    Zhu et al., "Congestion control for large-scale RDMA deployments", SIGCOMM 2015, section 5 and table 14.
    """

    gain: float = 1 / 256
    notify_every: Seconds = 50e-6
    notify_delay: Seconds = 0.0
    decay_time: Seconds = 55e-6
    rise_time: Seconds = 55e-6
    rise_bytes: Bytes = 10e6
    recovery: int = 5
    additive: Bandwidth = 5e6
    hyper: Bandwidth = 50e6


Constants = NoConstants | Swift | Hpcc | Timely | Dcqcn | Own


@dataclass(frozen=True, slots=True)
class Transport:
    """What tells one transport from another, beside its kernel.

    Parameters
    ----------
    kind : int
        What lets a message send: ``NSCC``, ``RCCC`` for credit, ``WINDOW`` and so on.
    ack_every : int, bytes
        Bytes of data that one acknowledgement may answer.
    marks_last : bool
        Whether the links to hosts mark, too.
    per_pull : int
        Packets of credit that a receiver gives at a time.
    share : float
        Share of its link that a receiver gives credit for.
    narrows : bool
        Whether a receiver's rate follows marks where the network is narrower than its hosts.
    constants : type
        Class of the constants that can be given.
    one_path : bool
        Whether a message must keep to one path.
    usual_path : bool
        Whether a message keeps to one path, and its switches have queues without end, unless options say otherwise.
    paces : bool
        Whether a message has a rate.
    has_window : bool
        Whether a window bounds what a message has under way.
    grows : bool
        Whether its window may grow above its first one, as far as the network lets it.
    patched : bool
        Whether TIMELY is the patched one.
    red : (float, float, float), s, s, share
        Default queue over the link's rate at which marks begin and are certain, and their chance just below that.
    depth : float, s
        Default depth of a queue, over its rate; 0 for a round trip.
    """

    kind: int
    ack_every: int = 1
    marks_last: bool = True
    per_pull: int = 4
    share: float = 0.99
    narrows: bool = False
    constants: type[Constants] = NoConstants
    one_path: bool = False
    usual_path: bool = False
    paces: bool = False
    has_window: bool = True
    grows: bool = False
    patched: bool = False
    red: tuple[float, float, float] | None = None
    depth: float = 0.0


TRANSPORTS = {
    "nscc": Transport(codes.NSCC, ack_every=16384),
    "rccc": Transport(codes.RCCC, ack_every=16384, marks_last=False, narrows=True),
    "eqds": Transport(codes.RCCC, ack_every=16384, marks_last=False),
    "ndp": Transport(codes.RCCC, marks_last=False, per_pull=1, share=1.0),
    "dctcp": Transport(codes.DCTCP, usual_path=True, grows=True),
    "swift": Transport(codes.SWIFT, constants=Swift, grows=True),
    "hpcc": Transport(codes.HPCC, constants=Hpcc, one_path=True, paces=True),
    "timely": Transport(codes.TIMELY, constants=Timely, paces=True, has_window=False),
    "patched_timely": Transport(codes.TIMELY, constants=Timely, paces=True, has_window=False, patched=True),
    "dcqcn": Transport(codes.DCQCN, constants=Dcqcn, usual_path=True, paces=True, has_window=False, red=_RED,
                       depth=500e3 / 5e9),
    "window": Transport(codes.WINDOW, usual_path=True),
}  # fmt: skip
_OWN = Transport(codes.OWN, constants=Own, grows=True)


def transport_of(text: str) -> tuple[Transport, Constants]:
    """Read a transport's name and constants.

    Parameters
    ----------
    text : str
        ``NAME`` or ``NAME:key=value,...``, or ``FILE.py:function:key=value,...`` with a congestion control.

    Raises
    ------
    InputError
        If the name or a constant is unknown, or a constant is out of its range.
    """
    name, raw = ("", {}) if is_own_file(text) else split_spec(text)
    if name not in TRANSPORTS and (own := own_control(text)):
        return _OWN, own
    if name not in TRANSPORTS:
        raise InputError(f"unknown transport {name!r}; known: {', '.join((*TRANSPORTS, *CONTROLS))}")
    build = TRANSPORTS[name].constants
    if build is NoConstants and raw:
        raise InputError(f"{name} takes no constants, got {', '.join(raw)}")
    constants = build(**read_arguments(build, raw, name=name))
    _check(constants, name)
    return TRANSPORTS[name], constants


def _check(constants: Constants, name: str) -> None:
    """Refuse constants with which a rule has no meaning."""
    for key in constants.__dataclass_fields__:
        value = getattr(constants, key)
        if value is None:
            continue
        if key in _SHARES and not 0 < value <= 1:
            raise InputError(f"{name}: {key} is a share above 0 and at most 1, got {value:g}")
        if value < 0 or (value == 0 and key not in _MAY_BE_ZERO):
            raise InputError(f"{name}: {key} is {'at least 0' if key in _MAY_BE_ZERO else 'above 0'}, got {value:g}")
    if isinstance(constants, Timely) and constants.low and constants.high and constants.low >= constants.high:
        raise InputError(f"{name}: low is less than high, got {constants.low:g} and {constants.high:g} s")
    if isinstance(constants, Dcqcn) and constants.notify_delay > constants.notify_every * 2:
        raise InputError(f"{name}: notify_delay is at most twice notify_every, got {constants.notify_delay:g} s")
