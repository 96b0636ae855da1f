"""The values in an MSCCL file: steps, thread blocks, GPUs, an algorithm; and the limits of the runtime."""

from __future__ import annotations

from dataclasses import dataclass

from commsim.core.schedule import INPUT, OUTPUT, SCRATCH

MAX_STEPS, MAX_BLOCKS, MAX_BLOCKS_OF_CHANNEL, MAX_COUNT, MAX_NAME = 256, 216, 32, 72, 63
"""Of a thread block, of a GPU, of a channel of a GPU; a step moves fewer chunks than the fourth; letters."""
OPERATIONS = {
    "allreduce": "all_reduce", "allgather": "all_gather", "reduce_scatter": "reduce_scatter", "alltoall": "all_to_all",
    "broadcast": "broadcast", "reduce": "reduce", "custom": "custom",
}  # fmt: skip
BUFFERS = {"i": INPUT, "o": OUTPUT, "s": SCRATCH}
PROTOCOLS = ("Simple", "LL", "LL128")
SENDING = ("s", "rcs", "rrs", "rrcs")
RECEIVING = ("r", "rcs", "rrc", "rrs", "rrcs")
STEP_TYPES = ("s", "r", "rcs", "rrc", "rrs", "rrcs", "cpy", "re", "ra", "nop")


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a thread block.

    Parameters
    ----------
    kind : str
        One of ``STEP_TYPES``.
    src_buffer, src_chunk, dst_buffer, dst_chunk : str and int
        What it reads and writes; the chunk is -1 where there is none.
    count : int
        Contiguous chunks.
    wait : (int, int) or None
        The thread block and step that must be done before.
    waited_for : bool
        Whether another thread block waits for it.
    hop, stage : int
        Of the message or copy that begins with it, where the file says: ours do, in two attributes that the runtime
        passes over; else -1.
    """

    kind: str
    src_buffer: str = "i"
    src_chunk: int = -1
    dst_buffer: str = "i"
    dst_chunk: int = -1
    count: int = 0
    wait: tuple[int, int] | None = None
    waited_for: bool = False
    hop: int = -1
    stage: int = -1


@dataclass(frozen=True, slots=True)
class ThreadBlock:
    """Steps that are done one after the other, with one GPU to send to and one to receive from, or -1."""

    send: int
    recv: int
    channel: int
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Gpu:
    """What one GPU does.

    Parameters
    ----------
    chunks : dict of str to int
        Chunks of each buffer, ``i``, ``o`` and ``s``.
    blocks : tuple of ThreadBlock
        At work at once.
    """

    chunks: dict[str, int]
    blocks: tuple[ThreadBlock, ...]


@dataclass(frozen=True, slots=True)
class Algorithm:
    """What an MSCCL file holds.

    Parameters
    ----------
    name, collective, protocol : str
        As in the file.
    in_place : bool
        Whether input and output are one array.
    n_chunks : int
        Pieces that the array is cut into.
    min_bytes, max_bytes : int
        The runtime takes it for arrays of at least the one, and less than the other.
    gpus : tuple of Gpu
        By rank.
    n_channels : int
        One more than the largest channel.
    """

    name: str
    collective: str
    protocol: str
    in_place: bool
    n_chunks: int
    min_bytes: int
    max_bytes: int
    gpus: tuple[Gpu, ...]
    n_channels: int
