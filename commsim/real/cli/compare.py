"""``commsim compare [PREDICTED|HEALTHY] MEASURED``: times side by side, their errors, and the causes of slow ones."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from commsim.cli.flags import Verb, WithJson, flag, switched
from commsim.cli.run_flags import Prediction
from commsim.core.errors import InputError
from commsim.core.operations import OPERATIONS
from commsim.core.units import parse_bandwidth
from commsim.prediction.options import COSTS
from commsim.report.answer import Answer, Lines, Part, comments, remarks
from commsim.report.terminal import progress

if TYPE_CHECKING:
    from commsim.real.comparison.comparison import Comparison
    from commsim.real.comparison.pairs import Pair

EXAMPLES = {
    "compare": """
        commsim run ring_all_reduce --topology star:n_hosts=4 -b 1M -e 4M > a.txt
        commsim run ring_all_reduce --topology star:n_hosts=4,bandwidth=50Gbps -b 1M -e 4M --json b.json
        commsim compare b.json a.txt
        commsim compare a.txt --topology star:n_hosts=4 --collective ring_all_reduce
        commsim compare a.txt --topology star:n_hosts=4 --collective ring_all_reduce --line-rate 100Gbps
        commsim compare --busbw 196GB/s --operation all_reduce --topology dgx-h100@star:machines=2""",
}

# Flags of a prediction; a file of predictions has its own.
OF_PREDICTION = ("placement", "routing", "engine", "hashes", *COSTS)


class CompareConfig(Prediction, WithJson):
    """All flags of ``commsim compare``."""

    files: tuple[str, ...] = flag(
        "files", nargs="*", metavar="[PREDICTED|HEALTHY] MEASURED",
        help="tables of nccl-tests, OSU, commsim run or sweep, the NCCL inspector, a profile, or a CSV; with --topology"
        " the first of two is of healthy machines",
    )  # fmt: skip
    busbw: str | None = flag(
        metavar="RATE[,RATE]", help="averages of bus bandwidth over all sizes, in place of MEASURED"
    )
    operation: str | None = flag(
        choices=OPERATIONS,
        metavar="NAME",
        help="operation of the rows, if the file does not name it; if it does, only the rows of this operation",
    )
    in_place: bool = switched(help="compare the in-place times (default: out of place)")
    other_gpus: bool = switched(help="with --topology: accept a file that names GPUs of another generation")
    line_rate: str | None = flag(
        metavar="RATE", help="rate of a rank's link, to explain a busbw above it (default: the network's)"
    )
    plot: str | None = flag(metavar="FILE", help="draw both times and the errors: .svg or .png")
    report: str | None = flag(
        metavar="FILE.html", help="write a page: measured and expected values, interval, and what each cause predicts"
    )


def run(config: CompareConfig) -> Answer:
    """Set predicted and measured times, or two measured ones, side by side."""
    from commsim.real.comparison.healthy_rows import csv_rows

    _check_outputs(config)
    if len(config.files) > 2 - bool(config.busbw):
        raise InputError(f"give one file of measurements and at most one of predictions, got {len(config.files)}")
    if not config.files and not config.busbw:
        raise InputError("give a file of measurements, or --busbw")
    if config.topology is None:
        for name in config.given("report", "other_gpus"):
            raise InputError(
                f"{name} goes with --topology, whose machines have {'causes' if name == '--report' else 'GPUs'}"
            )
        return _of_files(config)
    healthy = config.files[0] if len(config.files) + bool(config.busbw) > 1 else None
    path = None if config.busbw else config.files[-1]
    rows = csv_rows(path)
    if config.busbw or (rows and not any(row.size and not row.healthy for row in rows)):
        return _of_numbers(config, path, healthy)
    return _with_topology(config, config.files[-1], healthy)


def _check_outputs(config: CompareConfig) -> None:
    """Refuse, before anything is read, a picture or a page that could not be written."""
    if config.plot:
        from commsim.pages.pictures.to_files import check_drawable

        check_drawable(config.plot)
    if config.report:
        from commsim.pages.page.write import check_page

        check_page(config.report)


def _prediction(config: CompareConfig) -> dict[str, Any]:
    """Return what a prediction is told of the flags."""
    given = {name: getattr(config, name) for name in OF_PREDICTION}
    return given | {"seed": config.seed or None, "n_ranks": config.ranks}


def _with_topology(config: CompareConfig, path: str, healthy: str | None) -> Answer:
    """Predict what was measured, beside healthy rows where there are some."""
    from commsim.ranking.tables_of_questions import parts_of_comparison
    from commsim.real.comparison.comparison import compare
    from commsim.real.comparison.healthy_rows import csv_rows, operation_of_collective
    from commsim.real.comparison.two_logs import beside, table_of_logs, title_of_logs

    assert config.topology is not None
    operation = config.operation
    if operation is None and config.collective and csv_rows(path):  # which names none
        operation = operation_of_collective(config.collective)
    comparison = compare(
        path, config.topology, config.collective, operation=operation, in_place=config.in_place,
        line_rate=config.line_rate, healthy=healthy, other_gpus=config.other_gpus,
        over=functools.partial(progress, what="predict"),
        **_prediction(config),
    )  # fmt: skip
    tables: list[Part] = []
    if comparison.healthy:
        predicted = {pair.measured.size: pair.predicted for pair in comparison.pairs}
        pairs = beside(comparison.healthy, [pair.measured for pair in comparison.pairs], predicted)
        runs = comparison.healthy_runs, comparison.n_runs
        tables.append(table_of_logs(pairs, title_of_logs(healthy or path, path, *runs, is_healthy=True)))
    title = f"{path} against {comparison.predictor}"
    return _answer(config, comparison, parts_of_comparison(comparison, title, healthy=tables))


def _of_files(config: CompareConfig) -> Answer:
    """Compare a file of predictions with measurements, or two files of measurements."""
    from commsim.formats.log_health import unhealthy
    from commsim.formats.measured import read_measured
    from commsim.ranking.tables_of_questions import parts_of_comparison
    from commsim.real.comparison.comparison import compare_files
    from commsim.real.comparison.two_logs import is_prediction, table_of_logs, two_logs

    if len(config.files) < 2:
        raise InputError("the prediction is a file, or --topology (and --collective): give one of the two")
    for name in config.given(*OF_PREDICTION):
        raise InputError(f"{name} goes with --topology, not with a file of predictions")
    a, b = config.files
    if not is_prediction(read_measured(a, operation=config.operation or "", n_ranks=config.ranks)):
        logs = two_logs(a, b, config.operation, config.ranks, in_place=config.in_place)
        pairs, faults = logs.pairs, [*logs.faults]
        lines = [unhealthy(faults)] if faults else []
        lines.append("with --topology A is taken for healthy, and the causes of what B lacks are ranked")
        rows, more = [pair.row() for pair in pairs], {"causes": [], "faults": faults}
        parts = [table_of_logs(pairs, logs.title), *comments(lines), *remarks(logs.notes)]
        return Answer(parts, rows, config.flags(), more)
    comparison = compare_files(
        a, b, config.collective, operation=config.operation, n_ranks=config.ranks, in_place=config.in_place,
        line_rate=config.line_rate,
    )  # fmt: skip
    return _answer(config, comparison, parts_of_comparison(comparison, f"{b} against {comparison.predictor}"))


def _of_numbers(config: CompareConfig, path: str | None, healthy: str | None) -> Answer:
    """Find the causes of bus bandwidths without a size."""
    from commsim.real.comparison.numbers import compare_numbers

    for name in config.given("plot", "report", "in_place", "line_rate"):
        raise InputError(f"{name} has no effect on a bus bandwidth without a size")
    if config.other_gpus and not config.files:
        raise InputError("--other-gpus has no effect on --busbw without a file: a bus bandwidth names no GPU")
    assert config.topology is not None
    rates = [parse_bandwidth(text, "--busbw") for text in (config.busbw or "").split(",") if text]
    found = compare_numbers(
        config.topology, config.collective, config.operation, rates=rates, path=path, healthy=healthy,
        other_gpus=config.other_gpus, **_prediction(config),
    )  # fmt: skip
    row = {"measured_busbw_Bps": list(found.measured), "healthy_busbw_Bps": list(found.healthy),
           "predicted_busbw_Bps": found.expected}  # fmt: skip
    more = {"causes": found.diagnosis.rows()}
    return Answer(comments([found.line, *found.diagnosis.lines]), [row], config.flags(), more)


def _answer(config: CompareConfig, comparison: Comparison, parts: list[Part]) -> Answer:
    """Add the picture and the page that were asked for."""
    diagnosis = comparison.diagnosis
    if config.plot:
        _draw_comparison(comparison.pairs, config.plot)
        parts.append(Lines([f"{config.plot}: written"]))
    if config.report:
        if diagnosis is None:
            raise InputError(f"{config.report}: not written, no size is slow and no causes were asked for")
        diagnosis.write(_pairs_of(comparison), comparison.predictor, config.report)
        parts.append(Lines([f"{config.report}: written"]))
    more: dict[str, Any] = {
        "summary": {name: getattr(comparison.summary, name) for name in comparison.summary.__slots__},
        "faults": comparison.faults,
        "n_runs": comparison.n_runs,
        "explanations": [str(reason) for reason in comparison.reasons],
        "causes": [] if diagnosis is None else diagnosis.rows(),
    }
    chosen = {"collective": comparison.collective or config.collective}
    return Answer(parts, [pair.row() for pair in comparison.pairs], config.flags() | chosen, more)


def _pairs_of(comparison: Comparison) -> list[Pair]:
    """Return the pairs of the operation that causes are of."""
    operation = comparison.pairs[0].measured.operation
    return [pair for pair in comparison.pairs if pair.measured.operation == operation]


def _draw_comparison(pairs: Sequence[Pair], path: str) -> None:
    """Draw the pairs that have a size and times.

    Raises
    ------
    InputError
        If no size has both times, or no picture can be written to `path`.
    """
    from commsim.pages.pictures.paint import write_picture
    from commsim.pages.plots.chart import ChartAxis, Series, draw_chart

    series = []
    for operation in sorted({pair.measured.operation for pair in pairs}):
        rows = sorted(
            (
                p
                for p in pairs
                if p.measured.operation == operation and p.measured.size and p.measured.time and p.predicted
            ),
            key=lambda p: p.measured.size,
        )
        if not rows:
            continue
        prefix = operation if len({pair.measured.operation for pair in pairs}) > 1 else ""
        for name, points in (
            ("measured", [p.measured.time for p in rows]),
            ("predicted", [p.predicted for p in rows]),
        ):
            xy = tuple((p.measured.size, time * 1e6) for p, time in zip(rows, points, strict=True))
            series.append(Series(f"{prefix} {name}".strip(), xy))
        for name in ("low", "high"):
            spread = [(p.measured.size, float(getattr(p.measured, name) or 0) * 1e6) for p in rows]
            if all(time > 0 for _, time in spread):
                series.append(Series(f"{prefix} {name}".strip(), tuple(spread), dashed=True))
    if not series:
        raise InputError("nothing to draw: no size has both times")
    picture = draw_chart("predicted and measured", ChartAxis("size (B)", True), ChartAxis("time (us)", True), series)
    write_picture(picture, path)


COMMANDS = {"compare": Verb(CompareConfig, run)}
