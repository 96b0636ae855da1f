"""PANAMA: several trees per job, float adders at line rate, and a window that shrinks on marks."""

from __future__ import annotations

from switch_model.system import System
from switch_model.systems import system

# Ethernet 14, IPv4 20, UDP 8, and 8 for slot and job; then frame check sequence 4, preamble and gap 20. The authors'
# own format was not at hand, so this is SwitchML's without exponents.
HEADER = 14 + 20 + 8 + 8 + 24


@system
def panama(
    elements_per_packet: int = 256,
    n_trees: int = 4,
    pool_size: int = 512,
    window: int | None = None,
    rto: float = 1e-3,
    header: int = HEADER,
) -> System:
    """Spread a job's packets over several trees; results acknowledge, and carry the marks of what they sum.

    The window follows marks as DCTCP's does: by a running estimate of their share, with a gain of 1/16.

    Parameters
    ----------
    elements_per_packet : int
        k, floats.
    n_trees : int
        Trees of a job, so that it is not bound to one path as a flow would be.
    pool_size : int
        Slots of a switch for each job.
    window : int, optional
        Most packets outstanding; by default all slots.
    rto : float, s
        Timeout after which a worker repeats.
    header : int, bytes
        Size of each packet beside its values, with frame check sequence, preamble and gap.

    Returns
    -------
    System

    References
    ----------
    Gebara et al., "In-network aggregation for shared machine learning clusters", MLSys 2021.
    """
    return System(
        "panama",
        elements_per_packet,
        header=header,
        pool_size=pool_size,
        window=pool_size if window is None else window,
        sliding=True,
        ecn_window=True,
        gain=1 / 16,
        window_growth=4.0 * elements_per_packet + header,
        rto=rto,
        arithmetic="float",
        quantizer="none",
        n_trees=n_trees,
        max_fan_in=64,
    )
