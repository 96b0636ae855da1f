"""SHARP: a tree of aggregation units in InfiniBand switches, which adds floats and loses nothing."""

from __future__ import annotations

from commsim.core.errors import InputError
from switch_model.system import System
from switch_model.systems import system

LOW_LATENCY, STREAMING, BY_SIZE = "low_latency", "streaming", "by_size"
MODES = (LOW_LATENCY, STREAMING, BY_SIZE)
STREAM_FROM = 16384  # bytes; SHARP_COLL_SAT_THRESHOLD of NVIDIA's SHARP 2.6.1 unless set
OPERATION_BYTES = 256  # of one outstanding operation of low latency, on Switch-IB 2
STREAM_BYTES = 1024  # of a packet of a stream
# Local route 8, base transport 12, invariant and variant CRC 6.
INFINIBAND_HEADER = 8 + 12 + 6
STREAM_HEADER = 54
SEGMENT_TIME = (14.48e-6 - 2.83e-6) / 15
HOST_LATENCY = 0.85e-6
MAX_FAN_IN = 64  # ports of a switch; no limit on workers is published


@system
def sharp(
    mode: str = BY_SIZE,
    elements_per_packet: int | None = None,
    element_bytes: int = 4,
    pool_size: int = 64,
    window: int | None = None,
    header: int | None = None,
    n_bytes: float = float("inf"),
) -> System:
    """Lossless trees of float adders: small operations one per slot, or a stream at nearly the rate of the links.

    What is fitted, and so proves nothing when it is met:

    - `SEGMENT_TIME`, for which each 256 bytes occupy a switch's unit on their way up, is (14.48 us - 2.83 us) / 15, the
      difference of the two published points, 4096 and 8 bytes on 128 hosts. That both points are then met within
      rounding is the fit; sizes between them are predictions.
    - `HOST_LATENCY` is what then remains of the 2.83 us on a tree of two levels whose four links take 0.1 us each (our
      assumption) and whose two units take a segment's time each.
    - `STREAM_HEADER` is what leaves streams the published 95 % of the links: 1024 / (1024 + 54).

    A stream's unit takes packets at the rate of the links; its latency is taken from the low latency mode, since none
    is published.

    Parameters
    ----------
    mode : {"by_size", "low_latency", "streaming"}
        256 bytes per outstanding operation, or large messages; by size the first below 16 KiB, else the second.
    elements_per_packet : int, optional
        Elements of a packet; by default as many as the mode's packets hold.
    element_bytes : int
        4 for float32, 2 for bfloat16.
    pool_size : int
        Operations, or packets of a stream, that a switch holds; by default 64, and 512 at least for a stream.
    window : int, optional
        Packets outstanding; by default all slots.
    header : int, bytes, optional
        Size of each packet beside its values; by default that of the mode.
    n_bytes : float, bytes
        Size of the tensor, which decides the mode.

    Returns
    -------
    System

    References
    ----------
    Graham et al., "Scalable hierarchical aggregation protocol (SHArP)", COMHPC 2016: 2.83 us, 14.48 us. Graham et al.,
    "SHARP streaming-aggregation hardware design and evaluation", ISC 2020: 95 % of the bandwidth. NVIDIA SHARP 2.6.1
    documentation, "NVIDIA SHARP collective library": streams from 16,384 bytes on.
    """
    if mode not in MODES:
        raise InputError(f"sharp knows the modes {', '.join(MODES)}, got {mode!r}")
    if element_bytes not in (2, 4):
        raise InputError(f"sharp adds elements of 2 or 4 bytes, got {element_bytes}")
    small = mode == LOW_LATENCY or (mode == BY_SIZE and n_bytes < STREAM_FROM)
    fits = (OPERATION_BYTES if small else STREAM_BYTES) // element_bytes
    slots = pool_size if small else max(pool_size, 512)
    return System(
        f"sharp_{LOW_LATENCY if small else STREAMING}",
        fits if elements_per_packet is None else elements_per_packet,
        element_bytes=element_bytes,
        header=(INFINIBAND_HEADER if small else STREAM_HEADER) if header is None else header,
        pool_size=slots,
        window=slots if window is None else window,
        lossless=True,
        rto=0.0,
        arithmetic="float",
        quantizer="none",
        segment_time=SEGMENT_TIME if small else 0.0,
        switch_latency=0.0 if small else SEGMENT_TIME,
        host_latency=HOST_LATENCY,
        max_fan_in=MAX_FAN_IN,
    )
