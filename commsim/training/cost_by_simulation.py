"""Costs of the communications of a graph, by simulation on a network."""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from commsim.core.cost import Framing
from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.network_queries import busiest_link
from commsim.core.operations import operation
from commsim.core.placement import PACKED, Placement
from commsim.core.remark import Remark
from commsim.core.result import Result
from commsim.core.spec import split_spec, with_parameter
from commsim.prediction.scenario import AUTO, ENGINES

from .hash_ends import MEDIAN, Times, seed_of_hash, times_over_hashes
from .task_graph import Task
from .timeline import sent_by_each

if TYPE_CHECKING:
    from commsim.engine.flow_job import FlowJob
    from commsim.prediction.plans.dense import Plan
    from commsim.prediction.scenario import Scenario

# One message to one other rank.
SEND, MESSAGE = "send", "binomial_broadcast"
IN_PLACE_OF = {SEND: "broadcast"}  # operation of the collective that carries it
# Operation whose gradients a compressor compresses.
COMPRESSED = "all_reduce"

ELEMENT = 4  # bytes of a value of sparse data
Parts: TypeAlias = tuple[tuple[float, float], ...]  # bytes and density of what an array is made of


def network_costs(
    network: str | Network,
    placement: str | Placement = PACKED,
    *,
    n_ranks: int | None = None,
    algorithms: Mapping[str, str] | None = None,
    engine: str = ENGINES[0],
    seed: int = 0,
    framing: Framing | None = None,
    compressor: str | None = None,
    hashes: int | None = None,
    **costs: Any,
) -> NetworkCosts:
    """Costs from solving each (operation, size, group) as a scenario of its own, once, and remembering it.

    Parameters
    ----------
    network : str or Network
        Same as in :func:`commsim.prediction.prepare`.
    placement : str or Placement
        Placement of all ranks; the groups of the tasks are ranks in it.
    n_ranks : int, optional
        Ranks in all, for a placement by name; by default all endpoints of the network.
    algorithms : mapping of str to str, optional
        Collectives for operations. Default: what runs on the network's machines, as in ``commsim run``.
    engine : str
        Engine of :class:`commsim.prediction.scenario.Wish`.
    seed : int
        Seed of faults, of random placement and of ECMP's hash.
    framing : Framing, optional
        Packets of each message; default: bytes only.
    compressor : str, optional
        Compressor of the gradients of an all-reduce, such as ``top_k:density=0.01``; see
        :func:`commsim.sparse.plan_compressed.compressed`.
    hashes : int, optional
        Number of hashes of routes that are drawn where their times differ; what a task costs is the median. Default: 8.
    **costs
        Faults and costs of messages, as :func:`commsim.prediction.read.changed_network` takes them.

    Raises
    ------
    InputError
        If the placement does not fit, or an algorithm is one of another operation; the callable raises it for an
        operation without an algorithm, or a rank that nothing was placed for.
    """
    from commsim.prediction.collective_names import require_operation, spelled_out
    from commsim.prediction.inputs import load_placement
    from commsim.prediction.read import changed_network

    for name, spec in (algorithms or {}).items():
        carried = operation(IN_PLACE_OF.get(name, name)).name
        if compressor is None or carried != COMPRESSED:  # they may be gathered; their plan refuses others
            require_operation(spelled_out(spec, carried), carried)
    net, remarks = changed_network(network, seed=seed, **costs)
    if isinstance(placement, str):
        placement = load_placement(placement, net, n_ranks or len(net.endpoints), seed)
    cables = net if not net.software else changed_network(network, seed=seed, **costs | {"software": None})[0]
    named = algorithms or {}
    return NetworkCosts(net, placement, named, engine, seed, framing, compressor, tuple(remarks), hashes, cables)


