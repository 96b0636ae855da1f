"""Questions beside one prediction: which algorithm, how near the bound, which way, how far from reality."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any

from commsim.advice import Advice, Question, advise
from commsim.comparison.pairs import Pair, Summary, one_per_size, pair_up, summarise
from commsim.core.errors import InputError
from commsim.core.frames import frame_of
from commsim.core.placement import Placement
from commsim.core.units import parse_size
from commsim.formats.measured import read_measured
from commsim.run.good_parameters import with_partitions_that_fit
from commsim.run.ranking import Ranking, algorithms_for, prepare_all, rank_algorithms
from commsim.run.usual import usual_collective
from commsim.synthesis import LowerBound, bound
from commsim.synthesis import synthesize as methods
from commsim.synthesis.synthesize import Synthesis

from .given import NetworkLike, PlacementLike, SizeLike, network_of, placement_of, size_of
from .predicted import AUTO, predict


@dataclass(frozen=True, slots=True)
class Comparison:
    """Predicted beside measured times.

    Parameters
    ----------
    pairs : tuple of Pair
        One for each size that has both.
    summary : Summary
        Their errors.
    """

    pairs: tuple[Pair, ...]
    summary: Summary

    def to_frame(self, library: str | None = None) -> Any:
        """Return a row for each size, as a data frame."""
        return frame_of((pair.row() for pair in self.pairs), library)


def rank(
    operation: str,
    network: NetworkLike,
    sizes: SizeLike | Sequence[SizeLike],
    *,
    n_ranks: int | None = None,
    placement: PlacementLike | None = None,
    routing: str | None = None,
    engine: str = "flow",
    seed: int = 0,
    assume_overhead: bool = True,
) -> Ranking:
    """Rank all algorithms of an operation on a network, by size.

    Parameters
    ----------
    operation : str
        Such as ``all_reduce``.
    network : str, Network or NetworkBuilder
        Where.
    sizes : float or str, or a sequence of them
        At which, bytes or text such as ``64MiB``.
    n_ranks, placement, routing, engine, seed
        As in :func:`predict`; no ``auto``, since times of two engines are not compared.
    assume_overhead : bool
        Whether a message takes 1 us of its sender where the network gives none, as in ``commsim run --operation``.

    Raises
    ------
    InputError
        If the operation is unknown, or no algorithm can run.

    Examples
    --------
    >>> import commsim as cs
    >>> ranking = cs.rank("broadcast", "star:n_hosts=8,latency=1us", ["1KiB", "64MiB"])
    >>> [(name, ranking.by_size[2**26][0][0]) for name, _ in ranking.by_size[1024][:1]]
    [('binomial_broadcast', 'chain_broadcast')]
    """
    where = network_of(network)
    given, n_ranks = placement_of(placement, where, n_ranks)
    every = [sizes] if isinstance(sizes, (int, float, str)) else list(sizes)
    wanted = sorted({int(size_of(size)) for size in every})
    if not wanted:
        raise InputError("sizes must name at least one size, such as '64MiB'")
    placing: dict[str, Any] = {"placement": given, "routing": routing, "seed": seed}
    options: dict[str, Any] = {"engine": engine, "seed": seed}
    ready, _ = prepare_all(
        algorithms_for(operation, where), where, n_ranks=n_ranks,
        probe=lambda prepared: prepared.predict(wanted[0], **options), assume_overhead=assume_overhead, **placing,
    )  # fmt: skip
    ready = {spec: with_partitions_that_fit(prepared) for spec, prepared in ready.items()}
    return rank_algorithms(list(ready), wanted, lambda spec, size: ready[spec].predict(size, **options))


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
        Such as ``all_reduce``.
    network : str, Network or NetworkBuilder
        Where.
    placement : sequence of int or str, optional
        Node of each rank; the endpoints unless given.
    root : int
        Of operations that have one.
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
    given, _ = placement_of(placement, where, None)
    nodes = given.nodes if isinstance(given, Placement) else None
    return bound.lower_bound(operation, where, nodes, root=root, anywhere=anywhere)


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
        Of each worker's tensor, such as ``100MiB``.
    network : str, Network or NetworkBuilder
        Where.
    n_workers : int, optional
        Default: all hosts.
    density : float or sequence of float
        Share of elements that are not zero; nothing is known of it unless given.
    block, n_servers, lossy, programmable, placement, seed
        As in :class:`commsim.advice.Question`.
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
    engine: str = AUTO,
) -> Comparison:
    """Predict what was measured, and set both side by side.

    Parameters
    ----------
    measured : path
        Output of nccl-tests, OSU's benchmarks or rccl-tests, JSON or CSV, as ``commsim compare`` reads them.
    network : str, Network or NetworkBuilder
        Where it was measured.
    collective : str, optional
        Algorithm; what runs on such machines unless given.
    operation : str, optional
        Of the measurements, where the file has several or does not say.
    n_ranks : int, optional
        Where the file does not say it.
    placement, engine
        As in :func:`predict`.

    Raises
    ------
    InputError
        If the file has no measurement of the operation, or not of one number of ranks.
    """
    where, path = network_of(network), fspath(measured)
    rows = one_per_size(read_measured(path, operation=operation or "", n_ranks=n_ranks, notes=[]))
    operations = sorted({row.operation for row in rows})
    if len(operations) != 1:
        raise InputError(f"{path} has {', '.join(operations)}: choose one with operation=")
    ranks = {row.n_ranks for row in rows} - {None}
    if n_ranks is None and len(ranks) > 1:
        raise InputError(f"{path} has measurements of {sorted(r for r in ranks if r)} ranks: choose with n_ranks=")
    n = n_ranks or next(iter(ranks), None)
    spec = collective or usual_collective(where, operations[0])[0]
    times = {
        row.size: predict(spec, where, row.size, n_ranks=n, placement=placement, engine=engine).time
        for row in rows
        if row.size > 0
    }
    pairs, _ = pair_up(rows, lambda row: times.get(row.size))
    if not pairs:
        raise InputError(f"{path} has no size above 0")
    return Comparison(pairs, summarise(pairs))


def synthesize(
    operation: str,
    network: NetworkLike,
    sizes: SizeLike | Sequence[SizeLike],
    *,
    placement: Sequence[int] | Sequence[str] | None = None,
    root: int = 0,
    time_limit: float | None = None,
) -> Synthesis:
    """Make the fastest schedules for an operation on a network, with a proof of how fast any can be.

    Parameters
    ----------
    operation : str
        Such as ``all_reduce``.
    network : str, Network or NetworkBuilder
        Where.
    sizes : float or str, or a sequence of them
        For which, bytes or text such as ``64MiB``.
    placement : sequence of int or str, optional
        Node of each rank; the endpoints unless given.
    root : int
        Of operations that have one.
    time_limit : float, s, optional
        After which nothing new is tried.
    """
    where = network_of(network)
    given, _ = placement_of(placement, where, None)
    every = [sizes] if isinstance(sizes, (int, float, str)) else list(sizes)
    wanted = [int(parse_size(size, "sizes") if isinstance(size, str) else size) for size in every]
    nodes = given.nodes if isinstance(given, Placement) else None
    return methods.synthesize(operation, where, wanted, ranks=nodes, root=root, time_limit=time_limit)
