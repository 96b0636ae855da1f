"""What ``commsim run`` has predicted: parts, rows and results of one or several solutions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from commsim.extensions import house
from commsim.report.answer import Lines, Part
from commsim.report.table_of_run import RunRow, json_row, parts_of, rows_of
from commsim.report.titles import titles_beside

from .config import RunConfig

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from commsim.core.network import Network
    from commsim.core.result import Result
    from commsim.prediction.solve import Solution


@dataclass(frozen=True, slots=True, eq=False)
class Answered:
    """What was asked for, predicted.

    Parameters
    ----------
    parts : sequence of Part
        Tables and remarks.
    rows : sequence of mapping
        Rows of the JSON.
    results : sequence of Result
        All results.
    network : Network
        Network with its faults and costs.
    more : mapping
        Further keys of the JSON.
    solutions : sequence of Solution
        Solutions of single collectives.
    chosen : dict
        Flags with the values that were chosen where they were not given.
    """

    parts: Sequence[Part]
    rows: Sequence[Mapping[str, Any]]
    results: Sequence[Result]
    network: Network
    more: dict[str, Any] = field(default_factory=dict)
    solutions: Sequence[Solution] = ()
    chosen: dict[str, Any] = field(default_factory=dict)


class Rendering(NamedTuple):
    """What a flag of ``commsim run`` makes of an answer beside its table.

    Parameters
    ----------
    check : callable
        Function that refuses the value of the flag, such as a file that cannot be written, before the prediction.
    render : callable
        Function from the flags and the answer to further parts.
    """

    check: Callable[[Any], None]
    render: Callable[[RunConfig, Answered], list[Part]]


def answered_by(
    config: RunConfig, solutions: Sequence[Solution], said: Sequence[Part] = (), *, brief: bool = False
) -> Answered:
    """Return the table of each solution, below what is said of all.

    Parameters
    ----------
    config : RunConfig
        Flags.
    solutions : sequence of Solution
        Solutions of single collectives, or of one that groups run.
    said : sequence of Part
        Remarks on all of them.
    brief : bool
        Whether only ``-v`` shows the table of each.
    """
    parts, rows = [*said], list[RunRow]()
    common, titles = titles_beside(solutions) if len(solutions) > 1 else ("", [""])
    parts += [Lines((f"# {common}",))] if common else []
    for solution, title in zip(solutions, titles, strict=True):
        parts += parts_of(solution, config.datatype, config.group, config.verbose, title, brief)
        rows += rows_of(solution, config.datatype, config.group)
    first = solutions[0].scenario
    known = config.engine in house().reports
    more = house().reports[config.engine].more(first.wish) if known else {}
    return answered_of(config, parts, rows, first.network, solutions=solutions, more=more)


def answered_of(
    config: RunConfig, parts: Sequence[Part], rows: Sequence[RunRow], network: Network, **more: Any
) -> Answered:
    """Return what was predicted, of rows."""
    results, chosen = [row.result for row in rows], {"engine": config.engine or "flow"}
    return Answered(parts, [json_row(row) for row in rows], results, network, chosen=chosen, **more)


def resolved_network(network: Network) -> dict[str, Any]:
    """Return what a specification has become, with defaults, faults and costs: for the JSON of a prediction."""
    return {
        "name": network.name,
        "n_nodes": network.n_nodes,
        "n_links": network.n_links,
        "routing": network.routing,
        "bandwidth_Bps": _extremes(network.bandwidth),
        "latency_s": _extremes(network.latency),
        "overhead_s": float(network.overhead.max(initial=0.0)),
        "gamma_s_per_B": float(network.gamma.max(initial=0.0)),
        "hardware": network.hardware,
    }


def _extremes(values: NDArray[np.float64]) -> list[float]:
    """Return the smallest and the largest, or nothing of nothing."""
    return [float(values.min()), float(values.max())] if values.size else []
