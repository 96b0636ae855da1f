"""ZeRO-Offload and ZeRO-Infinity: traffic to the host or to NVMe, and the bandwidth that it takes to hide it.

Per iteration a parameter costs 8 x examples x tokens floating-point operations: 2 forward, 4 backward, and 2 more to
compute the forward pass again.

References
----------
Ren et al., "ZeRO-Offload", USENIX ATC 2021, section 3: gradients to the host and parameters back, 2 bytes each.
Rajbhandari et al., "ZeRO-Infinity", SC 2021, section 4: operations per byte of each kind of state.
"""

from __future__ import annotations

import math

from commsim.core.errors import InputError

FLOPS_PER_PARAMETER = 8
BYTES_MOVED = {
    "parameters": 8,  # 16-bit numbers: to load for forward, for computing it again, for backward; gradients to store
    "optimizer": 32,  # 16 bytes of 32-bit weights, gradients and both moments, to load and to store
}
"""Bytes per parameter and iteration of what is not on the GPU."""


def offload_bytes(n_parameters: float, data_parallel: int = 1) -> tuple[float, float]:
    """Bytes that ZeRO-Offload sends per iteration and GPU, to the host and back: its part of 16-bit numbers, each way.

    The all-gather of the updated parameters and the reduce-scatter of the gradients stay among the GPUs.
    """
    if not n_parameters > 0 or data_parallel < 1:
        raise InputError(f"parameters and GPUs must be positive, got {n_parameters} and {data_parallel}")
    return 2 * n_parameters / data_parallel, 2 * n_parameters / data_parallel


def intensity(state: str, batch: float, sequence: float) -> float:
    """Operations per byte moved: batch x sequence for parameters and gradients, a quarter of it for the optimizer.

    Parameters
    ----------
    state : {"parameters", "optimizer"}
        What is not on the GPU.
    batch, sequence : float
        Examples per GPU, and tokens of each.

    Raises
    ------
    InputError
        If the state is unknown, or a number is not positive.
    """
    if state not in BYTES_MOVED:
        raise InputError(f"unknown state {state!r}; known: {', '.join(BYTES_MOVED)}")
    if not (batch > 0 and sequence > 0):
        raise InputError(f"batch and sequence must be positive, got {batch} and {sequence}")
    return FLOPS_PER_PARAMETER * batch * sequence / BYTES_MOVED[state]


def activation_intensity(hidden: float, layers_per_checkpoint: float = 1) -> float:
    """Operations per byte of activation checkpoints, stored and loaded once every few layers: 24 x hidden x layers."""
    return 24 * hidden * layers_per_checkpoint


def efficiency(operations_per_byte: float, bandwidth: float, peak: float) -> float:
    """Share of the peak that is left when moving data and computing take turns: i b / (i b + peak).

    Parameters
    ----------
    operations_per_byte : float
        i.
    bandwidth : float, bytes/s
        b, of one GPU.
    peak : float, operations/s
        That a GPU reaches when nothing is moved.
    """
    moved = operations_per_byte * bandwidth
    return 1.0 if math.isinf(moved) else moved / (moved + peak)


def bandwidth_needed(operations_per_byte: float, peak: float, wanted: float) -> float:
    """Bytes per second and GPU for an efficiency of `wanted`, 0..1 without both ends."""
    if not 0 < wanted < 1:
        raise InputError(f"an efficiency lies between 0 and 1, got {wanted}")
    return wanted / (1 - wanted) * peak / operations_per_byte
