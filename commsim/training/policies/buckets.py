"""Training policies that send gradients in buckets: PyTorch DDP, Horovod, wait-free back-propagation, NetAI'20."""

from __future__ import annotations

import math
from collections.abc import Iterator

from commsim.core.errors import InputError
from commsim.core.units import Bytes, Seconds
from commsim.training.backward_trace import BackwardTrace
from commsim.training.data_parallel_setting import Bucket, TrainingSetting, bucketed_graph, fill_buckets
from commsim.training.task_graph import Task, TaskGraph

from . import training_policy


@training_policy
def ddp(
    setting: TrainingSetting,
    *,
    bucket: Bytes = 25 * 2**20,
    first_bucket: Bytes = 2**20,
    overlap: bool = True,
    no_sync: int = 1,
    find_unused: bool = False,
    unused: tuple[int, ...] = (),
    sparse: tuple[int, ...] = (),
) -> TaskGraph:
    """PyTorch DDP: buckets in the order of the backward pass, launched strictly in order when all of one is ready.

    Parameters
    ----------
    setting : TrainingSetting
        Gradients, workers and costs. The trace's order is taken for that of the buckets, which are rebuilt in it after
        the first iteration, and is the reverse of that of registration.
    bucket, first_bucket : float, bytes
        Capacity; the tensor that reaches it is the bucket's last. With 0 each tensor is a bucket.
    overlap : bool
        Whether buckets go during the backward pass.
    no_sync : int
        Batches per exchange; all but the last run under ``no_sync()``.
    find_unused : bool
        Whether unused tensors are marked ready after the forward pass; their buckets are reduced all the same.
    unused : tuple of int
        Numbers in the trace of tensors that get no gradient.
    sparse : tuple of int
        Numbers of tensors whose gradients are sparse: each is a bucket of its own, and is gathered from all workers;
        the trace's size is what one worker contributes.

    Raises
    ------
    InputError
        If a number is of no tensor, or tensors are unused and nothing finds them, for which DDP waits for ever.

    References
    ----------
    Li et al., "PyTorch distributed: experiences on accelerating data parallel training", VLDB 2020, section 3.2.
    """
    trace = setting.trace
    for tensor in (*unused, *sparse):
        if not 0 <= tensor < len(trace.n_bytes):
            raise InputError(f"ddp: tensors are 0..{len(trace.n_bytes) - 1}, got {tensor}")
    if unused and not find_unused:
        raise InputError("ddp: a bucket with an unused tensor is never ready; give find_unused=true")
    buckets = sorted(_buckets(trace, set(sparse), first_bucket, bucket), key=lambda b: b.tensors[0])
    return bucketed_graph(setting, buckets, overlap=overlap, unused=frozenset(unused), micro_iterations=no_sync)


def _buckets(trace: BackwardTrace, sparse: set[int], first: float, other: float) -> Iterator[Bucket]:
    """Dense buckets in their order, and then a bucket for each sparse tensor."""
    yield from fill_buckets(trace, (t for t in range(len(trace.n_bytes)) if t not in sparse), first, other)
    yield from (Bucket((t,), "all_gather") for t in sorted(sparse))


@training_policy
def horovod(
    setting: TrainingSetting, *, cycle: Seconds = 1e-3, fusion: Bytes = 128 * 2**20, negotiation: Seconds | None = None
) -> TaskGraph:
    """Horovod: every cycle the workers agree on the tensors that all have, fuse them and exchange them.

    Parameters
    ----------
    setting : TrainingSetting
        Gradients, workers and costs.
    cycle : float, s
        Time from the start of one negotiation to that of the next, which the exchanges do not delay.
    fusion : float, bytes
        Capacity of the fusion buffer: a tensor that would overflow it starts the next one. With 0 nothing is fused.
    negotiation : float, s
        Time to gather what is ready at the coordinator, and to announce it to all; by default twice a barrier of all
        workers. It delays the tensors, and the next cycle if it takes longer than one, but not the data of other
        tensors.

    References
    ----------
    Sergeev and Del Balso, "Horovod: fast and easy distributed deep learning in TensorFlow", 2018. Defaults: the
    project's code of 2024; earlier versions had 64 MiB and 5 ms.
    """
    if cycle <= 0:
        raise InputError(f"horovod: a cycle must take more than 0 s, got {cycle}")
    if negotiation is None:
        negotiation = 2 * setting.time_of(Task("negotiation", (), operation="barrier", group=setting.workers))
    period = max(cycle, negotiation)
    return bucketed_graph(setting, list(_fuse_cycles(setting.trace, period, negotiation, fusion)))


def _fuse_cycles(trace: BackwardTrace, period: float, negotiation: float, capacity: float) -> Iterator[Bucket]:
    """Buckets with the times from which they may go: the end of the negotiation in which their tensors take part."""
    inside: list[int] = []
    n_bytes, number = 0.0, 0
    for tensor, time in enumerate(trace.ready.tolist()):
        takes_part = math.ceil(time / period * (1 - 1e-12))  # cycle 0 starts with the backward pass
        size = float(trace.n_bytes[tensor])
        if inside and (takes_part != number or n_bytes + size > capacity):
            yield Bucket(tuple(inside), not_before=number * period + negotiation)
            inside, n_bytes = [], 0.0
        inside.append(tensor)
        n_bytes, number = n_bytes + size, takes_part
    yield Bucket(tuple(inside), not_before=number * period + negotiation)


@training_policy
def wfbp(setting: TrainingSetting, *, overlap: bool = True) -> TaskGraph:
    """Wait-free back-propagation: each tensor goes by itself as soon as it is ready, first come first served.

    Parameters
    ----------
    setting : TrainingSetting
        Gradients, workers and costs.
    overlap : bool
        Whether tensors go during the backward pass; without, this is what wait-free back-propagation is compared with.

    References
    ----------
    Zhang et al., "Poseidon", USENIX ATC 2017, section 3.1.
    """
    return bucketed_graph(setting, [Bucket((t,)) for t in range(len(setting.trace.n_bytes))], overlap=overlap)


@training_policy
def netai20(setting: TrainingSetting, *, window: Seconds = 5e-3, buffer: Bytes = 64 * 2**20) -> TaskGraph:
    """What-if model of NetAI'20: gradients fuse for 5 ms of backward time or to 64 MiB, and go one bucket at a time.

    Parameters
    ----------
    setting : TrainingSetting
        Gradients, workers and costs; the paper's have no latency, and add as the table ``--vector-add`` says.
    window : float, s
        Length of the window of backward time; the tensor that is ready when it is over is the last of its bucket.
    buffer : float, bytes
        The tensor that reaches it is the last of its bucket.

    References
    ----------
    Zhang et al., "Is network the bottleneck of distributed training?", NetAI 2020, section 3.
    """
    if window <= 0 or buffer <= 0:
        raise InputError(f"netai20: window and buffer must be more than 0, got {window} s and {buffer} bytes")
    return bucketed_graph(setting, list(_fill_windows(setting.trace, window, buffer)))


def _fill_windows(trace: BackwardTrace, window: float, buffer: float) -> Iterator[Bucket]:
    inside: list[int] = []
    n_bytes, opened = 0.0, 0.0
    for tensor, time in enumerate(trace.ready.tolist()):
        inside.append(tensor)
        n_bytes += float(trace.n_bytes[tensor])
        if time - opened >= window or n_bytes >= buffer:
            yield Bucket(tuple(inside))
            inside, n_bytes, opened = [], 0.0, time
    if inside:
        yield Bucket(tuple(inside))
