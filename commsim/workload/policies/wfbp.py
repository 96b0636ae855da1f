"""Wait-free back-propagation."""

from __future__ import annotations

from ..buckets import Bucket, bucketed_graph
from ..graph import Graph
from ..setting import Setting
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
