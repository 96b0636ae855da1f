"""The scenario: a question as one frozen value, with the work, the engine that is wished for, and its options."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from commsim.core.cost import Framing
from commsim.core.errors import InputError, unknown_name
from commsim.core.machines.hardware import SPREADING, net_of
from commsim.core.network import Network
from commsim.core.placement import Placement
from commsim.core.remark import Remark
from commsim.core.result import Result
from commsim.core.schedule import Schedule
from commsim.extensions import house
from commsim.prediction.work_plan import OPTIONS, Work

if TYPE_CHECKING:
    from commsim.engine.flow_paths import FlowPaths
    from commsim.prediction.plans.dense import Plan
    from commsim.routing.flaps import Flaps

# The first is that of a question that names none.
ENGINES = ("flow", "packet", "alpha-beta", "closed-form")
AUTO = "auto"
__all__ = ["AUTO", "CORE_ENGINES", "ENGINES", "Engine", "FlowEngine", "Scenario", "Wish", "engine_of"]


@dataclass(frozen=True, slots=True)
class Engine:
    """Model of time, with the options that it alone has: an engine is a frozen class, which ``house.engines`` names."""

    # Name, of answers too.
    NAME: ClassVar[str]

    @property
    def flaps(self) -> Flaps | None:
        """Cables that go down during the run; an engine that knows them has a field of the name."""
        return None

    @property
    def transport(self) -> Any:
        """Senders and switches, of an engine with packets."""
        return None

    @property
    def watch(self) -> Any:
        """Observer of links, of an engine with packets."""
        return None

    @property
    def capture(self) -> Any:
        """Recorder of packets, of an engine with packets."""
        return None

    def simulation(self, paths: FlowPaths, wish: Wish) -> Callable[..., Result]:  # noqa: ARG002
        """Return a function from ``(size, *, starts, framing)`` to the result of messages on these paths."""
        raise InputError(f"engine {self.NAME} simulates no messages")

    def choose(self, plan: Plan, size: float, wish: Wish) -> tuple[Wish, tuple[Remark, ...]]:  # noqa: ARG002
        """Return the wish with the engine that predicts a size, and why it is that one."""
        return wish, ()


@dataclass(frozen=True, slots=True)
class FlowEngine(Engine):
    """Flows that share links max-min.

    Parameters
    ----------
    method : str
        Way by which it computes, one of ``commsim.engine.flow_paths.METHODS``, or one that a package brings.
    flaps : Flaps, optional
        Cables that go down during the run.
    """

    NAME: ClassVar[str] = "flow"
    method: str = AUTO
    flaps: Flaps | None = None

    def simulation(self, paths: FlowPaths, wish: Wish) -> Callable[..., Result]:
        """Simulate flows."""
        return functools.partial(paths.simulate, trace=wish.trace, method=self.method, flaps=self.flaps)


@dataclass(frozen=True, slots=True)
class AlphaBetaEngine(Engine):
    """The critical path under LogGP; links are not shared."""

    NAME: ClassVar[str] = "alpha-beta"

    def simulation(self, paths: FlowPaths, wish: Wish) -> Callable[..., Result]:
        """Follow the critical path."""
        from commsim.engine.alpha_beta import simulate_alpha_beta

        def simulate(size: float, **options: Any) -> Result:
            return simulate_alpha_beta(paths.plan, size, trace=wish.trace, **options)[0]

        return simulate


@dataclass(frozen=True, slots=True)
class ClosedFormEngine(Engine):
    """The formula of a registered collective."""

    NAME: ClassVar[str] = "closed-form"


CORE_ENGINES: Mapping[str, type[Engine]] = {kind.NAME: kind for kind in (FlowEngine, AlphaBetaEngine, ClosedFormEngine)}


def engine_of(name: str, **options: Any) -> Engine:
    """Return an engine by its name and its options; None is the same as not given.

    Raises
    ------
    InputError
        If the engine is unknown, or an option belongs to another engine.
    """
    kind: type[Engine] | None = CORE_ENGINES.get(name) or house().engines.get(name)
    if kind is None:
        raise unknown_name("engine", name, (*ENGINES, AUTO))
    own = {option: value for option, value in options.items() if value is not None}
    for option in own:
        if option not in _options_of(kind):
            having = [one for one in (*ENGINES, AUTO) if option in _options_of(_kind(one))]
            raise InputError(f"{OPTIONS.get(option, option)} goes with engine {' or '.join(having)}, got engine {name}")
    return kind(**own)


def _kind(name: str) -> type[Engine] | None:
    """Return an engine's class; None where its extension is not there."""
    found: type[Engine] | None = CORE_ENGINES.get(name) or house().engines.get(name)
    return found


