"""A plan: a collective placed on a network, from which any engine predicts any size. Kinds of work derive from it."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from commsim.core.cost import Framing
from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.operations import OPERATIONS, no_bytes
from commsim.core.placement import Placement
from commsim.core.remark import SIZE_UNUSED, Remark
from commsim.core.result import Result
from commsim.core.schedule import Schedule
from commsim.engine.flow_paths import FlowPaths
from commsim.prediction.bounds.cuts import floor_of
from commsim.prediction.plans.run import Run, over_hashes, played
from commsim.prediction.result_remarks import of_paths, remarks_of_results, remarks_of_switches
from commsim.prediction.scenario import AUTO, Wish
from commsim.prediction.work_plan import Outcome
from commsim.routing.routing import may_collide

if TYPE_CHECKING:
    from commsim.engine.flow_plan import FlowPlan

OTHER_SIZE = "{0}: its file's messages have these sizes only with -b {1:.0f} -e {1:.0f}"
Derived = TypeVar("Derived", bound="Plan")


@dataclass(frozen=True, slots=True)
class Plan:
    """A collective placed on a network, whose schedule is the same for all sizes.

    Parameters
    ----------
    schedule : Schedule
        Transfers of the collective.
    parameters : mapping of str to value
        Arguments of the schedule's builder.
    network : Network
        Network, whose switches can aggregate where aggregators were put.
    placement : Placement
        Node of each participant.
    paths : FlowPaths
        Tables of a simulation that do not depend on the size, for each way of computing.
    notes : tuple of Remark
        What was derived, and should be printed.
    framing : Framing, optional
        Packets that the software or the switch system makes of messages.
    sent : float, optional, bytes
        Size that the schedule's chunks are parts of, where it is not the operation's.
    before : float, s
        Time outside of all messages: of a launch, of host and aggregation units.
    own_size : float, bytes
        Size that the schedule was read with from a file of another tool; 0 of all others.
    """

    # Whether `choice_at` says something: of a library that chooses, and of work that its size alone does not describe.
    chooses: ClassVar[bool] = False

    schedule: Schedule
    parameters: Mapping[str, Any]
    network: Network
    placement: Placement
    paths: FlowPaths
    notes: tuple[Remark, ...] = ()
    framing: Framing | None = None
    sent: float | None = None
    before: float = 0.0
    own_size: float = 0.0
    _at: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)
    _bounds: dict[str, FlowPaths] = field(default_factory=dict, repr=False, compare=False)

    @property
    def plan(self) -> FlowPlan:
        """Tables of every transfer, laid out when they are first asked for."""
        return self.paths.plan

    @property
    def data(self) -> Any:
        """Blocks that are not zero, of a collective that sends less where data is not dense."""
        return None

    @property
    def ranks(self) -> NDArray[np.int32]:
        """Node of each rank."""
        return self.placement.nodes[: self.schedule.n_ranks]

    @property
    def schedules(self) -> tuple[Schedule, ...]:
        """The schedule, of the one result."""
        return (self.schedule,)

    @property
    def has_own_costs(self) -> bool:
        """Whether messages have the costs of a library's primitives, not the overhead of the network."""
        return False

    @property
    def may_collide(self) -> bool:
        """Whether routes are drawn by hashing where there are several."""
        return may_collide(self.paths.network, self.paths.routing)

    @property
    def release(self) -> str:
        """Library and release whose rules hold, such as ``NCCL 2.32``; empty where there is none."""
        return ""

    def choice_at(self, size: float) -> str:  # noqa: ARG002
        """Return what a library chooses at a size, such as ``ring/ll128``, or what an exchange is of; else nothing."""
        return ""

    def unhindered(self, size: float) -> tuple[float, float, float] | None:  # noqa: ARG002
        """Return time, low and high, s, of a library's closed form, as if no link were in the way; None without one."""
        return None

    @property
    def in_slots(self) -> bool:
        """Whether the packet engine simulates the slots of a switch system, and no messages."""
        return False

    @property
    def own_links(self) -> NDArray[np.int64]:
        """Links beside those of messages' routes: of trees in switches."""
        return np.zeros(0, np.int64)

    @property
    def posts_calls(self) -> bool:
        """Whether a call costs what a preset of software says, which NCCL's costs and switch systems' hosts replace."""
        return not (self.has_own_costs or self.in_slots)

    def sizes(self, sizes: Sequence[float]) -> tuple[list[float], list[Remark]]:
        """Return the sizes that are asked for; a barrier has none.

        Raises
        ------
        InputError
            If a size is needed, and none is asked for.
        """
        operation = OPERATIONS.get(self.schedule.operation)
        if operation is not None and operation.signals:
            return [0.0], [Remark(SIZE_UNUSED, no_bytes(self.schedule.operation))] if any(sizes) or len(
                sizes
            ) > 1 else []
        if not sizes:
            raise InputError("sizes must name at least one size, such as '64MiB'")
        return list(sizes), []

    def at(self, size: float) -> Plan:  # noqa: ARG002
        """Return the plan of one size."""
        return self

    def in_pieces(self, size: float) -> Plan:  # noqa: ARG002
        """Return the plan with as many pieces as suit a size, where the collective chooses their number."""
        return self

    def shown(self, size: float) -> Plan:
        """Return the plan whose messages the timeline of a size shows."""
        return self.at(size)

    def run_of(self, size: float, wish: Wish) -> Run:  # noqa: ARG002
        """Return what an engine plays at one size."""
        one = self.at(size)
        return Run(
            size, one.sent, one.schedule, one.parameters, one.network, one.paths, one.framing, one.framing, one.before,
            bounds=one._bounds,
        )  # fmt: skip

    def links_used(self, sizes: Collection[float], routing: str | None) -> NDArray[np.bool_] | None:
        """Return the links on the routes of all messages, bool[n_links]; None where that takes long."""
        from commsim.prediction.plans.used_links import links_of

        return links_of([(self.at(size), 0) for size in sizes], self.network, routing)

    def as_kind(self, kind: type[Derived], **more: Any) -> Derived:
        """Return the same as a plan of another kind, with the fields that this kind has beside."""
        return kind(**{one.name: getattr(self, one.name) for one in dataclasses.fields(Plan)} | more)

    def with_schedule(
        self, schedule: Schedule, parameters: Mapping[str, Any], network: Network | None = None, **job: Any
    ) -> Self:
        """Return the plan with another schedule.

        Parameters
        ----------
        schedule, parameters
            Schedule, and arguments of its builder.
        network : Network, optional
            Network as messages see it. Default: the same.
        **job
            Further fields of :class:`commsim.engine.flow_job.FlowJob` that change.
        """
        changed = dataclasses.replace(self.paths.job, schedule=schedule, **job)
        paths = FlowPaths(network or self.paths.network, changed, self.paths.routing, self.paths.seed)
        return dataclasses.replace(self, schedule=schedule, parameters=parameters, paths=paths)

    def predict(self, size: float, **options: Any) -> Result:
        """Predict one size.

        Parameters
        ----------
        size : float, bytes
            Size of the operation, as nccl-tests counts it.
        **options
            Fields of :class:`commsim.prediction.scenario.Wish`.

        Raises
        ------
        InputError
            If an option is wrong, or the engine cannot predict this.
        """
        wish = Wish.of(**options)
        routing = wish.routing_on(self.network) if self.paths.routing is None else None
        return (self if routing is None else self.routed(routing)).run(size, wish)

    def routed(self, routing: str) -> Self:
        """Return the plan with another routing; all else is the same."""
        paths = dataclasses.replace(self.paths, routing=routing, _plans={}, _chosen={}, _hashed={}, _answered={})
        return dataclasses.replace(self, paths=paths, _at={}, _bounds={})

    def run(self, size: float, wish: Wish) -> Result:
        """Predict one size: the one result of :func:`commsim.prediction.plans.run.over_hashes`."""
        return over_hashes(self, size, wish).results[0]

    def outcome(self, size: float, wish: Wish) -> Outcome:
        """Predict one size, as is wished, and check the answer against the capacity of cuts."""
        remarks: tuple[Remark, ...] = ()
        if wish.engine == AUTO:
            wish, remarks = wish.model.choose(self, size, wish)
        run = self.run_of(size, wish)
        run = run if wish.hash_seed is None else run.hashed_by(wish.hash_seed)
        return Outcome((self.checked(played(run, wish)),), remarks)

    def hashed_by(self, seed: int | None) -> Self:
        """Return the plan with routes that another seed draws; all else is the same."""
        paths = self.paths.hashed_by(seed)
        return self if paths is self.paths else dataclasses.replace(self, paths=paths, _at={}, _bounds={})

    def checked(self, result: Result) -> Result:
        """Return a result that is no faster than physics.

        Raises
        ------
        InputError, PhysicsError
            If it is, as :meth:`commsim.prediction.bounds.cuts.Floor.check` says.
        """
        if "floor" not in self._at:
            self._at["floor"] = floor_of(self)
        self._at["floor"].check(result)
        return result

    def remarks_of_sizes(self, sizes: Iterable[float]) -> list[Remark]:
        """Return what to say of sizes with which messages have other bytes than in the file of the schedule."""
        if not self.own_size or all(size == self.own_size for size in sizes):
            return []
        return [Remark("other-size", OTHER_SIZE.format(self.schedule.name, self.own_size), needed=True)]

    def remarks(self, results: Sequence[Result], *, has_framing: bool = False, verbose: bool = False) -> list[Remark]:
        """Return what results leave out, assume or depend on."""
        own = self.remarks_of_sizes([result.size for result in results]) if self.own_size else []
        own += of_paths(self.network, results)
        of_switches = self._of_switches(results, has_framing, verbose) if self.schedule.n_helpers else []
        return own + remarks_of_results(results, of_switches)

    def _of_switches(self, results: Sequence[Result], has_framing: bool, verbose: bool) -> list[Remark]:  # noqa: ARG002
        """Describe what the numbers of in-network aggregation mean."""
        has_headers = has_framing or results[0].engine == "packet"
        left_out = [] if has_headers else [Remark("no-headers", "headers are not counted")]
        return remarks_of_switches(self.schedule, self.network, results, left_out)
