"""Cluster policies: from a view of the cluster to grants, the number of GPUs for each job.

To add one, write ``commsim/placement/clusters/policies/NAME.py`` with a function decorated by :func:`policy`, and
its test.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.files.own_files import resolve
from commsim.core.registry import Entry, Registry

from .machines import Machines
from .state import ClusterJobs, JobState

# Few hosts and racks; fragments that others left; hosts whose CPUs and memory suffice.
Order = Literal["packed", "fragments", "demand"]
LEAST = 1e-3  # seconds between rounds
_BESIDE, _GPUS = attrgetter("beside"), attrgetter("gpus")
POLICIES: Registry[list[Grant]] = Registry(
    "policy", "commsim.placement.clusters.policies", listed="commsim cluster policies"
)


@dataclass(frozen=True, slots=True)
class Grant:
    """A job that shall hold GPUs from now on.

    Parameters
    ----------
    state : JobState
        The job.
    n_gpus : int
        How many.
    gpu_type : str, optional
        Only of this type.
    beside : JobState, optional
        Running job whose GPUs it gets, instead of free ones.
    order : str
        Order in which GPUs are preferred.
    """

    state: JobState
    n_gpus: int
    gpu_type: str | None = None
    beside: JobState | None = None
    order: Order = "packed"

    @property
    def gpus(self) -> int:
        """Old name of `n_gpus`, until the next version."""
        warnings.warn("the number of GPUs of a grant is grant.n_gpus", DeprecationWarning, stacklevel=2)
        return self.n_gpus


@dataclass(frozen=True, slots=True)
class View:
    """What a policy knows.

    Parameters
    ----------
    now : float, s
        Time since the start of the trace.
    states : sequence of JobState
        Jobs that have come and not finished, in order of submission.
    running : sequence of JobState
        Those among them that run and must not be stopped now.
    usable : int64[n_hosts]
        GPUs of each host that the policy may give away.
    work : ClusterJobs
        Progress on so many GPUs.
    machines : Machines
        Hosts.
    n_gpus : int
        GPUs that may be given away, those of kept jobs among them.
    """

    now: float
    states: Sequence[JobState]
    running: Sequence[JobState]
    usable: NDArray[np.int64]
    work: ClusterJobs
    machines: Machines
    n_gpus: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_gpus", int(self.usable.sum()))

    def remaining(self, state: JobState) -> float:
        """Seconds that a job still needs without others on what it asked for."""
        done = state.counted  # as state.left, without calls, for queues of thousands
        if state.gpus:
            since = state.since if state.since >= state.resume else state.resume
            if self.now > since:
                done += state.rate * (self.now - since)
        left = 1.0 - done / state.total
        return left * state.ideal if left > 0.0 else 0.0


Policy = Callable[[View], list[Grant]]


def policy(
    *,
    interval: float = 0.0,
    scales: bool = False,
    shares: bool = False,
    borrows: bool = False,
    tunes_cpu: bool = False,
    paper: str = "",
) -> Callable[[Policy], Policy]:
    """Register a policy under its function's name.

    Parameters
    ----------
    interval : float, s
        Time between rounds (leases), at which running jobs may be stopped; 0 for a policy that never stops one, else
        at least :data:`LEAST`.
    scales : bool
        Whether it may change running jobs though no job waits.
    shares : bool
        Whether it puts two jobs on a GPU.
    borrows : bool
        Whether it uses hosts that inference lends.
    tunes_cpu : bool
        Whether jobs get CPUs as they need, not in proportion to their GPUs.
    paper : str
        Paper that describes it.
    """
    every: object = interval  # of a user's file
    is_number = isinstance(every, (int, float)) and not isinstance(every, bool)
    if not is_number or not (interval == 0 or LEAST <= interval < math.inf):
        raise InputError(f"interval of a policy is 0, or {LEAST:g} s or more, got {every!r}")

    def register(build: Policy) -> Policy:
        facts = {"interval": interval, "scales": scales, "shares": shares, "borrows": borrows}
        POLICIES.add(build, **facts, tunes_cpu=tunes_cpu, paper=paper)
        return build

    return register


def load_policy(text: str) -> Entry[list[Grant]]:
    """Look up a policy by name, or execute a ``FILE.py`` that registers one.

    Raises
    ------
    InputError
        If the name is unknown, or the file registers no policy.
    """
    entry, arguments = resolve(POLICIES, text)
    if arguments:
        raise InputError(f"{text}: a policy takes no arguments")
    return entry


def fill(
    view: View,
    ordered: Iterable[JobState],
    *,
    strict: bool = False,
    order: Order = "packed",
    key: Callable[[JobState], Any] | None = None,
) -> tuple[list[Grant], int]:
    """Grant jobs what they ask for, in order, as long as GPUs last; kept ones come first.

    Parameters
    ----------
    strict : bool
        Whether a job that does not fit blocks those after it.
    key : function, optional
        By what jobs are sorted before. Without `strict` only those that fit are: most of a long queue do not.

    Returns
    -------
    grants : list of Grant
    free : int
        GPUs that are left.
    """
    grants: list[Grant] = [
        kept if (kept := state.kept) is not None and kept.order == order else _kept(state, order)
        for state in view.running
    ]
    if any(map(_BESIDE, view.running)):
        free = view.n_gpus - len({gpu for state in view.running for gpu in state.gpus})
    else:
        free = view.n_gpus - sum(map(len, map(_GPUS, view.running)))
    unchanged = set(map(id, view.running))
    if key is not None and not strict:
        fitting = ordered if free > 0 else ()
        ordered = [state for state in fitting if state.job.n_gpus <= free and id(state) not in unchanged]
    for state in ordered if key is None else sorted(ordered, key=key):
        if free < 1:
            break
        if state.job.n_gpus > free:
            if strict and id(state) not in unchanged:
                break
        elif id(state) not in unchanged:
            grants.append(Grant(state, state.job.n_gpus, order=order))
            free -= state.job.n_gpus
    return grants, free


def _kept(state: JobState, order: Order) -> Grant:
    """Return the grant of what a running job has, which is remembered."""
    state.kept = kept = Grant(state, len(state.gpus), beside=state.beside, order=order)
    return kept
