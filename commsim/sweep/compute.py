"""One point, a collective or a training iteration: from its parameters to a row of numbers.

What neighbouring points have in common is prepared once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from commsim.core.errors import InputError
from commsim.core.placement import PACKED
from commsim.core.remark import Remark
from commsim.prediction.options import COSTS
from commsim.prediction.scenario import ENGINES

from .emulated_program import FLAGS, check_program, program_row
from .emulated_program import KINDS as PROGRAM_KINDS
from .point_parameters import (
    IN_TIME,
    LATE,
    collective_spec,
    faults_of,
    network_costs_of,
    network_spec,
    scenario_options,
)
from .profiled_step import ProfiledStep
from .training_steps import KINDS as STEP_KINDS
from .training_steps import check_step, step_row

if TYPE_CHECKING:
    from commsim.core.network import Network
    from commsim.prediction.solve import Solution
    from commsim.training.task_graph import Task

ALGORITHMS = ("all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast", "reduce", "send_recv")

# Parameters of a training iteration, as the flags of ``commsim workload run``, and the kind of each.
KINDS = {
    f"workload.{key}": kind
    for key, kind in {
        "trace": "text", "graph": "text", "profile": "text", "ranks": "whole", "grow": "text", "kernels": "text",
        "workers": "whole", "policy": "text", "batch_time": "time",
        "compression": "number", "add_rate": "bandwidth", "value_bytes": "whole", "straggler": "number",
        "jitter": "number", "iterations": "whole", "bandwidth": "bandwidth", "latency": "time",
        **dict.fromkeys(ALGORITHMS, "text"),
    }.items()
} | STEP_KINDS | PROGRAM_KINDS  # fmt: skip

_ONLY_PROFILE = ("ranks", "grow", "kernels")
_ONLY_TRACE = ("policy", "batch_time", "compression", "add_rate", "value_bytes", "straggler", "jitter", "iterations")
_ONLY_PROGRAM = tuple(FLAGS)
_ENGINE = ("engine.name", *(f"engine.{cost}" for cost in COSTS))


def check_workload(parameters: Mapping[str, Any]) -> None:
    """Refuse parameters that contradict each other, or change nothing.

    Raises
    ------
    InputError
        Naming them.
    """
    own = {name.partition(".")[2] for name in parameters if name.startswith("workload.")}
    if len(own & {"trace", "graph", "profile", "model", "program"}) != 1:
        raise InputError(
            "workload needs one of a trace of gradients, the graph of an iteration, the profile of a program, a model"
            " and a program: workload.trace = FILE.csv"
        )
    if "trace" in own and "workers" not in own:
        raise InputError("workload.trace needs workload.workers")
    if not own & {"trace", "model"} and own & set(_ONLY_TRACE):
        raise InputError(f"workload.{min(own & set(_ONLY_TRACE))} needs workload.trace")
    if not own & {"profile", "model", "program"} and own & set(_ONLY_PROFILE):
        raise InputError(f"workload.{min(own & set(_ONLY_PROFILE))} needs workload.profile")
    on_network = "topology.name" in parameters
    values = {name: parameters[f"workload.{name}"] for name in own}
    if "model" in own:
        check_step(values, on_network=on_network)
    elif "program" in own:
        check_program(values, ALGORITHMS, on_network=on_network)
    elif own & set(_ONLY_PROGRAM):
        raise InputError(f"workload.{min(own & set(_ONLY_PROGRAM))} needs workload.program")
    elif on_network == ("bandwidth" in own):
        raise InputError(
            "workload needs exactly one of workload.bandwidth and topology.name: the cost of communication"
        )
    if "latency" in own and on_network:
        raise InputError("workload.latency needs workload.bandwidth: a topology already has latencies")
    for name in parameters:
        if name.startswith("collective."):
            raise InputError(f"{name} has no effect with [workload], which defines what is sent")
        if name.startswith("engine.") and (name not in _ENGINE or not on_network):
            raise InputError(f"{name} has no effect on a training iteration; known: {', '.join(_ENGINE)}")
        if not on_network and (name.startswith(("placement.", "topology.")) or name.partition(".")[2] in ALGORITHMS):
            raise InputError(f"{name} needs topology.name")
    if "topology.routing" in parameters:
        raise InputError("topology.routing cannot be set for [workload]; the topology has its own")
    if keys := [f"topology.{key}" for key in IN_TIME if f"topology.{key}" in parameters]:
        raise InputError(f"{keys[0]} is not modelled for a training iteration")


class Trainer:
    """Predicts iterations; keeps what communication costs as long as the network stays the same.

    Parameters
    ----------
    kinds : mapping of str to str
        Kind of every parameter of the sweep.
    """

    def __init__(self, kinds: Mapping[str, str]) -> None:
        self._kinds = kinds
        self._costs: tuple[Any, Callable[[Task], float]] | None = None
        self._profile = ProfiledStep()

    def row(self, seed: int, parameters: Mapping[str, Any], network: Network | None) -> dict[str, Any]:
        """Compute one point; columns as ``commsim workload run`` has them.

        Parameters
        ----------
        seed : int
            Seed of jitter, random placement and ECMP.
        parameters : mapping of str to value
            Parameters by table and key.
        network : Network, optional
            Network, if no bandwidth is given.

        Raises
        ------
        CommsimError
            If the point cannot be computed.
        """
        check_workload(parameters)
        own = {name.partition(".")[2]: v for name, v in parameters.items() if name.startswith("workload.")}
        if "profile" in own:
            whole, notes = self._profile.whole(own)
            costs = self._costs_of(seed, parameters, {**own, "workers": whole.world}, network)
            return self._profile.row(whole, costs, notes)
        if "model" in own:
            return step_row(seed, parameters, own, network)
        if "program" in own:
            return program_row(seed, parameters, own, self._kinds, ALGORITHMS)
        costs = self._costs_of(seed, parameters, own, network)
        return _graph(own, costs) if "graph" in own else _train(seed, own, costs)

    def _costs_of(
        self, seed: int, parameters: Mapping[str, Any], own: Mapping[str, Any], network: Network | None
    ) -> Callable[[Task], float]:
        from commsim.training.cost_by_formula import closed_form_costs
        from commsim.training.cost_by_simulation import network_costs

        if network is None:
            return closed_form_costs(own.get("latency", 0.0), own["bandwidth"])
        algorithms = {key: own[key] for key in ALGORITHMS if key in own}
        placement, engine = parameters.get("placement.strategy", PACKED), parameters.get("engine.name", ENGINES[0])
        key = (network, placement, own.get("workers"), tuple(algorithms.items()), engine, seed)
        if self._costs is None or self._costs[0][0] is not network or self._costs[0][1:] != key[1:]:
            self._costs = (key, network_costs(network, placement, n_ranks=own.get("workers"), algorithms=algorithms,
                                              engine=engine, seed=seed))  # fmt: skip
        return self._costs[1]


def _train(seed: int, own: Mapping[str, Any], costs: Callable[[Task], float]) -> dict[str, Any]:
    from commsim.training.backward_trace import read_backward_trace
    from commsim.training.data_parallel import sent_bytes, train
    from commsim.training.data_parallel_setting import TrainingSetting, free_addition

    trace = read_backward_trace(own["trace"], own.get("value_bytes", 4))
    if "batch_time" in own:
        trace = trace.with_compute_time(own["batch_time"])
    rate = own.get("add_rate")
    add_time = free_addition if rate is None else lambda n_bytes: n_bytes / rate
    setting = TrainingSetting(trace, own["workers"], costs, own.get("compression", 1.0), add_time)
    jitter = own.get("jitter", 0.0)
    slow = (own["straggler"],) if "straggler" in own else ()
    training = train(own.get("policy", "ddp"), setting, slowdowns=slow, jitter=jitter,
                  iterations=own.get("iterations", 100) if jitter else 1, seed=seed)  # fmt: skip
    return {
        "policy": training.policy,
        "workers": setting.n_workers,
        "iteration_s": training.iteration_time,
        "exposed_comm_s": training.exposed_communication,
        "scaling": training.scaling,
        "compute_s": training.alone,
        "batches": round(training.alone / trace.compute_time) if training.alone else 1,
        "sent_per_worker_B": sent_bytes(training.timeline.graph, time_of=costs),
    }


def _graph(own: Mapping[str, Any], costs: Callable[[Task], float]) -> dict[str, Any]:
    from commsim.training.cost_by_simulation import NetworkCosts
    from commsim.training.exchanges import ExchangesOnLinks
    from commsim.training.task_graph import read_graph, simulate_graph

    links = ExchangesOnLinks(costs) if isinstance(costs, NetworkCosts) else None
    timeline = simulate_graph(read_graph(own["graph"]), costs, links)
    time, exposed = timeline.iteration_time, timeline.exposed_communication
    return {"iteration_s": time, "exposed_comm_s": exposed, "scaling": (time - exposed) / time if time else 1.0}


class Bench:
    """Computes points one after the other, and keeps the last network and the last preparation.

    Parameters
    ----------
    kinds : mapping of str to str
        Kind of every parameter of the sweep.
    """

    def __init__(self, kinds: Mapping[str, str]) -> None:
        self._kinds = kinds
        self._network: tuple[Any, Network, list[Remark]] | None = None
        self._planned: tuple[Any, Any, Any] | None = None
        self._trainer = Trainer(self._kinds)

    def row(self, seed: int, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Compute one point.

        Parameters
        ----------
        seed : int
            Seed of all random draws.
        parameters : mapping of str to value
            Parameters by table and key, in SI units.

        Returns
        -------
        dict
            Columns of the results; a rate that does not exist is None. ``remarks`` are those of ``commsim run``; of a
            training iteration what was drawn and chosen for its network.

        Raises
        ------
        CommsimError
            If the point cannot be computed.
        """
        if any(name.startswith("workload.") for name in parameters):
            network, notes = self._network_of(seed, parameters) if "topology.name" in parameters else (None, [])
            row = self._trainer.row(seed, parameters, network)
            return row | {"remarks": [*row.get("remarks", ()), *(note.tree() for note in notes)]}
        from commsim.prediction.bounds.limited_by import limit_of, row_of_limit
        from commsim.report.titles import software_costs

        solution = self._solved(seed, parameters)
        (result,) = solution.results
        row = result.row()
        counters = {f"counters.{name}": float(value) for name, value in row.pop("counters").items()}
        costs = software_costs(solution.plan.network, has_own_costs=solution.plan.has_own_costs)
        limit = row_of_limit(limit_of(solution.plan, result))
        return row | limit | {"costs": costs, "remarks": [remark.tree() for remark in solution.said]} | counters

    def _solved(self, seed: int, parameters: Mapping[str, Any]) -> Solution:
        from commsim.prediction.read import changed_network, scenario_of
        from commsim.prediction.solve import plan_of, plan_of_whole, solve

        size = parameters.get("collective.size")
        if size is None:
            raise InputError("collective.size is missing: the size of the operation, such as 64MiB")
        network, notes = self._network_of(seed, parameters)
        asked = scenario_of(collective_spec(parameters, self._kinds), network, **scenario_options(parameters))
        wish, remarks = dataclasses.replace(asked.wish, seed=seed), (*notes, *asked.remarks)
        scenario = dataclasses.replace(asked, seed=seed, wish=wish, remarks=remarks)
        key = (seed, *((k, v) for k, v in parameters.items() if k not in LATE))
        if any(faults_of(parameters).values()):
            healthy = changed_network(network_spec(parameters, self._kinds), **network_costs_of(parameters))[0]
            scenario = dataclasses.replace(scenario, whole=healthy)
        if self._planned is None or self._planned[0] != key:
            self._planned = None  # before the next one is made: two large ones need not fit at once
            self._planned = (key, plan_of(scenario), plan_of_whole(scenario))
        return solve(scenario, [size], plan=self._planned[1], whole=self._planned[2])

    def forget(self) -> None:
        """Forget what was prepared."""
        self._network = self._planned = None
        self._trainer = Trainer(self._kinds)

    def _network_of(self, seed: int, parameters: Mapping[str, Any]) -> tuple[Network, list[Remark]]:
        """Return the network of a point, and what was drawn and chosen for it."""
        faults = faults_of(parameters)
        costs = network_costs_of(parameters)
        spec, drawn = network_spec(parameters, self._kinds), seed if any(faults.values()) else 0
        key = (spec, tuple(costs.items()), *faults.values(), drawn)
        if self._network is None or self._network[0] != key:
            from commsim.prediction.read import changed_network

            self._network = (key, *changed_network(spec, seed=seed, **faults, **costs))
        return self._network[1:]
