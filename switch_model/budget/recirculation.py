"""What packets that must pass a pipe again cost: bandwidth of ports that lead back into it.

A packet that comes back leaves its headers behind and carries what the switch knows about it; values that have been
added are gone, and values of the result are added lane by lane.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from switch_model.budget.chip import VALUE_BYTES, Hardware
from switch_model.system import System

from .register_layout import RegisterLayout

# p4app-switchML types.p4: 248 bits of metadata and 66 for RDMA, so 40 bytes. Frame check sequence, preamble and gap, 24
# bytes, are counted as on a cable, which is an assumption.
LOOP_HEADER = 40 + 24


@dataclass(frozen=True, slots=True)
class Recirculation:
    """Load on the loopback ports of one group of pipes when its jobs run at line rate.

    Parameters
    ----------
    adding : float, bytes/s
        Rate of packets that are still being added, all workers together, through ports of the pipes folded in.
    reading : float, bytes/s
        Rate of packets that collect the result, or ATP's second half.
    reading_capacity : float, bytes/s
        Capacity of the internal loopback ports that these take.
    share : float
        Share of the line rate that internal ports allow, at most 1.
    ports_for_line_rate : int
        Ports that must be looped back as well for a share of 1.
    """

    adding: float
    reading: float
    reading_capacity: float
    share: float
    ports_for_line_rate: int


def recirculation(
    system: System, hardware: Hardware, layout: RegisterLayout, n_jobs: int, n_workers: int, bandwidth: float
) -> Recirculation:
    """Load of `n_jobs` jobs that share pipes.

    Parameters
    ----------
    system : System
        System that sends the packets.
    hardware : Hardware
        Switch that the jobs run on.
    layout : RegisterLayout
        Register layout of the system.
    n_jobs, n_workers : int
        Jobs in the same pipes, and workers of each.
    bandwidth : float, bytes/s
        Bandwidth of each worker.
    """
    packets = system.line_rate(bandwidth) / system.elements
    added = layout.pass_elements * VALUE_BYTES
    adding = 0.0
    if layout.folded:
        left = (system.payload - added * done + LOOP_HEADER for done in range(1, layout.n_passes))
        adding = n_jobs * n_workers * packets * sum(left)
    loads = [n_jobs * packets * n_bytes for n_bytes in _reading_bytes(system, layout)]
    shares, extra, at = [1.0], 0, 0
    for pipe in reversed(range(layout.pipes)):
        steps = layout.lanes - (pipe == layout.pipes - 1) if layout.folded else len(loads)
        group = loads[at : at + steps]
        at += steps
        if group:
            shares.append(_share(group, hardware))
            extra += max(0, sum(math.ceil(x / hardware.loopback_rate - 1e-9) for x in group) - hardware.loopbacks)
    capacity = hardware.loopbacks * hardware.loopback_rate * layout.pipes if loads else 0.0
    return Recirculation(adding, sum(loads), capacity, min(shares), extra)


def _reading_bytes(system: System, layout: RegisterLayout) -> list[float]:
    """Bytes in the loop of the completing packet, each time that it comes back."""
    if not layout.folded:  # the packet that completes the first half goes round whole; others are resubmitted
        return [system.message_bytes / system.packets_per_message] * layout.adding_recirculations
    lane = layout.arrays * VALUE_BYTES
    return [lane * step + LOOP_HEADER for step in range(1, layout.reading_recirculations + 1)]


def _share(loads: list[float], hardware: Hardware) -> float:
    """Largest share of these loads that a pipe's loopback ports carry, each port serving one of them."""
    if len(loads) > hardware.loopbacks:
        return min(1.0, hardware.loopbacks * hardware.loopback_rate / sum(loads))
    ports = [1] * len(loads)
    for _ in range(hardware.loopbacks - len(loads)):
        slowest = max(range(len(loads)), key=lambda i: loads[i] / ports[i])
        ports[slowest] += 1
    return min(1.0, *(n * hardware.loopback_rate / x for n, x in zip(ports, loads, strict=True)))
