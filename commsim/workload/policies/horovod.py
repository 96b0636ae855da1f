"""Horovod: cycles, negotiation, tensor fusion."""

from __future__ import annotations

import math
from collections.abc import Iterator

from commsim.core.errors import InputError
from commsim.core.units import Bytes, Seconds

from ..backward_trace import BackwardTrace
from ..buckets import Bucket, bucketed_graph
from ..setting import Setting
from ..task_graph import Graph, Task
from . import policy


@policy
def horovod(
    setting: Setting, *, cycle: Seconds = 1e-3, fusion: Bytes = 128 * 2**20, negotiation: Seconds | None = None
) -> Graph:
    """Horovod: every cycle the workers agree on the tensors that all have, fuse them and exchange them.

    Parameters
    ----------
    setting : Setting
        Gradients, workers and costs.
    cycle : float, s
        From the start of one negotiation to that of the next, which the exchanges do not delay.
    fusion : float, bytes
        Capacity of the fusion buffer: a tensor that would overflow it starts the next one. With 0 nothing is fused.
    negotiation : float, s
        To gather what is ready at the coordinator, and to tell all; twice a barrier of all workers unless given. It
        delays the tensors, and the next cycle if it takes longer than one, but not the data of other tensors.

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
    return bucketed_graph(setting, list(_fuse(setting.trace, period, negotiation, fusion)))


def _fuse(trace: BackwardTrace, period: float, negotiation: float, capacity: float) -> Iterator[Bucket]:
    """Buckets with the times from which they may go: the end of the negotiation in which their tensors take part."""
    inside: list[int] = []
    n_bytes, number = 0.0, 0
    for tensor, ready in enumerate(trace.ready.tolist()):
        takes_part = math.ceil(ready / period * (1 - 1e-12))  # cycle 0 starts with the backward pass
        size = float(trace.n_bytes[tensor])
        if inside and (takes_part != number or n_bytes + size > capacity):
            yield Bucket(tuple(inside), not_before=number * period + negotiation)
            inside, n_bytes = [], 0.0
        inside.append(tensor)
        n_bytes, number = n_bytes + size, takes_part
    yield Bucket(tuple(inside), not_before=number * period + negotiation)
