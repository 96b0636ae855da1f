"""Flare: small processors inside the switch run a program for each packet, in floats."""

from __future__ import annotations

from commsim.core.errors import InputError
from switch_model.system import System
from switch_model.systems import system

PACKET_BYTES = 1024
# Ethernet 14, IPv4 20, UDP 8, and 8 for operation and block; then frame check sequence 4, preamble and gap 20. The
# authors' own format was not at hand.
HEADER = 14 + 20 + 8 + 8 + 24


@system
def flare(
    cores: int = 512,
    clock: float = 1e9,
    cycles: float = 4.0,
    element_bytes: int = 4,
    pool_size: int = 512,
    window: int | None = None,
    rto: float = 1e-3,
    header: int = HEADER,
) -> System:
    """Aggregate by handlers on many small cores: any operation and type, as fast as the cores together are.

    A core adds a packet's values to those of its block, so that a packet takes ``cycles k / clock`` and the switch
    adds `cores` of them at a time. What arrives faster waits: with few cores, or operations that take many cycles, the
    cores are the limit and not the links.

    Parameters
    ----------
    cores : int
        Number of cores of the switch; the authors' has 64 groups of 8.
    clock : float, 1/s
        Clock rate of a core.
    cycles : float
        Cycles of a core for each value: to load both, to add and to store.
    element_bytes : int
        4 for float32, 2 for bfloat16.
    pool_size : int
        Blocks that the switch holds for each job.
    window : int, optional
        Packets outstanding; by default all blocks.
    rto : float, s
        Timeout after which a worker repeats.
    header : int, bytes
        Size of each packet beside its values, with frame check sequence, preamble and gap.

    Returns
    -------
    System

    References
    ----------
    De Sensi et al., "Flare: flexible in-network allreduce", SC 2021. Cycles, blocks and header are assumed.
    """
    if element_bytes not in (2, 4):
        raise InputError(f"flare adds elements of 2 or 4 bytes, got {element_bytes}")
    for name, value in (("cores", cores), ("clock", clock), ("cycles", cycles)):
        if not 0 < value < float("inf"):
            raise InputError(f"flare: {name} must be above 0, got {value}")
    elements = PACKET_BYTES // element_bytes
    handler = cycles * elements / clock
    return System(
        "flare",
        elements,
        element_bytes=element_bytes,
        header=header,
        pool_size=pool_size,
        window=pool_size if window is None else window,
        rto=rto,
        arithmetic="float",
        quantizer="none",
        adding_time=handler / cores,
        switch_latency=handler * (1 - 1 / cores),  # a packet passes in a handler's time and occupies a share of it
        max_fan_in=64,
    )
