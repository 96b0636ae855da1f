"""NVLS: the switch inside a host adds what its GPUs hold."""

from __future__ import annotations

from commsim.core.errors import InputError
from switch_model.system import System
from switch_model.systems import system

PACKET_BYTES = 256
HEADER = 16  # one flit beside up to sixteen of payload; not read in a published specification


@system
def nvls(
    elements_per_packet: int | None = None,
    element_bytes: int = 4,
    pool_size: int = 1024,
    window: int | None = None,
    header: int = HEADER,
) -> System:
    """Aggregate in the switch between the GPUs of one host: lossless, at the rate of its links, in floats.

    Registers hold float32; with two bytes per element each packet that leaves is rounded to bfloat16.

    Parameters
    ----------
    elements_per_packet : int, optional
        Elements of a packet; by default as many as 256 bytes hold.
    element_bytes : int
        4 for float32, 2 for bfloat16.
    pool_size : int
        Packets that the switch holds.
    window : int, optional
        Packets outstanding; by default all slots.
    header : int, bytes
        Size of each packet beside its values.

    Returns
    -------
    System

    References
    ----------
    Klenk et al., "An in-network architecture for accelerating shared-memory multiprocessor collectives", ISCA 2020.
    """
    if element_bytes not in (2, 4):
        raise InputError(f"nvls adds elements of 2 or 4 bytes, got {element_bytes}")
    return System(
        "nvls",
        PACKET_BYTES // element_bytes if elements_per_packet is None else elements_per_packet,
        element_bytes=element_bytes,
        header=header,
        pool_size=pool_size,
        window=pool_size if window is None else window,
        lossless=True,
        rto=0.0,
        arithmetic="float",
        quantizer="none",
        max_fan_in=64,
        in_machines=True,
    )
