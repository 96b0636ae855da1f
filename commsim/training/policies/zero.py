"""ZeRO stages 1 and 2: optimiser states, and gradients too, are split over the workers."""

from __future__ import annotations

from commsim.core.units import Bytes
from commsim.training.data_parallel_setting import COMPUTE, NETWORK, TrainingSetting, backward_tasks, fill_buckets
from commsim.training.task_graph import Task, TaskGraph

from . import training_policy


@training_policy
def zero1(setting: TrainingSetting, *, bucket: Bytes = 25 * 2**20) -> TaskGraph:
    """ZeRO-1: after the backward pass gradients are reduce-scattered, and after the step parameters gathered.

    A worker keeps all its gradients, so that nothing need go before the last batch has been added up.

    Parameters
    ----------
    setting : TrainingSetting
        Gradients, workers and costs; a parameter has the size of its gradient.
    bucket : float, bytes
        The tensor that reaches it is the last of its bucket.

    References
    ----------
    Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter models", SC 2020, sections 5, 7.
    """
    return _split(setting, bucket, overlap=False)


@training_policy
def zero2(setting: TrainingSetting, *, bucket: Bytes = 25 * 2**20) -> TaskGraph:
    """ZeRO-2: buckets of gradients are reduce-scattered during the backward pass; after the step parameters gathered.

    Parameters
    ----------
    setting, bucket
        Same as in `zero1`.

    References
    ----------
    As of `zero1`.
    """
    return _split(setting, bucket, overlap=True)


def _split(setting: TrainingSetting, capacity: float, *, overlap: bool) -> TaskGraph:
    trace = setting.trace
    tasks, last = backward_tasks(trace), len(trace.n_bytes) - 1
    for i, bucket in enumerate(fill_buckets(trace, range(last + 1), capacity)):
        after = (bucket.tensors[-1] if overlap else last, *(len(tasks) - 1,) * (i > 0))
        tasks.append(
            setting.exchange(f"bucket {i}", "reduce_scatter", bucket.n_bytes(setting), after, tensors=bucket.tensors)
        )
    parameters = float(trace.n_bytes.sum())  # they are not compressed as gradients are
    if trace.update_time:  # each worker updates the part whose gradients it has
        part = trace.update_time / setting.n_workers
        tasks.append(Task("optimiser", (COMPUTE,), part, after=(last, len(tasks) - 1)))
    gather = Task("parameters", (NETWORK,), 0.0, "all_gather", setting.workers, parameters, 0, (last, len(tasks) - 1))
    forward = Task("forward", (COMPUTE,), float(trace.forward.sum()), after=(len(tasks),))
    return TaskGraph((*tasks, gather, forward))
