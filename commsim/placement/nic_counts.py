"""By how many NICs jobs leave their machines in a placement, and of how many: estimates take phases as they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from commsim.core.remark import Remark
from commsim.core.units import count_text
from commsim.training.sharing.periodic import PeriodicJob

from .cluster import Cluster
from .link_use import nics_of

# Jobs that are named.
_MAX_NAMED = 3


def machines_of(cluster: Cluster, placed: Sequence[Sequence[PeriodicJob]]) -> list[list[Counter[int]]]:
    """Return how many GPUs each job of each placement has on each of its machines, or hosts, by a number of these."""
    network = cluster.network
    at = np.where(network.machine >= 0, network.machine, -1 - np.arange(network.n_nodes)).tolist()
    number = dict(zip(network.nodes, at, strict=True))
    return [[Counter(number[name] for name in job.placement or ()) for job in jobs] for jobs in placed]


def nic_counts(
    cluster: Cluster, jobs: Sequence[PeriodicJob], machines: Sequence[Counter[int]]
) -> dict[str, tuple[int, int]]:
    """By how many NICs each job leaves its machines, and by how many it could, of jobs that leave them by too few.

    Parameters
    ----------
    jobs : sequence of PeriodicJob
        Jobs with their placements.
    machines : sequence of Counter
        GPUs of each job on its machines, as :func:`machines_of` returns them.

    Returns
    -------
    dict of str to (int, int)
        By the job's name. A job has a ring for each NIC, as many as it has GPUs on its smallest machine; it could have
        as many as if its GPUs were in equal parts on as few machines, at least two. Empty where no machine has NICs.
    """
    nics = nics_of(cluster.network)
    if not nics.any():
        return {}
    in_machine = cluster.network.machine >= 0
    n_gpus = np.bincount(cluster.network.machine[in_machine], weights=cluster.gpus[in_machine]).max()
    counts = {}
    for job, on in zip(jobs, machines, strict=True):
        leaves = len(on) > 1 and job.peak_rate > 0 and not job.is_demand
        if not leaves or any(not 0 <= at < len(nics) or not nics[at] for at in on):
            continue
        n_rings = min(min(n, int(nics[at])) for at, n in on.items())
        n_fewest = max(2, -(-job.n_gpus // max(1, int(n_gpus))))
        could = min(int(nics.max()), job.n_gpus // n_fewest)
        if n_rings < could:
            counts[job.name] = n_rings, could
    return counts


def few_nics(counts: Sequence[Mapping[str, tuple[int, int]]]) -> list[Remark]:
    """Say which jobs leave their machines by fewer NICs than they could, and in which candidates.

    Parameters
    ----------
    counts : sequence of mapping of str to (int, int)
        What :func:`nic_counts` returns of each candidate, in their order.

    Returns
    -------
    list of Remark
        At most one, candidates numbered from 1.
    """
    lines = []
    for job in dict.fromkeys(name for count in counts for name in count):
        number, (n_rings, could) = next((i, count[job]) for i, count in enumerate(counts, 1) if job in count)
        others = [i for i, count in enumerate(counts, 1) if job not in count]
        where = f" and by {could} in candidate {others[0]}" if others else f", and {could} are possible"
        lines.append(f"job {job} leaves its machines by {count_text(n_rings, 'NIC')} in candidate {number}{where}")
    if not lines:
        return []
    more = f"; {len(lines) - _MAX_NAMED} more jobs alike" if len(lines) > _MAX_NAMED else ""
    taken = "its phases are" if len(lines) == 1 else "phases are"
    profile = f"{taken} taken as they are in the profile, however few NICs carry them"
    return [Remark("few-nics", f"{'; '.join(lines[:_MAX_NAMED])}{more}", needed=True, details=profile)]
