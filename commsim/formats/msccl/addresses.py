"""Where the chunks of an MSCCL file are in a schedule's buffers."""

from __future__ import annotations

from commsim.core.errors import InputError
from commsim.core.schedule import INPUT, OUTPUT, SCRATCH

from .algorithm import OPERATIONS, Algorithm, Step

Where = tuple[int, int]
"""Buffer of a schedule, and chunk."""


class Addresses:
    """Maps the buffers of an algorithm to those of a schedule.

    Of an operation that a schedule has in place only, what a file has out of place is computed in scratch memory and
    copied in the end, which takes no time.

    Parameters
    ----------
    algorithm : Algorithm
        What is mapped.
    """

    def __init__(self, algorithm: Algorithm) -> None:
        self._algorithm = algorithm
        self.operation = OPERATIONS[algorithm.collective]
        self._moves = self.operation == "all_to_all"
        self.apart = not algorithm.in_place and not self._moves
        """Whether output is scratch memory that is to be copied in the end."""
        if algorithm.in_place and self._moves:
            raise InputError(f"{algorithm.name}: an alltoall is out of place; its file says inplace=1")
        self._scratch = max(gpu.chunks["s"] for gpu in algorithm.gpus)
        self._output = max(gpu.chunks["o"] for gpu in algorithm.gpus) if self.apart else 0
        self.n_extra = 0
        """Chunks of scratch memory taken by :meth:`take`."""

    @property
    def n_scratch(self) -> int:
        """Chunks of scratch memory in all."""
        return self._scratch + self._output + self.n_extra

    def src(self, rank: int, step: Step) -> Where:
        """Return what a step reads of its own GPU."""
        return self._at(rank, step.src_buffer, step.src_chunk)

    def dst(self, rank: int, step: Step) -> Where:
        """Return what a step writes of its own GPU."""
        return self._at(rank, step.dst_buffer, step.dst_chunk)

    def take(self, count: int) -> Where:
        """Return scratch memory that no step uses."""
        self.n_extra += count
        return SCRATCH, self._scratch + self._output + self.n_extra - count

    def copies_back(self, rank: int) -> list[tuple[Where, Where, int]]:
        """Return what of an output apart is to be copied: from, to, count."""
        held = self._algorithm.gpus[rank].chunks["o"]
        if not self.apart or not held:
            return []
        first = rank * held if self._algorithm.collective == "reduce_scatter" else 0
        return [((SCRATCH, self._scratch), (INPUT, first), held)]

    def _at(self, rank: int, buffer: str, chunk: int) -> Where:
        held = self._algorithm.gpus[rank].chunks
        if buffer == "s":
            return SCRATCH, chunk
        if buffer == "i":
            return INPUT, chunk + (rank * held["i"] if self._algorithm.collective == "allgather" else 0)
        if self._moves:
            return OUTPUT, chunk
        if self.apart:
            return SCRATCH, self._scratch + chunk
        return INPUT, chunk + (rank * held["o"] if self._algorithm.collective == "reduce_scatter" else 0)
