"""iSwitch: float adders of an FPGA in the switch, for the many small gradients of reinforcement learning."""

from __future__ import annotations

from switch_model.system import System
from switch_model.systems import system

SEGMENT = 8  # bytes: the number of a packet's part of the gradient
# Ethernet 14, IPv4 20, UDP 8, the number; then frame check sequence 4, preamble and gap 20
HEADER = 14 + 20 + 8 + SEGMENT + 24
ELEMENTS = (1500 - 20 - 8 - SEGMENT) // 4  # what an Ethernet frame holds
# Eight adders work on 32 bytes in each cycle of a NetFPGA's 200 MHz, which is 51.2 Gb/s for all ports together.
ADDER_BYTES, CLOCK = 32, 200e6


@system
def iswitch(
    elements_per_packet: int = ELEMENTS,
    pool_size: int = 512,
    window: int | None = None,
    rto: float = 1e-3,
    header: int = HEADER,
) -> System:
    """Add packets of float gradients as they arrive, and send a sum when it has come from every worker.

    One unit adds what all ports receive: with four ports of 10 Gb/s it keeps up, with more or faster ones it is the
    limit.

    Parameters
    ----------
    elements_per_packet : int
        k, floats.
    pool_size : int
        Sums that the switch holds for each job.
    window : int, optional
        Packets outstanding; by default all sums.
    rto : float, s
        Timeout after which a worker asks for what is missing.
    header : int, bytes
        Size of each packet beside its values, with frame check sequence, preamble and gap.

    Returns
    -------
    System

    References
    ----------
    Li et al., "Accelerating distributed reinforcement learning with in-switch computing", ISCA 2019. Sums that fit
    and the time-out are assumed.
    """
    return System(
        "iswitch",
        elements_per_packet,
        header=header,
        pool_size=pool_size,
        window=pool_size if window is None else window,
        rto=rto,
        arithmetic="float",
        quantizer="none",
        adding_time=4 * elements_per_packet / (ADDER_BYTES * CLOCK),
        max_fan_in=64,
    )
