"""The pace of a host in tables of kernel times: another kind of measurement than nccl-tests.

The source of ``vidur_*`` launches eleven calls from Python, each by itself and without a CUDA graph, and takes the
median time of rank 0's kernels from PyTorch's profiler (kineto). A host needs tens of microseconds for one such call.
As long as a call takes less than that, ranks run apart: a kernel of rank 0 that has begun waits for the rank whose host
is the slowest, and while it waits the next one queues behind it. So rank 0's kernels follow each other at the pace of
the slowest host, and each lasts as long as one call of that host. Larger calls take their own time. If rank 0's own
host is the slowest, which one of n hosts is, kernels never wait: such rows are predicted too slow here.

A send ends when its bytes are in the receiver's buffer. It waits for nobody.

References
----------
microsoft/vidur, ``vidur/profiling/collectives/collectives_wrapper.py`` (the loop) and
``vidur/profiling/common/cuda_timer.py`` (what is timed).
"""

from __future__ import annotations

# Time of a PyTorch call under the profiler on the slowest host, s: the 90th percentile of the measured times below
# 1 MB, where hosts set the pace, of the source's first table of each generation.
PACE = {"ampere": 62e-6, "hopper": 37e-6}
FITTED_ON = ("vidur_a100dgx_1x4_ar", "vidur_h100dgx_1x8_ar")


def host_pace(notes: str, operation: str, gpu: str) -> float:
    """Return the shortest time that a table can show, in seconds; 0 for tables that are timed as nccl-tests does.

    Parameters
    ----------
    notes : str
        Notes of the index.
    operation : str
        Name of the operation.
    gpu : str
        Generation.
    """
    if "kernel time" not in notes or operation == "send_recv":
        return 0.0
    return PACE.get(gpu, 0.0)
