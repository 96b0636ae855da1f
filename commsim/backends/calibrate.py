"""Turn point-to-point measurements into a network: hosts, and between them what they share.

Ranks of one host share its memory and cores, and ranks of one cluster share cables; either way, what all pairs get at
once, beside what one pair gets alone, becomes a link that every message crosses. No collective is ever fitted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import BackendError
from commsim.core.network import Network, kinds, node_names

from .fit import fit_costs
from .point_to_point import SIZES, Samples, run_point_to_point
from .transport import Transport


@dataclass(frozen=True, slots=True)
class Costs:
    """What a message costs.

    Parameters
    ----------
    L, o : float, s
        Latency, and overhead per message at the sender.
    bandwidth, shared_bandwidth : float, bytes/s
        Of one rank's way to the others, and of what all ranks share.
    gamma : float, s/byte
        Time to reduce a byte while all other ranks do the same.
    """

    L: float
    o: float
    bandwidth: float
    shared_bandwidth: float
    gamma: float

    def alone(self, size: float) -> float:
        """Time of one message alone."""
        return self.L + self.o + size / min(self.bandwidth, self.shared_bandwidth)

    def together(self, size: float, n_messages: int) -> float:
        """Time of one message when `n_messages` are under way at once."""
        return self.L + self.o + size / min(self.bandwidth, self.shared_bandwidth / n_messages)


def fit_samples(samples: Samples) -> Costs:
    """Fit the costs of messages to all runs at once, the least relative error for all.

    A message that waits for the one before pays overhead, latency and bytes; one of a train pays no latency. The costs
    are the same alone and together, except that a byte may cost more together: that is put down to sharing.

    Raises
    ------
    InputError
        If a time is not positive.
    """
    size, in_train = samples.size, samples.train_size
    rows = np.vstack(
        [
            *2 * [_costs_of(size, latency=1, shares=0)],
            *2 * [_costs_of(size, latency=1, shares=1)],
            _costs_of(in_train, latency=0, shares=0),
            _costs_of(in_train, latency=0, shares=1),
        ]
    )
    seconds = (samples.alone.ravel(), samples.together.ravel(), samples.gap_alone, samples.gap_together)
    o, latency, per_byte, for_sharing = fit_costs(rows, np.concatenate(seconds))
    _, gamma = fit_costs(np.column_stack((np.ones_like(size), size)), samples.add_together)
    return Costs(
        L=float(latency),
        o=float(o),
        bandwidth=float(1 / per_byte),
        shared_bandwidth=float(samples.n_messages / (per_byte + for_sharing)),
        gamma=float(gamma),
    )


def _costs_of(size: NDArray[np.float64], latency: int, shares: int) -> NDArray[np.float64]:
    """How often runs of each size pay o, L, the seconds per byte, and those that sharing adds."""
    one = np.ones_like(size)
    return np.column_stack((one, latency * one, size, shares * size))


def as_network(costs: Costs, n_ranks: int, name: str) -> Network:
    """Network of `n_ranks` hosts, whose messages all cross one shared link.

    Parameters
    ----------
    costs : Costs
        Of messages.
    n_ranks : int
        Hosts.
    name : str
        Of the network.
    """
    hosts = np.arange(n_ranks)
    into, out_of = np.full(n_ranks, n_ranks), np.full(n_ranks, n_ranks + 1)
    return Network(
        name,
        (*node_names(h=n_ranks), "memory_in", "memory_out"),
        kinds(n_ranks, 2),
        np.concatenate((hosts, into[:1], out_of)),
        np.concatenate((into, out_of[:1], hosts)),
        np.concatenate(
            (np.full(n_ranks, costs.bandwidth), [costs.shared_bandwidth], np.full(n_ranks, costs.bandwidth))
        ),
        np.concatenate((np.full(n_ranks, costs.L / 2), [0.0], np.full(n_ranks, costs.L / 2))),
        overhead=costs.o,
        gamma=costs.gamma,
        routing="shortest",
    )


def calibrate(transport: Transport, sizes: tuple[int, ...] = SIZES) -> tuple[Network, Costs, Samples]:
    """Measure point to point and describe the machine as a network; every rank calls this and gets the same.

    Parameters
    ----------
    transport : Transport
        At least 2 ranks.
    sizes : tuple of int, bytes
        Of the messages.

    Returns
    -------
    network : Network
        One host per rank.
    costs : Costs
        The numbers in it.
    samples : Samples
        What they were fitted to.

    Raises
    ------
    BackendError
        If there is only one rank, which has no peer.
    """
    if transport.size < 2:
        raise BackendError("calibration sends messages, so it needs at least 2 ranks: start it with mpirun -n 2 ...")
    samples = run_point_to_point(transport, sizes)
    costs = fit_samples(samples)
    return as_network(costs, transport.size, f"{transport.size} ranks of {transport.name}"), costs, samples
