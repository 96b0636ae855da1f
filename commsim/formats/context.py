"""What a conversion is given beside a file, and what it knows of a schedule's messages."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.schedule import Schedule

Notes = tuple[str, ...]

GPU_TYPE = "H100"  # for SimAI, where nothing else is said


@dataclass(frozen=True, slots=True)
class Context:
    """What a format needs and a value of ours does not say.

    Parameters
    ----------
    n_ranks : int, optional
        Number of ranks of a collective that is named.
    size : float, bytes, optional
        Size of the operation, for formats whose messages have sizes.
    gamma : float, s/byte
        What reducing costs.
    network : str, optional
        Network of a system layer's collectives, or of flows.
    operation : str
        Operation of a system layer's collectives to take.
    min_bytes, max_bytes : int
        Smallest and largest size for which MSCCL's runtime takes an algorithm.
    gpu_type : str
        Name of the GPUs for SimAI.
    n_helpers : int
        How many ranks of a file, the last ones, are helpers.

    Raises
    ------
    InputError
        If there are fewer than none.
    """

    n_ranks: int | None = None
    size: float | None = None
    gamma: float = 0.0
    network: str | None = None
    operation: str = "all_reduce"
    min_bytes: int = 0
    max_bytes: int = 2**40
    gpu_type: str = GPU_TYPE
    n_helpers: int = 0

    def __post_init__(self) -> None:
        if self.n_helpers < 0:
            raise InputError(f"--helpers must be 0 or more, got {self.n_helpers}")


@dataclass(frozen=True, slots=True, eq=False)
class SizedSchedule:
    """A schedule, and what is known of its messages.

    Parameters
    ----------
    schedule : Schedule
        What is sent.
    n_bytes : float64[n_transfers], bytes, optional
        Size of each message, where the file has it.
    size : float, bytes
        Size that gives the messages the sizes of the file, where there is one.
    gamma : float64[n_participants], s/byte
        Time to reduce a byte, where the file has it.
    """

    schedule: Schedule
    n_bytes: NDArray[np.float64] | None = None
    size: float = 0.0
    gamma: NDArray[np.float64] = field(default_factory=lambda: np.zeros(1))

    def messages(self, context: Context) -> NDArray[np.float64]:
        """Bytes of every message: of a whole size whole bytes, so that the messages of all chunks add up to the size.

        Raises
        ------
        InputError
            If neither the file nor the user says.
        """
        if self.n_bytes is not None:
            return self.n_bytes
        size = self.size if context.size is None else context.size
        if not size:
            raise InputError(f"{self.schedule.name} has no sizes, and this format needs them: give --size")
        transfers, n_chunks = self.schedule.expand(), self.schedule.n_chunks
        if size % 1:
            return np.asarray(transfers["count"] * (size / n_chunks))
        # The bytes before a chunk are rounded, not those of each message: no byte is lost between two chunks.
        whole, rest = divmod(int(size), n_chunks)
        first = transfers["src_chunk"].astype(np.int64)
        last = first + transfers["count"]
        return np.asarray((last - first) * whole + last * rest // n_chunks - first * rest // n_chunks, np.float64)
