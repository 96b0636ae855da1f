"""``commsim compare [PREDICTED] MEASURED``: both times and the error by size; bus bandwidths above the line rate."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from commsim.cli.flags import Verb, WithJson, flag, switched
from commsim.cli.run.config import Prediction
from commsim.core.errors import InputError
from commsim.core.operations import OPERATIONS
from commsim.report.answer import Answer, Lines
from commsim.report.terminal import progress

if TYPE_CHECKING:
    from commsim.real.comparison.pairs import Pair

EXAMPLES = {
    "compare": """
        commsim run ring_all_reduce --topology star:n_hosts=4 -b 1M -e 4M > a.txt
        commsim run ring_all_reduce --topology star:n_hosts=4,bandwidth=50Gbps -b 1M -e 4M --json b.json
        commsim compare b.json a.txt
        commsim compare a.txt --topology star:n_hosts=4 --collective ring_all_reduce
        commsim compare a.txt --topology star:n_hosts=4 --collective ring_all_reduce --line-rate 100Gbps""",
}

# Flags of a prediction; a file of predictions has its own.
OF_PREDICTION = ("placement", "routing", "engine", "hashes", "overhead", "recv_overhead", "reduce_rate", "software")


class CompareConfig(Prediction, WithJson):
    """All flags of ``commsim compare``."""

    files: tuple[str, ...] = flag(
        "files", nargs="+", metavar="[PREDICTED] MEASURED",
        help="tables of nccl-tests, OSU, commsim run or sweep, the NCCL inspector, or a profile",
    )  # fmt: skip
    operation: str | None = flag(
        choices=OPERATIONS,
        metavar="NAME",
        help="operation of the rows, if the file does not name it; if it does, only the rows of this operation",
    )
    in_place: bool = switched(help="compare the in-place times (default: out of place)")
    line_rate: str | None = flag(
        metavar="RATE", help="rate of a rank's link, to explain a busbw above it (default: the network's)"
    )
    plot: str | None = flag(metavar="FILE", help="draw both times and the errors: .svg or .png")


def run(config: CompareConfig) -> Answer:
    """Set predicted and measured times side by side."""
    from commsim.ranking.tables_of_questions import parts_of_comparison
    from commsim.real.comparison.comparison import compare, compare_files

    if len(config.files) > 2:
        raise InputError(f"give one file of measurements and at most one of predictions, got {len(config.files)}")
    if (len(config.files) == 2) == (config.topology is not None):
        raise InputError("the prediction is a file, or --topology (and --collective): give one of the two")
    options: dict[str, Any] = {
        "operation": config.operation, "n_ranks": config.ranks, "in_place": config.in_place,
        "line_rate": config.line_rate,
    }  # fmt: skip
    if config.topology is not None:
        given = {name: getattr(config, name) for name in OF_PREDICTION}
        comparison = compare(
            config.files[0], config.topology, config.collective, seed=config.seed or None,
            over=functools.partial(progress, what="predict"), **options, **given,
        )  # fmt: skip
    else:
        for name in config.given(*OF_PREDICTION):
            raise InputError(f"{name} goes with --topology, not with a file of predictions")
        comparison = compare_files(config.files[0], config.files[1], config.collective, **options)
    parts = parts_of_comparison(comparison, f"{config.files[-1]} against {comparison.predictor}")
    if config.plot:
        _draw_comparison(comparison.pairs, config.plot)
        parts.append(Lines([f"{config.plot}: written"]))
    more: dict[str, Any] = {
        "summary": {name: getattr(comparison.summary, name) for name in comparison.summary.__slots__},
        "explanations": [str(reason) for reason in comparison.reasons],
    }
    chosen = {"collective": comparison.collective or config.collective}
    return Answer(parts, [pair.row() for pair in comparison.pairs], config.flags() | chosen, more)


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
