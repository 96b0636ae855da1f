"""Times of collectives for compilers and schedulers, which ask often: predictions at powers of two, kept."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

from commsim.api import predict
from commsim.core.data_frames import frame_of
from commsim.core.errors import InputError, wrong_kind
from commsim.core.files.opening import opening
from commsim.core.network import Network
from commsim.core.operations import operation as known_operation
from commsim.extensions import house
from commsim.prediction.checks import checked
from commsim.prediction.collective_names import usual_collective
from commsim.prediction.inputs import load_network, size_of

# Tables are kept for this many points: an operation with ranks and network has some thirty.
MAX_KEPT = 65536
# Largest size, bytes.
MAX_SIZE = 2**50
# What stands in the beginning of a cost model's file, and how many bytes that has.
FORMAT, MAX_BEGINNING = b'"commsim cost model"', 4096
__all__ = ["Estimate", "estimate"]


class Estimate(NamedTuple):
    """Time of a collective.

    Parameters
    ----------
    time : float, s
        Time until the last rank has ended.
    low, high : float, s
        Interval of a single run, as predictions of NCCL have it from measurements; both are the time where there is no
        evidence for one.
    """

    time: float
    low: float
    high: float

    def to_frame(self, library: str | None = None) -> Any:
        """Return the three times, in seconds, as a data frame of pandas or polars."""
        return frame_of([{f"{name}_s": value for name, value in self._asdict().items()}], library)


def estimate(operation: str, n_bytes: float | str, ranks: int, machine: str) -> Estimate:
    """Estimate how long a collective takes, from predictions at powers of two of its size.

    The first call at a size makes one or two predictions, as :func:`commsim.predict` does by default; all further calls
    between the same powers of two take microseconds. Between them, logarithms of the times are interpolated: at a power
    of two the time is the prediction.

    Parameters
    ----------
    operation : str
        Name of the operation, such as ``all_gather``.
    n_bytes : float, bytes, or str
        Size as nccl-tests counts it: of the whole array.
    ranks : int
        Number of ranks, packed on the network from its first place on.
    machine : str
        Machine or network as ``--topology`` takes it, such as ``dgx-h100``; or the file of a cost model, such as
        ``dgx.json`` of ``commsim export cost-model``, which answers at once, within 1 % of the prediction.

    Returns
    -------
    Estimate
        Time and interval.

    Raises
    ------
    InputError
        If the operation, the machine, the ranks or the size are wrong.

    Examples
    --------
    >>> from commsim import estimate
    >>> round(estimate("all_reduce", 64 << 20, 4, "star:n_hosts=4,bandwidth=100Gbps,latency=1us").time * 1e3, 3)
    8.071
    """
    n_bytes = n_bytes if isinstance(n_bytes, (int, float)) else size_of(n_bytes, "n_bytes")
    operation = checked("operation", operation)
    if not isinstance(machine, str):
        raise wrong_kind("machine", "text such as 'dgx-h100'", machine)
    if not 0 <= n_bytes <= MAX_SIZE:
        raise InputError(f"n_bytes must be 0 to {MAX_SIZE}, got {n_bytes}")
    if (of_file := _of_file(machine)) is not None:
        return Estimate(*of_file(operation, n_bytes, ranks))
    if n_bytes <= 1:
        return _at(operation, 0, ranks, machine)
    exponent = math.log2(n_bytes)
    below = math.floor(exponent)
    part = exponent - below
    first = _at(operation, below, ranks, machine)
    if not part:
        return first
    second = _at(operation, below + 1, ranks, machine)
    return Estimate(*(a ** (1 - part) * b**part for a, b in zip(first, second, strict=True)))


@functools.lru_cache(maxsize=MAX_KEPT)
def _at(operation: str, exponent: int, ranks: int, machine: str) -> Estimate:
    """Predict one power of two."""
    known_operation(operation)
    network = _network(machine)
    name, _ = usual_collective(network, operation)
    found = predict(name, network, float(2**exponent), n_ranks=ranks, operation=operation)
    low, high = found.interval or (found.time, found.time)
    return Estimate(found.time, low, high)


@functools.lru_cache(maxsize=64)
def _of_file(machine: str) -> Any:
    """Return the function of a cost model; None of a machine or a network, also of one in a file."""
    if not machine.endswith(".json"):
        return None
    with opening(machine) as file:
        if FORMAT not in file.read(MAX_BEGINNING):
            return None
    return house().services["cost model of a file"](machine)


@functools.lru_cache(maxsize=64)
def _network(machine: str) -> Network:
    return load_network(machine)
