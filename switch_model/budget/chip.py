"""What a programmable switch has: stages, register arrays, memory, ports, and ways back into its pipes."""

from __future__ import annotations

from dataclasses import dataclass

from commsim.core.errors import InputError

VALUE_BYTES = 4  # registers add int32


@dataclass(frozen=True, slots=True)
class Hardware:
    """A switch in the budget's model: all pipes are equal, and no pipe can access another's registers.

    Parameters
    ----------
    name : str
        Name as people write it.
    pipes : int
        Pipes of the chip.
    stages : int
        Match-action stages of a pipe.
    arrays_per_stage : int
        Register arrays that one stage can update, one per stateful ALU; a packet touches each once per pass.
    entry_bytes : int
        Widest entry of such an array.
    sram_blocks : int
        Memory blocks of a stage.
    register_blocks : int
        Those of them that can hold registers.
    block_bytes : int
        Bytes of a block.
    spare_blocks : int
        Blocks that each array takes beside those of its entries.
    header_values : int
        32-bit values that one pass can take out of a packet.
    ports : int
        Front-panel ports of a pipe.
    port_rate : float, bytes/s
        Rate of each port.
    port_split : int
        Slower ports that a port can be split into.
    loopbacks : int
        Ports of a pipe that no cable can use and that lead back into it.
    loopback_rate : float, bytes/s
        Rate of each loopback port.
    sources : tuple of str
        Sources of the numbers, and which are assumed.
    """

    name: str
    pipes: int
    stages: int
    arrays_per_stage: int
    entry_bytes: int
    sram_blocks: int
    register_blocks: int
    block_bytes: int
    spare_blocks: int
    header_values: int
    ports: int
    port_rate: float
    port_split: int
    loopbacks: int
    loopback_rate: float
    sources: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for field in ("pipes", "stages", "arrays_per_stage", "entry_bytes", "block_bytes", "ports", "port_split"):
            if getattr(self, field) < 1:
                raise InputError(f"{self.name}: {field} must be at least 1, got {getattr(self, field)}")
        if not (self.port_rate > 0 and self.loopback_rate > 0):
            raise InputError(f"{self.name}: rates must be positive, got {self.port_rate} and {self.loopback_rate}")
        if not self.arrays_per_stage * (self.spare_blocks + 1) <= self.register_blocks <= self.sram_blocks:
            raise InputError(
                f"{self.name}: {self.arrays_per_stage} arrays and their spare blocks must fit into register_blocks, "
                f"and these into sram_blocks, got {self.register_blocks} and {self.sram_blocks}"
            )

    @property
    def sram_bytes(self) -> int:
        """Memory of one pipe."""
        return self.stages * self.sram_blocks * self.block_bytes

    def most_entries(self, entry_bytes: int) -> int:
        """Entries that an array has at most when every ALU of its stage serves an array as large."""
        blocks = self.register_blocks // self.arrays_per_stage - self.spare_blocks
        return blocks * (self.block_bytes // entry_bytes)

    def blocks(self, n_entries: int, entry_bytes: int) -> int:
        """Memory blocks that an array takes."""
        return -(-n_entries // (self.block_bytes // entry_bytes)) + self.spare_blocks

    def split(self, bandwidth: float) -> int:
        """Hosts of this bandwidth that one port serves.

        Raises
        ------
        InputError
            If a port is slower than that.
        """
        if not 0 < bandwidth <= self.port_rate:
            most = self.port_rate * 8e-9
            raise InputError(f"{self.name} has ports of {most:g} Gb/s, got hosts of {bandwidth * 8e-9:g} Gb/s")
        return min(self.port_split, int(self.port_rate / bandwidth))
