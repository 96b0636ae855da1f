"""The channels that NCCL's search of a regular machine comes to: how many, and how fast each.

NCCL packs as many equal channels as fit into a machine, for each of a list of rates, and keeps what carries the most in
all; then it doubles channels that are fast and few, at half the rate. Its search goes over every link; here a machine
is two numbers, the NVLinks (or the PCIe link) of a GPU, and its NICs. What NCCL really found, ``NCCL_GRAPH_DUMP_FILE``
says.

References
----------
NCCL 2.30, ``src/graph/search.cc``.
"""

from __future__ import annotations

from commsim.core.errors import InputError

from .constants import (
    CHANNEL_GBS,
    CHANNEL_NET_GBS,
    DOUBLED_FROM_GBS,
    DOUBLED_FROM_HOPPER_GBS,
    FEW_CHANNELS,
    MAX_CHANNELS,
)

SLOWEST_TRIED = 0.49
"""Of the rate of the best channels so far: below that the search tries no others."""
_FIT = 1e-9


def packed_channels(gpu: str, inside: float, outside: float | None = None, n_nics: int = 0) -> tuple[int, float]:
    """Pack channels into a machine.

    Parameters
    ----------
    gpu : str
        Generation.
    inside : float, bytes/s
        Of a GPU's links to the others of its machine; infinite for the only GPU of one.
    outside : float, bytes/s, optional
        Of a NIC; where there is one, every channel goes in and out through a NIC.
    n_nics : int
        NICs of a machine.

    Returns
    -------
    int, float
        How many channels, and the rate of each in bytes/s.

    Raises
    ------
    InputError
        If even the slowest channel does not fit.
    """
    speeds = CHANNEL_GBS[gpu] if outside is None else CHANNEL_NET_GBS[gpu]
    best = (0, 0.0)
    for gbs in speeds:
        speed = gbs * 1e9
        if best[0] and speed <= SLOWEST_TRIED * best[1]:
            break
        n = MAX_CHANNELS if inside == float("inf") else int(inside / speed + _FIT)
        if outside is not None:
            n = min(n, n_nics * int(outside / speed + _FIT))
        n = min(n, MAX_CHANNELS)
        if n * speed > best[0] * best[1] * (1 + _FIT):
            best = n, speed
    if not best[0]:
        raise InputError(f"no channel fits: the slowest that NCCL tries has {speeds[-1]} GB/s; say --channels N:RATE")
    return best


def doubled(gpu: str, n: int, rate: float) -> tuple[int, float]:
    """Double the channels where NCCL does: fast ones, and on Hopper and later only very fast or few ones."""
    is_new = gpu in ("hopper", "blackwell")
    if rate < DOUBLED_FROM_GBS * 1e9 or (is_new and rate < DOUBLED_FROM_HOPPER_GBS * 1e9 and n > FEW_CHANNELS):
        return n, rate
    twice = min(2 * n, MAX_CHANNELS)
    return twice, rate / -(-twice // n)


def nvls_channels(gpu: str, n_gpus: int, inside: float) -> tuple[int, float]:
    """One channel for each GPU of the machine, which heads it, at the fastest rate at which all fit."""
    for gbs in CHANNEL_GBS[gpu]:
        if n_gpus * gbs * 1e9 <= inside * (1 + _FIT):
            return n_gpus, gbs * 1e9
    return 0, 0.0
