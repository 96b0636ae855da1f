"""How fast all-reduce can be: in a switch, over a ring, through parameter servers; and how many slots it takes.

All rates are elements of the result per second, as a worker sees it. How far quantised sums can be off is
:func:`switch_model.quantize.error_bound`.

References
----------
Sapio et al., "Scaling distributed machine learning with in-network aggregation", NSDI 2021, for the model; the
formulas follow from bytes per link.

:func:`loss_estimate` is an estimate at first order, and no bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from commsim.core.errors import InputError
from switch_model.system import System

BETWEEN_FRAMES = 4 + 20  # frame check sequence; preamble and gap


def line_rate(system: System, bandwidth: float, *, between_frames: bool = True) -> float:
    """Elements per second that a worker's link carries at most: B k / L_w, whatever the number of workers.

    Parameters
    ----------
    system : System
        Packets of k elements that take L_w bytes on the wire, on average over a message.
    bandwidth : float, bytes/s
        Bandwidth of the link.
    between_frames : bool
        Whether L_w counts frame check sequence, preamble and gap, which some publications leave out.
    """
    if between_frames:
        return system.line_rate(bandwidth)
    message = system.message_bytes - BETWEEN_FRAMES * system.packets_per_message
    return bandwidth * system.elements * system.packets_per_message / message


def slots_for(system: System, bandwidth: float, round_trip: float) -> int:
    """Slots that keep a link busy: the next power of two of those that a round trip's worth of bytes fills.

    Parameters
    ----------
    system : System
        System that sends the packets.
    bandwidth : float, bytes/s
        Bandwidth of the link.
    round_trip : float, s
        Time from sending a packet to having its result, hosts' time included.
    """
    _check(bandwidth=bandwidth, round_trip=round_trip)
    packets = bandwidth * round_trip * system.packets_per_message / system.message_bytes
    return 1 << max(0, math.ceil(math.log2(packets)))


def throughput(system: System, bandwidth: float, round_trip: float, n_slots: int | None = None) -> float:
    """Elements per second without loss: the line rate, or below that many slots s k / RTT.

    Parameters
    ----------
    system, bandwidth, round_trip
        Same as in :func:`slots_for`.
    n_slots : int, optional
        Packets that a worker has outstanding; by default the system's window.
    """
    _check(bandwidth=bandwidth, round_trip=round_trip)
    slots = system.window if n_slots is None else n_slots
    return min(system.line_rate(bandwidth), slots * system.elements / round_trip)


def limits(system: System, bandwidth: float, round_trip: float, fan_in: int) -> dict[str, float]:
    """Elements per second that each part allows without loss, by its name: link, pool or window, adders.

    Parameters
    ----------
    system, bandwidth, round_trip
        Same as in :func:`slots_for`.
    fan_in : int
        Packets that an aggregation unit adds for each sum.
    """
    name = "pool" if system.pool_size <= system.window and not system.shared else "window"
    by_limit = {"link": system.line_rate(bandwidth), name: system.window * system.elements / round_trip}
    unit = system.unit_time(fan_in)
    return by_limit | ({"adders": system.elements / unit} if unit else {})


def ring_rate(bandwidth: float, n_workers: int, efficiency: float = 1.0, element_bytes: int = 4) -> float:
    """Elements per second of a ring at best: each worker sends and receives 2 (n-1)/n times the tensor.

    It is the bound of servers on the workers' own hosts too: a host sends (n-1)/n of the tensor to others, and its
    sums, 1/n each, to n-1 others.

    Parameters
    ----------
    bandwidth : float, bytes/s
        Bandwidth of each worker, one way.
    n_workers : int
        n, at least 2.
    efficiency : float
        Share of the bytes on the wire that is payload.
    element_bytes : int
        Size of one element.
    """
    return _payload_rate(bandwidth, n_workers, efficiency, element_bytes) / ring_disadvantage(n_workers)


def ring_disadvantage(n_workers: int) -> float:
    """Largest ratio of a switch's rate to a ring's, 2 (n-1)/n, with equal packets."""
    _check(n_workers=n_workers - 1)
    return 2 * (n_workers - 1) / n_workers


def server_rate(
    bandwidth: float, n_workers: int, n_servers: int = 1, efficiency: float = 1.0, element_bytes: int = 4
) -> float:
    """Elements per second through dedicated parameter servers, each with 1/m of the tensor.

    A server takes in n/m times the tensor, and each worker sends it once; so the smaller of B and B m/n.

    Parameters
    ----------
    bandwidth : float, bytes/s
        Bandwidth of each worker and each server, one way.
    n_workers, n_servers : int
        n and m.
    efficiency, element_bytes
        Same as in :func:`ring_rate`.
    """
    _check(n_servers=n_servers)
    return _payload_rate(bandwidth, n_workers, efficiency, element_bytes) * min(1.0, n_servers / n_workers)


@dataclass(frozen=True, slots=True)
class LossEstimate:
    """Cost of losses.

    Parameters
    ----------
    timeout_chance : float
        Probability that at least one of a round's 2n packets on a slot is lost: 1 - (1 - p)^(2n).
    rounds : int
        Packets that each slot sums in turn.
    timeouts : float
        Expected on one slot.
    worst_timeouts : float
        Expected on the slot that has most of them.
    time : float, s
        Time of the all-reduce: the rounds, and the timeouts of that slot.
    """

    timeout_chance: float
    rounds: int
    timeouts: float
    worst_timeouts: float
    time: float


def loss_estimate(
    system: System, n_elements: int, n_workers: int, bandwidth: float, round_trip: float, loss: float
) -> LossEstimate:
    """Estimate the time of an all-reduce whose packets are lost at random on each link, either way.

    It leaves out second losses of what is repeated, and that a worker goes on with the other slots while one waits.

    Parameters
    ----------
    system : System
        System with its window as the number of slots in use, and its timeout.
    n_elements : int
        Number of elements of the tensor.
    n_workers : int
        n.
    bandwidth : float, bytes/s
        Bandwidth of each worker's link.
    round_trip : float, s
        Round-trip time of a packet and its result.
    loss : float
        p, in [0, 1).

    Raises
    ------
    InputError
        If the system loses nothing, or repeats more than one packet at once.
    """
    if system.lossless or system.sliding or system.packets_per_message > 1:
        raise InputError(
            f"the estimate is for slots of single packets that clock themselves, which {system.name} has not; "
            "switchml_udp has (--system), and switch simulate --loss takes every system"
        )
    if not 0 <= loss < 1 or n_elements < 1 or n_workers < 1:
        raise InputError(
            f"a loss is in [0, 1), of at least 1 element and worker, got {loss}, {n_elements}, {n_workers}"
        )
    chunks = -(-n_elements // system.elements)
    slots = min(system.window, chunks)
    rounds = -(-chunks // slots)
    chance = 1 - (1 - loss) ** (2 * n_workers)
    worst = _largest_of(slots, rounds, chance)
    lossless = chunks * system.elements / throughput(system, bandwidth, round_trip, slots)
    return LossEstimate(chance, rounds, rounds * chance, worst, lossless + worst * system.rto)


def rates(
    system: System,
    n_workers: int,
    bandwidth: float,
    round_trip: float,
    pool_size: int,
    loss: float = 0.0,
    size: float = 0.0,
) -> dict[str, float]:
    """Return all bounds on the rate of a job and of those that use no switch, by name, and what losses cost.

    Parameters
    ----------
    system : System
        System that sends the packets.
    n_workers, pool_size : int
        Workers of the job, and its slots.
    bandwidth : float, bytes/s
        Rate of each worker.
    round_trip : float, s
        Time of a packet and its result.
    loss : float
        Probability that a link loses a packet.
    size : float, bytes
        Size of each worker's tensor, for the cost of losses.
    """
    values = {
        "slots_for_line_rate": slots_for(system, bandwidth, round_trip),
        "line_rate_elements_per_s": line_rate(system, bandwidth),
        "bound_elements_per_s": throughput(system, bandwidth, round_trip, min(system.window, pool_size)),
    }
    if n_workers > 1:
        values["ring_elements_per_s"] = ring_rate(bandwidth, n_workers)
        values["server_elements_per_s"] = server_rate(bandwidth, n_workers)
    if loss:
        n_elements = math.ceil(size / system.element_bytes)
        cost = loss_estimate(system, n_elements, n_workers, bandwidth, round_trip, loss)
        values |= {
            "timeouts_of_a_slot": cost.timeouts,
            "timeouts_of_the_worst_slot": cost.worst_timeouts,
            "estimated_time_s": cost.time,
        }
    return values


def _largest_of(n_draws: int, n: int, chance: float) -> float:
    """Mean of the largest of `n_draws` binomial numbers: the sum over m of the chance that some are above m."""
    if chance in (0.0, 1.0):
        return n * chance
    odds = np.log(chance) - np.log1p(-chance)
    m = np.arange(n + 1)
    steps = np.log((n - m[:-1]) / (m[:-1] + 1)) + odds  # ratio of each probability to the one before
    logs = n * np.log1p(-chance) + np.concatenate(([0.0], np.cumsum(steps)))
    below = np.minimum(np.cumsum(np.exp(logs)), 1.0)
    return float(np.sum(1 - below[:-1] ** n_draws))


def _payload_rate(bandwidth: float, n_workers: int, efficiency: float, element_bytes: int) -> float:
    _check(bandwidth=bandwidth, n_workers=n_workers, element_bytes=element_bytes)
    if not 0 < efficiency <= 1:
        raise InputError(f"efficiency is the payload's share of the wire, in (0, 1], got {efficiency}")
    return bandwidth * efficiency / element_bytes


def _check(**values: float) -> None:
    for name, value in values.items():
        if not 0 < value < math.inf:
            raise InputError(f"{name.replace('_', ' ')} must be positive and finite, got {value}")
