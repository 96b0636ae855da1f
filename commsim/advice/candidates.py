"""Every way to add up gradients on a network: all registered all-reduces, with what they need to be compared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from collectives import COLLECTIVES
from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.registry import Entry
from commsim.core.schedule import Schedule
from commsim.core.spec import read_arguments, split_spec
from commsim.helper_seats import machines_of
from switch_model.systems import SYSTEMS

from .effort import share_of_limits
from .question import Question

SERVERS = ("n_servers", "n_aggregators")
"""What builders call the number of their helpers on hosts of their own."""
DECIDED = {"dense_share": 0}
"""Parameters that the question decides: all of the tensor is as sparse as was said."""
PARTITIONS = 8
"""Fewest that are tried where the usual number makes a schedule too large: a pipeline of k takes (k + 1)/k of its time."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way.

    Parameters
    ----------
    spec : str
        ``name:key=value,...``, as ``commsim run --collective`` takes it.
    way : {"dense", "servers", "in-network", "sparse", "lossy"}
        What kind it is.
    exact : bool
        Whether the sum is that of all values, but for the rounding of floats.
    """

    spec: str
    way: str
    exact: bool


def candidates(question: Question, network: Network) -> tuple[list[Candidate], dict[str, str]]:
    """List what is to be compared.

    Parameters
    ----------
    question : Question
        As :meth:`.question.Question.on` returns it.
    network : Network
        Where.

    Returns
    -------
    list of Candidate, dict of str to str
        And by name what is not, and why.
    """
    found: list[Candidate] = []
    left_out: dict[str, str] = {}
    for name in COLLECTIVES:
        entry = COLLECTIVES[name]
        form = entry.facts["sparse"]
        if entry.facts["operation"] != "all_reduce":
            continue
        if form is not None and not question.is_sparse:
            left_out[name] = "needs --density or --gradients to know what is zero"
        elif form is not None and form.lossy and not question.lossy:
            left_out[name] = "does not sum all values; --lossy ranks it too"
        else:
            way, exact = _kind(entry)
            for own in _variants(entry, question, network, left_out):
                for data in [""] if form is None else question.data_of(form):
                    found.append(Candidate(_spec(name, own, data), way, exact))
    return found, left_out


def fitting(
    entry: Entry[Schedule], own: dict[str, Any], question: Question, network: Network
) -> dict[str, Any] | None:
    """Return the parameters, with fewer partitions than usual if need be; None if the schedule is too large even then.

    One that cannot be built is returned too: what is wrong is said when it is prepared.
    """
    machines = machines_of(entry, network, question.placement, question.n_workers, question.seed)
    uneven = entry.facts["sparse"] is not None
    try:
        if share_of_limits(entry.build(question.n_workers, **own, **machines), uneven) <= 1:
            return own
        if "n_partitions" not in entry.parameters:
            return None
        share = share_of_limits(entry.build(question.n_workers, **own, **machines, n_partitions=PARTITIONS), uneven)
    except InputError:
        return own
    finer = 2 if share <= 0.5 else 1  # all that counts grows with the partitions
    return own | {"n_partitions": finer * PARTITIONS} if share <= 1 else None


def server_key(entry: Entry[Schedule]) -> str | None:
    """Name of the parameter that counts a collective's servers; None where it has no such."""
    return next((key for key in SERVERS if key in entry.parameters), None)


def most_servers(entry: Entry[Schedule], question: Question, network: Network) -> int:
    """Return how many servers a collective may be given: BytePS takes no more than there are machines with GPUs."""
    most = question.n_servers or 0
    machines = machines_of(entry, network, question.placement, question.n_workers, question.seed).get("machines")
    n_machines = question.n_workers if machines is None else len(machines)
    return min(most, n_machines) if "machines" in entry.parameters else most


def _kind(entry: Entry[Schedule]) -> tuple[str, bool]:
    """Kind of a way, and whether it is exact: switches that add integers in place of floats are not."""
    form, tree = entry.facts["sparse"], entry.facts["helpers"]
    if form is not None:
        return ("lossy", False) if form.lossy else ("sparse", True)
    if tree is None:
        return ("dense" if server_key(entry) is None else "servers"), True
    systems = [(SYSTEMS[name].build, raw) for name, raw in map(split_spec, tree.systems)]
    return "in-network", all(build(**read_arguments(build, raw)).quantizer == "none" for build, raw in systems)


def _variants(
    entry: Entry[Schedule], question: Question, network: Network, left_out: dict[str, str]
) -> Iterator[dict[str, Any]]:
    """Yield the parameters with which a collective is tried: without servers, among the workers, on hosts of their own.

    Where a schedule with all servers would be too large, it is tried with the powers of two below.
    """
    key, decided = server_key(entry), {name: x for name, x in DECIDED.items() if name in entry.parameters}
    tries: list[list[dict[str, Any]]] = []
    if key is None or entry.parameters[key].default == 0:
        tries.append([decided])
    if "colocated" in entry.parameters:
        tries.append([decided | {"colocated": True}])
    if key is not None:
        most = most_servers(entry, question, network)
        fewer = [2**i for i in reversed(range(most.bit_length())) if 2**i < most]
        if most:
            tries.append([{key: n} | decided for n in (most, *fewer)])
        else:
            left_out[f"{entry.name}:{key}=1"] = "needs a host on which no worker sits"
    for tried in tries:
        found = next((own for own in (fitting(entry, own, question, network) for own in tried) if own is not None), None)
        if found is not None:
            yield found
        else:
            left_out[_spec(entry.name, tried[0])] = f"too large to answer in seconds; commsim run --collective {entry.name} does"


def _spec(name: str, own: dict[str, Any], data: str = "") -> str:
    text = ",".join([*(f"{key}={str(value).lower()}" for key, value in own.items()), *([data] if data else [])])
    return f"{name}:{text}" if text else name
