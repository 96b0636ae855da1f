"""What losses cost at first order: how often a slot waits for a timeout, and the unluckiest slot's total.

An estimate beside which the packet engine's times stand, and no bound. It leaves out second losses of what is repeated,
and that a worker who waits on one slot goes on with the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from commsim.core.errors import InputError
from switch_model.bounds import throughput
from switch_model.system import System


@dataclass(frozen=True, slots=True)
class LossEstimate:
    """Cost of losses.

    Parameters
    ----------
    timeout_chance : float
        That at least one of a round's 2n packets on a slot is lost: 1 - (1 - p)^(2n).
    rounds : int
        Packets that each slot sums in turn.
    timeouts : float
        Expected on one slot.
    worst_timeouts : float
        Expected on the slot that has most of them.
    time : float, s
        Of the all-reduce: the rounds, and the timeouts of that slot.
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

    Parameters
    ----------
    system : System
        With its window as the number of slots in use, and its timeout.
    n_elements : int
        Of the tensor.
    n_workers : int
        n.
    bandwidth : float, bytes/s
        Of each worker's link.
    round_trip : float, s
        Of a packet and its result.
    loss : float
        p, in [0, 1).

    Raises
    ------
    InputError
        If the system loses nothing, or repeats more than one packet at once.
    """
    if system.lossless or system.sliding or system.packets_per_message > 1:
        raise InputError(
            f"the estimate is for slots of single packets that clock themselves, which {system.name} has not"
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
