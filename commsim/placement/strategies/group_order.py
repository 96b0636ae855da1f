"""Order of the ranks of a job whose groups exchange bytes: as many groups as can be stay inside of a host."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from commsim.training.sharing.periodic import ALL_TO_ALL, SEND, JobPhase, PeriodicJob

from .host_gpus import HostGpus

Numbers = NDArray[np.int64]


def order_by_groups(job: PeriodicJob, nodes: Numbers, hosts: HostGpus) -> Numbers:
    """Return the nodes of a job's ranks in the order in which its hosts send the least.

    Orders that are tried are the given one, and for each phase whose groups are all ranks in equal parts the one in
    which hosts are filled with whole groups first. That counts the bytes that the busiest host sends in each phase.

    Parameters
    ----------
    nodes : int64[n_gpus]
        Nodes of the job, those near each other side by side.
    hosts : HostGpus
        Hosts of the network's nodes.

    Returns
    -------
    int64[n_gpus]
        The given order where no other one is better.
    """
    if not any(phase.groups for phase in job.phases):
        return nodes
    host, orders = hosts.host, [nodes]
    for ranks, size in dict.fromkeys(_groupings(job)):
        order = np.empty_like(nodes)
        order[list(ranks)] = nodes[_whole_first(host[nodes], size)]
        orders.append(order)
    return min(orders, key=lambda order: round(_bytes_out(job, host[order]), 3))


def _groupings(job: PeriodicJob) -> Iterator[tuple[tuple[int, ...], int]]:
    """Return the ranks, group by group, and the size of a group, of each phase with groups of one size."""
    for phase in job.phases:
        sizes = set(map(len, phase.groups))
        ranks = tuple(rank for group in phase.groups for rank in group)
        if len(sizes) == 1 and len(ranks) == job.n_gpus and 1 < (size := sizes.pop()) < job.n_gpus:
            yield ranks, size


def _whole_first(host: Numbers, size: int) -> Numbers:
    """Return positions of GPUs: of each host as many whole groups as it has, then what is left over, when it is one.

    Parameters
    ----------
    host : int64[n_gpus]
        Host of each GPU, those of one side by side.
    """
    order, left = list[int](), list[int]()
    starts = np.flatnonzero(np.append(True, host[1:] != host[:-1]))
    for first, end in zip(starts.tolist(), [*starts[1:].tolist(), len(host)], strict=True):
        whole = first + (end - first) // size * size
        order += range(first, whole)
        left += range(whole, end)
        if len(left) >= size:
            order += left[:size]
            del left[:size]
    return np.array([*order, *left], np.int64)


def _bytes_out(job: PeriodicJob, host: Numbers) -> float:
    """Count what the busiest host sends in each phase of an iteration, added up; its ranks are on these hosts."""
    number = np.unique(host, return_inverse=True)[1]
    everyone = (tuple(range(job.n_gpus)),)
    return sum(phase.n_bytes * _sends(phase, phase.groups or everyone, number) for phase in job.phases)


def _sends(phase: JobPhase, groups: Sequence[Sequence[int]], number: NDArray[np.intp]) -> float:
    """Count how often the busiest host sends the bytes of a phase to another one."""
    n_hosts = int(number.max()) + 1
    out = np.zeros(n_hosts)
    for size in set(map(len, groups)):
        at = number[np.array([group for group in groups if len(group) == size])]
        if phase.pattern == ALL_TO_ALL:
            pair, counts = np.unique(np.arange(len(at))[:, None] * n_hosts + at, return_counts=True)
            out += np.bincount(pair % n_hosts, counts * (size - counts) / max(size - 1, 1), n_hosts)
        else:
            leaves = at != np.roll(at, -1, axis=1)
            if phase.pattern == SEND:
                leaves[:, -1] = False
            out += np.bincount(at[leaves], minlength=n_hosts)
    return float(out.max())
