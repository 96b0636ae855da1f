"""Wait-free back-propagation.

The what-if model of "Is network the bottleneck of distributed training?".
"""

from __future__ import annotations

from collections.abc import Iterator

from commsim.core.errors import InputError
from commsim.core.units import Bytes, Seconds

from ..backward_trace import BackwardTrace
from ..buckets import Bucket, bucketed_graph
from ..setting import Setting
from ..task_graph import Graph
from . import policy


@policy
def wfbp(setting: Setting, *, overlap: bool = True) -> Graph:
    """Wait-free back-propagation: each tensor goes by itself as soon as it is ready, first come first served.

    Parameters
    ----------
    setting : Setting
        Gradients, workers and costs.
    overlap : bool
        Whether tensors go during the backward pass; without, this is what wait-free back-propagation is compared with.

    References
    ----------
    Zhang et al., "Poseidon", USENIX ATC 2017, section 3.1.
    """
    return bucketed_graph(setting, [Bucket((t,)) for t in range(len(setting.trace.n_bytes))], overlap=overlap)


@policy
def netai20(setting: Setting, *, window: Seconds = 5e-3, buffer: Bytes = 64 * 2**20) -> Graph:
    """What-if model of NetAI'20: gradients fuse for 5 ms of backward time or to 64 MiB, and go one bucket at a time.

    Parameters
    ----------
    setting : Setting
        Gradients, workers and costs; the paper's have no latency, and add as the table ``--vector-add`` says.
    window : float, s
        Of backward time; the tensor that is ready when it is over is the last of its bucket.
    buffer : float, bytes
        The tensor that reaches it is the last of its bucket.

    References
    ----------
    Zhang et al., "Is network the bottleneck of distributed training?", NetAI 2020, section 3.
    """
    if window <= 0 or buffer <= 0:
        raise InputError(f"netai20: window and buffer must be more than 0, got {window} s and {buffer} bytes")
    return bucketed_graph(setting, list(_fuse(setting.trace, window, buffer)))


def _fuse(trace: BackwardTrace, window: float, buffer: float) -> Iterator[Bucket]:
    inside: list[int] = []
    n_bytes, opened = 0.0, 0.0
    for tensor, ready in enumerate(trace.ready.tolist()):
        inside.append(tensor)
        n_bytes += float(trace.n_bytes[tensor])
        if ready - opened >= window or n_bytes >= buffer:
            yield Bucket(tuple(inside))
            inside, n_bytes, opened = [], 0.0, ready
    if inside:
        yield Bucket(tuple(inside))