def _options_of(kind: type[Engine] | None) -> Sequence[str]:
    return [] if kind is None else [field.name for field in dataclasses.fields(kind)]


@dataclass(frozen=True, slots=True)
class Wish:
    """The engine of a prediction, and options that all engines have.

    Parameters
    ----------
    model : Engine
        Engine with its own options.
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
    hashes : int
        Number of draws of the hash of routes, where their times differ; the result is that of the median time. 0: as
        many as are usual, 8, or 3 where one takes seconds.
    hash_seed : int, optional
        Seed of the hash of routes. Default: that with which the work was planned.

    Raises
    ------
    InputError
        If a number is out of its range.
    """

    model: Engine = field(default_factory=FlowEngine)
    start_jitter: float = 0.0
    iterations: int = 1
    seed: int = 0
    framing: Framing | None = None
    trace: bool = False
    hashes: int = 1
    hash_seed: int | None = None

    def __post_init__(self) -> None:
        if self.hashes < 0:
            raise InputError(f"hashes must be at least 1, got {self.hashes}")
        if not 0 <= self.start_jitter < float("inf"):
            raise InputError(f"start jitter must be 0 or more and finite, got {self.start_jitter}")

    @classmethod
    def of(cls, engine: str = ENGINES[0], **options: Any) -> Wish:
        """Return a wish by the name of the engine; options are fields of this class, or the engine's own.

        Raises
        ------
        InputError
            If the engine is unknown, an option belongs to another engine, or a number is out of its range.
        """
        common = {name: value for name, value in options.items() if name in cls.__dataclass_fields__}
        own = {name: value for name, value in options.items() if name not in common}
        return cls(engine_of(engine, **own), **common)

    def but(self, **options: Any) -> Wish:
        """Return the wish with other options, of all engines or of its own; None takes one away where there is one."""
        common = {name: value for name, value in options.items() if name in self.__dataclass_fields__}
        has = _options_of(type(self.model))
        own = {name: value for name, value in options.items() if name not in common and (value or name in has)}
        return dataclasses.replace(self, model=dataclasses.replace(self.model, **own) if own else self.model, **common)

    @property
    def engine(self) -> str:
        """Name of the engine."""
        return self.model.NAME

    @property
    def sprays(self) -> bool:
        """Whether messages go over many paths."""
        return self.model.transport is not None and not self.model.transport.on_path

    def routing_on(self, network: Network) -> str | None:
        """Return the routing in place of a network's own: a path each, where only its machines spread packets.

        Transports of the packet engine that do not spray keep to one path; other engines spread as the network does.
        """
        kept = self.engine in ("packet", AUTO) and not self.sprays
        spreads_by_itself = network.routing == "spray" and net_of(network.hardware) in SPREADING
        return "ecmp" if kept and spreads_by_itself else None

    def with_engine(self, engine: str) -> Wish:
        """Return the wish with the engine that was chosen for ``auto``; one with an engine stays as it is."""
        if self.engine != AUTO:
            return self
        transport = self.model.transport if engine == "packet" else None
        return dataclasses.replace(self, model=engine_of(engine, transport=transport))

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
            raise InputError(f"{what}: errors of engines are not known for it; choose an engine, such as engine flow")


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
    is_left : bool
        Whether the placement is what failed hosts and GPUs leave: without its faults the network takes all ranks.
    """

    network: Network
    work: Work
    placement: str | Placement | None = None
    routing: str | None = None
    seed: int = 0
    assume_programmable: bool = True
    wish: Wish = field(default_factory=Wish)
    remarks: tuple[Remark, ...] = ()
    slower: tuple[int, ...] = ()
    whole: Network | None = None
    failed: tuple[int, ...] = ()
    is_left: bool = False

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
        found: str | Schedule = getattr(self.work, "collective", "")
        return found

    @property
    def n_ranks(self) -> int | None:
        """Number of ranks that is asked for, of a collective."""
        found: int | None = getattr(self.work, "n_ranks", None)
        return found

    def with_collective(self, collective: str | Schedule, **changes: Any) -> Scenario:
        """Return the question of another collective, with changes of other fields."""
        return dataclasses.replace(self, work=self.work.with_collective(collective), **changes)
