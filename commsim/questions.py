"""Questions beside one prediction: how near the bound, which way, how far from reality, a page of figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Unpack

from commsim.core.errors import InputError, wrong_kind
from commsim.core.files.opening import path_of
from commsim.core.placement import PACKED
from commsim.core.result import Result
from commsim.pages.page.write import check_page, write_page
from commsim.pages.repeated_runs import repeated_all, with_runs
from commsim.pages.rows.study_files import read_study
from commsim.pages.study import study_of_rows
from commsim.prediction.checks import check_names, checked, checked_all, text
from commsim.prediction.inputs import (
    NetworkLike,
    PlacementLike,
    SizeLike,
    network_of,
    placement_of,
    size_of,
)
from commsim.prediction.options import CostOptions, takes
from commsim.prediction.solve import Solution
from commsim.ranking.advice.advise import Advice
from commsim.ranking.advice.advise import advise_for as advise
from commsim.real.comparison.comparison import Comparison, compare, compare_files
from commsim.report.predicted import NO_SCENARIO, Predicted
from commsim.sweep.cheapest import Offers
from commsim.sweep.cheapest import cheapest_topologies as rank_topologies


def advise_for(
    size: SizeLike | None,
    network: NetworkLike,
    *,
    n_workers: int | None = None,
    density: float | Sequence[float] = (),
    block: int | None = None,
    pattern: str = "random",
    gradients: str | PathLike[str] | None = None,
    n_servers: int | None = None,
    lossy: bool = False,
    programmable: bool = False,
    placement: str = PACKED,
    routing: str | None = None,
    seed: int = 0,
    hashes: int | None = None,
    fail: Sequence[str] = (),
    scale: Sequence[str] = (),
    overhead: float | str | None = None,
    reduce_rate: float | str | None = None,
    software: str | None = None,
) -> Advice:
    """Rank all ways to sum a tensor on a network: dense, sparse, with servers, in switches.

    Parameters
    ----------
    size : float, bytes, or str, optional
        Size of each worker's tensor, such as ``100MiB``; None for that of `gradients`.
    network : str, Network or NetworkBuilder
        Network.
    n_workers : int, optional
        Number of ranks. Default: all hosts, or the number of gradients.
    density : float or sequence of float
        Share of elements that are not zero. Default: dense data.
    block, pattern, n_servers, lossy, programmable, placement, routing, seed, hashes
        Same as in :class:`commsim.ranking.advice.Question`.
    gradients : path, optional
        File or folder of real gradients in place of drawn data.
    fail, scale, overhead, reduce_rate, software
        Faults and costs of messages, as in :func:`scenario_of`.

    Returns
    -------
    Advice
        Ranked ways. Its methods ``crossover()`` and ``servers()`` predict more: the density from which on dense ways
        are faster, and the gain of CPU servers.

    Examples
    --------
    >>> import commsim as cs
    >>> advice = cs.advise_for("1MiB", "star:n_hosts=4", programmable=True)
    >>> advice.ranked[0].result.time <= advice.ranked[-1].result.time
    True
    """
    given = dict(locals())
    n_bytes, where = (None if size is None else size_of(size)), network_of(network)
    own = {"size", "network", "density", "gradients", "lossy", "programmable"}
    where_ranks = fspath(placement) if isinstance(placement, PathLike) else placement
    given["placement"] = text("packed")("placement", where_ranks)
    more = checked_all({name: value for name, value in given.items() if name not in own})
    return advise(
        where, n_bytes, densities=checked("density", density), lossy=lossy, programmable=programmable,
        gradients=None if gradients is None else fspath(gradients), **more,
    )  # fmt: skip


def cheapest_topologies(
    sweep: str | PathLike[str], folder: str | PathLike[str] | None = None, *, jobs: int | None = None,
    code: Sequence[str | Path] = (),
) -> Offers:  # fmt: skip
    """Find the cheapest topology of a sweep that keeps a goal, as ``commsim sweep cheapest`` does.

    Parameters
    ----------
    sweep : path
        File of a sweep with the tables ``[cost]`` and ``[goal]``.
    folder : path, optional
        Folder that keeps the results, or has some to continue with. Default: none.
    jobs : int, optional
        Number of worker processes. Default: all processors.
    code : sequence of path
        Files of Python that the sweep's file may name: own collectives and topologies.
    """
    where = None if folder is None else fspath(folder)
    return rank_topologies(str(path_of(sweep, "sweep")), where, jobs=jobs, code=code)


@takes(CostOptions)
def compare_with(
    measured: str | PathLike[str],
    network: NetworkLike | None = None,
    collective: str | PathLike[str] | None = None,
    *,
    predicted: str | PathLike[str] | None = None,
    operation: str | None = None,
    n_ranks: int | None = None,
    placement: PlacementLike | None = None,
    routing: str | None = None,
    engine: str = "",
    seed: int | None = None,
    hashes: int | None = None,
    in_place: bool = False,
    line_rate: float | str | None = None,
    **options: Unpack[CostOptions],
) -> Comparison:
    """Predict what was measured, and set both side by side.

    Parameters
    ----------
    measured : path
        Output of nccl-tests, OSU's benchmarks or rccl-tests, JSON or CSV, as ``commsim compare`` reads them.
    network : str, Network or NetworkBuilder, optional
        Network of the predictions; None with `predicted`.
    collective : str, optional
        Algorithm. Default: what runs on such machines.
    predicted : path, optional
        File of predictions, in place of a network.
    operation : str, optional
        Operation of the measurements, where the file has several or does not say.
    n_ranks : int, optional
        Number of ranks, where the file does not say it.
    placement, routing, engine, seed, hashes
        Same as in :func:`scenario_of`.
    in_place : bool
        Whether the times in place are compared. Default: those out of place.
    line_rate : float, bytes/s, or str, optional
        Rate of a rank's link, to explain a busbw above it. Default: that of the network's busiest link.
    **options
        Keywords of :class:`commsim.prediction.options.CostOptions`.

    Raises
    ------
    InputError
        If the file has no measurement of the operation, or not of one number of ranks.
    """
    asked: dict[str, Any] = {
        "operation": operation, "n_ranks": n_ranks, "in_place": in_place, "line_rate": line_rate,
    }  # fmt: skip
    check_names(options, CostOptions)
    prediction: dict[str, Any] = {
        "placement": placement, "routing": routing, "engine": engine, "seed": seed, "hashes": hashes, **options,
    }  # fmt: skip
    measured = str(path_of(measured, "measured"))
    path = fspath(collective) if isinstance(collective, PathLike) else collective
    spec: str | None = None if path is None else checked("collective", path)
    if (network is None) == (predicted is None):
        raise InputError("compare_with takes a network or a file of predictions: give one of the two")
    if network is None:
        for name in (name for name, value in prediction.items() if value):
            raise InputError(f"{name} goes with a network, not with a file of predictions")
        return compare_files(str(path_of(predicted, "predicted")), measured, spec, **asked)
    where = network_of(network)
    prediction["placement"], asked["n_ranks"] = placement_of(placement, where, n_ranks)
    return compare(measured, where, spec, **asked, **prediction)


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
        If there are no results, the page has another ending, or it cannot be written.

    Examples
    --------
    >>> import commsim as cs
    >>> one = cs.predict("ring_all_reduce", "star:n_hosts=4", "1MiB")
    >>> left_out = cs.write_report(one, "page.html")  # doctest: +SKIP
    """
    check_page(fspath(path))
    if isinstance(results, (str, PathLike)):
        return write_page(read_study(fspath(results))[0], fspath(path))
    several: list[Any] = list(results) if isinstance(results, Iterable) else [results]
    if not all(isinstance(item, (Result, Solution)) for item in several):
        raise wrong_kind("results", "a result of cs.predict or cs.solve, a list of them, or a path", results)
    every: list[Result | Solution] = several
    if not every:
        raise InputError("write_report needs at least one result, got none")
    known = [pair for one in every for pair in _with_solution(one)]
    remarks = (remark for solution, _ in known if solution is not None for remark in solution.said)
    name = Path(path).stem
    study = study_of_rows(name, [result.row() for _, result in known], {}, remarks=tuple(remarks))
    again = [(solution, result) for solution, result in known if solution is not None]
    runs, left_out = repeated_all(again)
    left_out |= {result.collective: NO_SCENARIO for solution, result in known if solution is None}
    return write_page(with_runs(study, runs, left_out), fspath(path))


def _with_solution(given: Result | Solution) -> list[tuple[Solution | None, Result]]:
    """Return results, each with its solution where that is known."""
    if isinstance(given, Solution):
        return [(given, result) for result in given.results]
    return [(given.solution if isinstance(given, Predicted) else None, given)]
