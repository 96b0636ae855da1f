"""Pipeline schedules: in which order each worker runs its forward and backward passes.

A worker runs its steps in the order given here, whatever their times, as the systems do; when each of them runs follows
from playing the graph that :mod:`commsim.training.parallel.pipeline` makes of an order.

References
----------
Huang et al., "GPipe", NeurIPS 2019, section 2.3. Fan et al., "DAPPLE", PPoPP 2021, section 4: one forward, one
backward. Narayanan et al., "Efficient large-scale language model training on GPU clusters using Megatron-LM", SC 2021,
section 2.2.2: the interleaved schedule. Zhuang et al., "On optimizing the communication of model parallelism", MLSys
2023, section 4: eager 1F1B. Jain et al., "GEMS", SC 2020; Li and Hoefler, "Chimera", SC 2021, table 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from commsim.core.errors import InputError, unknown_name

MAX_PASSES = 250_000
# Stages on each worker of an interleaved schedule, by default.
CHUNKS = 2
# Schedules with two copies of the model, in opposite directions: worker w holds stages w and D - 1 - w.
TWO_WAYS = ("gems", "chimera")


@dataclass(frozen=True, slots=True)
class StagePass:
    """One pass of one micro-batch through one stage.

    Parameters
    ----------
    micro_batch, stage : int
        Number of the micro-batch, and of the stage of the model.
    backward : bool
        Backward, or forward.
    replica : int
        Number of the copy of the model: schedules in both directions have two.
    """

    micro_batch: int
    stage: int
    backward: bool
    replica: int = 0


@dataclass(frozen=True, slots=True)
class PipelineOrder:
    """What each worker does, one step after the other.

    Parameters
    ----------
    name : str
        The schedule.
    n_stages : int
        Stages of the model; an interleaved schedule has several on each worker.
    n_micro_batches : int
        Number of micro-batches of one iteration, through all replicas together.
    steps : tuple of tuple of StagePass
        Steps of each worker.
    """

    name: str
    n_stages: int
    n_micro_batches: int
    steps: tuple[tuple[StagePass, ...], ...]

    @property
    def n_workers(self) -> int:
        """Workers of one pipeline."""
        return len(self.steps)

    @property
    def parts(self) -> tuple[tuple[int, ...], ...]:
        """Stages of the model that each worker holds."""
        return tuple(tuple(sorted({step.stage for step in steps})) for steps in self.steps)

    @property
    def peak_activations(self) -> tuple[float, ...]:
        """Micro-batches whose activations each worker holds at most; where it has v stages, each is 1/v of one."""
        return tuple(_peak(steps) * self.n_workers / self.n_stages for steps in self.steps)


def gpipe(n_workers: int, n_micro_batches: int) -> PipelineOrder:
    """All forward passes, then all backward passes: bubble (D-1)/(N+D-1), whatever forward and backward take."""
    _require(n_workers, n_micro_batches)
    micro_batches = range(n_micro_batches)
    steps = tuple(
        tuple(StagePass(m, w, backward) for backward in (False, True) for m in micro_batches) for w in range(n_workers)
    )
    return PipelineOrder("gpipe", n_workers, n_micro_batches, steps)


def one_forward_one_backward(n_workers: int, n_micro_batches: int) -> PipelineOrder:
    """DAPPLE, 1F1B: worker w runs D-w-1 forward passes, and then one of each; bubble (D-1)/(N+D-1), at most D held."""
    _require(n_workers, n_micro_batches)
    steps = tuple(
        _alternate([StagePass(m, w, False) for m in range(n_micro_batches)],
                   [StagePass(m, w, True) for m in range(n_micro_batches)], n_workers - w - 1)
        for w in range(n_workers)
    )  # fmt: skip
    return PipelineOrder("1f1b", n_workers, n_micro_batches, steps)


def eager_one_forward_one_backward(n_workers: int, n_micro_batches: int) -> PipelineOrder:
    """1F1B with twice the warm-up, 2(D-w-1) forward passes, so that messages have the time of a pass to arrive.

    The bubble is that of 1F1B when a backward pass takes at least as long as a forward one; up to 2D - 1 are held.
    """
    _require(n_workers, n_micro_batches)
    steps = tuple(
        _alternate([StagePass(m, w, False) for m in range(n_micro_batches)],
                   [StagePass(m, w, True) for m in range(n_micro_batches)], 2 * (n_workers - w - 1))
        for w in range(n_workers)
    )  # fmt: skip
    return PipelineOrder("eager_1f1b", n_workers, n_micro_batches, steps)


def interleaved(n_workers: int, n_micro_batches: int, n_chunks: int = CHUNKS) -> PipelineOrder:
    """1F1B with v stages on each worker, every D-th of the model: bubble (D-1)/(vN+D-1), v times as many messages.

    Parameters
    ----------
    n_workers, n_micro_batches : int
        D, and N, which must be a multiple of D.
    n_chunks : int
        v.

    Raises
    ------
    InputError
        If N is no multiple of D, or a count is not positive.
    """
    _require(n_workers, n_micro_batches)
    if n_chunks < 1 or n_micro_batches % n_workers:
        raise InputError(
            f"the interleaved schedule needs at least 1 chunk, and micro-batches in a multiple of the {n_workers} "
            f"workers, got {n_chunks} and {n_micro_batches}"
        )
    _require(n_workers, n_micro_batches, n_chunks)
    steps = []
    for w in range(n_workers):
        forward, backward = [], []
        for k in range(n_micro_batches * n_chunks):  # D micro-batches pass a chunk, then the same ones the next chunk
            m = k // (n_workers * n_chunks) * n_workers + k % n_workers
            chunk = k // n_workers % n_chunks
            forward.append(StagePass(m, chunk * n_workers + w, False))
            backward.append(StagePass(m, (n_chunks - 1 - chunk) * n_workers + w, True))
        warm_up = 2 * (n_workers - w - 1) + (n_chunks - 1) * n_workers
        steps.append(_alternate(forward, backward, warm_up if n_chunks > 1 else n_workers - w - 1))
    return PipelineOrder("interleaved", n_workers * n_chunks, n_micro_batches, tuple(steps))


def gems(n_workers: int, n_micro_batches: int) -> PipelineOrder:
    """Two replicas in opposite directions, one micro-batch after the other: bubble near (D-1)/(D+1/2), least memory.

    The forward pass of one follows the backward pass of the one before through the workers. With backward twice as long
    as forward each takes 2D + 1 forward times; a worker computes for 3 of them, which is the published ratio.
    """
    _require(n_workers, n_micro_batches)
    steps = tuple(
        tuple(
            StagePass(m, n_workers - 1 - w if m % 2 else w, backward, m % 2)
            for m in range(n_micro_batches)
            for backward in (False, True)
        )
        for w in range(n_workers)
    )
    return PipelineOrder("gems", n_workers, n_micro_batches, steps)


def chimera(n_workers: int, n_micro_batches: int) -> PipelineOrder:
    """Two replicas in opposite directions, each with half of the micro-batches: bubble (D-2)/(2N+D-2).

    With forward and backward one slot each, micro-batch i of a direction has its forward pass at stage s in slot s + 2i
    and its backward pass in slot 2D - 1 - s + 2i. For an even D the two directions never want the same slot of a
    worker, each worker is idle in D - 2 slots of one unit of N = D micro-batches, and further units, 2D slots later
    each, fill its gaps. So the ratio is exact when forward and backward take the same time and D divides N. Workers
    keep that order whatever the passes really take: with backward twice as long one unit has (D-2)/(3N/2+D-2), and
    between two units there are gaps, which the paper closes by larger forward micro-batches.

    Raises
    ------
    InputError
        If the number of workers or of micro-batches is not even and positive.
    """
    _require(n_workers, n_micro_batches)
    require_even("chimera", n_workers, n_micro_batches)
    half = n_workers // 2
    slots: list[list[tuple[int, StagePass]]] = [[] for _ in range(n_workers)]
    for i in range(n_micro_batches // 2):
        begin = i // half * 2 * n_workers + i % half * 2
        for replica in (0, 1):
            for s in range(n_workers):
                worker, m = (n_workers - 1 - s if replica else s), 2 * i + replica
                slots[worker].append((begin + s, StagePass(m, s, False, replica)))
                slots[worker].append((begin + 2 * n_workers - 1 - s, StagePass(m, s, True, replica)))
    steps = tuple(tuple(step for _, step in sorted(row, key=lambda pair: pair[0])) for row in slots)
    return PipelineOrder("chimera", n_workers, n_micro_batches, steps)


def require_even(name: str, n_workers: int, n_micro_batches: int) -> None:
    """Refuse odd numbers of workers and of micro-batches for a schedule that needs even ones.

    Raises
    ------
    InputError
        If one is odd.
    """
    if name == "chimera" and (n_workers % 2 or n_micro_batches % 2):
        raise InputError(
            f"chimera needs an even number of workers and of micro-batches, got {n_workers} and {n_micro_batches}"
        )


ORDERS = {
    "gpipe": gpipe,
    "1f1b": one_forward_one_backward,
    "eager_1f1b": eager_one_forward_one_backward,
    "interleaved": interleaved,
    "gems": gems,
    "chimera": chimera,
}


def order_of(name: str, n_workers: int, n_micro_batches: int, n_chunks: int = CHUNKS) -> PipelineOrder:
    """Return the order of a schedule; the number of chunks is that of interleaved stages.

    Raises
    ------
    InputError
        If it is unknown, or has no order for these numbers.
    """
    if name not in ORDERS:
        raise unknown_name("pipeline schedule", name, ORDERS)
    if name == "interleaved":
        return interleaved(n_workers, n_micro_batches, n_chunks)
    return ORDERS[name](n_workers, n_micro_batches)


def ideal_bubble(name: str, n_workers: int, n_micro_batches: int, n_chunks: int = CHUNKS) -> Fraction:
    """Share of time in which workers idle, by the published formula: without communication, with equal stages.

    Exact for gpipe, 1f1b and interleaved whatever a backward pass takes; for eager_1f1b when that is no less than a
    forward one; for chimera when both are the same and N is a multiple of D; for gems in the limit of many
    micro-batches, with backward twice as long.
    """
    _require(n_workers, n_micro_batches)
    d, n = n_workers, n_micro_batches
    if name not in ORDERS:
        raise unknown_name("pipeline schedule", name, ORDERS)
    if name == "chimera":
        return Fraction(d - 2, 2 * n + d - 2)
    if name == "gems":
        return Fraction(d - 1) / (d + Fraction(1, 2))
    return Fraction(d - 1, (n_chunks if name == "interleaved" else 1) * n + d - 1)


def _alternate(forward: list[StagePass], backward: list[StagePass], warm_up: int) -> tuple[StagePass, ...]:
    """Order some forward passes, then one of each in turn, then the backward passes that are left."""
    warm_up = min(warm_up, len(forward))
    paired = [step for pair in zip(forward[warm_up:], backward, strict=False) for step in pair]
    return (*forward[:warm_up], *paired, *backward[len(forward) - warm_up :])


def _peak(steps: tuple[StagePass, ...]) -> int:
    held = peak = 0
    for step in steps:
        held += -1 if step.backward else 1
        peak = max(peak, held)
    return peak


def _require(n_workers: int, n_micro_batches: int, n_chunks: int = 1) -> None:
    if n_workers < 1 or n_micro_batches < 1:
        raise InputError(f"a pipeline needs at least 1 worker and 1 micro-batch, got {n_workers} and {n_micro_batches}")
    if n_workers * n_micro_batches * n_chunks > MAX_PASSES:
        raise InputError(
            f"a pipeline is simulated with at most {MAX_PASSES} passes of a micro-batch through a stage, "
            f"got {n_workers} workers x {n_chunks} stages x {n_micro_batches} micro-batches"
        )
