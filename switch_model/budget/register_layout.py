"""How a system's slots lie in a switch's register arrays, and so how often a packet must pass.

Two ways are published. SwitchML keeps two values in each entry; an ALU adds both at once but gives out only one, so
that a result takes another pass. Values that do not fit into one pipe lie in the next ("folded" pipes), which then
serves nothing else. ATP keeps one value in each entry, which leaves in the pass that completes it; the packet's second
half lies in further entries of the same arrays.

What packets that must pass a pipe again cost: bandwidth of ports that lead back into it.

A packet that comes back leaves its headers behind and carries what the switch knows about it; values that have been
added are gone, and values of the result are added lane by lane.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from commsim.core.errors import InputError
from switch_model.budget.chip import VALUE_BYTES, Hardware
from switch_model.system import System

# p4app-switchML has 32 arrays of values, four in a stage, on a chip of 12 stages: four stages are left for finding the
# job, `seen`, counter, exponents and what to do next. For other programs that is an assumption.
CONTROL_STAGES = 4


@dataclass(frozen=True, slots=True)
class RegisterLayout:
    """Where one slot's values lie.

    Parameters
    ----------
    lanes : int
        Values in one entry.
    pass_elements : int
        Values that one pass adds at most.
    n_passes : int
        Passes that it takes to add a packet.
    folded : bool
        Each pass is in a pipe of its own; else all are in the same.
    arrays : int
        Arrays of values in a pipe.
    entries_per_slot : int
        Entries of each array that a slot takes.
    control : tuple of (str, int)
        The arrays beside these with one entry per entry of values, and the bytes of each entry.
    queue_pairs : int
        Entries of 8 bytes of one more array, for the connections of workers that use RDMA.
    """

    lanes: int
    pass_elements: int
    n_passes: int
    folded: bool
    arrays: int
    entries_per_slot: int
    control: tuple[tuple[str, int], ...]
    queue_pairs: int = 0

    @property
    def entry_bytes(self) -> int:
        """Bytes of an entry of values."""
        return self.lanes * VALUE_BYTES

    @property
    def pipes(self) -> int:
        """Pipes that a slot lies in."""
        return self.n_passes if self.folded else 1

    @property
    def adding_recirculations(self) -> int:
        """How often every packet comes back to be added."""
        return self.n_passes - 1

    @property
    def reading_recirculations(self) -> int:
        """How often the packet that completes a slot comes back after that, to be filled with the result.

        The last pass that adds gives out one lane of its pipe.
        """
        return self.lanes * self.pipes - 1 if self.folded else 0

    @property
    def control_arrays(self) -> int:
        """Arrays of a pipe that hold no values."""
        return len(self.control) + (self.queue_pairs > 0)

    def blocks(self, n_entries: int, hardware: Hardware) -> int:
        """Memory blocks of one pipe, when its arrays have so many entries."""
        values = self.arrays * hardware.blocks(n_entries, self.entry_bytes)
        control = sum(hardware.blocks(n_entries, n_bytes) for _, n_bytes in self.control)
        return values + control + (hardware.blocks(self.queue_pairs, QUEUE_PAIR_BYTES) if self.queue_pairs else 0)

    def stages(self, hardware: Hardware) -> int:
        """Stages of a pipe that it takes."""
        return -(-self.arrays // hardware.arrays_per_stage) + CONTROL_STAGES


SWITCHML_CONTROL = (("seen", 4), ("counter", 2), ("exponents", 4))
QUEUE_PAIRS_PER_WORKER, QUEUE_PAIR_BYTES = 512, 8  # p4app-switchML configuration.p4, rdma_receiver.p4
ATP_CONTROL = (("bitmap", 4), ("job and sequence", 4), ("fan-in", 4), ("ECN", 4))
ATP_PASS = 31  # of its 32 declared arrays of values the public program uses 31
ATP_PASSES = 2  # a packet has room for two slots


def register_layout(system: System, hardware: Hardware) -> RegisterLayout:
    """Lay a system out on a switch.

    Raises
    ------
    InputError
        If registers cannot add what it sends, or a packet holds more than all passes can add; the message has the
        largest packet that fits.
    """
    if system.arithmetic == "float" or system.element_bytes != VALUE_BYTES:
        what = f"{system.arithmetic}s of {system.element_bytes} bytes"
        raise InputError(f"{system.name} adds {what}; the registers of {hardware.name} add int32 only")
    lanes = 1 if system.shared else hardware.entry_bytes // VALUE_BYTES
    free = hardware.stages - CONTROL_STAGES
    most = min(ATP_PASS if system.shared else hardware.header_values, lanes * hardware.arrays_per_stage * free)
    if most < lanes:
        raise InputError(f"{hardware.name} has {hardware.stages} stages, of which {CONTROL_STAGES} hold no values")
    n_passes, most_passes = -(-system.elements // most), ATP_PASSES if system.shared else hardware.pipes
    if n_passes > most_passes:
        per = "slots that a packet names" if system.shared else "pipes"
        raise InputError(
            f"{system.elements} elements per packet need {n_passes} passes of {most}; {system.name} on {hardware.name} "
            f"has {most_passes} {per}, so at most {most * most_passes} elements fit"
        )
    return RegisterLayout(
        lanes,
        most,
        n_passes,
        folded=not system.shared,
        arrays=-(-min(system.elements, most) // lanes),
        entries_per_slot=n_passes if system.shared else system.versions,
        control=ATP_CONTROL if system.shared else SWITCHML_CONTROL,
        queue_pairs=QUEUE_PAIRS_PER_WORKER * system.max_fan_in if system.first_header else 0,
    )


# p4app-switchML types.p4: 248 bits of metadata and 66 for RDMA, so 40 bytes. Frame check sequence, preamble and gap, 24
# bytes, are counted as on a cable, which is an assumption.
LOOP_HEADER = 40 + 24


@dataclass(frozen=True, slots=True)
class Recirculation:
    """Load on the loopback ports of one group of pipes when its jobs run at line rate.

    Parameters
    ----------
    adding : float, bytes/s
        Of packets that are still being added, all workers together, through ports of the pipes folded in.
    reading : float, bytes/s
        Of packets that collect the result, or ATP's second half.
    reading_capacity : float, bytes/s
        Of the internal loopback ports that these take.
    share : float
        Of the line rate that internal ports allow, at most 1.
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
        Whose packets.
    hardware : Hardware
        Where.
    layout : RegisterLayout
        Of the system there.
    n_jobs, n_workers : int
        Jobs in the same pipes, and workers of each.
    bandwidth : float, bytes/s
        Of each worker.
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
