"""PyTorch's DistributedDataParallel."""

from __future__ import annotations

from collections.abc import Iterator

from commsim.core.errors import InputError
from commsim.core.units import Bytes

from ..backward_trace import BackwardTrace
from ..buckets import Bucket, bucketed_graph, fill_buckets
from ..setting import Setting
from ..task_graph import Graph
from . import policy


@policy
def ddp(
    setting: Setting,
    *,
    bucket: Bytes = 25 * 2**20,
    first_bucket: Bytes = 2**20,
    overlap: bool = True,
    no_sync: int = 1,
    find_unused: bool = False,
    unused: tuple[int, ...] = (),
    sparse: tuple[int, ...] = (),
) -> Graph:
    """PyTorch DDP: buckets in the order of the backward pass, launched strictly in order when all of one is ready.

    Parameters
    ----------
    setting : Setting
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
        raise InputError("ddp: a bucket with an unused tensor is never ready; say find_unused=true")
    buckets = sorted(_buckets(trace, set(sparse), first_bucket, bucket), key=lambda b: b.tensors[0])
    return bucketed_graph(setting, buckets, overlap=overlap, unused=frozenset(unused), micro_iterations=no_sync)


def _buckets(trace: BackwardTrace, sparse: set[int], first: float, other: float) -> Iterator[Bucket]:
    """Dense buckets in their order, and then a bucket for each sparse tensor."""
    yield from fill_buckets(trace, (t for t in range(len(trace.n_bytes)) if t not in sparse), first, other)
    yield from (Bucket((t,), "all_gather") for t in sorted(sparse))
