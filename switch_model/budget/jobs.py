"""Whether jobs fit into a programmable switch, and if not, what would.

Not modelled: match tables and counters, the packet rate of a pipe (a resubmitted packet takes two turns of it), and the
multicast groups.
"""

from __future__ import annotations

import dataclasses

from commsim.core.errors import InputError
from switch_model.budget.chip import VALUE_BYTES, Hardware
from switch_model.budget.register_layout import (
    QUEUE_PAIRS_PER_WORKER,
)
from switch_model.system import N_WORKERS, System

from .layout_of_jobs import Budget, lay_out

__all__ = ["Budget", "budget", "require_slots"]


GBPS = 1e9 / 8


def budget(
    system: System,
    hardware: Hardware,
    n_jobs: int = 1,
    n_workers: int = N_WORKERS,
    pool_size: int | None = None,
    bandwidth: float = 100 * GBPS,
) -> Budget:
    """Lay jobs out on a switch.

    Parameters
    ----------
    system : System
        What the jobs run.
    hardware : Hardware
        Switch that the jobs run on.
    n_jobs, n_workers : int
        Jobs, and workers of each.
    pool_size : int, optional
        Slots; by default the system's own.
    bandwidth : float, bytes/s
        Bandwidth of each worker.

    Raises
    ------
    InputError
        If something does not fit; the message says what would.

    References
    ----------
    p4app-switchML (dev_root/p4, controller/next_step_selector.py) and in-ATP/ATP (p4src), which run on Tofino.
    """
    slots = system.pool_size if pool_size is None else pool_size
    for name, value in (("jobs", n_jobs), ("workers", n_workers), ("slots", slots)):
        if value < 1:
            raise InputError(f"a budget needs at least 1 of {name}, got {value}")
    used = lay_out(system, hardware, n_jobs, n_workers, slots, bandwidth)
    if problem := _problem(used):
        raise InputError(f"{system.name} on {hardware.name}: {problem}; {_what_fits(used)}")
    return used


def require_slots(system: System, hardware: Hardware, n_jobs: int) -> None:
    """Refuse slots, or packets, that the registers of a switch have no room for; ports and workers are not looked at.

    Systems that do not add in the registers of a programmable switch are not refused.

    Raises
    ------
    InputError
        The message says what would fit.
    """
    if system.hosts or system.arithmetic == "float" or system.element_bytes != VALUE_BYTES:
        return
    used = lay_out(system, hardware, n_jobs, 1, system.pool_size, hardware.port_rate)
    if problem := _problem(used):
        raise InputError(f"{system.name} on {hardware.name}: {problem}; {_what_fits(used)}")


def _problem(b: Budget) -> str:
    """Describe what does not fit; nothing when all does."""
    room, jobs = b.hardware.most_entries(b.layout.entry_bytes), _count(b.jobs_per_group, "job")
    if b.n_entries > room:
        of = "for all jobs" if b.system.shared else f"for each of {jobs} in the same pipes"
        return f"{_count(b.pool_size, 'slot')} {of} need {b.n_entries} entries of each register array, which has {room}"
    if b.layout.queue_pairs and b.pool_size > QUEUE_PAIRS_PER_WORKER * b.system.packets_per_message:
        message = f"messages of {_count(b.system.packets_per_message, 'packet')}"
        return (
            f"a worker has {QUEUE_PAIRS_PER_WORKER} queue pairs, one for each of its {message}, got {b.pool_size} slots"
        )
    if b.n_workers > b.most_workers:
        ports = f"{b.hardware.ports * b.hardware.split(b.bandwidth)} ports of {b.bandwidth / GBPS:g} Gb/s"
        asked = f"{jobs} of {_count(b.n_workers, 'worker')}{' and a server' if b.system.server else ''}"
        return f"{asked} in a pipe of {ports}, at most {b.system.max_fan_in} in each job"
    return ""


def _what_fits(b: Budget) -> str:
    """Name the largest change of one thing at a time that makes the rest fit."""
    slots = _largest(b, "pool_size", b.pool_size)
    jobs, workers = _largest(b, "n_jobs", b.n_jobs), _largest(b, "n_workers", b.n_workers)
    elements = next((k for k in _smaller_packets(b) if not _problem(_changed(b, elements=k))), 0)
    changes = [
        f"a pool of {_count(slots, 'slot')}" if slots else "",
        _count(jobs, "job") if jobs else "",
        _count(workers, "worker") if workers else "",
        f"{elements} elements per packet" if elements else "",
    ]
    fits = ", or ".join(text for text in changes if text)
    return f"what would fit, all else as asked: {fits}" if fits else "no single change makes it fit"


def _largest(b: Budget, name: str, asked: int) -> int:
    """Largest value of one thing below what was asked for that fits, 0 if none; more never fits where less does not."""
    low, high = 0, asked
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _problem(_changed(b, **{name: middle})) else (middle, high)
    return low - low % b.system.packets_per_message if name == "pool_size" else low


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'s' * (n != 1)}"


def _smaller_packets(b: Budget) -> list[int]:
    return [n * b.layout.pass_elements for n in reversed(range(1, b.layout.n_passes))]


def _changed(b: Budget, elements: int = 0, **changes: int) -> Budget:
    asked = {"n_jobs": b.n_jobs, "n_workers": b.n_workers, "pool_size": b.pool_size} | changes
    system = dataclasses.replace(b.system, elements=elements) if elements else b.system
    return lay_out(system, b.hardware, bandwidth=b.bandwidth, **asked)
