"""Out-of-order back-propagation: gradients of weights wait, so that those of front layers are sent earlier."""

from __future__ import annotations

from commsim.core.errors import InputError
from commsim.training.data_parallel_setting import COMPUTE, TrainingSetting
from commsim.training.task_graph import Task, TaskGraph, simulate_graph

from . import training_policy


@training_policy
def out_of_order(setting: TrainingSetting, *, first: int | None = None, share: float = 0.5) -> TaskGraph:
    """Out-of-order back-propagation: the first layers' weight gradients come last, the front layer's first of them.

    Only gradients of a layer's input are needed by the layer before it. Those of its weights are computed afterwards,
    in the order in which the next forward pass needs them. Front layers overtake at the network too, and a layer's
    forward pass waits for its own gradients only.

    Parameters
    ----------
    setting : TrainingSetting
        Gradients, workers and costs.
    first : int, optional
        Tensors from the front that are treated so, k; by default the best of 0, 1, 2, 4, ... and all.
    share : float
        Share of a layer's backward time that is for its weights; 0.5 is one of two products of matrices.

    Raises
    ------
    InputError
        If the share is not 0 to 1, or `first` is not 0 to the number of tensors.

    References
    ----------
    Oh et al., "Out-of-order backprop: an effective scheduling technique for deep learning", EuroSys 2022, section 4:
    reverse first-k scheduling.
    """
    n = len(setting.trace.n_bytes)
    if not 0 <= share <= 1:
        raise InputError(f"out_of_order: share must be 0 to 1, got {share}")
    if first is not None:
        if not 0 <= first <= n:
            raise InputError(f"out_of_order: first must be 0 to the {n} tensors, got {first}")
        return _reversed_first(setting, first, share)
    tried = sorted({0, n, *(1 << i for i in range(n.bit_length()))})
    graphs = [_reversed_first(setting, k, share) for k in tried]
    return min(graphs, key=lambda graph: simulate_graph(graph, setting.time_of).iteration_time)


def _reversed_first(setting: TrainingSetting, k: int, share: float) -> TaskGraph:
    trace = setting.trace
    n, gaps = len(trace.n_bytes), trace.gaps.tolist()
    tasks: list[Task] = []

    def compute(name: str, seconds: float, *waits: int) -> int:
        before = waits or ((len(tasks) - 1,) if tasks else ())
        tasks.append(Task(name, (COMPUTE,), seconds, after=before))
        return len(tasks) - 1

    made = [0] * n  # the task that ends with a tensor's gradient
    for i, gap in enumerate(gaps):
        made[i] = compute(f"backward {trace.name(i)}", gap if i < n - k else gap * (1 - share))
    for i in range(n - 1, n - k - 1, -1):
        made[i] = compute(f"weights {trace.name(i)}", gaps[i] * share)
    done = len(tasks) - 1
    arrived = [len(tasks) + i for i in range(n)]
    for i, size in enumerate(trace.n_bytes.tolist()):
        tasks.append(setting.exchange(trace.name(i), "all_reduce", size, (made[i],), tensors=(i,), priority=n - i))
    for i in range(n - 1, -1, -1):
        waits: tuple[int, ...] = (done, arrived[i])
        if trace.update[i]:  # a layer is updated just before it is needed
            waits = (compute(f"update {trace.name(i)}", float(trace.update[i]), *waits),)
        done = compute(f"forward {trace.name(i)}", float(trace.forward[i]), *waits)
    return TaskGraph(tuple(tasks))
