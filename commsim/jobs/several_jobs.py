"""The kind of jobs: several collectives and background traffic that share one network."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.operations import OPERATIONS
from commsim.core.placement import PACKED, Placement
from commsim.core.remark import SIZE_UNUSED, Remark
from commsim.core.result import Result
from commsim.core.units import count_text
from commsim.jobs.background import draw_messages
from commsim.jobs.composition import read_composition
from commsim.jobs.job_costs import shared_network
from commsim.jobs.job_entries import JOBS_ONLY, Composition, JobEntry, number_of_unnamed
from commsim.jobs.own_transports import own_transport, transports_of, without_pauses
from commsim.jobs.shared_plan import SharedPlan
from commsim.jobs.shared_run import PlacedJobs, Shared
from commsim.jobs.sharing import Sharing
from commsim.prediction.build import prepare
from commsim.prediction.inputs import load_placement
from commsim.prediction.node_lists import ranks_named
from commsim.prediction.result_remarks import remarks_of_results
from commsim.prediction.scenario import Scenario, Wish
from commsim.prediction.work_plan import Outcome, Work

if TYPE_CHECKING:
    from commsim.prediction.solve import Solution

__all__ = ["JobsPlan", "JobsWork", "entries_of", "prepare_jobs"]


@dataclass(frozen=True, slots=True)
class JobsPlan(SharedPlan):
    """Jobs and background traffic, placed on one network.

    Parameters
    ----------
    of_several : bool
        Whether a job by itself is compared with the same beside others, so that ECMP hashes its paths as there.
    """

    of_several: bool = False

    @property
    def entries(self) -> tuple[JobEntry, ...]:
        """Jobs as they were named."""
        return self.run.entries

    def sizes(self, sizes: Sequence[float]) -> tuple[list[float], list[Remark]]:
        """Return one size, which has no effect: each job has its own."""
        return [0.0], [Remark(SIZE_UNUSED, "sizes have no effect, each job has its own")] if any(sizes) else []

    def at(self, size: float) -> JobsPlan:  # noqa: ARG002
        """Return the plan of one size, the same for all."""
        return self

    def outcome(self, size: float, wish: Wish) -> Outcome:  # noqa: ARG002
        """Predict all jobs, each of the size that its file says, and each on its own.

        Raises
        ------
        InputError
            If the engine does not know a job's kind, weight or cap.
        """
        results, took, ideal = self._predicted(wish)
        whole = wish.but(flaps=None, watch=None)
        alone = tuple(self.alone(k)._predicted(whole)[0][0].time for k in range(len(self.entries)))
        transports = transports_of(self.entries, self.run.plans, self.network, wish)
        remarks = without_pauses(self.entries, self.network, wish)
        if wish.model.flaps is not None:
            remarks.append(Remark("alone-unflapped", "alone: each job without the others, and without the flap"))
        details = Sharing(alone, took, ideal, transports if len(set(transports)) > 1 else ())
        return Outcome(self.run.checked(results), tuple(remarks), details)

    def remarks(
        self,
        results: Sequence[Result],
        *,
        has_framing: bool = False,  # noqa: ARG002
        verbose: bool = False,  # noqa: ARG002
    ) -> list[Remark]:
        """Return what the results leave out, assume or depend on."""
        runs = zip(self.run.plans, self.run.entries, strict=True)
        # several jobs on one host are usual, on one GPU of a machine they are a slip of the file
        own = _ranks_of_several(self.entries) if self.network.machine.max(initial=-1) >= 0 else []
        own += [remark for plan, entry in runs for remark in plan.remarks_of_sizes([entry.size])]
        if any("flap_lost_s" in result.counters for result in results):
            named = zip(self.entries, results, strict=True)
            return own + [remark.of(entry.name) for entry, one in named for remark in remarks_of_results([one])]
        return own + remarks_of_results(results)

    def predict(self, **options: Any) -> Shared:
        """Simulate everything at once.

        Parameters
        ----------
        **options
            Fields of :class:`commsim.prediction.scenario.Wish`; in packets, framing and transport are those of all
            but the jobs of switch systems.

        Returns
        -------
        tuple of Result
            One per job. In the packet engine, those of jobs with switch systems say whether every sum was `exact`.
        float64[n], float64[n], s
            Time of each background message, and its time without others.

        Raises
        ------
        InputError
            If the engine does not know a job's kind, weight or cap.
        """
        return self._predicted(Wish.of(seed=self.run.seed, **options))

    def _predicted(self, wish: Wish) -> Shared:
        if wish.engine not in ("flow", "packet"):
            raise InputError(f"jobs share a network in the flow or the packet engine, got engine {wish.engine}")
        if wish.model.transport is not None and len(self.entries) == 1:  # a single job has every link to itself
            wish = wish.but(transport=dataclasses.replace(wish.model.transport, class_weights=()))
        own, in_slots = self.entries[0].packets, self.run.plans[0].in_slots
        if self._is_single and wish.engine == "packet" and own and not in_slots:
            wish = wish.but(transport=own_transport(own, self.network, wish))
        # packets of a switch system alone meet the queues of the fabric that its neighbours spray over
        if self._is_single and not (in_slots and (wish.sprays or own)):
            named = dataclasses.replace(self.run.plans[0].run(self.entries[0].size, wish), engine=wish.engine)
            return (named,), np.empty(0), np.empty(0)
        return self.run.shared(wish)

    @property
    def _is_single(self) -> bool:
        """Whether one collective has the network to itself, so that it takes what it takes in any other question."""
        if len(self.entries) > 1 or len(self.run.messages.start) or self.entries[0].rate_cap < np.inf:
            return False
        return not (self.of_several and self.run.plans[0].at(self.entries[0].size).may_collide)

    def alone(self, k: int) -> JobsPlan:
        """Return job `k` by itself."""
        return JobsPlan(self.run.alone(k), of_several=len(self.entries) > 1 or len(self.run.messages.start) > 0)


def prepare_jobs(
    composition: Composition,
    network: Network,
    *,
    placement: str | Placement | None = None,
    routing: str | None = None,
    seed: int = 0,
    assume_programmable: bool = True,
) -> JobsPlan:
    """Place all jobs of a composition, and draw its background traffic.

    Parameters
    ----------
    composition : Composition
        Jobs and background traffic, from :func:`commsim.jobs.composition.read_composition`.
    network : Network
        Network that it runs on.
    placement : str, optional
        Placement of all ranks, some of which each job names; packed by default.
    routing, seed, assume_programmable
        Same as in :func:`commsim.prediction.prepare`; the seed also of the background traffic.

    Raises
    ------
    InputError
        If a job names a rank or a machine twice, or one that does not exist.
    """
    if not isinstance(placement, Placement):
        placement = load_placement(placement or PACKED, network, len(network.endpoints), seed)
    nodes = placement.nodes
    plans, entries = [], []
    for entry in (_on_machines(entry, network, nodes) for entry in composition.jobs):
        wrong = [rank for rank in entry.ranks if not 0 <= rank < len(nodes)]
        if not entry.ranks or wrong or len(set(entry.ranks)) < len(entry.ranks):
            got = wrong[0] if wrong else list(entry.ranks)
            raise InputError(f"job {entry.name}: ranks are different numbers 0..{len(nodes) - 1}, got {got}")
        where = Placement(nodes[list(entry.ranks)])
        named = not entry.collective.endswith(".npz")  # a file's participants are all in `ranks`, helpers too
        n_ranks = len(entry.ranks) if named else None
        plan = prepare(
            entry.collective, network, n_ranks=n_ranks, placement=where, routing=routing, seed=seed,
            assume_programmable=assume_programmable,
        )  # fmt: skip
        plans.append(plan)
        signals = plan.schedule.operation != "custom" and OPERATIONS[plan.schedule.operation].signals
        entries.append(dataclasses.replace(entry, size=0.0) if signals else entry)
    messages = draw_messages(network, composition.background, seed)
    shared = shared_network(network, plans)
    background = tuple(entry.packets for entry in composition.background)
    return JobsPlan(PlacedJobs(shared, tuple(entries), tuple(plans), messages, routing, seed, background))


def _on_machines(entry: JobEntry, network: Network, nodes: NDArray[np.integer]) -> JobEntry:
    """Return a job with the ranks of its machines; one that names ranks as it is."""
    if entry.placement:
        return _of_ranks(entry, _ranks_at(entry, network, nodes))
    if not entry.machines:
        return entry
    machine = network.machine[nodes]
    if (machine < 0).all():  # every host is a machine of its own
        machine = np.searchsorted(network.hosts, nodes)
    known = np.unique(machine[machine >= 0]).tolist()
    wrong = [one for one in entry.machines if one not in known]
    if wrong or len(set(entry.machines)) < len(entry.machines):
        accepted = f"different numbers {known[0]}..{known[-1]}"
        raise InputError(f"job {entry.name}: machines are {accepted}, got {(wrong or list(entry.machines))[0]}")
    return _of_ranks(entry, tuple(rank for one in entry.machines for rank in np.flatnonzero(machine == one).tolist()))


def _ranks_at(entry: JobEntry, network: Network, nodes: NDArray[np.integer]) -> tuple[int, ...]:
    """Return the ranks on the nodes that a job names.

    Raises
    ------
    InputError
        If it names what is not there, or a node without a rank.
    """
    named, rank_of = ranks_named(entry.placement, network), {node: rank for rank, node in enumerate(nodes.tolist())}
    if named is None:
        raise InputError(f"job {entry.name}: placement must name machines, such as m0,m2, got {entry.placement!r}")
    if without := [node for node in named if node not in rank_of]:
        raise InputError(f"job {entry.name}: no rank is placed on {network.nodes[without[0]]}")
    return tuple(rank_of[node] for node in named)


def _of_ranks(entry: JobEntry, ranks: tuple[int, ...]) -> JobEntry:
    """Return a job on these ranks, with their number where it has no name."""
    number = number_of_unnamed(entry.collective, ranks) if entry.number is None else entry.number
    return dataclasses.replace(entry, ranks=ranks, number=number)


def _ranks_of_several(entries: Sequence[JobEntry]) -> list[Remark]:
    """Say that jobs have ranks in common, whose GPUs compute for all of them at once."""
    count = Counter(rank for entry in entries for rank in entry.ranks)
    common = sorted(rank for rank, n in count.items() if n > 1)
    if not common:
        return []
    whose = " and ".join(entry.name for entry in entries if common[0] in entry.ranks)
    text = f"{count_text(len(common), 'rank')} in several jobs, such as rank {common[0]} in {whose}"
    return [Remark("ranks-of-several", text, needed=True)]


@dataclass(frozen=True, slots=True, eq=False)
class JobsWork(Work):
    """Jobs and background traffic.

    Parameters
    ----------
    composition : Composition
        Jobs and background traffic.
    """

    NAME: ClassVar[str] = "jobs"
    TAKES: ClassVar[frozenset[str]] = Work.TAKES | {"flaps", "watch"}
    REFUSAL: ClassVar[str] = JOBS_ONLY

    composition: Composition

    @classmethod
    def read(cls, given: Composition | str | PathLike[str]) -> JobsWork:
        """Return the jobs of a value, or of a file."""
        if given == "":
            raise InputError("jobs must be a TOML or JSON file, or a Composition, got ''")
        return cls(given if isinstance(given, Composition) else read_composition(Path(given)))

    def plan(self, scenario: Scenario) -> JobsPlan:
        """Place the jobs."""
        return prepare_jobs(
            self.composition, scenario.network, assume_programmable=scenario.assume_programmable, **scenario.placing
        )

    @property
    def parts(self) -> list[dict[str, str]]:
        """The name of each job."""
        return [{"job": job.name} for job in self.composition.jobs]


def entries_of(solution: Solution) -> tuple[JobEntry, ...]:
    """Return the jobs of a solution, with their ranks."""
    assert isinstance(solution.plan, JobsPlan)
    return solution.plan.entries
