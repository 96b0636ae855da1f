"""How a system's slots lie in a switch's register arrays, and so how often a packet must pass.

Two ways are published. SwitchML keeps two values in each entry; an ALU adds both at once but gives out only one, so
that a result takes another pass. Values that do not fit into one pipe lie in the next ("folded" pipes), which then
serves nothing else. ATP keeps one value in each entry, which leaves in the pass that completes it; the packet's second
half lies in further entries of the same arrays.
"""

from __future__ import annotations

from dataclasses import dataclass

from commsim.core.errors import InputError
from switch_model.budget.chip import VALUE_BYTES, Hardware
from switch_model.system import System

# p4app-switchML has 32 arrays of values, four in a stage, on a chip of 12 stages: four stages are left for finding the
# job, `seen`, counter, exponents and what to do next. For other programs that is an assumption.
CONTROL_STAGES = 4
SWITCHML_CONTROL = (("seen", 4), ("counter", 2), ("exponents", 4))
QUEUE_PAIRS_PER_WORKER, QUEUE_PAIR_BYTES = 512, 8  # p4app-switchML configuration.p4, rdma_receiver.p4
ATP_CONTROL = (("bitmap", 4), ("job and sequence", 4), ("fan-in", 4), ("ECN", 4))
ATP_PASS = 31  # of its 32 declared arrays of values the public program uses 31
ATP_PASSES = 2  # a packet has room for two slots


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
        raise InputError(f"{hardware.name} has {hardware.stages} stages, {CONTROL_STAGES} of them without values")
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
