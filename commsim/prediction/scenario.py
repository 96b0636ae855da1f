"""The scenario: a question as one frozen value, with the work, the engine that is wished for, and its options."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

from commsim.core.cost import Framing
from commsim.core.errors import InputError
from commsim.core.machines.hardware import spreads_by_itself
from commsim.core.network import Network
from commsim.core.placement import Placement
from commsim.core.remark import Remark
from commsim.core.result import Result
from commsim.core.schedule import Schedule
from commsim.extensions import house

if TYPE_CHECKING:
    from commsim.prediction.plans.dense import Plan
    from commsim.prediction.python_values import FlowCapture, LinkWatch, Spraying
    from commsim.prediction.work_plan import WorkPlan
    from commsim.routing.flaps import Flaps

ENGINES = ("flow", "packet", "alpha-beta", "closed-form")
AUTO = "auto"
# Names of options in messages, where they differ.
OPTIONS = {"n_ranks": "ranks", "start_jitter": "start jitter", "flaps": "flap"}
__all__ = ["AUTO", "ENGINES", "OPTIONS", "CollectiveWork", "Scenario", "Wish", "Work"]


@dataclass(frozen=True, slots=True)
class Wish:
    """The engine of a prediction, and its options.

    Parameters
    ----------
    engine : {"flow", "packet", "alpha-beta", "closed-form", "auto"}
        Model of time; ``auto`` is the cheapest one whose known error is within `tolerance`.
    start_jitter : float, s
        Latest start of a rank; starts are drawn uniformly between 0 and this.
    iterations : int
        Number of draws of the starts; the result has the median time.
    seed : int
        Seed of the jitter, and of losses and marks.
    framing : Framing, optional
        Packets that messages are cut into. Default: those of the collective's switch system or protocol, or none.
    trace : bool
        Whether the result keeps the times of every transfer.
    transport : Spraying, optional
        Senders and switches of the packet engine.
    method : str
        Way by which the flow engine computes, one of ``commsim.engine.flow_paths.METHODS``.
    flaps : Flaps, optional
        Cables that go down during the run, with the engines flow and packet.
    tolerance : float, optional
        Largest known error, with ``auto``.
    watch : LinkWatch, optional
        Observer of the packet engine's links.
    capture : FlowCapture, optional
        Recorder of the packets of one flow.
    hashes : int
        Number of draws of the hash of routes, where their times differ; the result is that of the median time. 0: as
        many as are usual, 8, or 3 where one takes seconds.
    hash_seed : int, optional
        Seed of the hash of routes. Default: that with which the work was planned.

    Raises
    ------
    InputError
        If the engine is unknown, or an option belongs to another engine.
    """

    engine: str = "flow"
    start_jitter: float = 0.0
    iterations: int = 1
    seed: int = 0
    framing: Framing | None = None
    trace: bool = False
    transport: Spraying | None = None
    method: str = AUTO
    flaps: Flaps | None = None
    tolerance: float | None = None
    watch: LinkWatch | None = None
    capture: FlowCapture | None = None
    hashes: int = 1
    hash_seed: int | None = None

    def __post_init__(self) -> None:
        if self.engine not in (*ENGINES, AUTO) and house().engines.get(self.engine) is None:
            raise InputError(f"unknown engine {self.engine!r}; known: {', '.join((*ENGINES, AUTO))}")
        if self.engine != "flow" and self.method != AUTO:
            raise InputError(f"methods are the flow engine's, got method {self.method!r} and engine {self.engine!r}")
        if self.flaps is not None and self.engine not in ("flow", "packet"):
            raise InputError(f"links flap in the engines flow and packet, got engine {self.engine}")
        if self.transport is not None and self.engine not in ("packet", AUTO):
            raise InputError(f"transports and queues are the packet engine's, got engine {self.engine}")
        if self.engine == AUTO and self.sprays:
            raise InputError("engine auto knows errors of window, dctcp and dcqcn over one path; use engine packet")
        if self.engine == AUTO and self.tolerance is None:
            raise InputError("engine auto needs a tolerance, such as 10%")
        if self.engine != AUTO and self.tolerance is not None:
            raise InputError(f"tolerance goes with engine auto, got engine {self.engine}")
        if self.hashes < 0:
            raise InputError(f"hashes must be at least 1, got {self.hashes}")
        if not 0 <= self.start_jitter < float("inf"):
            raise InputError(f"start jitter must be 0 or more and finite, got {self.start_jitter}")

    @property
    def sprays(self) -> bool:
        """Whether messages go over many paths."""
        return self.transport is not None and not self.transport.on_path

    def routing_on(self, network: Network) -> str | None:
        """Return the routing in place of a network's own: a path each, where only its machines spread packets.

        Transports of the packet engine that do not spray keep to one path; other engines spread as the network does.
        """
        kept = self.engine in ("packet", AUTO) and not self.sprays
        return "ecmp" if kept and spreads_by_itself(network) else None

    def with_engine(self, engine: str) -> Wish:
        """Return the wish with the engine that was chosen for ``auto``; one with an engine stays as it is."""
        if self.engine != AUTO:
            return self
        transport = self.transport if engine == "packet" else None
        return dataclasses.replace(self, engine=engine, tolerance=None, transport=transport)

    def of_draw(self, result: Result) -> Wish:
        """Return the wish for the one draw of the hash of routes that a result is of."""
        return dataclasses.replace(self, hashes=1, hash_seed=None if result.hashes is None else result.hashes.seed)

    def require_engine(self, what: str) -> None:
        """Refuse ``auto`` for what no errors are known of.

        Parameters
        ----------
        what : str
            Flag or work.

        Raises
        ------
        InputError
            If the engine is ``auto``.
        """
        if self.engine == AUTO:
            raise InputError(f"{what}: no errors are known with it; choose one by hand, such as engine flow")


class Work(ABC):
    """What is simulated: a kind is a frozen class, which ``house.works`` names, and a work is a value of it."""

    # Name in refusals, such as ``groups``.
    NAME: ClassVar[str]
    # Fields of Scenario and Wish that have an effect on the plan or its results.
    TAKES: ClassVar[frozenset[str]] = frozenset(
        {"network", "work", "placement", "routing", "seed", "assume_programmable", "wish", "remarks", "slower",
         "whole", "failed", "engine", "iterations", "framing", "transport", "hashes", "hash_seed"}
    )  # fmt: skip
    # Reason for which other fields of a scenario are refused, where ``{}`` is the option.
    REFUSAL: ClassVar[str] = ""

    @classmethod
    def read(cls, given: Any) -> Self:
        """Return the work, by what a keyword of a scenario or the text after ``NAME:`` says of it."""
        return cls(given)  # type: ignore[call-arg]

    @abstractmethod
    def plan(self, scenario: Scenario) -> WorkPlan:
        """Return the plan of the work on a scenario's network."""

    @property
    def title(self) -> str:
        """Name in titles and rows; empty where each result has its own."""
        return ""

    @property
    def parts(self) -> Sequence[dict[str, str]]:
        """What tells the results of one size apart, such as ``{"job": "a"}``; empty where there is one."""
        return ()

    def refusal(self, option: str) -> InputError:
        """Return the error for an option that the work does not take."""
        reason = self.REFUSAL or f"{{}} is not modelled for {self.NAME}"
        return InputError(reason.format(OPTIONS.get(option, option)))


