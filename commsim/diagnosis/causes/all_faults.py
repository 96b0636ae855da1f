"""All faults of a ground, and their times: those that the model cannot have there are left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.diagnosis.causes.fabric_faults import congestion, crossed_rails, oversubscription, slow_host
from commsim.diagnosis.causes.fault import Fault, Timed
from commsim.diagnosis.causes.ground import Ground
from commsim.diagnosis.causes.labels import HEALTHY
from commsim.diagnosis.causes.machine_faults import (
    across_sockets,
    fewer_nics,
    in_virtual_machines,
    slower_nics,
    slower_pcie,
    without_gpudirect,
    without_nvls,
    without_peer_access,
    without_reads,
)
from commsim.diagnosis.causes.software_faults import (
    better_choices,
    fewer_channels,
    forced_choices,
    other_ports,
    other_releases,
    sockets,
    without_sharp,
)

KINDS: tuple[Callable[[Ground], Iterator[Fault]], ...] = (
    fewer_nics, slower_nics, slower_pcie, without_gpudirect, without_peer_access, across_sockets, without_nvls,
    in_virtual_machines, forced_choices, better_choices, fewer_channels, sockets, other_ports, without_sharp,
    other_releases, without_reads, oversubscription, congestion, crossed_rails, slow_host,
)  # fmt: skip
# Logarithms of the least effect that a cause has: at some size, and on average over the sizes.
LEAST_SOMEWHERE, LEAST_ON_AVERAGE = 0.05, 0.02


@dataclass(frozen=True, slots=True)
class FaultTimes:
    """A fault and what the model gives with it.

    Parameters
    ----------
    fault : Fault or None
        Fault; None without one.
    times : float64[n], s
        Times at the sizes asked for.
    healthy : float64[n], s, or None
        Times of a healthy table beside it, where they are others than without a fault.
    base : Timed or None
        Ground without a fault, of the times without one.
    """

    fault: Fault | None
    times: NDArray[np.float64]
    healthy: NDArray[np.float64] | None = None
    base: Timed | None = None

    @property
    def ground(self) -> Timed | None:
        """What other calls can be asked of: the ground with the fault; None where the healthy one was changed."""
        if self.fault is None:
            return self.base
        return self.fault.ground if self.fault.reference is None else None

    @property
    def label(self) -> str:
        """Cause that it stands for."""
        return HEALTHY if self.fault is None else self.fault.label

    @property
    def weight(self) -> float:
        """Likelihood beforehand among the faults of its cause."""
        return 1.0 if self.fault is None else self.fault.weight

    @property
    def text(self) -> str:
        """What is so, in words."""
        return "healthy: the expectation was too high" if self.fault is None else self.fault.text


def fault_times(faults: Iterable[Fault], sizes: Sequence[float], whole: NDArray[np.float64]) -> list[FaultTimes]:
    """Predict faults.

    Parameters
    ----------
    faults : iterable of Fault
        Faults.
    sizes : sequence of float, bytes
        Sizes.
    whole : float64[n], s
        Times without a fault.

    Returns
    -------
    list of FaultTimes
        Those that make calls slower.
    """
    found = []
    for fault in faults:
        try:
            healthy = None if fault.reference is None else fault.reference.times(sizes)
            times = fault.ground.times(sizes) if healthy is None else whole
        except InputError:  # what nothing can run on is no cause of a slow run
            continue
        effect = np.log(times / (whole if healthy is None else healthy))
        if effect.max() > LEAST_SOMEWHERE and effect.mean() > LEAST_ON_AVERAGE:
            found.append(FaultTimes(fault, times, healthy))
    return found


def predict_faults(ground: Ground, sizes: Sequence[float]) -> list[FaultTimes]:
    """Return the times without a fault, and those with each that the ground may have.

    Parameters
    ----------
    ground : Ground
        Ground without a fault.
    sizes : sequence of float, bytes
        Sizes.

    Raises
    ------
    InputError
        If the closed form has no time of the ground.
    """
    closed, faults = ground.times(sizes), (fault for kind in KINDS for fault in kind(ground))
    return [FaultTimes(None, closed, base=ground), *fault_times(faults, sizes, closed)]
