"""``commsim compare [PREDICTED] MEASURED``: errors by size, and why a bus bandwidth is above the line rate.

The table of a comparison: both times of every size, and the error as a number and as a bar.

The picture of a comparison: measured and predicted times against size, and between what they were spread.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from commsim.core.errors import InputError
from commsim.core.operations import OPERATIONS
from commsim.core.units import parse_bandwidth
from commsim.report.table import print_remarks, print_table, progress, write_results

from .flags.outputs import check_written
from .run.options import add_prediction_arguments, load_costed_network, prepare_as_asked

if TYPE_CHECKING:
    from commsim.comparison.above_line_rate import Line
    from commsim.comparison.pairs import Pair, Summary
    from commsim.core.result import Result
    from commsim.formats.measured import Measured
    from commsim.run import Prepared

COLUMNS = ["operation", "size(B)", "measured(us)", "low", "high", "predicted(us)", "error", "busbw(GB/s)",
           "predicted(GB/s)", ""]  # fmt: skip
FULL_BAR = 0.5
"""Relative error at which the bar beside a row is full."""


def print_comparison(title: str, pairs: Sequence[Pair], alone: Sequence[Measured], summary: Summary) -> None:
    """Print all pairs, how far apart they are, and what was measured but not predicted."""
    print_table(COLUMNS, [_cells(pair) for pair in pairs], title)
    print(
        f"# error: median {summary.median:.1%}, 90th percentile {summary.p90:.1%}, worst {summary.worst:.1%} at "
        f"{summary.worst_size:.0f} B; predictions are {abs(summary.bias):.1%} too "
        f"{'long' if summary.bias > 0 else 'short'} in the middle"
    )
    within = [pair.is_within for pair in pairs if pair.is_within is not None]
    if within:
        print(f"# {sum(within)} of {len(within)} predictions lie between low and high")
    if alone:
        print(f"# without a prediction: {', '.join(f'{row.operation} {row.size:.0f} B' for row in alone[:6])}"
              + (f" and {len(alone) - 6} more" if len(alone) > 6 else ""))  # fmt: skip


def _cells(pair: Pair) -> list[str]:
    m = pair.measured
    rate = m.busbw
    predicted = "-" if rate is None or not pair.predicted else f"{rate * m.time / pair.predicted / 1e9:.3f}"
    return [
        m.operation,
        f"{m.size:.0f}",
        f"{m.time * 1e6:.2f}",
        *("-" if value is None else f"{value * 1e6:.2f}" for value in (m.low, m.high)),
        f"{pair.predicted * 1e6:.2f}",
        "-" if pair.error is None else f"{pair.error:+.1%}",
        "-" if rate is None else f"{rate / 1e9:.3f}",
        predicted,
        _bar(pair.error or 0.0),
    ]


def _bar(error: float) -> str:
    """Draw the error as text: to the left of the middle when the prediction is too short."""
    length = round(min(1.0, abs(error) / FULL_BAR) * 8)
    left, right = ("<" * length, "") if error < 0 else ("", ">" * length)
    return f"{left.rjust(8)}|{right.ljust(8)}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this verb."""
    add = parser.add_argument
    add("files", nargs="+", metavar="[PREDICTED] MEASURED",
        help="tables of nccl-tests, OSU, commsim run or sweep, the NCCL inspector, or a profile")  # fmt: skip
    add_prediction_arguments(parser)
    add("--operation", choices=OPERATIONS, metavar="NAME", help="of a file that does not say it; else only its rows")
    add("--in-place", action="store_true", help="compare times in place (out of place)")
    add("--line-rate", metavar="RATE", help="of a rank's link, to explain busbw above it (the network's)")
    add("--plot", metavar="FILE", help="draw both times and the errors: .svg or .png")
    add("--json", metavar="FILE", help="also write the results as JSON")


def main(args: argparse.Namespace) -> int:
    """Compare and print."""
    from commsim.comparison.pairs import one_per_size, pair_up, several_algorithms, summarise
    from commsim.formats.measured import read_measured

    if len(args.files) > 2:
        raise InputError(f"one file that was measured, and at most one that was predicted, got {len(args.files)}")
    if (len(args.files) == 2) == (args.topology is not None):
        raise InputError("the prediction is a file, or --topology and --collective: give one of the two")
    check_written([args.json, args.plot], [*args.files, args.topology])
    notes: list[str] = []
    rows = read_measured(args.files[-1], operation=args.operation or "", n_ranks=args.ranks, notes=notes)
    notes += [f"measured times of {operation} are medians over several algorithms: {', '.join(names)}"
              for operation, names in several_algorithms(rows).items()]  # fmt: skip
    measured = one_per_size(rows, True if args.in_place else None)
    predict, run = _prediction(args, measured, notes)
    pairs, alone = pair_up(measured, predict)
    if not pairs:
        raise InputError(f"{args.files[0]} has none of the {len(alone)} sizes of {args.files[-1]}")
    summary = summarise(pairs)
    print_remarks(notes)
    print_comparison(f"{args.files[-1]} against {_predictor(args)}", pairs, alone, summary)
    reasons = _explanations(args, pairs, run)
    print_remarks(reasons)
    if args.plot:
        draw_comparison(pairs, args.plot)
        print(f"{args.plot}: written")
    if args.json:
        config = {k: v for k, v in vars(args).items() if k != "json"}
        more = {"summary": {name: getattr(summary, name) for name in summary.__slots__}, "explanations": reasons}
        write_results(args.json, config, [pair.row() for pair in pairs], **more)
    return 0


