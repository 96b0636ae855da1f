"""The kind of groups: a collective on several groups of ranks at once, each a job on one network."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.placement import PACKED, Placement
from commsim.core.remark import Remark
from commsim.core.result import Result
from commsim.core.schedule import Schedule
from commsim.jobs.background import BackgroundMessages
from commsim.jobs.job_costs import shared_network
from commsim.jobs.job_entries import JobEntry, number_of_unnamed
from commsim.jobs.shared_plan import SharedPlan
from commsim.jobs.shared_run import SIMULATORS, PlacedJobs
from commsim.prediction.build import CollectiveWork, prepare
from commsim.prediction.inputs import load_network, load_placement
from commsim.prediction.plans.dense import Plan
from commsim.prediction.scenario import Scenario, Wish
from commsim.prediction.work_plan import Outcome, Work

__all__ = ["GroupsPlan", "GroupsWork", "prepare_groups"]


@dataclass(frozen=True, slots=True)
class GroupsPlan(SharedPlan):
    """Groups placed on a network: jobs that start together, of the size that is asked for."""

    @property
    def groups(self) -> tuple[Plan, ...]:
        """The collective of each group, as if it were the only one."""
        return self.run.plans

    def sizes(self, sizes: Sequence[float]) -> tuple[list[float], list[Remark]]:
        """Return the sizes that one group can have."""
        return self.groups[0].sizes(sizes)

    def at(self, size: float) -> GroupsPlan:
        """Return the plan of one size, the same in every group."""
        entries = tuple(dataclasses.replace(entry, size=size) for entry in self.run.entries)
        return GroupsPlan(dataclasses.replace(self.run, entries=entries))

    def outcome(self, size: float, wish: Wish) -> Outcome:
        """Predict one size; a result for each group.

        Raises
        ------
        InputError
            If the engine knows no contention between groups, or the size is not positive.
        """
        if wish.engine not in (*SIMULATORS, "packet"):
            raise InputError(
                f"groups are simulated together by {', '.join(SIMULATORS)} or packet, got engine {wish.engine!r}"
            )
        if len(self.groups) == 1:
            return self.groups[0].outcome(size, wish)
        if wish.engine == "packet" and any(group.in_slots for group in self.groups):
            for name, value in {"framing": wish.framing, "trace": wish.trace, "flaps": wish.model.flaps}.items():
                if value:
                    raise InputError(f"{name} is not modelled for groups in packets of switch systems; use engine flow")
        return Outcome(self.run.checked(self.at(size).run.shared(wish)[0]))

    def predict(self, size: float, **options: Any) -> tuple[Result, ...]:
        """Predict one size; options are fields of :class:`commsim.prediction.scenario.Wish`."""
        return self.outcome(size, Wish.of(seed=self.run.seed, **options)).results

    def remarks(self, results: Sequence[Result], *, has_framing: bool = False, verbose: bool = False) -> list[Remark]:
        """Return what the results of such a collective leave out, assume or depend on."""
        return self.groups[0].remarks(results, has_framing=has_framing, verbose=verbose)


def prepare_groups(
    collective: str | Schedule,
    network: str | Network,
    groups: Sequence[Sequence[int]],
    *,
    n_ranks: int | None = None,
    placement: str | Placement | None = None,
    routing: str | None = None,
    seed: int = 0,
    assume_programmable: bool = True,
) -> GroupsPlan:
    """Place all ranks, and let every group of them run the collective.

    Parameters
    ----------
    collective, network, placement, routing, seed, assume_programmable
        Same as in :func:`commsim.prediction.prepare`; the placement is that of all ranks.
    groups : sequence of sequence of int
        Ranks of each group, in the order in which they are the collective's ranks. A rank may be in several.
    n_ranks : int, optional
        Ranks in all, by default as many as the placement has, or all seats of the network.

    Raises
    ------
    InputError
        If a group is empty, or names a rank twice or one that does not exist.
    """
    network = load_network(network) if isinstance(network, str) else network
    placement = PACKED if placement is None else placement
    if isinstance(placement, str):
        placement = load_placement(placement, network, n_ranks or len(network.endpoints), seed)
    n_ranks = len(placement.nodes)
    if not groups:
        raise InputError("at least one group is needed, got none")
    plans, entries = [], []
    named = isinstance(collective, str) and not collective.endswith(".npz")
    for k, group in enumerate(groups):
        if not group or len(set(group)) != len(group) or not all(0 <= rank < n_ranks for rank in group):
            raise InputError(f"a group must be different ranks 0..{n_ranks - 1}, got {list(group)}")
        plan = prepare(
            collective, network, n_ranks=len(group) if named else None,  # a schedule's participants are all in it
            placement=Placement(placement.nodes[list(group)]), routing=routing, seed=seed,
            assume_programmable=assume_programmable,
        )  # fmt: skip
        title = f"group {','.join(map(str, group))}"
        plans.append(dataclasses.replace(plan, notes=tuple(note.of(title) for note in plan.notes)))
        ranks, name = tuple(group), collective if isinstance(collective, str) else plan.schedule.name
        entries.append(JobEntry(f"group {k}", plan.schedule.name, ranks, 0.0, number=number_of_unnamed(name, ranks)))
    shared = shared_network(network, plans)
    return GroupsPlan(PlacedJobs(shared, tuple(entries), tuple(plans), BackgroundMessages.none(), routing, seed))


@dataclass(frozen=True, slots=True, eq=False)
class GroupsWork(CollectiveWork):
    """A collective that several groups of ranks run at once.

    Parameters
    ----------
    groups : tuple of tuple of int
        Ranks of each group.
    """

    NAME: ClassVar[str] = "groups"
    TAKES: ClassVar[frozenset[str]] = Work.TAKES | {"trace", "flaps", "watch"}

    groups: tuple[tuple[int, ...], ...] = ()

    @classmethod
    def read(cls, given: Sequence[Sequence[int]]) -> GroupsWork:
        """Return groups of lists of ranks."""
        return cls(groups=tuple(map(_group_of, given)))

    def plan(self, scenario: Scenario) -> GroupsPlan:
        """Plan the collective of each group."""
        return prepare_groups(
            self.collective, scenario.network, self.groups, n_ranks=self.n_ranks,
            assume_programmable=scenario.assume_programmable, **scenario.placing,
        )  # fmt: skip

    @property
    def parts(self) -> list[dict[str, str]]:
        """The ranks of each group."""
        return [{"group": ",".join(map(str, group))} for group in self.groups]

    @property
    def ranks_of_each(self) -> int:
        """Number of ranks of all groups alike, for which a function is called.

        Raises
        ------
        InputError
            If groups have different numbers of ranks.
        """
        every = {len(group) for group in self.groups}
        if len(every) > 1:
            raise InputError(
                f"a function makes one schedule, and these groups have {' and '.join(map(str, sorted(every)))} ranks; "
                "give groups of one size, or a collective by name"
            )
        return max(every, default=0)


def _group_of(ranks: Sequence[int]) -> tuple[int, ...]:
    """Return the ranks of one group."""
    try:
        return tuple(operator.index(rank) for rank in ranks)
    except TypeError:
        raise InputError(f"groups must be lists of ranks, such as [[0, 1], [2, 3]], one is {ranks!r}") from None
