"""From a schedule to steps of thread blocks: one thread block per peers and channel, one dependency per step.

Every GPU has one order of steps: hop by hop, sends before local copies before receives. Thread blocks follow it, so
none waits for ever as long as the runtime buffers what is sent in one hop; steps of different thread blocks that touch
the same chunk wait for each other, with empty steps for all dependencies but the last.
"""

from __future__ import annotations

from commsim.core.errors import InputError
from commsim.core.schedule import Schedule

from .algorithm import (
    MAX_COUNT,
    MAX_NAME,
    OPERATIONS,
    PROTOCOLS,
    Algorithm,
    GpuProgram,
    Item,
    items_of,
)
from .thread_blocks import TooManyStepsError, blocks_of

USUAL_RANGE = (0, 2**40)
# Part of the messages that fit by their share of the steps: the others wait a little more often.
MARGIN = 0.9


def algorithm_of(
    schedule: Schedule, protocol: str = "Simple", min_bytes: int = USUAL_RANGE[0], max_bytes: int = USUAL_RANGE[1]
) -> tuple[Algorithm, tuple[str, ...]]:
    """Return the steps that the GPUs do.

    Parameters
    ----------
    schedule : Schedule
        Schedule without helpers: an algorithm has GPUs only.
    protocol : {"Simple", "LL", "LL128"}
        Protocol of NCCL.
    min_bytes, max_bytes : int
        The runtime takes the algorithm for at least the one, and less than the other.

    Returns
    -------
    Algorithm, tuple of str
        What to write, and what was changed.

    Raises
    ------
    InputError
        If the schedule or the range does not fit into what the runtime takes.
    """
    if schedule.n_helpers:
        raise InputError(f"{schedule.name}: MSCCL has GPUs only, got {schedule.n_helpers} helpers")
    if protocol not in PROTOCOLS or not 0 <= min_bytes < max_bytes < 2**63:
        raise InputError(f"MSCCL needs 0 <= min_bytes < max_bytes, got {min_bytes} and {max_bytes}, {protocol}")
    collective = next((k for k, v in OPERATIONS.items() if v == schedule.operation), "custom")
    notes = [] if collective != "custom" or schedule.operation == "custom" else [
        f"{schedule.operation} is not known to MSCCL and written as 'custom'"
    ]  # fmt: skip
    items, n_cut = items_of(schedule, "o" if collective == "allgather" else "i")
    if n_cut:
        notes.append(f"{n_cut} messages of {MAX_COUNT} or more chunks were cut into several")
    if any(block.n_fences for block in schedule.blocks):
        notes.append("fences are marked, and read back; the runtime cannot wait for what another GPU receives")
    if not schedule.shares_equally:
        notes.append("weights of channels are marked, and read back; the runtime gives all channels equal shares")
    chunks = _chunks(schedule, collective)
    gpus = _gpus(schedule, items, chunks)
    channels = [block.channel for gpu in gpus for block in gpu.blocks]
    in_place = schedule.in_place
    name = schedule.name[:MAX_NAME]
    n_channels = max(channels, default=0) + 1
    weights = tuple(schedule.weights.tolist())
    return Algorithm(
        name, collective, protocol, in_place, schedule.n_chunks, min_bytes, max_bytes, gpus, n_channels, weights
    ), tuple(notes)


def _gpus(schedule: Schedule, items: list[list[Item]], chunks: dict[str, int]) -> tuple[GpuProgram, ...]:
    """Return the GPUs; where some have too many steps, the error says with how many messages all would have few."""
    gpus, too_long = [], list[TooManyStepsError]()
    for rank, of_rank in enumerate(items):
        try:
            gpus.append(GpuProgram(dict(chunks), blocks_of(rank, of_rank)))
        except TooManyStepsError as error:
            too_long.append(error)
    if too_long:
        fewest = MARGIN * min(error.fitting for error in too_long) * schedule.n_transfers
        raise InputError(
            f"{too_long[0]}; take fewer chunks: this schedule has {schedule.n_transfers} messages, and commsim "
            f"synthesize --max-messages {max(1, int(fewest))} makes one that fits, if a piece has no more"
        )
    return tuple(gpus)


def _chunks(schedule: Schedule, collective: str) -> dict[str, int]:
    n, part = schedule.n_chunks, schedule.n_chunks // schedule.n_ranks
    sizes = {"allgather": (part, n), "reduce_scatter": (n, part)}.get(collective, (n, 0 if schedule.in_place else n))
    return {"i": sizes[0], "o": sizes[1], "s": schedule.n_scratch}