@dataclass(frozen=True, slots=True, eq=False)
class CollectiveWork(Work):
    """One collective; the base of what runs one in another way.

    Parameters
    ----------
    collective : str or Schedule
        ``name:key=value,...`` of a collective, a file of a schedule, or a schedule; empty where several are ranked.
    n_ranks : int, optional
        Number of ranks. Default: all that the placement or the network has.
    """

    NAME: ClassVar[str] = "a collective"
    TAKES: ClassVar[frozenset[str]] = Work.TAKES | {
        "start_jitter", "trace", "method", "flaps", "watch", "capture", "tolerance",
    }  # fmt: skip
    # Whether the schedule is of the operation that is asked for.
    KEEPS_OPERATION: ClassVar[bool] = True

    collective: str | Schedule = ""
    n_ranks: int | None = None

    def plan(self, scenario: Scenario) -> WorkPlan:
        """Return the plan of the collective."""
        return self.plan_one(scenario)

    def plan_one(self, scenario: Scenario) -> Plan:
        """Return the plan of the collective, as if nothing else were asked for."""
        from commsim.prediction.build import prepare

        return prepare(
            self.collective, scenario.network, n_ranks=self.n_ranks, placement=scenario.placement,
            routing=scenario.routing, seed=scenario.seed, assume_programmable=scenario.assume_programmable,
        )  # fmt: skip

    @property
    def title(self) -> str:
        """The collective, as it was named."""
        return self.collective if isinstance(self.collective, str) else self.collective.name

    @property
    def ranks_of_each(self) -> int:
        """Number of ranks that run it, where that is not all; else 0."""
        return 0


@dataclass(frozen=True, slots=True, eq=False)
class Scenario:
    """A network with its faults, the work on it, and the engine that is wished for.

    Parameters
    ----------
    network : Network
        Network, with faults and costs of messages.
    work : Work
        What is simulated: a collective, or what an extension brings, such as several jobs.
    placement : str or Placement, optional
        Strategy, file or placement. Default: what the file of a schedule says, else ``packed``.
    routing : str, optional
        Routing in place of the network's own.
    seed : int
        Seed of all that is drawn: placement, hashes of routes, data, jitter, losses.
    assume_programmable : bool
        Whether aggregators may sit on switches of a network that declares none as able to aggregate.
    wish : Wish
        Engine and its options.
    remarks : tuple of Remark
        What was drawn, chosen or assumed when the scenario was made.
    slower : tuple of int
        Links whose rate a fault lowers.
    whole : Network, optional
        Network without its faults, where there are some.
    failed : tuple of int
        Links of that network that failed.
    """

    network: Network
    work: Work = field(default_factory=CollectiveWork)
    placement: str | Placement | None = None
    routing: str | None = None
    seed: int = 0
    assume_programmable: bool = True
    wish: Wish = field(default_factory=Wish)
    remarks: tuple[Remark, ...] = ()
    slower: tuple[int, ...] = ()
    whole: Network | None = None
    failed: tuple[int, ...] = ()

    @property
    def placing(self) -> dict[str, Any]:
        """What places ranks and routes their messages."""
        return {"placement": self.placement, "routing": self.routing, "seed": self.seed}

    @property
    def name(self) -> str:
        """The collective, as it was named; empty of other work."""
        return self.work.title

    @property
    def collective(self) -> str | Schedule:
        """The collective; empty of other work."""
        return self.work.collective if isinstance(self.work, CollectiveWork) else ""

    @property
    def n_ranks(self) -> int | None:
        """Number of ranks that is asked for, of a collective."""
        return self.work.n_ranks if isinstance(self.work, CollectiveWork) else None

    def with_collective(self, collective: str | Schedule, **changes: Any) -> Scenario:
        """Return the question of another collective, with changes of other fields."""
        if not isinstance(self.work, CollectiveWork):
            raise self.work.refusal("collective")
        return dataclasses.replace(self, work=dataclasses.replace(self.work, collective=collective), **changes)
