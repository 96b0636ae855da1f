"""SwitchML: reserved slots in two versions, workers that clock themselves, and results by multicast."""

from __future__ import annotations

from commsim.core import cost
from commsim.core.errors import InputError
from switch_model.system import System
from switch_model.systems import system

# Ethernet 14, IPv4 20, UDP 8, SwitchML 8, exponents 2; then frame check sequence 4, preamble and gap 20
UDP_HEADER = 14 + 20 + 8 + 8 + 2 + 24
ROCE_HEADER = int(cost.ROCE_HEADER)
RETH, IMMEDIATE = 16, 4
# Packets of 256 and 1024 bytes of values (p4app-switchML accepts no others).
RDMA_ELEMENTS = (64, 256)


@system
def switchml_udp(
    elements_per_packet: int = 256,
    pool_size: int = 512,
    window: int | None = None,
    rto: float = 1e-3,
    header: int = UDP_HEADER,
) -> System:
    """One packet is one message, on UDP; k = 64 or 256.

    Parameters
    ----------
    elements_per_packet : int
        k; the hardware takes 64 and 256.
    pool_size : int
        Slots.
    window : int, optional
        Packets outstanding; by default all slots.
    rto : float, s
        Timeout after which a worker repeats.
    header : int, bytes
        Size of each packet beside its values, with frame check sequence, preamble and gap.

    Returns
    -------
    System

    References
    ----------
    Sapio et al., "Scaling distributed machine learning with in-network aggregation", NSDI 2021.
    """
    return System(
        "switchml_udp",
        elements_per_packet,
        header=header,
        pool_size=pool_size,
        window=pool_size if window is None else window,
        rto=rto,
    )


@system
def switchml_rdma(
    elements_per_packet: int = 256,
    packets_per_message: int = 4,
    pool_size: int = 512,
    window: int | None = None,
    rto: float = 1e-3,
    header: int = ROCE_HEADER,
) -> System:
    """Messages of several packets as RDMA writes on an unreliable connection; a lost packet repeats its message.

    Parameters
    ----------
    elements_per_packet : int
        k, 64 or 256: the packet sizes of the switch's program.
    packets_per_message : int
        A power of two.
    pool_size : int
        Slots, one per packet.
    window : int, optional
        Packets outstanding; by default all slots.
    rto : float, s
        Timeout after which a worker repeats.
    header : int, bytes
        Size of each packet beside its values, with frame check sequence, preamble and gap.

    Returns
    -------
    System

    Raises
    ------
    InputError
        If k is another.

    References
    ----------
    Sapio et al., NSDI 2021.
    """
    if elements_per_packet not in RDMA_ELEMENTS:
        raise InputError(f"switchml_rdma sends packets of 64 or 256 elements, got {elements_per_packet}")
    return System(
        "switchml_rdma",
        elements_per_packet,
        packets_per_message=packets_per_message,
        header=header,
        first_header=RETH,
        last_header=IMMEDIATE,
        pool_size=pool_size,
        window=pool_size if window is None else window,
        rto=rto,
    )
