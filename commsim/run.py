"""Bind a network, a schedule, a placement and an engine into a result."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from collectives import COLLECTIVES

from .aggregators import seat_aggregators
from .core.cost import Wire
from .core.errors import InputError
from .core.locality import rank_levels
from .core.network import SWITCH, Network
from .core.placement import Placement
from .core.registry import Entry
from .core.result import Result
from .core.schedule import Schedule
from .core.spec import read_arguments
from .core.units import parse_size
from .engine.alpha_beta import closed_form, simulate_alpha_beta
from .engine.flow_paths import FlowPaths
from .engine.flow_plan import FlowPlan, Job
from .helper_seats import helpers_sit_beside, machines_of, on_memories, require_seats, usual_ranks
from .inputs import collective_entry, load_network, load_placement, load_schedule
from .sparse_data import SparseData, split_data

if TYPE_CHECKING:
    from .engine.packet.fabric import Fabric
    from .engine.packet.transport import Transport

ENGINES = ("flow", "packet", "alpha-beta", "closed-form")
GIVEN = ("n_ranks", "groups", "tree", "machines")  # parameters that the network and the placement decide


@dataclass(frozen=True, slots=True)
class Prepared:
    """A collective placed on a network, ready to be predicted at any size.

    Parameters
    ----------
    schedule : Schedule
        What is sent.
    parameters : mapping of str to value
        With which its builder was called.
    network : Network
        Where; switches on which aggregators were put can aggregate.
    placement : Placement
        Who sits where.
    paths : FlowPaths
        All of a simulation that does not depend on the size, for each way of computing.
    notes : tuple of str
        What was derived, and should be printed.
    data : SparseData, optional
        Which blocks are not zero, where that was said.
    """

    schedule: Schedule
    parameters: Mapping[str, Any]
    network: Network
    placement: Placement
    paths: FlowPaths
    notes: tuple[str, ...]
    data: SparseData | None = None

    @property
    def plan(self) -> FlowPlan:
        """Every transfer laid out, when it is first asked for; takes memory for each."""
        return self.paths.plan

    def predict(
        self,
        size: float,
        *,
        engine: str = "flow",
        start_jitter: float = 0.0,
        iterations: int = 1,
        seed: int = 0,
        wire: Wire | None = None,
        trace: bool = False,
        transport: Transport | None = None,
        fabric: Fabric | None = None,
        method: str = "auto",
    ) -> Result:
        """Predict one size.

        Parameters
        ----------
        size : float, bytes
            Size of the operation, as nccl-tests counts it.
        engine : {"flow", "packet", "alpha-beta", "closed-form"}
            How.
        start_jitter : float, s
            Ranks enter between 0 and this, uniformly.
        iterations : int
            With jitter, how many draws; the result has the median time.
        seed : int
            Of the jitter, and of losses and marks.
        wire : Wire, optional
            How messages are cut into packets.
        trace : bool
            Whether the result keeps the times of every transfer.
        transport, fabric : Transport, Fabric, optional
            Of the packet engine: how packets are sent, and what they meet.
        method : {"auto", "rounds", "together", "symmetric", "full"}
            By which way the flow engine computes; all that apply give the same answer, to 1e-9.

        Raises
        ------
        InputError
            If the engine is unknown or has no transports, has no closed form for this, the method is unknown or does
            not apply, or the size is not positive.
        """
        if engine not in ENGINES:
            raise InputError(f"unknown engine {engine!r}; known: {', '.join(ENGINES)}")
        if engine != "flow" and method != "auto":
            raise InputError(f"methods are the flow engine's, got method {method!r} and engine {engine!r}")
        if engine == "closed-form":
            return self._closed_form(size, start_jitter, wire)
        if self.data is not None:
            self.data.messages(size)  # a size that the data cannot have is refused before anything runs
        simulate = self._simulator(engine, seed, transport, fabric, method)
        runs = [
            simulate(size, starts=starts, wire=wire, trace=trace)
            for starts in self._starts(start_jitter, iterations, seed)
        ]
        middle = runs[int(np.argsort([r.time for r in runs], kind="stable")[(len(runs) - 1) // 2])]
        if self.data is not None:
            middle = dataclasses.replace(middle, counters={**middle.counters, **self.data.counters(size)})
        return middle if len(runs) == 1 else dataclasses.replace(middle, samples=np.array([r.time for r in runs]))

    def _simulator(
        self, engine: str, seed: int, transport: Transport | None, fabric: Fabric | None, method: str
    ) -> Callable[..., Result]:
        if engine == "packet":
            from .engine.packet.messages import simulate_packets

            packets = functools.partial(simulate_packets, transport=transport, fabric=fabric, seed=seed)
            return lambda size, **given: packets(self.plan, size, **given)[0]
        if transport is not None or fabric is not None:
            raise InputError(f"transports and queues are the packet engine's, got --engine {engine}")
        if engine == "flow":
            return functools.partial(self.paths.simulate, method=method)
        return lambda size, **given: simulate_alpha_beta(self.plan, size, **given)[0]

    def _closed_form(self, size: float, start_jitter: float, wire: Wire | None) -> Result:
        if start_jitter or wire is not None:
            raise InputError("the closed form knows neither late starters nor packet headers; use --engine flow")
        if self.data is not None:
            raise InputError(f"{self.schedule.name}: the closed form is that of dense data; use --engine flow")
        if self.schedule.name not in COLLECTIVES:
            raise InputError(f"{self.schedule.name} is not a registered collective and has no closed form")
        return closed_form(COLLECTIVES[self.schedule.name], self.plan, size, dict(self.parameters))

    def _starts(self, jitter: float, iterations: int, seed: int) -> list[NDArray[np.float64]]:
        if not 0 <= jitter < float("inf"):
            raise InputError(f"start jitter must be 0 or more and finite, got {jitter}")
        helpers = np.zeros(self.schedule.n_helpers)
        draw = np.random.default_rng(seed).uniform(0.0, jitter, (max(1, iterations), self.schedule.n_ranks))
        return [np.concatenate((starts, helpers)) for starts in (draw if jitter else draw[:1] * 0.0)]


def prepare(
    collective: str | Schedule,
    network: str | Network,
    *,
    n_ranks: int | None = None,
    placement: str | Placement = "packed",
    routing: str | None = None,
    seed: int = 0,
    assume_programmable: bool = True,
) -> Prepared:
    """Build and place a collective, and lay out its simulation.

    Parameters
    ----------
    collective : str or Schedule
        ``name:key=value,...`` of a registered collective, the .npz file of a schedule, or a schedule.
    network : str or Network
        ``name:key=value,...`` of a registered topology, a file, or a network.
    n_ranks : int, optional
        Default: as many as the placement has, or all hosts less those that helpers need.
    placement : str or Placement
        ``packed``, ``spread``, ``random``, a file, or a placement.
    routing : str, optional
        Instead of the network's own.
    seed : int
        Of random placement and of ECMP's hash.
    assume_programmable : bool
        Whether aggregators may sit on switches of a network that says of none that it can aggregate.

    Raises
    ------
    InputError
        If a name is unknown, a parameter is wrong, or the placement does not fit.
    """
    network = load_network(network) if isinstance(network, str) else network
    notes: list[str] = []
    if isinstance(collective, str) and collective.endswith(".npz"):
        collective = load_schedule(collective)
    if isinstance(collective, Schedule):
        schedule, parameters, data = collective, dict[str, Any](), None
        where = _placement(placement, network, schedule, seed)
    else:
        entry, raw = collective_entry(collective)
        raw, given = split_data(entry, raw)
        parameters = read_arguments(entry.build, raw, given=GIVEN)
        if entry.facts.get("helpers") is None:
            schedule, where = _build(entry, raw, parameters, network, n_ranks, placement, seed, notes)
        else:
            seated = seat_aggregators(
                entry.name,
                entry.facts["helpers"],
                network,
                n_ranks=n_ranks,
                placement=placement,
                seed=seed,
                assume_programmable=assume_programmable,
            )
            network, where = seated.network, seated.placement
            notes += seated.notes
            parameters["tree"] = seated.tree
            schedule = entry.build(seated.n_ranks, **parameters)
        data = _data(entry, schedule, parameters, given, notes)
    if n_ranks is not None and n_ranks != schedule.n_ranks:
        raise InputError(f"the schedule has {schedule.n_ranks} ranks, got n_ranks={n_ranks}")
    job = Job(schedule, where, messages=None if data is None else data.messages)
    where.check(network, schedule.n_ranks, schedule.n_helpers)
    paths = FlowPaths(network, job, routing, seed)
    return Prepared(schedule, parameters, network, where, paths, tuple(notes), data)


def predict(collective: str | Schedule, network: str | Network, size: float | str, **options: Any) -> Result:
    """Predict how long a collective takes.

    Parameters
    ----------
    collective, network
        As in :func:`prepare`.
    size : float or str
        Bytes, or text such as ``64MiB``.
    **options
        The other parameters of :func:`prepare` and of :meth:`Prepared.predict`.

    Returns
    -------
    Result

    Examples
    --------
    >>> predict("ring_all_reduce", "star:n_hosts=4,bandwidth=100Gbps,latency=1us", "64MiB").time  # doctest: +SKIP
    """
    placing = {k: options.pop(k) for k in ("n_ranks", "placement", "routing") if k in options}
    ready = prepare(collective, network, seed=options.get("seed", 0), **placing)
    return ready.predict(parse_size(size) if isinstance(size, str) else size, **options)


def with_costs(
    network: Network,
    *,
    overhead: float | None = None,
    recv_overhead: float | None = None,
    gamma: float | None = None,
) -> Network:
    """Return the network with other costs of messages at every node; None leaves one as it is.

    Gamma is left as it is at switches: one that aggregates adds as fast as its links bring, unless the network says
    otherwise.
    """
    given = {"overhead": overhead, "recv_overhead": recv_overhead}
    changes: dict[str, Any] = {k: v for k, v in given.items() if v is not None}
    if gamma is not None:
        changes["gamma"] = np.where(network.kind == SWITCH, network.gamma, gamma)
    return dataclasses.replace(network, **changes) if changes else network


def rank_groups(network: Network, placement: Placement, n_ranks: int) -> tuple[tuple[int, ...], ...]:
    """Group the ranks by the innermost level that tells them apart: what collectives with locality take as `groups`.

    Returns
    -------
    tuple of tuple of int
        Ranks of each machine when some machine has several, else of each rack, and so on; else all in one.
    """
    levels = rank_levels(network, placement, n_ranks)
    return levels[0][1] if levels else (tuple(range(n_ranks)),)


def rank_grid(network: Network, placement: Placement, n_ranks: int) -> tuple[int, ...] | None:
    """Sides of the grid that the levels of locality make of the ranks: what hierarchies of any depth take as `dims`.

    Returns
    -------
    tuple of int or None
        Such as racks, machines per rack, ranks per machine; None where a level's groups are not equal runs of ranks.
    """
    sizes = [1]
    for _, groups in rank_levels(network, placement, n_ranks):
        size = len(groups[0])
        runs = tuple(tuple(range(i, i + size)) for i in range(0, n_ranks, size))
        if groups != runs or n_ranks % size or size % sizes[-1]:
            return None
        sizes.append(size)
    sizes.append(n_ranks)
    return tuple(b // a for a, b in itertools.pairwise(sizes))[::-1] if len(sizes) > 2 else None


def _build(
    entry: Entry[Schedule],
    raw: Mapping[str, str],
    parameters: dict[str, Any],
    network: Network,
    n_ranks: int | None,
    placement: str | Placement,
    seed: int,
    notes: list[str],
) -> tuple[Schedule, Placement]:
    """Build and place a collective without aggregators; adds to `parameters` and `notes` what locality decides."""
    name = entry.name
    if n_ranks is None:
        n_ranks = usual_ranks(entry, parameters, network, placement, seed, notes)
    parameters |= machines_of(entry, network, placement, n_ranks, seed)
    if "machines" in parameters:
        machines = parameters["machines"]
        notes.append(f"{name}: {len(machines)} machines of {_sizes(machines)} ranks each")
    schedule = _build_checked(entry.build, n_ranks, parameters)
    require_seats(schedule, network, placement)
    where = _placement(placement, network, schedule, seed)
    if parameters.get("n_switches") and isinstance(placement, str):
        where = on_memories(schedule, network, where, parameters.get("machines", (tuple(range(n_ranks)),)))
    if schedule.n_helpers and helpers_sit_beside(network, placement):
        names = [network.nodes[node] for node in where.nodes[n_ranks:]]
        notes.append(f"{name}: helpers on {', '.join(names[:4])}{' and so on' if len(names) > 4 else ''}")
    if "groups" in entry.parameters:
        for level, groups in rank_levels(network, where, n_ranks)[:1]:
            parameters["groups"] = groups
            schedule = _build_checked(entry.build, n_ranks, parameters)
            notes.append(f"{name}: groups are the {len(groups)} {level}s, of {_sizes(groups)} ranks each")
    if "dims" in entry.parameters and entry.facts["operation"] == "all_reduce" and "dims" not in raw:
        dims = rank_grid(network, where, n_ranks)
        if dims is not None:
            parameters["dims"] = dims
            schedule = _build_checked(entry.build, n_ranks, parameters)
            notes.append(f"{name}: dims are {'x'.join(map(str, dims))}, from the outermost level to the innermost")
    return schedule, where


def _data(
    entry: Entry[Schedule],
    schedule: Schedule,
    parameters: Mapping[str, Any],
    given: Mapping[str, Any] | None,
    notes: list[str],
) -> SparseData | None:
    """Bind a sparse collective to its data; adds to `notes` what that is."""
    form = entry.facts.get("sparse")
    if form is None:
        return None
    if given is None:
        notes.append(f"{entry.name}: without density=... or gradients=FILE all data is dense, and sent without indices")
        return None
    data = SparseData(form, schedule, parameters, given)
    notes.append(f"{entry.name}: {data.note}")
    return data


def _sizes(groups: tuple[tuple[int, ...], ...]) -> str:
    return " or ".join(map(str, sorted({len(group) for group in groups})))


def _build_checked(build: Callable[..., Schedule], n_ranks: int, parameters: Mapping[str, Any]) -> Schedule:
    if n_ranks < 1:
        raise InputError(f"ranks must be at least 1, got {n_ranks}")
    return build(n_ranks, **parameters)


def _placement(placement: str | Placement, network: Network, schedule: Schedule, seed: int) -> Placement:
    if isinstance(placement, Placement):
        return placement
    return load_placement(placement, network, schedule.n_participants, seed, n_helpers=schedule.n_helpers)


__all__ = ["ENGINES", "Prepared", "predict", "prepare", "rank_grid", "rank_groups", "with_costs"]
