"""PipeDream: cut the layers into stages, and give each stage as many machines as balance the pipeline.

References
----------
Narayanan et al., "PipeDream: generalized pipeline parallelism for DNN training", SOSP 2019, section 3.1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.errors import InputError
from commsim.core.value import Value, freeze


@dataclass(frozen=True, slots=True)
class Stage:
    """Layers `first` to `last`, both included, on `replicas` machines, which need `time` seconds per mini-batch."""

    first: int
    last: int
    replicas: int
    time: float


@dataclass(frozen=True, slots=True, eq=False)
class LayerProfile(Value):
    """What each layer of a model takes for one mini-batch, forward and backward together.

    Parameters
    ----------
    compute : float64[n_layers], s
        On one machine.
    weights : float64[n_layers], bytes
        Of its weights.
    outputs : float64[n_layers], bytes
        Of its activations; what the last layer makes goes nowhere.

    Raises
    ------
    InputError
        If there is no layer, or a number is negative or not finite.
    """

    compute: NDArray[np.float64]
    weights: NDArray[np.float64]
    outputs: NDArray[np.float64]

    def __post_init__(self) -> None:
        n = np.size(self.compute)
        if not n:
            raise InputError("a model has at least one layer, got none")
        for name in ("compute", "weights", "outputs"):
            values = freeze(getattr(self, name), np.float64, (n,), name)
            if not ((values >= 0) & np.isfinite(values)).all():
                raise InputError(f"{name} must be 0 or more and finite, got {values.min()}..{values.max()}")
            object.__setattr__(self, name, values)


def stage_time(profile: LayerProfile, first: int, last: int, replicas: int, bandwidth: float) -> float:
    """Seconds per mini-batch of a stage of m replicas: (compute + 4 (m-1) W / (B m)) / m."""
    weights = float(profile.weights[first : last + 1].sum())
    compute = float(profile.compute[first : last + 1].sum())
    return (compute + 4 * (replicas - 1) * weights / (bandwidth * replicas)) / replicas


def boundary_time(profile: LayerProfile, layer: int, replicas: int, bandwidth: float) -> float:
    """Seconds per mini-batch of activations and their gradients behind a layer: 2a/(B m), of the m replicas behind."""
    return 2 * float(profile.outputs[layer]) / (bandwidth * replicas)


def partition(profile: LayerProfile, n_machines: int, bandwidth: float) -> tuple[Stage, ...]:
    """Find the stages whose slowest one, or slowest boundary, is fastest, by dynamic programming.

    A(j, m), the best for layers up to j on m machines, is the least over k and m' of the largest of A(k, m - m'), the
    boundary behind k and the stage of layers k+1..j on m' machines.

    Parameters
    ----------
    profile : LayerProfile
        The model.
    n_machines : int
        That there are; fewer are used where more do not help.
    bandwidth : float, bytes/s
        Between machines.

    Returns
    -------
    tuple of Stage
        In the order of the layers.

    Raises
    ------
    InputError
        If there is no machine or no bandwidth.
    """
    if n_machines < 1 or not bandwidth > 0:
        raise InputError(f"needs at least 1 machine and a positive bandwidth, got {n_machines} and {bandwidth}")
    n = len(profile.compute)
    best = np.full((n, n_machines + 1), math.inf)
    cut: dict[tuple[int, int], tuple[int, int]] = {}
    for j in range(n):
        for m in range(1, n_machines + 1):
            for mine in range(1, m + 1):
                for k in range(-1, j) if mine < m else (-1,):
                    before = max(best[k, m - mine], boundary_time(profile, k, mine, bandwidth)) if k >= 0 else 0.0
                    time = max(float(before), stage_time(profile, k + 1, j, mine, bandwidth))
                    if time < best[j, m]:
                        best[j, m], cut[j, m] = time, (k, mine)
    j, m = n - 1, int(best[n - 1].argmin())
    stages: list[Stage] = []
    while j >= 0:
        k, mine = cut[j, m]
        stages.append(Stage(k + 1, j, mine, stage_time(profile, k + 1, j, mine, bandwidth)))
        j, m = k, m - mine
    return tuple(stages[::-1])


def bottleneck(profile: LayerProfile, stages: tuple[Stage, ...], bandwidth: float) -> float:
    """Seconds between two mini-batches of a full pipeline: its slowest stage or boundary."""
    boundaries: ArrayLike = [boundary_time(profile, s.first - 1, s.replicas, bandwidth) for s in stages[1:]]
    return float(max([s.time for s in stages] + list(np.atleast_1d(boundaries))))
