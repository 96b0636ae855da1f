"""What messages cost in a testbed, from point-to-point runs only: nothing here has seen a collective."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.placement import Placement
from commsim.core.schedule import Schedule
from commsim.prediction.build import prepare
from commsim.real.steps import exchange, train

from .cable_shape import FRAME
from .launch import Ranks
from .measure import LoadMeter

EXCHANGE_SIZES = (4096, 16384, 65536, 262144)
TRAIN_SIZES, TRAIN_LENGTHS = (1024, 4096, 16384, 65536), (8, 32)
STREAM_SIZES, STREAM_LENGTHS = (262144,), (2, 6)
ITERATIONS = 9
# Calibrations at most, until one is not disturbed by others.
TRIES = 3
# A shaped queue whose timer is late loses up to 3 %. What loses more had no processor to send with.
SHAPED = 0.95


@dataclass(frozen=True, slots=True)
class SeatCosts:
    """What a message costs between two seats.

    Parameters
    ----------
    L : float, s
        Time until it arrives, beside its time on the links.
    o : float, s
        Time in which its sender's port can send nothing else.
    efficiency : float
        Rate that messages with their headers reach, of the rate that was asked for: what a shaped queue loses.
    disturbed : str
        Why these numbers mean little, if they do: what others did meanwhile.
    """

    L: float
    o: float
    efficiency: float
    disturbed: str = ""

    def on(self, network: Network) -> Network:
        """Return the network with these costs, for predictions."""
        seats = network.aggregates & ~network.forwards
        return dataclasses.replace(
            network,
            bandwidth=network.bandwidth * self.efficiency,
            latency=network.latency + self.L * seats[network.src],
            overhead=np.where(seats, self.o, 0.0),
            overhead_given=True,
        )


def calibrate(ranks: Ranks) -> SeatCosts:
    """Measure what messages cost: all ranks exchange messages with a partner, then send trains of messages to it.

    Ping-pong would not do. Half of the time a link of it is idle, and a token bucket that has been idle lets the next
    two frames pass at once: at 200 Mbit/s a message of 16 KiB arrives in half the time that it takes anywhere else.
    For the same reason short pauses cost a busy link nothing, as it makes up for them; so `L` comes out near zero.

    Parameters
    ----------
    ranks : Ranks
        Ranks, at least 2.

    Raises
    ------
    InputError
        If there is one rank only.
    BackendError
        If the ranks do not answer.
    """
    if len(ranks.seats) < 2:
        raise InputError("a calibration needs two ranks at least")
    found: list[SeatCosts] = []
    for _ in range(TRIES):
        meter = LoadMeter(ranks.place)
        costs = _costs(ranks)
        found.append(dataclasses.replace(costs, disturbed=meter.read().disturbed or _starved(costs.efficiency)))
        if not found[-1].disturbed:
            return found[-1]
    # Whatever disturbs makes messages later, never sooner.
    return max(found, key=lambda costs: costs.efficiency)


def _starved(efficiency: float) -> str:
    if efficiency >= SHAPED:
        return ""
    return f"the processors set the pace: messages came at {efficiency:.0%} of the links' rate"


def _costs(ranks: Ranks) -> SeatCosts:
    real, ideal = _gaps(ranks, STREAM_SIZES, STREAM_LENGTHS)
    efficiency = min(1.0, float(ideal[0] / real[0]))
    real, ideal = _gaps(ranks, TRAIN_SIZES, TRAIN_LENGTHS)
    o = _beside(real, ideal / efficiency)
    both = exchange(len(ranks.seats), over_sent=False)
    turns = [_times(ranks, both, 3 * size) for size in EXCHANGE_SIZES]
    real, ideal = np.array(turns).T / 2
    return SeatCosts(max(0.0, _beside(real, ideal / efficiency) - o), o, efficiency)


def _gaps(
    ranks: Ranks, sizes: tuple[int, ...], lengths: tuple[int, int]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what each further message of a train adds, really and ideally; the first frames are not in it."""
    trains = [train(len(ranks.seats), length, all_pairs=True) for length in lengths]
    spans = [[_times(ranks, one, 2 * k * size) for size in sizes] for one, k in zip(trains, lengths, strict=True)]
    gaps = np.maximum(np.subtract(spans[1], spans[0]) / (lengths[1] - lengths[0]), 1e-9)
    return gaps[:, 0], gaps[:, 1]


def _beside(real: NDArray[np.float64], ideal: NDArray[np.float64]) -> float:
    """Return the constant that messages take beside their bytes, by least squares of the relative errors."""
    return max(0.0, float(((real - ideal) / real**2).sum() / (1 / real**2).sum()))


def _times(ranks: Ranks, schedule: Schedule, size: int) -> tuple[float, float]:
    """Return a run's median time, and that of only its bytes on the shared links."""
    seats = Placement(np.array(ranks.seats, np.int32))
    ideal = prepare(schedule, ranks.layout.network, placement=seats).predict(size, framing=FRAME.framing).time
    return float(np.median(ranks.run(schedule, size, iterations=ITERATIONS)["samples"])), ideal
