"""All registered all-reduces as candidates: servers and partitions tried, and which fit in seconds."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from collectives import COLLECTIVES
from commsim.core.data_order.dependencies import connections
from commsim.core.errors import InputError, Reason
from commsim.core.network import SWITCH, Network
from commsim.core.registry import Entry
from commsim.core.schedule import Schedule
from commsim.packets.aggregated.systems import usual_system
from commsim.prediction.collective_names import why_not_here
from commsim.prediction.good_parameters import partitions_that_fit
from commsim.prediction.helper_placement import machines_of
from commsim.prediction.software import software
from commsim.routing.aggregator_placement import able_switches

from .question import Question

# Of a schedule: so many are planned and played in a few seconds, of transfers and wires half as many if of both.
MAX_TRANSFERS, MAX_WIRES, MAX_ADDRESSES = 2**19, 2**18, 2**19
# Transfers times wires, where messages are uneven: each ends by itself, and what shares its links goes on otherwise.
MAX_MEETINGS = 2**29
# What builders call the number of their helpers on hosts of their own.
SERVERS = ("n_servers", "n_aggregators")
# Parameters that the question decides: all of the tensor is as sparse as was said.
DECIDED = {"dense_share": 0}
# Partitions that are tried too where messages cost something in themselves.
COARSER: tuple[int, ...] = (8, 1)
# Partitions that builders make by default, and what is tried where these make a schedule too large. A
# pipeline of k takes (k + 1)/k of its time: with two partitions less is lost than with half of the servers.
USUAL, FEWER = 64, (32, 16, 8, 4, 2)
NOT_PROGRAMMABLE = "not-programmable"


@dataclass(frozen=True, slots=True)
class Effort:
    """What there is to do for a schedule, per partition where it has several.

    Parameters
    ----------
    transfers, wires, addresses : int
        Counts of the schedule. Wires do not grow with the partitions.
    uneven : bool
        Whether its messages differ in size, as those of sparse data do. Equal ones end together, as one event.
    """

    transfers: int
    wires: int
    addresses: int
    uneven: bool

    def fits(self, n_partitions: int = 1) -> bool:
        """Whether the schedule of so many partitions can be simulated in seconds."""
        transfers = n_partitions * self.transfers
        return (
            transfers / MAX_TRANSFERS + self.wires / MAX_WIRES <= 1
            and n_partitions * self.addresses <= MAX_ADDRESSES
            and (not self.uneven or transfers * self.wires <= MAX_MEETINGS)
        )


def effort_of(schedule: Schedule, uneven: bool) -> Effort:
    """Count what there is to do; wires only where there are not too many transfers anyway."""
    transfers = schedule.n_transfers
    n_wires = len(connections(schedule, schedule.expand())[1]) if transfers <= MAX_TRANSFERS else transfers
    return Effort(transfers, n_wires, schedule.n_chunks * schedule.n_participants, uneven)


def variants(
    entry: Entry[Schedule], question: Question, network: Network, left_out: dict[str, str]
) -> Iterator[tuple[dict[str, Any], bool]]:
    """Yield the parameters with which a collective is tried: without servers, among the workers, on hosts of their own.

    Where a schedule with all servers would be too large, it is tried with the powers of two below. Each comes with
    whether it has less than it might.
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
            left_out[f"{entry.name}:{key}=1"] = "needs a host without a worker"
    for tried in tries:
        fitted = (fitting(entry, own, question, network) for own in tried)
        first = next((own for own in fitted if own is not None), None)
        if first is not None:
            yield first, first != tried[0]
        else:
            why = f"too large to be simulated in seconds; commsim run --collective {entry.name} does it"
            left_out[spec_of(entry.name, tried[0])] = why


def fitting(entry: Entry[Schedule], own: dict[str, Any], question: Question, network: Network) -> dict[str, Any] | None:
    """Return the parameters, with fewer partitions than usual if need be; None if the schedule is too large even then.

    One that cannot be built is returned too: what is wrong is said when it is prepared.
    """
    build = functools.partial(entry.build, question.n_workers, **own, **_machines(entry, question, network))
    uneven = entry.metadata["sparse"] is not None
    try:
        if "n_partitions" not in entry.parameters:
            return own if effort_of(build(), uneven).fits() else None
        one = build(n_partitions=1)
        if not one.n_helpers and effort_of(build(), uneven).fits():
            return own
    except InputError:
        return own
    effort = effort_of(one, uneven)
    if effort.fits(_partitions_of_plan(one, question, network) if uneven else USUAL):
        return own
    k = next((k for k in FEWER if effort.fits(k)), None)
    return None if k is None else own | {"n_partitions": k}


def _partitions_of_plan(single: Schedule, question: Question, network: Network) -> int:
    """Return the partitions at most that the plan of sparse data will choose by its size.

    Twice those of the densest data, beside which are the messages before it is known what is zero.
    """
    p, s = single.n_ranks, single.n_helpers
    if not s:
        return USUAL
    share = max(map(float, question.densities), default=1.0)
    best = partitions_that_fit(share * question.size, max(p, s), network, network.endpoints)
    return USUAL if 2 * best >= USUAL else max(1, round(2 * best))