def _prediction(
    args: argparse.Namespace, measured: Sequence[Measured], notes: list[str]
) -> tuple[Callable[[Measured], float | None], Prepared | None]:
    """Return what gives a prediction for a measurement, and the collective that was prepared for it, if one was."""
    from commsim.comparison.pairs import of_one_algorithm, one_per_size, predictions_of
    from commsim.formats.measured import read_measured

    if len(args.files) == 2:
        for flag in ("overhead", "recv_overhead", "reduce_rate", "routing"):
            if getattr(args, flag) is not None:
                raise InputError(f"--{flag.replace('_', '-')} goes with --topology, not with a file of predictions")
        rows = read_measured(args.files[0], operation=args.operation or "", n_ranks=args.ranks, notes=notes)
        chosen = of_one_algorithm(rows, args.collective)
        predicted = one_per_size(chosen)
        if len(predicted) < sum(row.in_place == predicted[0].in_place for row in chosen):
            notes.append(f"{args.files[0]}: has several predictions of a size; their median is taken")
        return predictions_of(predicted, measured), None
    if args.collective is None:
        raise InputError("--topology needs --collective, such as --collective ring_all_reduce")
    ready, found = _predict_all(args, measured)
    notes += ready.notes
    return lambda row: found[row.operation, row.size].time if (row.operation, row.size) in found else None, ready


def _predict_all(
    args: argparse.Namespace, measured: Sequence[Measured]
) -> tuple[Prepared, dict[tuple[str, float], Result]]:
    """Predict --collective at the sizes that were measured."""
    ranks = {row.n_ranks for row in measured if row.n_ranks is not None}
    if len(ranks) > 1 and args.ranks is None:
        raise InputError(f"{args.files[-1]} has measurements of {sorted(ranks)} ranks; choose, as in --ranks 8")
    n_ranks = args.ranks or next(iter(ranks), None)
    ready = prepare_as_asked(args, load_costed_network(args), n_ranks)
    operation = ready.schedule.operation
    sizes = sorted({row.size for row in measured if row.operation == operation and row.size > 0})
    if not sizes:
        theirs = ", ".join(sorted({row.operation for row in measured}))
        raise InputError(f"nothing to compare: {args.collective} is {operation}, {args.files[-1]} has {theirs}")
    options: dict[str, Any] = {"engine": args.engine, "seed": args.seed}
    return ready, {(operation, size): ready.predict(size, **options) for size in progress(sizes, args.collective)}


def _predictor(args: argparse.Namespace) -> str:
    return str(args.files[0]) if len(args.files) == 2 else f"{args.collective} on {args.topology}, engine {args.engine}"


def _explanations(args: argparse.Namespace, pairs: Sequence[Pair], ready: Prepared | None) -> list[str]:
    """Explain the largest busbw that is above the line, if there is a line and one is."""
    from commsim.comparison.above_line_rate import explain_above

    line = _line(args, pairs, ready)
    if line is None:
        return []
    fastest = max(pairs, key=lambda pair: pair.measured.busbw or 0.0)
    return list(explain_above(fastest.measured, line))


def _line(args: argparse.Namespace, pairs: Sequence[Pair], ready: Prepared | None) -> Line | None:
    from commsim.comparison.above_line_rate import Line, line_of_prediction

    if ready is not None:
        size = max(pair.measured.size for pair in pairs)
        found = line_of_prediction(ready, ready.predict(size, engine="flow", seed=args.seed))
        if args.line_rate is None:
            return found
        import dataclasses

        rate = parse_bandwidth(args.line_rate, "--line-rate")
        return dataclasses.replace(found, rate=rate, source="--line-rate", is_given=True) if found is not None else None
    if args.line_rate is None:
        return None
    return Line(parse_bandwidth(args.line_rate, "--line-rate"), "--line-rate", is_given=True)


def draw_comparison(pairs: Sequence[Pair], path: str) -> None:
    """Draw the pairs that have a size and times.

    Raises
    ------
    InputError
        If there is none, or no picture can be written to `path`.
    """
    from commsim.report.chart import Axis, Series, draw_chart
    from commsim.report.paint import write_picture

    series = []
    for operation in sorted({pair.measured.operation for pair in pairs}):
        mine = sorted(
            (
                p
                for p in pairs
                if p.measured.operation == operation and p.measured.size and p.measured.time and p.predicted
            ),
            key=lambda p: p.measured.size,
        )
        if not mine:
            continue
        prefix = operation if len({pair.measured.operation for pair in pairs}) > 1 else ""
        titles = tuple(f"{p.measured.size:.0f} B: {p.error:+.1%}" for p in mine)
        for name, points in (
            ("measured", [p.measured.time for p in mine]),
            ("predicted", [p.predicted for p in mine]),
        ):
            xy = tuple((p.measured.size, time * 1e6) for p, time in zip(mine, points, strict=True))
            series.append(Series(f"{prefix} {name}".strip(), xy, titles=titles))
        for name in ("low", "high"):
            spread = [(p.measured.size, float(getattr(p.measured, name) or 0) * 1e6) for p in mine]
            if all(time > 0 for _, time in spread):
                series.append(Series(f"{prefix} {name}".strip(), tuple(spread), dashed=True))
    if not series:
        raise InputError("there is nothing to draw: no size has both times")
    picture = draw_chart("predicted and measured", Axis("size (B)", True), Axis("time (us)", True), series)
    write_picture(picture, path)
