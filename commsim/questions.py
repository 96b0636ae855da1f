"""Questions beside one prediction: how near the bound, which way, how far from reality, a page of figures."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from commsim.api import scenario_of
from commsim.core.errors import InputError
from commsim.core.result import Result
from commsim.real.comparison.comparison import Comparison, compare, compare_files
from commsim.report.page.write import write_page
from commsim.report.predicted import Predicted
from commsim.report.rows.study_files import read_study
from commsim.report.simulated_run import simulate_run
from commsim.report.study import study_of_rows
from commsim.scenario.advice import Advice
from commsim.scenario.advice import advise_for as advise
from commsim.scenario.given import (
    NetworkLike,
    PlacementLike,
    SizeLike,
    network_of,
    placement_of,
    seconds_of,
    size_of,
    sizes_of,
)
from commsim.scenario.read import network_of as with_options
from commsim.scenario.scenario import Wish
from commsim.sweep.cheapest import Offers
from commsim.sweep.cheapest import cheapest_topologies as rank_topologies
from commsim.synthesis import LowerBound
from commsim.synthesis.cost_of_faults import synthesize_for
from commsim.synthesis.made_schedules import MAX_MESSAGES
from commsim.synthesis.over_bound import OverBound, bound_of
from commsim.synthesis.over_bound import over_bound as bounded
from commsim.synthesis.synthesize import Synthesis

# Results that a page shows in detail.
MAX_RUNS = 4


def lower_bound(
    operation: str,
    network: NetworkLike,
    *,
    n_ranks: int | None = None,
    placement: PlacementLike | None = None,
    seed: int | None = None,
    fail: Sequence[str] = (),
    scale: Sequence[str] = (),
    root: int = 0,
    anywhere: bool = False,
) -> LowerBound:
    """Bound the time of an operation from below, for every schedule that anyone may find.

    Parameters
    ----------
    operation : str
        Name of the operation, such as ``all_reduce``.
    network, n_ranks, placement, seed, fail, scale
        Same as in :func:`scenario_of`.
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
    asked = scenario_of("", network, n_ranks=n_ranks, placement=placement, seed=seed, fail=fail, scale=scale)
    return bound_of(asked, operation, root=root, anywhere=anywhere)


def over_bound(
    operation: str,
    network: NetworkLike,
    sizes: SizeLike | Sequence[SizeLike],
    *,
    n_ranks: int | None = None,
    placement: PlacementLike | None = None,
    seed: int | None = None,
    fail: Sequence[str] = (),
    scale: Sequence[str] = (),
    engine: str = "flow",
    algorithms: Sequence[str] = (),
    named: Sequence[str] = (),
) -> OverBound:
    """Predict the algorithms of an operation, and compare their times with the lower bound, as ``commsim bound`` does.

    Parameters
    ----------
    operation : str
        Name of the operation, such as ``all_reduce``.
    network, n_ranks, placement, seed, fail, scale, engine
        Same as in :func:`scenario_of`.
    sizes : float or str, or a sequence of them
        Sizes, bytes or text such as ``64MiB``.
    algorithms, named
        Same as in :func:`commsim.rank`.

    Examples
    --------
    >>> import commsim as cs
    >>> found = cs.over_bound("all_gather", "star:n_hosts=4,latency=0us", "64MiB", algorithms=["ring_all_gather"])
    >>> [round(one.times_bound, 3) for one in found.ratios]
    [1.0]
    """
    where = network_of(network)
    asked = scenario_of(
        "", where, n_ranks=n_ranks, placement=placement, seed=seed, fail=fail, scale=scale, engine=engine
    )
    whole = where if fail or scale else None
    wanted = [int(size) for size in sizes_of(sizes)]
    return bounded(asked, operation, wanted, whole=whole, algorithms=algorithms, named=named)


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
    placement: str = "packed",
    routing: str | None = None,
    seed: int = 0,
    fail: Sequence[str] = (),
    scale: Sequence[str] = (),
    overhead: float | str | None = None,
    reduce_rate: float | str | None = None,
    software: str | None = None,
    assume_overhead: bool = True,
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
    block, pattern, n_servers, lossy, programmable, placement, routing, seed
        Same as in :class:`commsim.scenario.advice.Question`.
    gradients : path, optional
        File or folder of real gradients in place of drawn data.
    fail, scale, overhead, reduce_rate, software
        Faults and costs of messages, as in :func:`scenario_of`.
    assume_overhead : bool
        Whether a message takes 1 us of its sender where neither the network, `overhead` nor `software` gives any, as in
        ``commsim advise``.

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
    shares = (density,) if isinstance(density, (int, float)) else tuple(density)
    own = ("size", "network", "density", "gradients")
    more = {name: value for name, value in given.items() if name not in own}
    return advise(where, n_bytes, densities=shares, gradients=None if gradients is None else fspath(gradients), **more)


def cheapest_topologies(
    sweep: str | PathLike[str], folder: str | PathLike[str] | None = None, *, jobs: int | None = None
) -> Offers:
    """Find the cheapest topology of a sweep that keeps a goal, as ``commsim advise --sweep`` does.

    Parameters
    ----------
    sweep : path
        File of a sweep with the tables ``[cost]`` and ``[goal]``.
    folder : path, optional
        Folder that keeps the results, or has some to continue with. Default: none.
    jobs : int, optional
        Number of worker processes. Default: all processors.
    """
    return rank_topologies(fspath(sweep), None if folder is None else fspath(folder), jobs=jobs)


