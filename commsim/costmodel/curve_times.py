"""The curve of a cost model: times of an operation on some machines of a network over the size, from the engine."""

from __future__ import annotations

import dataclasses
import functools
import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from commsim.core.errors import InputError
from commsim.core.jit import compile_all
from commsim.core.network import Network
from commsim.core.network_queries import units
from commsim.core.operations import operation as known_operation
from commsim.prediction.collective_names import usual_collective
from commsim.prediction.inputs import load_network
from commsim.prediction.plans.dense import Plan
from commsim.prediction.plans.run import over_hashes
from commsim.prediction.read import scenario_of
from commsim.prediction.scenario import Scenario
from commsim.prediction.solve import plan_of
from commsim.prediction.work_plan import WorkPlan

from .refinement import SizeRefinement, Times, changes, random_sizes
from .trusted_times import TrustedTimes

# Significant digits of times in a file.
DIGITS = 6
# Rounds of random sizes after which a curve that is still wrong somewhere is given up, and rounds that must find none.
MAX_ROUNDS, MIN_GOOD = 40, 2
# Random sizes of a curve at which the engine itself computes where the closed form is trusted: spread over all sizes,
# and those where the curve is most wrong.
SPREAD, WORST = 8, 2
# Plans of sizes that are kept at once.
MAX_KEPT = 64
COLUMNS = ("time", "low", "high")
# Bytes that sizes of a curve are multiples of: NCCL moves no less at once. Between two, rests of a few bytes, which no
# tensor has, change the rounds of a call and so its time.
UNIT = 16


class CurveQuestion(NamedTuple):
    """What a curve is of, and how exact it is.

    Parameters
    ----------
    network : str
        Network as ``--topology`` takes it.
    operation : str
        Name of the operation.
    machines, gpus : int
        Number of machines, and of GPUs in each.
    faults : str
        Faults of a network as ``--fail`` takes them, separated by spaces.
    seed : int
        Seed of faults, of hashes and of the sizes that are checked.
    hashes : int or None
        Number of hashes of routes; the usual one if None.
    high : int, bytes
        Largest size.
    tolerance : float
        Largest relative error between sizes of the file.
    points : int
        Sizes at which the curve is checked at last.
    """

    network: str
    operation: str
    machines: int
    gpus: int
    faults: str
    seed: int
    hashes: int | None
    high: int
    tolerance: float
    points: int


class MadeCurve(NamedTuple):
    """A curve, and what is known of it.

    Parameters
    ----------
    curve : dict
        What the file has of it.
    errors : list of float
        Relative error at each size of the check, which no earlier step has seen.
    n_engine : int
        Sizes of the check at which the engine itself was asked; at the others its closed form was.
    n_calls : int
        Calls of the engine.
    release : str
        Library and release.
    sources : list of str
        What was assumed, drawn and chosen.
    routing : str
        Routing of the network.
    """

    curve: dict[str, Any]
    errors: list[float]
    n_engine: int
    n_calls: int
    release: str
    sources: list[str]
    routing: str


def make_curve(question: CurveQuestion) -> MadeCurve:
    """Compute a curve, and check it at random sizes.

    Raises
    ------
    InputError
        If the question is wrong, or the curve keeps the tolerance nowhere near.
    """
    compile_all()
    scenario = _scenario(question)
    plan = plan_of(scenario)
    engine, label = engine_times(scenario, plan), plan.choice_at if isinstance(plan, Plan) else lambda _: ""
    known = plan.unhindered if isinstance(plan, Plan) else lambda _: None
    low, high = 1, question.high // UNIT
    choices = changes(lambda n: label(n * UNIT), low, high)
    times = TrustedTimes(lambda n: engine(n * UNIT), lambda n: known(n * UNIT))
    times.examine([start for start, _ in choices], high)
    refined = _refined(times, choices, question)
    if refined is None:  # the closed form is not the engine's everywhere that it was taken to be
        times.trusted.clear()
        refined = _refined(times, choices, question)
    assert refined is not None
    found, sizes, checked = refined
    curve: dict[str, Any] = {
        "operation": question.operation, "machines": question.machines, "gpus": question.gpus,
        "faults": question.faults, "size": [n * UNIT for n in sizes],
    }  # fmt: skip
    columns = np.array([found.times(size) for size in sizes]).T
    for name, values in zip(COLUMNS, columns, strict=True):
        if name == "time" or not np.array_equal(values, columns[0]):
            curve[name] = [rounded(value) for value in values.tolist()]
    named = [[n * UNIT, name] for n, name in choices if name]
    release, n_ranks = plan.release if isinstance(plan, Plan) else "", question.machines * question.gpus
    curve |= {"choices": named} if named else {}
    curve["busbw_factor"] = known_operation(question.operation).busbw_factor(n_ranks)
    sources = [str(remark) for remark in (*scenario.remarks, *plan.notes)]
    errors, n_engine = [error for error, _ in checked], sum(size in times.asked for _, size in checked)
    return MadeCurve(curve, errors, n_engine, len(times.asked), release, sources, plan.network.routing)


