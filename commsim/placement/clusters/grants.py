"""What a policy grants is checked: it may be a function of the user's."""

from __future__ import annotations

import operator
from collections.abc import Collection
from typing import cast, get_args

from commsim.core.errors import InputError, shorten
from commsim.core.units import count_text

from .machines import Machines
from .policy import Grant, Order
from .state import JobState

_ORDERS = get_args(Order)
_STATE = operator.attrgetter("state")


def checked_grants(policy: str, grants: object, active: Collection[JobState], machines: Machines) -> list[Grant]:
    """Return the grants of a policy.

    Parameters
    ----------
    policy : str
        Its name.
    grants : object
        What it returned.
    active : collection of JobState
        Jobs that it may grant GPUs.
    machines : Machines
        Hosts.

    Raises
    ------
    InputError
        If they are no list of grants, or one is of a job that has ended or was granted GPUs before, or has what no
        cluster or not this one can give.
    """
    kinds = set(map(type, grants)) if isinstance(grants, list) else {object}
    if not all(issubclass(kind, Grant) for kind in kinds):
        raise InputError(f"{policy}: a policy returns a list of grants, got {shorten(str(grants))}")
    of = cast("list[Grant]", grants)
    if len(set(map(id, map(_STATE, of)))) < len(of):
        names = [grant.state.job.name for grant in of if isinstance(grant.state, JobState)]
        raise InputError(f"{policy} grants {next(n for n in names if names.count(n) > 1)} GPUs twice")
    known = None
    for grant in of:
        state = grant.state
        if isinstance(state, JobState) and state.kept is grant:
            continue  # of a running job, as it was checked before
        known = {id(one) for one in active} if known is None else known
        if id(state) not in known:
            raise InputError(f"{policy}: the state of a grant is one of view.states, got {shorten(str(_name(state)))}")
        _check(policy, grant, machines)
    return of


def _check(policy: str, grant: Grant, machines: Machines) -> None:
    name, n, most = grant.state.job.name, grant.n_gpus, int(machines.gpus.sum())
    if isinstance(n, bool) or not hasattr(n, "__index__") or not 1 <= n <= most:
        raise InputError(f"{policy} grants {name} {shorten(repr(n))} GPUs, which must be a whole number 1..{most}")
    if (k := grant.state.job.gpus_per_host) and n % k:
        gives = f"gives {count_text(n, 'GPU')} to {name}, whose gpus_per_host is {k}"
        raise InputError(f"{policy} {gives}; policies that do not scale jobs keep it, such as --policy fifo")
    for key, value, known in (("gpu_type", grant.gpu_type, machines.types), ("order", grant.order, _ORDERS)):
        if value not in known and not (key == "gpu_type" and value is None):
            names = ", ".join(sorted(filter(None, set(known)))) or "none, [hosts] of --assume has them"
            raise InputError(f"{policy} grants {name} GPUs of {key} {shorten(repr(value))}; known: {names}")
    if grant.beside is not None and not isinstance(grant.beside, JobState):
        raise InputError(f"{policy}: beside of a grant is one of view.states, got {shorten(repr(grant.beside))}")


def _name(state: object) -> object:
    return f"{state.job.name}, which has ended" if isinstance(state, JobState) else repr(state)
