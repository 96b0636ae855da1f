"""Whether jobs fit into a programmable switch, and if not, what would.

Not modelled: match tables and counters, the packet rate of a pipe (a resubmitted packet takes two turns of it), and the
multicast groups.

Jobs laid out on a programmable switch, whether it has room for them or not: what they would take of it.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from commsim.core.errors import InputError
from switch_model.budget.chip import VALUE_BYTES, Hardware
from switch_model.budget.register_layout import (
    QUEUE_PAIRS_PER_WORKER,
    Recirculation,
    RegisterLayout,
    recirculation,
    register_layout,
)
from switch_model.system import System

__all__ = ["Budget", "budget"]


@dataclass(frozen=True, slots=True)
class Budget:
    """Jobs on a switch.

    Jobs are spread over groups of as many pipes as a slot lies in; registers of one group are out of reach of workers
    on the ports of another.

    Parameters
    ----------
    system, hardware, layout
        What is laid out where, and how.
    n_jobs, n_workers, pool_size : int
        Jobs, workers of each, and slots: of each job when reserved, of each group of pipes when shared.
    bandwidth : float, bytes/s
        Of each worker.
    loops : Recirculation
        Of the group with most jobs, at line rate.
    """

    system: System
    hardware: Hardware
    layout: RegisterLayout
    n_jobs: int
    n_workers: int
    pool_size: int
    bandwidth: float
    loops: Recirculation

    @property
    def n_groups(self) -> int:
        """Groups of pipes that the switch has."""
        return self.hardware.pipes // self.layout.pipes

    @property
    def jobs_per_group(self) -> int:
        """Jobs that share one group, where most do."""
        return -(-self.n_jobs // self.n_groups)

    @property
    def n_entries(self) -> int:
        """Entries that each array of values needs."""
        sharing = 1 if self.system.shared else self.jobs_per_group
        return self.pool_size * self.layout.entries_per_slot * sharing

    @property
    def value_bytes(self) -> int:
        """Bytes of values of one job's slots in all versions: 2 s k 4 for SwitchML."""
        return self.pool_size * (1 if self.system.shared else self.system.versions) * self.system.elements * VALUE_BYTES

    @property
    def sram_bytes(self) -> int:
        """Memory of one pipe that register arrays take, in whole blocks."""
        return self.layout.blocks(self.n_entries, self.hardware) * self.hardware.block_bytes

    @property
    def looped_ports(self) -> int:
        """Front-panel ports that no host can use since their pipes are folded into others."""
        return (self.layout.pipes - 1) * self.hardware.ports * min(self.n_groups, self.n_jobs)

    @property
    def host_ports(self) -> int:
        """Front-panel ports that are left for hosts."""
        return self.hardware.pipes * self.hardware.ports - self.looped_ports

    @property
    def most_workers(self) -> int:
        """Workers that each job can have: all on the ports of one pipe, beside its other jobs and the servers."""
        ports = self.hardware.ports * self.hardware.split(self.bandwidth)
        return min(self.system.max_fan_in, ports // self.jobs_per_group - self.system.server)

    @property
    def elements_per_s(self) -> float:
        """Elements per second of each job at most: its line rate, or what internal loopback ports allow."""
        return self.system.line_rate(self.bandwidth) * self.loops.share


def lay_out(
    system: System, hardware: Hardware, n_jobs: int, n_workers: int, pool_size: int, bandwidth: float
) -> Budget:
    """Lay jobs out without asking whether there is room for them.

    Raises
    ------
    InputError
        If no pool of any size could hold such packets, or ports are slower than workers.
    """
    layout = register_layout(system, hardware)
    hardware.split(bandwidth)  # refuses ports that are too slow
    jobs_per_group = -(-n_jobs // (hardware.pipes // layout.pipes))
    loops = recirculation(system, hardware, layout, jobs_per_group, n_workers, bandwidth)
    return Budget(system, hardware, layout, n_jobs, n_workers, pool_size, bandwidth, loops)


GBPS = 1e9 / 8


def budget(
    system: System,
    hardware: Hardware,
    n_jobs: int = 1,
    n_workers: int = 8,
    pool_size: int | None = None,
    bandwidth: float = 100 * GBPS,
) -> Budget:
    """Lay jobs out on a switch.

    Parameters
    ----------
    system : System
        What the jobs run.
    hardware : Hardware
        Where.
    n_jobs, n_workers : int
        Jobs, and workers of each.
    pool_size : int, optional
        Slots; the system's own unless given.
    bandwidth : float, bytes/s
        Of each worker.

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


def _problem(b: Budget) -> str:
    """Say what does not fit; nothing when all does."""
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
