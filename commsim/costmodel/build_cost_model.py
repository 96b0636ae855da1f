"""From a network to the text of its cost model: every curve in processes of its own, and what is said of all."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.network_queries import units
from commsim.core.operations import operation as known_operation
from commsim.core.worker_pool import worker_pool
from commsim.prediction.collective_names import usual_collective
from commsim.version import __version__

from .cost_model_file import text_of
from .curve_times import UNIT, CurveQuestion, MadeCurve, make_curve, network_named

OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all")
# Sources that a file lists, each once.
MAX_SOURCES = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class CostModelQuestion:
    """What a cost model is of.

    Parameters
    ----------
    network : str
        Network as ``--topology`` takes it.
    operations : sequence of str
        Operations; the usual five if empty.
    machines, gpus : sequence of int
        Numbers of machines, and of GPUs of each; the powers of two and all if empty.
    faults : sequence of str
        Faults of each case, as ``--fail`` takes them, separated by spaces; a case without any is always there.
    seed, hashes, high, tolerance
        Same as in :class:`commsim.costmodel.curve_times.CurveQuestion`.
    points : int
        Sizes at which all curves together are checked at last, at least ten of each.
    """

    network: str
    operations: Sequence[str] = ()
    machines: Sequence[int] = ()
    gpus: Sequence[int] = ()
    faults: Sequence[str] = ()
    seed: int = 0
    hashes: int | None = None
    high: int = 2**34
    tolerance: float = 0.01
    points: int = 2000


class MadeCostModel(NamedTuple):
    """A cost model.

    Parameters
    ----------
    text : str
        Text of the file.
    head : dict
        What the file has above its curves.
    curves : list of MadeCurve
        Curves, with what is known of each.
    """

    text: str
    head: dict[str, Any]
    curves: list[MadeCurve]


def curves_of(question: CostModelQuestion) -> list[CurveQuestion]:
    """Return what each curve of a cost model is of.

    Raises
    ------
    InputError
        If the network, an operation or a number is wrong, or no two ranks are left.
    """
    network = network_named(question.network)
    n_machines, n_gpus = shape_of(network)
    machines = question.machines or powers_up_to(n_machines)
    gpus = question.gpus or powers_up_to(n_gpus)
    operations = question.operations or OPERATIONS
    for name in operations:
        known_operation(name)
        usual_collective(network, name)
    cases = dict.fromkeys(("", *question.faults))
    wanted = [(name, m, g, case) for name in operations for case in cases for m in machines for g in gpus if m * g > 1]
    if not wanted:
        raise InputError("a cost model needs two ranks or more; name more --machines or --gpus")
    points = max(10, -(-question.points // len(wanted)))
    return [
        CurveQuestion(
            question.network, name, m, g, case, question.seed, question.hashes, question.high,
            question.tolerance, points,
        )
        for name, m, g, case in wanted
    ]  # fmt: skip


def build_cost_model(
    question: CostModelQuestion, jobs: int | None = None, over: Callable[[Sequence[Any]], Iterable[Any]] = iter
) -> MadeCostModel:
    """Compute all curves, and write the text of the file.

    Parameters
    ----------
    question : CostModelQuestion
        What it is of.
    jobs : int, optional
        Processes. Default: as many as there are processors.
    over : callable
        Wrapper of what is waited for that shows progress.
    """
    asked = curves_of(question)
    n_jobs = min(jobs or os.cpu_count() or 1, len(asked))
    made = [make_curve(one) for one in over(asked)] if n_jobs == 1 else _in_processes(asked, n_jobs, over)
    head = _head(question, made)
    return MadeCostModel(text_of(head, [one.curve for one in made]), head, made)


def _in_processes(asked: Sequence[CurveQuestion], n_jobs: int, over: Callable[..., Iterable[Any]]) -> list[MadeCurve]:
    largest_first = sorted(range(len(asked)), key=lambda i: -asked[i].machines * asked[i].gpus)
    made: dict[int, MadeCurve] = {}
    with worker_pool(n_jobs) as pool:
        waiting = [(i, pool.submit(make_curve, asked[i])) for i in largest_first]
        made.update((i, task.result()) for i, task in over(waiting))
    return [made[i] for i in range(len(asked))]


def _head(question: CostModelQuestion, made: Sequence[MadeCurve]) -> dict[str, Any]:
    """Return what stands above the curves."""
    errors = np.array([error for one in made for error in one.errors])
    sources = dict.fromkeys(text for one in made for text in one.sources)
    return {
        "commsim": __version__,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "network": question.network,
        "release": next((one.release for one in made if one.release), ""),
        "routing": made[0].routing,
        "faults": list(dict.fromkeys(str(one.curve["faults"]) for one in made)),
        "seed": question.seed,
        "hashes": question.hashes,
        "placement": "the first GPUs of the first machines",
        "units": {"size": "bytes", "time": "s", "low": "s", "high": "s"},
        "unit_size": UNIT,
        "largest_size": question.high // UNIT * UNIT,
        "certificate": {
            "tolerance": question.tolerance,
            "points": len(errors),
            "engine_points": sum(one.n_engine for one in made),
            "largest_error": float(f"{errors.max():.3g}"),
            "median_error": float(f"{np.median(errors):.3g}"),
            "engine_calls": sum(one.n_calls for one in made),
        },
        "sources": list(sources)[:MAX_SOURCES],
    }


def shape_of(network: Network) -> tuple[int, int]:
    """Return the number of machines, and the least number of GPUs that all of them have."""
    _, counts = np.unique(units(network)[network.endpoints], return_counts=True)
    return len(counts), int(counts.min())


def powers_up_to(n: int) -> list[int]:
    """Return the powers of two up to a number, and the number."""
    return sorted({1 << k for k in range(n.bit_length())} | {n})