class NetworkCosts:
    """From a task to its seconds on a network, and to what its members send; parameters as of :func:`network_costs`."""

    def __init__(
        self,
        network: Network,
        placement: Placement,
        algorithms: Mapping[str, str],
        engine: str,
        seed: int,
        framing: Framing | None,
        compressor: str | None = None,
        notes: tuple[Remark, ...] = (),
        hashes: int | None = None,
        cables: Network | None = None,
    ) -> None:
        self.cables = network if cables is None else cables  # whose rates no software has made slower
        self._network, self._nodes, self._engine = network, placement.nodes, engine
        self._named, self._seed, self._framing, self._compressor = dict(algorithms), seed, framing, compressor
        self._planned: dict[tuple[str, tuple[int, ...], bool], tuple[Scenario, Any]] = {}
        self._known: dict[tuple[str, tuple[int, ...], float, Parts], tuple[Times, dict[int, float], int]] = {}
        self._hashes, self._which, self._drawn = hashes, MEDIAN, set[int]()
        self._told, self._chosen = notes, list[Remark]()

    def __call__(self, task: Task) -> float:
        """Return the seconds of a task, simulated once without others."""
        return self._simulated(task)[0][self._which] if task.operation else task.duration

    def alone(self, task: Task) -> tuple[float, tuple[int, ...]]:
        """Return the seconds of a communication without others, and the links that it uses."""
        times, n_bytes, _ = self._simulated(task)
        return times[self._which], tuple(n_bytes)

    @property
    def n_drawn(self) -> int:
        """Hashes of routes that were drawn for an exchange whose times differ; 0 where none do so far."""
        return max(self._drawn, default=0)

    def at(self, which: int) -> NetworkCosts:
        """Return the same costs with the `FASTEST` or the `SLOWEST` hash of each exchange, in place of the `MEDIAN`."""
        other = copy.copy(self)
        other._which = which
        return other

    def link_bytes(self, task: Task) -> dict[int, float]:
        """Return the bytes of a communication on each link that it uses."""
        return self._simulated(task)[1] if task.operation else {}

    def hash_seed(self, task: Task) -> int:
        """Return the seed of the routes' hash to which the bytes on links belong."""
        return self._simulated(task)[2] if task.operation else self._seed

    def busiest_link(self, tasks: Iterable[Task]) -> int | None:
        """Return the link out of a rank's machine that is longest busy with communications; None if all stay inside."""
        return busiest_link(self._network, ((self.link_bytes(task), 1) for task in tasks))

    def _simulated(self, task: Task) -> tuple[Times, dict[int, float], int]:
        from commsim.prediction.solve import solve

        key = (task.operation, task.group, task.size, task.parts)
        if key not in self._known:
            scenario, plan = self._ready(task)
            result = solve(scenario, [self.size(task)], plan=plan).results[0]
            used = np.flatnonzero(result.link_bytes)
            if result.hashes is not None:
                self._drawn.add(result.hashes.n)
            ends = (result.time,) * 2 if result.hashes is None else (result.hashes.fastest, result.hashes.slowest)
            self._known[key] = (
                (result.time, *ends),
                dict(zip(used.tolist(), result.link_bytes[used].tolist(), strict=True)),
                seed_of_hash([result], self._seed),
            )
        return self._known[key]

    def together(self, begun: Sequence[tuple[Task, float]]) -> list[float]:
        """Return the seconds of communications that share the network, each from its own start.

        Parameters
        ----------
        begun : sequence of (Task, float)
            Communications, and when all members of each begin, s.

        Raises
        ------
        InputError
            If what one sends depends on its tensors, or is compressed: such messages are simulated alone.
        """
        from commsim.jobs.background import BackgroundMessages
        from commsim.jobs.job_costs import shared_network
        from commsim.jobs.job_entries import JobEntry
        from commsim.jobs.shared_run import PlacedJobs
        from commsim.prediction.plans.dense import Plan
        from commsim.prediction.scenario import Wish

        plans, entries = [], []
        for k, (task, start) in enumerate(begun):
            plan = self._ready(task)[1]
            if not isinstance(plan, Plan) or task.parts:
                raise InputError(f"task {task.name!r} overlaps others, and only dense collectives share links")
            plans.append(plan)
            entries.append(JobEntry(f"{k}:{task.name}", plan.schedule.name, task.group, self.size(task), start))
        network = shared_network(self._network, plans)
        wish = Wish(framing=self._framing, seed=self._seed)

        def play(seed: int) -> tuple[Result, ...]:
            shared = PlacedJobs(network, tuple(entries), tuple(plans), BackgroundMessages.none(), None, seed)
            return shared.checked(shared.shared(wish)[0])

        times, n = times_over_hashes(network, self._seed, self._hashes, play)
        self._drawn |= {n} if n > 1 else set()
        return times[self._which]

    def n_transfers(self, task: Task) -> int:
        """Return how many transfers a communication has."""
        return int(self._ready(task)[1].schedules[0].n_transfers)

    def sent_by_each(self, task: Task) -> float:
        """Bytes that a member sends in the mean: what the schedule of a named algorithm sends, else the least."""
        from commsim.sparse.plan_compressed import CompressedPlan

        if task.operation not in self._named and self._compressor is None:
            return sent_by_each(task)
        (_, found), size = self._ready(task), self.size(task)
        if isinstance(found, CompressedPlan):
            gathered = 1 if found.schedule.operation == "all_reduce" else found.schedule.n_ranks
            messages = found.message_bytes(int(size) // ELEMENT)
            return sum(self._sent(found.prepared, float(gathered * n_bytes)) for n_bytes in messages)
        return self._sent(found, size) if task.operation in self._named else sent_by_each(task)

    @staticmethod
    def _sent(prepared: Plan, size: float) -> float:
        """Bytes that a rank sends in the mean."""
        from commsim.engine.flow import payload

        ready = prepared.at(size)
        n, transfers = ready.schedule.n_ranks, ready.schedule.expand()
        sent = payload(ready.plan, size) if ready.data is None else ready.data.messages(size)
        leaves = (transfers["src"] < n) & (transfers["src"] != transfers["dst"])  # copies inside a rank are not sent
        return float(sent[leaves].sum() / n)

    @property
    def network(self) -> Network:
        """Network on which they are."""
        return self._network

    @property
    def nodes(self) -> tuple[int, ...]:
        """Node of each rank."""
        return tuple(self._nodes.tolist())

    def job(self, task: Task) -> FlowJob:
        """Return the schedule of a communication, and where it runs.

        Raises
        ------
        InputError
            If what it sends depends on its tensors, or is compressed.
        """
        from commsim.prediction.plans.dense import Plan

        plan = self._ready(task)[1]
        if not isinstance(plan, Plan) or task.parts:
            raise InputError(f"task {task.name!r}: only dense collectives are played together, packet by packet")
        return plan.at(self.size(task)).paths.job

    def notes(self) -> tuple[Remark, ...]:
        """Return what was drawn, and chosen for the collectives that were simulated: where helpers sit, for one."""
        derived = (note for _, plan in self._planned.values() for note in plan.notes)
        return tuple(dict.fromkeys((*self._told, *self._chosen, *derived)))

    def _ready(self, task: Task) -> tuple[Scenario, Any]:
        """Return the scenario of a task's collective, and its plan."""
        from commsim.prediction.solve import plan_of

        by_tensor = self.is_sparse(task.operation) and bool(task.parts)
        key = (task.operation, task.group, by_tensor)
        if key not in self._planned:
            scenario = self._scenario(task, by_tensor)
            plan: Any = plan_of(scenario)
            if by_tensor:
                remarks = [note for note in plan.notes if note.code != "data"]
                of_each = Remark("data", f"{plan.schedule.name}: the density of each tensor")
                plan = dataclasses.replace(plan, notes=(*remarks, of_each))
            self._planned[key] = scenario, plan
        scenario, plan = self._planned[key]
        if by_tensor:
            plan.data.take_parts(task.parts)
        return scenario, plan

    def _scenario(self, task: Task, by_tensor: bool) -> Scenario:
        from commsim.prediction.read import scenario_of

        name = self._algorithm(task)
        if by_tensor:
            name = _with_density(name)
        if max(task.group) >= len(self._nodes):
            placed = f"{len(self._nodes)} ranks are placed"
            raise InputError(f"task {task.name!r}: rank {max(task.group)} has no place, {placed}")
        # all of the group are ranks; helpers go beside them
        where = Placement(self._nodes[list(task.group)])
        return scenario_of(
            name, self._network, operation=IN_PLACE_OF.get(task.operation, task.operation),
            n_ranks=len(task.group), placement=where, seed=self._seed, engine=self._engine, framing=self._framing,
            hashes=self._hashes, compressor=self._compressor if task.operation == COMPRESSED else None,
        )  # fmt: skip

    def _algorithm(self, task: Task) -> str:
        """Return the collective of a task: the one that is named, else what runs on the network's machines."""
        from commsim.prediction.collective_names import USUAL, usual_collective

        if task.operation in self._named:
            return self._named[task.operation]
        if task.operation == SEND:
            return MESSAGE
        if task.operation not in USUAL:
            known = ", ".join(sorted({*USUAL, *self._named, SEND}))
            raise InputError(f"task {task.name!r}: no algorithm for {task.operation!r}; known: {known}")
        textbook = self._engine == AUTO or (self._compressor is not None and task.operation == COMPRESSED)
        name, remarks = usual_collective(self._network, task.operation, textbook=textbook)
        self._chosen += [remarks] if remarks else []
        return name

    @property
    def has_sparse(self) -> bool:
        """Whether some collective sends less where data is not dense."""
        return any(map(self.is_sparse, self._named))

    def is_sparse(self, operation: str) -> bool:
        """Whether the collective of an operation sends less where data is not dense."""
        from collectives import COLLECTIVES

        name = split_spec(self._named[operation])[0] if operation in self._named else ""
        return name in COLLECTIVES and COLLECTIVES[name].metadata.get("sparse") is not None

    def size(self, task: Task) -> float:
        """Return the size to simulate; sparse data is whole elements."""
        size = 0.0 if task.operation == "barrier" else max(task.size, 1.0)  # an empty one takes its latencies
        elements = self.is_sparse(task.operation) or self._compressor is not None
        return ELEMENT * math.ceil(size / ELEMENT) if elements else size


def _with_density(spec: str) -> str:
    """Name a collective whose data has the densities of tensors; the one that it names here is never drawn."""
    raw = split_spec(spec)[1]
    if keys := {"density", "gradients"} & raw.keys():
        raise InputError(f"{spec}: tensors have densities of their own; leave out {' and '.join(sorted(keys))}=")
    return with_parameter(spec, "density=1")