def coarser(entry: Entry[Schedule], own: dict[str, Any], network: Network) -> list[dict[str, Any]]:
    """List the parameters, and where messages cost something in themselves, the same with fewer partitions.

    On servers the plan makes as many as suit the size, as in ``run``, unless their number is given.
    """
    costly = network.overhead.any() or network.recv_overhead.any()
    if not costly or "n_partitions" not in entry.parameters:
        return [own]
    key = server_key(entry)
    if key is not None and own.get(key) and "n_partitions" not in own:
        return [own]
    return [own, *(own | {"n_partitions": k} for k in COARSER if k < own.get("n_partitions", USUAL))]


def server_key(entry: Entry[Schedule]) -> str | None:
    """Name of the parameter that counts a collective's servers; None where it has no such."""
    return next((key for key in SERVERS if key in entry.parameters), None)


def count_machines(entry: Entry[Schedule], question: Question, network: Network) -> int:
    """Count the machines that the workers are in, as a collective sees them: every worker is one unless it asks."""
    machines = _machines(entry, question, network).get("machines")
    return question.n_workers if machines is None else len(machines)


def most_servers(entry: Entry[Schedule], question: Question, network: Network) -> int:
    """Return how many servers a collective may be given: BytePS takes no more than there are machines with GPUs."""
    most = question.n_servers or 0
    return min(most, count_machines(entry, question, network)) if "machines" in entry.metadata["needs"] else most


def spec_of(name: str, own: dict[str, Any], data: str = "") -> str:
    """Write a collective with its parameters, and those of its data, as ``commsim run`` reads it."""
    text = ",".join([*(f"{key}={str(value).lower()}" for key, value in own.items()), *([data] if data else [])])
    return f"{name}:{text}" if text else name


def _machines(entry: Entry[Schedule], question: Question, network: Network) -> dict[str, Any]:
    return machines_of(entry, network, question.placement, question.n_workers, question.seed)


@dataclass(frozen=True, slots=True)
class Alternative:
    """One way.

    Parameters
    ----------
    spec : str
        ``name:key=value,...``, as ``commsim run --collective`` takes it.
    label : str
        The same without what all have in common: the data, but for the density where several are asked about.
    group : (str, str)
        The same without partitions, and the density: of one group only the fastest is ranked.
    way : {"dense", "servers", "in-network", "sparse", "lossy"}
        What kind it is.
    exact : bool
        Whether the sum is that of all values, but for the rounding of floats.
    reduced : bool
        Whether it has fewer servers or partitions than it might, so that the answer comes in seconds.
    """

    spec: str
    label: str
    group: tuple[str, str]
    way: str
    exact: bool
    reduced: bool

    @property
    def density(self) -> float | None:
        """Density of its data where several are asked about, or a way keeps a share; None of all other ways."""
        return float(self.group[1].removeprefix("density=")) if self.group[1] else None

    @property
    def way_to_run(self) -> str:
        """Label without the density."""
        density = self.group[1]
        return self.label.removesuffix(f",{density}").removesuffix(f":{density}") if density else self.label


def candidates(question: Question, network: Network) -> tuple[list[Alternative], dict[str, str]]:
    """List what is to be compared.

    Parameters
    ----------
    question : Question
        Question, as :meth:`.question.Question.on` returns it.
    network : Network
        Network that the workers are on.

    Returns
    -------
    list of Alternative, dict of str to str
        And by name what is not, and why.
    """
    ways: list[Alternative] = []
    left_out: dict[str, str] = {}
    costs = software(network.software) if network.software else None
    for name in COLLECTIVES:
        entry = COLLECTIVES[name]
        form = entry.metadata["sparse"]
        if entry.metadata["operation"] != "all_reduce":
            continue
        if why := why_not_here(entry.metadata, name, network):
            left_out[name] = why
        elif form is not None and not question.is_sparse:
            left_out[name] = "needs a density or gradients to know what is zero"
        elif form is not None and form.lossy and not question.lossy:
            left_out[name] = "does not sum all values; lossy ranks it too"
        elif entry.metadata["systems"] and not question.programmable and able_switches(network)[1]:
            text = f"{network.name} has no aggregating switch; programmable assumes it"
            left_out[name] = Reason(text, NOT_PROGRAMMABLE)
        elif entry.metadata["systems"] and usual_system(entry).at().in_machines and not _adds_in_machines(network):
            left_out[name] = f"needs switches inside machines that add, and {network.name} has none"
        elif form is not None and costs is not None and costs.systems and name not in costs.systems:
            left_out[name] = Reason(f"software {costs.name} has no costs of {name}", "no-costs")
        else:
            way, exact = _kind(entry)
            for fitted, reduced in variants(entry, question, network, left_out):
                group = spec_of(name, {key: x for key, x in fitted.items() if key != "n_partitions"})
                for own in coarser(entry, fitted, network):
                    for density, data in {"": ""}.items() if form is None else question.data_of(form).items():
                        label = spec_of(name, own, density if len(question.densities) > 1 else "")
                        ways.append(Alternative(spec_of(name, own, data), label, (group, density), way, exact, reduced))
    return ways, left_out


def _adds_in_machines(network: Network) -> bool:
    return bool(((network.kind == SWITCH) & (network.machine >= 0) & network.aggregates).any())


def _kind(entry: Entry[Schedule]) -> tuple[str, bool]:
    """Kind of a way, and whether it is exact: switches that add integers in place of floats are not."""
    form = entry.metadata["sparse"]
    if form is not None:
        return ("lossy", False) if form.lossy else ("sparse", True)
    if not entry.metadata["systems"]:
        return ("dense" if server_key(entry) is None else "servers"), True
    return "in-network", usual_system(entry).at().quantizer == "none"
