"""The constants of each congestion control: what can be given, its default and range, and what kernels get of it."""

from __future__ import annotations

from dataclasses import dataclass

from commsim.core.errors import InputError
from commsim.core.units import Bandwidth, Bytes, Seconds
from commsim.packets.event_rows import PS
from commsim.packets.transports.own_controls import Own, address_of

# Share of its link's rate that a message keeps at the least: at a rate of 0 no answer would come to raise it.
LEAST = 1e-3
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


def check_constants(constants: Constants, name: str) -> None:
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


def in_kernel_units(constants: Constants, patched: bool, rtt: float, wire: float, mtu: int) -> dict[str, float]:
    """Turn what a transport was given into the kernels' units; what it was not follows from the network."""
    if isinstance(constants, Own):
        least = {} if constants.like else {"least": LEAST * (1.0 / wire)}
        return {"function": address_of(constants), "hears_sent": constants.sent, **least}
    if isinstance(constants, Swift):
        target, scaling = (0.5 * rtt if time is None else PS * time for time in (constants.target, constants.scaling))
        return {
            "delay_target": target, "delay_range": scaling, "window_step": constants.growth * mtu,
            "shrinking": constants.shrinking, "most_shrunk": constants.most_shrunk,
        }  # fmt: skip
    if isinstance(constants, Hpcc):
        step = (1.0 - constants.load) * rtt / wire / constants.flows
        return {"load": constants.load, "stages": constants.stages, "window_step": step}
    if isinstance(constants, Timely):
        low = 1.5 * rtt if constants.low is None else PS * constants.low
        high = max(5.0 * rtt, 2.0 * low) if constants.high is None else PS * constants.high
        shrinking = (0.008 if patched else 0.8) if constants.shrinking is None else constants.shrinking
        step = 1e-3 / wire if constants.step is None else constants.step / PS
        return {
            "low": low, "high": high, "shrinking": shrinking, "smoothing": constants.smoothing, "rate_step": step,
            "segment": constants.segment, "least": step, "begin": constants.begin,
        }  # fmt: skip
    if isinstance(constants, Dcqcn):
        return {
            "gain": constants.gain, "recovery": constants.recovery, "rise_bytes": constants.rise_bytes,
            "rate_step": constants.additive / PS, "fast_step": constants.hyper / PS, "least": constants.additive / PS,
        } | {
            name: round(PS * getattr(constants, name))
            for name in ("notify_every", "notify_delay", "decay_time", "rise_time")
        }  # fmt: skip
    return {}
