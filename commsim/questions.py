"""Questions beside one prediction: how near the bound, which way, how far from reality, a page of figures."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from commsim.api import scenario_of
from commsim.core.placement import Placement
from commsim.core.result import Result
from commsim.formats.measured import read_measured
from commsim.real.comparison.above_line_rate import line_of_pairs, why_above
from commsim.real.comparison.comparison import Comparison, compare
from commsim.real.comparison.pairs import about_medians
from commsim.report.figure_tables import table_of_rows
from commsim.report.page.write import write_page
from commsim.report.predicted import Predicted
from commsim.report.repeated_runs import repeated_all, with_runs
from commsim.report.rows.study_files import read_study
from commsim.report.study import make_study
from commsim.scenario.advice import Advice, Question, advise
from commsim.scenario.collective_names import usual_collective
from commsim.scenario.given import NetworkLike, PlacementLike, SizeLike, network_of, placement_of, size_of, sizes_of
from commsim.scenario.solve import Solution
from commsim.scenario.solve import solve as solve_scenario
from commsim.synthesis import LowerBound, bound
from commsim.synthesis import synthesize as methods
from commsim.synthesis.synthesize import Synthesis


def lower_bound(
    operation: str,
    network: NetworkLike,
    *,
    placement: Sequence[int] | Sequence[str] | None = None,
    root: int = 0,
    anywhere: bool = False,
) -> LowerBound:
    """Bound the time of an operation from below, for every schedule that anyone may find.

    Parameters
    ----------
    operation : str
        Name of the operation, such as ``all_reduce``.
    network : str, Network or NetworkBuilder
        Network.
    placement : sequence of int or str, optional
        Node of each rank. Default: the endpoints.
    root : int
        Root, of operations that have one.
    anywhere : bool
        Whether servers on spare hosts and switches that add may help.

    Examples
    --------
    >>> import commsim as cs
    >>> least = cs.lower_bound("all_reduce", "star:n_hosts=4,bandwidth=100Gbps,latency=0us")
    >>> least.time(100e6) == 2 * 3 / 4 * 100e6 / 12.5e9
    True
    """
    where = network_of(network)
    return bound.lower_bound(operation, where, _nodes(placement, where), root=root, anywhere=anywhere)


def advise_for(
    size: SizeLike,
    network: NetworkLike,
    *,
    n_workers: int | None = None,
    density: float | Sequence[float] = (),
    block: int | None = None,
    n_servers: int | None = None,
    lossy: bool = False,
    programmable: bool = False,
    placement: str = "packed",
    seed: int = 0,
    assume_overhead: bool = True,
) -> Advice:
    """Rank all ways to sum a tensor on a network: dense, sparse, with servers, in switches.

    Parameters
    ----------
    size : float, bytes, or str
        Size of each worker's tensor, such as ``100MiB``.
    network : str, Network or NetworkBuilder
        Network.
    n_workers : int, optional
        Number of ranks. Default: all hosts.
    density : float or sequence of float
        Share of elements that are not zero. Default: dense data.
    block, n_servers, lossy, programmable, placement, seed
        Same as in :class:`commsim.scenario.advice.Question`.
    assume_overhead : bool
        Whether a message takes 1 us of its sender where the network gives none, as in ``commsim advise``.

    Examples
    --------
    >>> import commsim as cs
    >>> advice = cs.advise_for("1MiB", "star:n_hosts=4", programmable=True)
    >>> advice.ranked[0].result.time <= advice.ranked[-1].result.time
    True
    """
    where = network_of(network)
    shares = (density,) if isinstance(density, (int, float)) else tuple(density)
    workers = len(where.endpoints) if n_workers is None else n_workers
    question = Question(
        workers, size_of(size), shares, block=block, n_servers=n_servers, lossy=lossy, programmable=programmable,
        placement=placement, seed=seed,
    )  # fmt: skip
    return advise(question.on(where), where, assume_overhead=assume_overhead)


def compare_with(
    measured: str | PathLike[str],
    network: NetworkLike,
    collective: str | None = None,
    *,
    operation: str | None = None,
    n_ranks: int | None = None,
    placement: PlacementLike | None = None,
    engine: str = "",
) -> Comparison:
    """Predict what was measured, and set both side by side.

    Parameters
    ----------
    measured : path
        Output of nccl-tests, OSU's benchmarks or rccl-tests, JSON or CSV, as ``commsim compare`` reads them.
    network, placement, engine
        Same as in :func:`scenario_of`.
    collective : str, optional
        Algorithm. Default: what runs on such machines.
    operation : str, optional
        Operation of the measurements, where the file has several or does not say.
    n_ranks : int, optional
        Number of ranks, where the file does not say it.

    Raises
    ------
    InputError
        If the file has no measurement of the operation, or not of one number of ranks.
    """
    path, where, notes = fspath(measured), network_of(network), list[str]()
    rows = read_measured(path, operation=operation or "", n_ranks=n_ranks, notes=notes)
    notes += about_medians(rows)
    plans = []

    def predicted(operation: str, n: int | None, sizes: Sequence[float]) -> list[float]:
        spec, told = (collective, "") if collective else usual_collective(where, operation)
        if not collective:
            notes.append(told or f"{spec}: --collective names another algorithm")
        asked = scenario_of(spec, where, n_ranks=n, placement=placement, engine=engine)
        solution = solve_scenario(asked, sizes)
        notes.extend((*solution.derived, f"engine {asked.wish.engine}", *solution.remarks))
        plans.append(solution.plan)
        return [result.time for result in solution.results]

    found = compare(rows, path, predicted, n_ranks)
    reasons = why_above(found.pairs, line_of_pairs(found.pairs, plans[0]))
    return dataclasses.replace(found, notes=tuple(notes), reasons=reasons)


def synthesize(
    operation: str,
    network: NetworkLike,
    sizes: SizeLike | Sequence[SizeLike],
    *,
    placement: Sequence[int] | Sequence[str] | None = None,
    root: int = 0,
    time_limit: float | None = None,
) -> Synthesis:
    """Make the fastest schedules for an operation on a network, with a proven lower bound.

    Parameters
    ----------
    operation : str
        Name of the operation, such as ``all_reduce``.
    network : str, Network or NetworkBuilder
        Network.
    sizes : float or str, or a sequence of them
        Sizes, bytes or text such as ``64MiB``.
    placement : sequence of int or str, optional
        Node of each rank. Default: the endpoints.
    root : int
        Root, of operations that have one.
    time_limit : float, s, optional
        Time after which nothing new is tried.
    """
    where, wanted = network_of(network), [int(size) for size in sizes_of(sizes)]
    nodes = _nodes(placement, where)
    return methods.synthesize(operation, where, wanted, ranks=nodes, root=root, time_limit=time_limit)


def write_report(
    results: Result | Solution | Sequence[Result | Solution] | str | PathLike[str], path: str | PathLike[str]
) -> dict[str, str]:
    """Write one offline page with the figures of results.

    Parameters
    ----------
    results : Result or Solution, sequence of them, or path
        Predictions; or a file of ``commsim ... --json``, or the folder of a sweep.
    path : path
        Page to write, ``.html``.

    Returns
    -------
    dict of str to str
        Figures and runs in detail that the page lacks, and why.

    Raises
    ------
    InputError
        If a file holds no results, or the page cannot be written.

    Examples
    --------
    >>> import commsim as cs
    >>> one = cs.predict("ring_all_reduce", "star:n_hosts=4", "1MiB")
    >>> left_out = cs.write_report(one, "page.html")  # doctest: +SKIP
    """
    if isinstance(results, (str, PathLike)):
        return write_page(read_study(fspath(results))[0], fspath(path))
    every = [results] if isinstance(results, (Result, Solution)) else list(results)
    known = [pair for one in every for pair in _with_solution(one)]
    said = (text for solution, _ in known if solution is not None for text in solution.said)
    name = Path(path).stem
    study = make_study(name, table_of_rows([result.row() for _, result in known]), {}, remarks=tuple(said))
    again = [(solution, result) for solution, result in known if solution is not None]
    return write_page(with_runs(study, *repeated_all(again)), fspath(path))


def _with_solution(given: Result | Solution) -> list[tuple[Solution | None, Result]]:
    """Return results, each with its solution where that is known."""
    if isinstance(given, Solution):
        return [(given, result) for result in given.results]
    return [(given.solution if isinstance(given, Predicted) else None, given)]


def _nodes(placement: Any, where: Any) -> Any:
    """Return the node of each rank; None for the endpoints."""
    given, _ = placement_of(placement, where, None)
    return given.nodes if isinstance(given, Placement) else None