def _refined(
    times: TrustedTimes, choices: list[tuple[int, str]], question: CurveQuestion
) -> tuple[SizeRefinement, list[int], list[tuple[float, int]]] | None:
    """Return the sizes of a curve with their check; None where a time that was trusted is not the engine's."""
    found = SizeRefinement(times, 1, question.high // UNIT, question.tolerance, choices)
    found.refine()
    checked = check_at_random(found, times, question)
    return None if checked is None else (found, *checked)


def check_at_random(
    found: SizeRefinement, times: TrustedTimes, question: CurveQuestion
) -> tuple[list[int], list[tuple[float, int]]] | None:
    """Look at random sizes, add what is missing, and look at new ones until rounds find nothing that is wrong.

    Returns
    -------
    list of int, list of (float, int)
        Sizes of the curve; relative errors at the random sizes of the last rounds, which none of these was taken from.
        None instead where the engine's time at one of :func:`engine_sizes` is another one than was trusted.

    Raises
    ------
    InputError
        If sizes are wrong again and again.
    """
    numbers = random.Random(f"{question.seed} {question.operation} {question.machines} {question.gpus}")
    n = -(-question.points // MIN_GOOD)
    few, good = found.fewest(), list[tuple[float, int]]()
    for _ in range(MAX_ROUNDS):
        sizes = random_sizes(numbers, n, found.low, found.high)
        errors = [(error_at(found, few, size), size) for size in sizes]
        wrong = [size for error, size in errors if error > question.tolerance]
        good += errors
        if not wrong and len(good) >= MIN_GOOD * n:
            is_engines = all(times.engine(size) == found.times(size) for size in engine_sizes(good))
            return (few, good) if is_engines else None
        if wrong:
            for size in wrong:
                found.add(size)
            few, good = found.fewest(), []
    raise InputError(
        f"{question.operation} on {question.machines} machines of {question.gpus}: lines miss its times by more than "
        f"{question.tolerance:.1%} after {MAX_ROUNDS} rounds; take a larger --tolerance"
    )


def engine_sizes(good: Sequence[tuple[float, int]]) -> list[int]:
    """Return sizes at which the engine itself is asked: as many of each range of sizes, and those of largest errors."""
    sizes = sorted(size for _, size in good)
    every = max(1, len(sizes) // SPREAD)
    return list(dict.fromkeys([*sizes[every // 2 :: every], *(size for _, size in sorted(good)[-WORST:])]))


def error_at(found: SizeRefinement, sizes: list[int], size: int) -> float:
    """Return the relative error at a size of the lines between sizes of a list."""
    i = int(np.searchsorted(sizes, size, "right")) - 1
    if sizes[i] == size:
        return 0.0
    return found.error(size, (sizes[i], sizes[i + 1]))


def engine_times(scenario: Scenario, plan: WorkPlan) -> Callable[[int], Times]:
    """Return the function from a size to time, low and high of the engine, in seconds; it keeps plans of few sizes."""
    kept: list[WorkPlan] = [plan]

    def times(size: int) -> Times:
        if isinstance(kept[0], Plan) and len(kept[0]._at) > MAX_KEPT:
            kept[0] = dataclasses.replace(kept[0], _at={})
        result = over_hashes(kept[0], float(size), scenario.wish).results[0]
        low, high = result.interval or (result.time, result.time)
        return result.time, low, high

    return times


def rounded(seconds: float) -> float:
    """Return a time of few digits."""
    return float(f"{seconds:.{DIGITS}g}")


def first_gpus(network: Network, machines: int, gpus: int) -> list[int]:
    """Return the first GPUs of the first machines, in the order of ranks.

    Raises
    ------
    InputError
        If there are not as many.
    """
    unit = units(network)[network.endpoints]
    order = list(dict.fromkeys(unit.tolist()))
    if machines > len(order):
        raise InputError(f"{network.name} has {len(order)} machines, got {machines}")
    nodes: list[int] = []
    for one in order[:machines]:
        inside = network.endpoints[unit == one]
        if gpus > len(inside):
            raise InputError(f"{network.name}: a machine has {len(inside)} GPUs, got {gpus}")
        nodes += inside[:gpus].tolist()
    return nodes


@functools.lru_cache(maxsize=4)
def network_named(text: str) -> Network:
    """Return a network, read once in a process."""
    return load_network(text)


def _scenario(question: CurveQuestion) -> Scenario:
    network = network_named(question.network)
    name, _ = usual_collective(network, question.operation)
    nodes = first_gpus(network, question.machines, question.gpus)
    return scenario_of(
        name, network, operation=question.operation, n_ranks=len(nodes), placement=nodes,
        fail=question.faults.split(), seed=question.seed, hashes=question.hashes,
    )  # fmt: skip
