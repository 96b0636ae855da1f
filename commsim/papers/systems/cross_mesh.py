"""Cross-mesh resharding: a tensor from one mesh's sharding to another's, with senders and order chosen."""

from __future__ import annotations

from commsim.core.errors import InputError
from commsim.core.units import Bandwidth
from commsim.papers.systems.sharding import boxes, resharding_works
from commsim.training.parallel.resharding import balance_senders, finish_time, greedy_order, least_time

from . import Answer, training_system


@training_system("Zhuang et al., MLSys 2023")
def cross_mesh(
    *,
    shape: tuple[int, ...] = (1024, 1024, 512),
    source_mesh: tuple[int, int] = (2, 4),
    source: str = "RS0R",
    target_mesh: tuple[int, int] = (2, 4),
    target: str = "S0RR",
    gpus_per_host: int = 4,
    element_bytes: int = 4,
    bandwidth: Bandwidth = 1.25e9,
    n_rounds: int = 100,
    seed: int = 0,
) -> Answer:
    """Cross-mesh resharding: a tensor between two meshes, with balanced senders and a searched order of pieces.

    Parameters
    ----------
    shape : tuple of int
        Elements of the tensor, such as 1024x1024x512.
    source_mesh, target_mesh : tuple of int
        Rows and columns of GPUs, row by row on hosts.
    source, target : str
        Shardings: R, S0, S1, S01 or S10 for each dimension.
    gpus_per_host, element_bytes : int
        GPUs of a host of both meshes, and size of the tensor's elements.
    bandwidth : float, bytes/s
        Bandwidth of each host, one way; inside a host nothing takes time.
    n_rounds, seed : int
        Tries of the order, and what draws them.

    Returns
    -------
    dict
        Pieces and their bytes, each counted once however many hosts receive it. Seconds with each piece from its first
        holder in the order of parts, with balanced senders, with a searched order too, and the lower bound for these
        senders.
    """
    if min(gpus_per_host, element_bytes) < 1:
        raise InputError(f"gpus_per_host and element_bytes must be at least 1, got {gpus_per_host}, {element_bytes}")
    parts = boxes(shape, source_mesh, source), boxes(shape, target_mesh, target)
    works = resharding_works(*parts, element_bytes / bandwidth, (gpus_per_host, gpus_per_host))
    balanced = balance_senders(works)
    ordered = greedy_order(balanced, n_rounds=n_rounds, seed=seed)
    return {
        "pieces": len(works),
        "moved_B": sum(work.duration for work in works) * bandwidth,
        "naive_s": finish_time(works),
        "balanced_s": finish_time(balanced),
        "ordered_s": finish_time(ordered),
        "lower_bound_s": least_time(balanced),
    }
