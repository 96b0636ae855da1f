"""ATP: slots that all jobs share, a parameter server for what found none, and a window that shrinks on marks."""

from __future__ import annotations

import zlib

import numpy as np
from numpy.typing import NDArray

from switch_model.system import System
from switch_model.systems import system

# Frame of 308: Ethernet 14, IPv4 20, bitmap 4, workers 1, flags 1, job 2, sequence 2, two slots 4, 62 values 248,
# key 8, tensor length 4. Then frame check sequence 4, preamble and gap 20.
HEADER = 308 - 4 * 62 + 24


def hashed_slots(job: int, window: int, pool_size: int) -> NDArray[np.int32]:
    """Slot of each entry of a job's window: a hash of both, drawn again until they differ.

    Where a window has more entries than there are slots, several have the same one: of fragments under way the first
    holds it, and the others are summed at the server.

    Parameters
    ----------
    job : int
        Number of the job.
    window, pool_size : int
        Fragments that may be under way, and slots of the switch.
    """
    taken, chosen = set[int](), np.empty(window, np.int32)
    for entry in range(window):
        if entry % pool_size == 0:
            taken.clear()
        salt = 0
        while (slot := zlib.crc32(f"{job} {entry} {salt}".encode()) % pool_size) in taken:
            salt += 1
        taken.add(slot)
        chosen[entry] = slot
    return chosen


@system
def atp(
    elements_per_packet: int = 62,
    pool_size: int = 20_000,
    window: int = 100,
    rto: float = 200e-6,
    header: int = HEADER,
) -> System:
    """Fragments claim hashed slots first come, first served; whoever finds one taken is summed at the server.

    The hash is :func:`hashed_slots`.

    Registers saturate, and floats become integers by a fixed factor of a million. A packet takes a pair of slots, half
    of its values each, so slots are counted in pairs.

    Parameters
    ----------
    elements_per_packet : int
        k; the hardware takes 62.
    pool_size : int
        Pairs of slots of a switch, for all jobs together.
    window : int
        Packets that a worker may have outstanding at first, and at most; marks halve the window, and every window
        without them adds 1500 bytes, up to 100 packets.
    rto : float, s
        Silence after which a worker repeats.
    header : int, bytes
        Size of each packet beside its values, with frame check sequence, preamble and gap.

    Returns
    -------
    System

    References
    ----------
    Lao et al., "ATP: in-network aggregation for multi-tenant learning", NSDI 2021; sizes, pool and times from its
    public code (in-ATP/ATP).
    """
    return System(
        "atp",
        elements_per_packet,
        header=header,
        pool_size=pool_size,
        window=window,
        versions=1,
        shared_slots=hashed_slots,
        sliding=True,
        ecn_window=True,
        gain=1.0,
        window_growth=1500.0,
        max_window=100,
        rto=rto,
        arithmetic="saturate",
        quantizer="fixed",
        server=True,
    )