def compare_with(
    measured: str | PathLike[str],
    network: NetworkLike | None = None,
    collective: str | None = None,
    *,
    predicted: str | PathLike[str] | None = None,
    operation: str | None = None,
    n_ranks: int | None = None,
    placement: PlacementLike | None = None,
    routing: str | None = None,
    engine: str = "",
    seed: int | None = None,
    overhead: float | str | None = None,
    recv_overhead: float | str | None = None,
    reduce_rate: float | str | None = None,
    software: str | None = None,
    in_place: bool = False,
    line_rate: float | str | None = None,
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
    placement, routing, engine, seed, overhead, recv_overhead, reduce_rate, software
        Same as in :func:`scenario_of`.
    in_place : bool
        Whether the times in place are compared. Default: those out of place.
    line_rate : float, bytes/s, or str, optional
        Rate of a rank's link, to explain a busbw above it. Default: that of the network's busiest link.

    Raises
    ------
    InputError
        If the file has no measurement of the operation, or not of one number of ranks.
    """
    asked: dict[str, Any] = {
        "operation": operation, "n_ranks": n_ranks, "in_place": in_place, "line_rate": line_rate,
    }  # fmt: skip
    options: dict[str, Any] = {
        "placement": placement, "routing": routing, "engine": engine, "seed": seed, "overhead": overhead,
        "recv_overhead": recv_overhead, "reduce_rate": reduce_rate, "software": software,
    }  # fmt: skip
    if (network is None) == (predicted is None):
        raise InputError("compare_with takes a network or a file of predictions: give one of the two")
    if network is None:
        for name in (name for name, value in options.items() if value):
            raise InputError(f"{name} goes with a network, not with a file of predictions")
        return compare_files(fspath(predicted or ""), fspath(measured), collective, **asked)
    where = network_of(network)
    options["placement"], asked["n_ranks"] = placement_of(placement, where, n_ranks)
    return compare(fspath(measured), where, collective, **asked, **options)


def synthesize(
    operation: str,
    network: NetworkLike,
    sizes: SizeLike | Sequence[SizeLike],
    *,
    n_ranks: int | None = None,
    placement: PlacementLike | None = None,
    seed: int | None = None,
    fail: Sequence[str] = (),
    scale: Sequence[str] = (),
    overhead: float | str | None = None,
    recv_overhead: float | str | None = None,
    reduce_rate: float | str | None = None,
    software: str | None = None,
    root: int = 0,
    time_limit: float | str | None = None,
    max_messages: int = MAX_MESSAGES,
    textbook: bool = True,
    running: str | None = None,
) -> Synthesis:
    """Make the fastest schedules for an operation on a network, with a proven lower bound.

    Parameters
    ----------
    operation : str
        Name of the operation, such as ``all_reduce``.
    network, n_ranks, placement, seed, fail, scale, overhead, recv_overhead, reduce_rate, software
        Same as in :func:`scenario_of`.
    sizes : float or str, or a sequence of them
        Sizes, bytes or text such as ``64MiB``.
    root : int
        Root, of operations that have one.
    time_limit : float, s, or str, optional
        Time after which nothing new is tried.
    max_messages : int
        Number of messages above which schedules are not tried.
    textbook : bool
        Whether registered collectives are tried too.
    running : str, optional
        Schedule that runs without the faults. Default: the fastest registered collective.
    """
    where = network_of(network)
    costs: dict[str, Any] = {
        "overhead": overhead, "recv_overhead": recv_overhead, "reduce_rate": reduce_rate, "software": software,
    }  # fmt: skip
    asked = scenario_of(
        "", where, n_ranks=n_ranks, placement=placement, seed=seed, fail=fail, scale=scale, **costs
    )  # fmt: skip
    limit = None if time_limit is None else seconds_of(time_limit, "time_limit")
    return synthesize_for(
        asked, operation, [int(size) for size in sizes_of(sizes)],
        whole=with_options(where, **costs)[0] if fail or scale else None, running=running, root=root,
        time_limit=limit, max_messages=max_messages, textbook=textbook,
    )  # fmt: skip


def write_report(results: Result | Sequence[Result] | str | PathLike[str], path: str | PathLike[str]) -> dict[str, str]:
    """Write one offline page with the figures of results.

    Parameters
    ----------
    results : Result or sequence of Result, or path
        Predictions; or a file of ``commsim ... --json``, or the folder of a sweep.
    path : path
        Page to write, ``.html``.

    Returns
    -------
    dict of str to str
        Figures that the page lacks, and why.

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
    every = [results] if isinstance(results, Result) else list(results)
    study = study_of_rows(Path(path).stem, [one.row() for one in every], {})
    runs = [
        simulate_run(one.collective, one.prepared, one.size, Wish(one.engine))
        for one in every
        if isinstance(one, Predicted) and one.prepared is not None and one.engine in ("flow", "packet")
    ]
    return write_page(dataclasses.replace(study, runs=tuple(runs[:MAX_RUNS])), fspath(path))
