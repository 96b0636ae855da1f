"""Jobs laid out on a programmable switch, whether it has room for them or not: what they would take of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from switch_model.budget.chip import VALUE_BYTES, Hardware
from switch_model.budget.recirculation import Recirculation, recirculation
from switch_model.budget.register_layout import CONTROL_STAGES, RegisterLayout, register_layout
from switch_model.system import System


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
        Bandwidth of each worker.
    loops : Recirculation
        Recirculation of the group with most jobs, at line rate.
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

    def resources(self) -> list[dict[str, Any]]:
        """Return what is used of each pipe that takes part, and what there is."""
        hardware, layout = self.hardware, self.layout
        arrays = hardware.stages * hardware.arrays_per_stage
        rows = [
            ("stages", layout.stages(hardware), hardware.stages),
            ("register arrays", layout.arrays + layout.control_arrays, arrays),
            ("of these, for values", layout.arrays, arrays - CONTROL_STAGES * hardware.arrays_per_stage),
            ("entries of an array", self.n_entries, hardware.most_entries(layout.entry_bytes)),
            ("memory_B", self.sram_bytes, hardware.sram_bytes),
            ("loopback_Bps", self.loops.reading / layout.pipes, self.loops.reading_capacity / layout.pipes),
            ("workers of a job", self.n_workers, self.most_workers),
        ]
        return [{"resource": name, "used": used, "available": available} for name, used, available in rows]

    def row(self) -> dict[str, Any]:
        """Return the JSON row."""
        layout = self.layout
        return {
            "system": self.system.name,
            "hardware": self.hardware.name,
            "elements_per_packet": self.system.elements,
            "pool_size": self.pool_size,
            "jobs": self.n_jobs,
            "workers": self.n_workers,
            "max_workers": self.most_workers,
            "passes": layout.n_passes,
            "pipes_per_job": layout.pipes,
            "stages": layout.stages(self.hardware),
            "value_arrays": layout.arrays,
            "control_arrays": layout.control_arrays,
            "entries": self.n_entries,
            "value_B": self.value_bytes,
            "sram_B": self.sram_bytes,
            "recirculations_adding": layout.adding_recirculations,
            "recirculations_reading": layout.reading_recirculations,
            "recirculation_adding_Bps": self.loops.adding,
            "recirculation_reading_Bps": self.loops.reading,
            "recirculation_capacity_Bps": self.loops.reading_capacity,
            "ports_looped_back": self.looped_ports,
            "ports_for_hosts": self.host_ports,
            "ports_for_line_rate": self.loops.ports_for_line_rate,
            "share_of_line_rate": self.loops.share,
            "elements_per_s": self.elements_per_s,
        }


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
