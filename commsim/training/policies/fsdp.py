"""ZeRO stage 3 and PyTorch's FSDP: parameters are split too, and gathered unit by unit when they are needed."""

from __future__ import annotations

from commsim.core.errors import InputError
from commsim.core.units import Bytes
from commsim.training.data_parallel_setting import COMPUTE, NETWORK, TrainingSetting, fill_buckets
from commsim.training.task_graph import Task, TaskGraph

from . import training_policy

GATHER_FIRST, SCATTER_LATER = 0, 1  # what a pass waits for overtakes what nothing waits for
UPDATE_LAST = 1  # passes are not delayed by updates, which nothing waits for in the iteration


@training_policy
def zero3(setting: TrainingSetting, *, unit: Bytes = 25 * 2**20, prefetch: int = 1) -> TaskGraph:
    """ZeRO-3: each unit's parameters are gathered for its forward and its backward pass, its gradients scattered.

    Parameters
    ----------
    setting, unit, prefetch
        Same as in `fsdp`.

    References
    ----------
    Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter models", SC 2020, section 7.2.
    """
    return fsdp(setting, unit=unit, prefetch=prefetch)


@training_policy
def fsdp(
    setting: TrainingSetting,
    *,
    unit: Bytes = 25 * 2**20,
    prefetch: int = 1,
    shard: int | None = None,
    reshard: bool = True,
) -> TaskGraph:
    """PyTorch FSDP: as ZeRO-3, or hybrid: split within groups of workers, and all-reduced between the groups.

    The iteration starts with the forward pass and ends when all gradients are where they belong.

    Parameters
    ----------
    setting : TrainingSetting
        Gradients, workers and costs; a parameter has the size of its gradient, and only gradients are compressed.
    unit : float, bytes
        Size of tensors that are gathered together: the one that reaches it is the last, in the order of the backward
        pass.
    prefetch : int
        How many units are gathered ahead of the one that computes; 0 leaves no gathering to overlap.
    shard : int
        Workers, of consecutive ranks, over which parameters are split; by default all.
    reshard : bool
        Whether parameters are given up after the forward pass, and gathered again for the backward pass.

    Raises
    ------
    InputError
        If the workers are no multiple of `shard`, or `prefetch` is negative.

    References
    ----------
    Zhao et al., "PyTorch FSDP: experiences on scaling fully sharded data parallel", VLDB 2023, sections 3.2 and 3.3.
    """
    n, trace = setting.n_workers, setting.trace
    shard = n if shard is None else shard
    if shard < 1 or n % shard:
        raise InputError(f"fsdp: shard must divide the number of workers, {n}, got {shard}")
    if prefetch < 0:
        raise InputError(f"fsdp: prefetch must be 0 or more, got {prefetch}")
    units = [list(bucket.tensors) for bucket in fill_buckets(trace, range(len(trace.n_bytes)), unit)]
    steps = [("forward", i) for i in range(len(units))[::-1]] + [("backward", i) for i in range(len(units))]
    seconds = {"forward": trace.forward, "backward": trace.gaps}
    tasks: list[Task] = []
    computed: list[int] = []
    for step, (which, i) in enumerate(steps):
        name, n_bytes = f"unit {len(units) - 1 - i}", float(trace.n_bytes[units[i]].sum())
        needs = computed[-1:]
        if which == "forward" or reshard:
            ahead = (computed[step - 1 - prefetch],) if step > prefetch else ()
            tasks.append(Task(f"gather {name} {which}", (NETWORK,), 0.0, "all_gather", setting.workers[:shard], n_bytes,
                              GATHER_FIRST, ahead))  # fmt: skip
            needs = [*needs, len(tasks) - 1]
        tasks.append(Task(f"{which} {name}", (COMPUTE,), float(seconds[which][units[i]].sum()), after=tuple(needs)))
        computed.append(len(tasks) - 1)
        if which == "backward":
            tasks += _reduced(setting, name, n_bytes, shard, len(tasks))
            if updates := float(trace.update[units[i]].sum()) / shard:  # of the worker's own part
                tasks.append(Task(f"update {name}", (COMPUTE,), updates, priority=UPDATE_LAST, after=(len(tasks) - 1,)))
    return TaskGraph(tuple(tasks))


def _reduced(setting: TrainingSetting, name: str, n_bytes: float, shard: int, number: int) -> list[Task]:
    """Tasks that add up a unit's gradients; the first is the graph's `number`-th, after its backward pass."""
    scatter = setting.exchange(f"scatter {name}", "reduce_scatter", n_bytes, (number - 1,),
                               group=setting.workers[:shard], priority=SCATTER_LATER)  # fmt: skip
    replicas = setting.workers[::shard]
    if len(replicas) == 1:
        return [scatter]
    return [scatter, setting.exchange(f"all-reduce {name}", "all_reduce", n_bytes / shard, (number,), group=replicas,
                                      priority=SCATTER_LATER)]  # fmt: skip
