"""``commsim run --operation all_reduce``: every algorithm of an operation, ranked, and the crossover sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from commsim.core.errors import InputError
from commsim.core.units import format_size
from commsim.report.table import print_remarks, print_table

from .predicted import predict_and_print

if TYPE_CHECKING:
    from commsim.core.network import Network
    from commsim.core.result import Result
    from commsim.run import Prepared
    from commsim.run.ranking import Crossover, Ranking

    from .config import Config

COLUMNS = ["size(B)", "rank", "algorithm", "time(us)", "algbw(GB/s)", "busbw(GB/s)", "times_best"]


def run_operation(
    config: Config, network: Network, sizes: list[int], options: dict[str, Any]
) -> tuple[list[Result], dict[str, Any]]:
    """Predict what --operation and --algorithm ask for, and print it; --collective adds to what is compared.

    Parameters
    ----------
    config : Config
        All flags.
    network : Network
        Where.
    sizes : list of int, bytes
        At which the algorithms are compared.
    options : dict
        Of a prediction.

    Returns
    -------
    list of Result, dict
        And what else the JSON has.

    Raises
    ------
    InputError
        If the operation is unknown, an algorithm is one of another operation, or none can run.
    """
    if config.operation is None:
        raise InputError("--algorithm needs --operation, such as --operation all_reduce")
    from commsim.run.good_parameters import with_partitions_that_fit

    operation = config.operation
    assume = assumes_overhead(config)
    runnable, left_out = _prepare(
        config, operation, network, lambda prepared: prepared.predict(sizes[0], **options), assume
    )
    more: dict[str, Any] = {"left_out": left_out}
    if config.algorithm not in (None, "best"):
        results = []
        for spec, prepared in runnable.items():
            results += predict_and_print(spec, prepared, sizes, options, **config.shown)
        return results, more
    runnable = {spec: with_partitions_that_fit(prepared) for spec, prepared in runnable.items()}
    results, ranking = _rank(operation, runnable, sizes, options, network, assume)
    return results, more | ranking


def is_ranking(config: Config) -> bool:
    """Whether algorithms are compared, and not shown one by one."""
    return config.operation is not None and config.algorithm in (None, "best")


def assumes_overhead(config: Config) -> bool:
    """Whether a ranking is asked for, and no cost of messages is given."""
    return is_ranking(config) and (config.overhead, config.recv_overhead, config.software) == (None, None, None)


def _prepare(
    config: Config, operation: str, network: Network, probe: Callable[[Prepared], object], assume: bool
) -> tuple[dict[str, Prepared], dict[str, str]]:
    from commsim.run.ranking import algorithms_for, prepare_all, require_operation, with_assumed_overhead

    every = algorithms_for(operation, network)
    given = [] if config.algorithm in (None, "best", "all") else [config.algorithm]
    own = config.collective
    for spec in (*given, *own):
        require_operation(spec, operation)
    specs = list(dict.fromkeys((*(given or every), *own)))
    try:
        runnable, left_out = prepare_all(
            specs, network, n_ranks=config.ranks, probe=probe, named=(*given, *own), assume_overhead=assume,
            **config.placing,
        )  # fmt: skip
    except InputError as error:
        if not config.synthesized or given or own:
            raise
        runnable, left_out = {}, {"all registered algorithms": str(error)}
    for spec in (*given, *own):  # what was asked for by name must run
        if spec in left_out:
            raise InputError(left_out[spec])
    print_remarks(f"left out: {spec}: {reason}" for spec, reason in left_out.items())
    if config.synthesized:
        from commsim.synthesis.ready import NAME, prepare_synthesized

        placing: dict[str, Any] = {"n_ranks": config.ranks, "placement": config.placement, "seed": config.seed or 0}
        costly = with_assumed_overhead(network) if assume else network
        runnable[NAME] = prepare_synthesized(operation, costly, **placing)
        probe(runnable[NAME])
    return runnable, left_out


def _rank(
    operation: str,
    runnable: Mapping[str, Prepared],
    sizes: list[int],
    options: Mapping[str, Any],
    network: Network,
    assume: bool,
) -> tuple[list[Result], dict[str, Any]]:
    """Rank, and print the ranking and the crossovers.

    Returns
    -------
    list of Result, dict
        All results, by size and the fastest first; what else the JSON has: ``ranking`` and ``crossovers``.
    """
    from commsim.run.ranking import (
        about_assumed,
        priced_apart,
        rank_algorithms,
        with_assumed_overhead,
        without_overhead,
    )

    ranking = rank_algorithms(list(runnable), sizes, lambda name, size: runnable[name].predict(size, **options))
    print_remarks(dict.fromkeys(note for prepared in runnable.values() for note in prepared.notes))
    first = next(iter(runnable.values()))
    title = f"{operation} on {first.network.name}, {first.schedule.n_ranks} ranks, engine {options['engine']}"
    print_table(COLUMNS, _rows(ranking), title, ["algbw(GB/s)", "busbw(GB/s)"])
    is_assumed = assume and with_assumed_overhead(network) is not network
    said = about_assumed(runnable) if is_assumed else without_overhead(network, sizes)
    remarks = (*said, *priced_apart(runnable, sizes[0]))
    print_remarks((*_sentences(ranking), *remarks))
    rows = [
        {"size_B": size, "algorithms": [{"algorithm": name, "time_s": r.time, "times_best": _ratio(r, order[0][1])}
                                        for name, r in order]}
        for size, order in ranking.by_size.items()
    ]  # fmt: skip
    crossovers = [{"low_B": c.low, "high_B": c.high, "before": c.before, "after": c.after} for c in ranking.crossovers]
    results = [result for order in ranking.by_size.values() for _, result in order]
    return results, {"ranking": rows, "crossovers": crossovers}


def _rows(ranking: Ranking) -> list[list[str]]:
    return [
        [
            f"{size}",
            f"{i + 1}",
            name,
            f"{r.time * 1e6:.2f}",
            f"{r.algbw / 1e9:.3f}",
            f"{r.busbw / 1e9:.3f}",
            f"{_ratio(r, order[0][1]):.2f}x",
        ]
        for size, order in ranking.by_size.items()
        for i, (name, r) in enumerate(order)
    ]


def _sentences(ranking: Ranking) -> list[str]:
    """Say which algorithm is best from which size on."""
    sizes = list(ranking.by_size)
    if not ranking.crossovers:
        best = ranking.by_size[sizes[0]][0][0]
        return [f"best: {best}" + (" at every size" if len(sizes) > 1 else "")]
    lines = [f"best: {ranking.crossovers[0].before} from {format_size(sizes[0])}"]
    return lines + [_sentence(crossover) for crossover in ranking.crossovers]


def _sentence(crossover: Crossover) -> str:
    between = f"crossover between {crossover.low} and {crossover.high} bytes"
    return f"best: {crossover.after} from about {format_size(crossover.high)} ({between})"


def _ratio(result: Result, best: Result) -> float:
    return result.time / best.time if best.time else 1.0
