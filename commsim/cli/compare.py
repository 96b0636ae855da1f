"""``commsim compare [PREDICTED] MEASURED``: both times and the error by size; bus bandwidths above the line rate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from commsim.core.errors import InputError
from commsim.core.operations import OPERATIONS
from commsim.core.units import parse_bandwidth
from commsim.report.answer import Answer, Lines, remarks
from commsim.report.terminal import progress

from .flags import Verb, WithJson, flag, switched
from .flags.outputs import check_written
from .run.config import Prediction

if TYPE_CHECKING:
    from commsim.core.result import Result
    from commsim.formats.measurement import Measured
    from commsim.real.comparison.above_line_rate import Line
    from commsim.real.comparison.pairs import Pair
    from commsim.scenario import Plan


class Config(Prediction, WithJson):
    """All flags of ``commsim compare``."""

    files: tuple[str, ...] = flag(
        "files", nargs="+", metavar="[PREDICTED] MEASURED",
        help="tables of nccl-tests, OSU, commsim run or sweep, the NCCL inspector, or a profile",
    )  # fmt: skip
    operation: str | None = flag(
        choices=OPERATIONS,
        metavar="NAME",
        help="operation of the rows, if the file does not name it; otherwise: only the rows of this operation",
    )
    in_place: bool = switched(help="compare the in-place times (default: out of place)")
    line_rate: str | None = flag(
        metavar="RATE", help="rate of a rank's link, to explain a busbw above it (default: the network's)"
    )
    plot: str | None = flag(metavar="FILE", help="draw both times and the errors: .svg or .png")


def run(config: Config) -> Answer:
    """Set predicted and measured times side by side."""
    from commsim.formats.measured import read_measured
    from commsim.real.comparison.pairs import one_per_size, pair_up, several_algorithms, summarise
    from commsim.report.tables_of_questions import parts_of_pairs

    if len(config.files) > 2:
        raise InputError(f"give one file of measurements and at most one of predictions, got {len(config.files)}")
    if (len(config.files) == 2) == (config.topology is not None):
        raise InputError("the prediction is a file, or --topology (and --collective): give one of the two")
    check_written([config.json, config.csv, config.plot], [*config.files, config.topology])
    notes: list[str] = []
    rows = read_measured(config.files[-1], operation=config.operation or "", n_ranks=config.ranks, notes=notes)
    notes += [f"measured times of {operation} are medians over several algorithms: {', '.join(names)}"
              for operation, names in several_algorithms(rows).items()]  # fmt: skip
    measured = one_per_size(rows, True if config.in_place else None)
    if len(config.files) == 1:
        config = _with_collective(config, measured, notes)
    predict, run = _prediction(config, measured, notes)
    pairs, alone = pair_up(measured, predict)
    if not pairs:
        raise InputError(f"{config.files[0]} has none of the {len(alone)} sizes of {config.files[-1]}")
    summary = summarise(pairs)
    reasons = _explanations(config, pairs, run)
    title = f"{config.files[-1]} against {_predictor(config)}"
    parts = [*remarks(notes), *parts_of_pairs(pairs, summary, title, alone), *remarks(reasons)]
    if config.plot:
        _draw_comparison(pairs, config.plot)
        parts.append(Lines([f"{config.plot}: written"]))
    more: dict[str, Any] = {
        "summary": {name: getattr(summary, name) for name in summary.__slots__},
        "explanations": reasons,
    }
    return Answer(parts, [pair.row() for pair in pairs], config.flags(), more)


def _with_collective(config: Config, measured: Sequence[Measured], notes: list[str]) -> Config:
    """Put the usual collective of the measured operation where none is named, and the usual engine."""
    import dataclasses

    from commsim.scenario.collective_names import spelled_out, usual_collective
    from commsim.scenario.inputs import load_network

    operations = sorted({row.operation for row in measured if row.size > 0})
    operation = config.operation or (operations[0] if len(operations) == 1 else None)
    if config.collective is not None:
        spec = spelled_out(config.collective, operation)
    elif operation is None:
        raise InputError(f"{config.files[-1]} has {', '.join(operations)}: choose, as in --operation {operations[0]}")
    else:
        spec, told = usual_collective(load_network(config.topology or ""), operation)
        notes.append(told or f"{spec}: --collective names another algorithm")
    return dataclasses.replace(config, collective=spec)


def _prediction(
    config: Config, measured: Sequence[Measured], notes: list[str]
) -> tuple[Callable[[Measured], float | None], Plan | None]:
    """Return what gives a prediction for a measurement, and the collective that was prepared for it, if one was."""
    from commsim.formats.measured import read_measured
    from commsim.real.comparison.pairs import of_one_algorithm, one_per_size, predictions_of

    if len(config.files) == 2:
        for name in config.given("overhead", "recv_overhead", "reduce_rate", "routing"):
            raise InputError(f"{name} goes with --topology, not with a file of predictions")
        rows = read_measured(config.files[0], operation=config.operation or "", n_ranks=config.ranks, notes=notes)
        chosen = of_one_algorithm(rows, config.collective)
        predicted = one_per_size(chosen)
        if len(predicted) < sum(row.in_place == predicted[0].in_place for row in chosen):
            notes.append(f"{config.files[0]}: has several predictions of a size; their median is taken")
        return predictions_of(predicted, measured), None
    prepared, results = _predict_all(config, measured, notes)
    return lambda row: results[row.operation, row.size].time if (row.operation, row.size) in results else None, prepared


def _predict_all(
    config: Config, measured: Sequence[Measured], notes: list[str]
) -> tuple[Plan, dict[tuple[str, float], Result]]:
    """Predict --collective at the sizes that were measured."""
    from commsim.scenario.build import plan_collective
    from commsim.scenario.solve import solve

    ranks = {row.n_ranks for row in measured if row.n_ranks is not None}
    if len(ranks) > 1 and config.ranks is None:
        raise InputError(f"{config.files[-1]} has measurements of {sorted(ranks)} ranks; choose, as in --ranks 8")
    n_ranks = config.ranks or next(iter(ranks), None)
    scenario = config.scenario(n_ranks)
    prepared = plan_collective(scenario)
    operation = prepared.schedule.operation
    sizes = sorted({row.size for row in measured if row.operation == operation and row.size > 0})
    if not sizes:
        theirs = ", ".join(sorted({row.operation for row in measured}))
        raise InputError(f"nothing to compare: {config.collective} is {operation}, {config.files[-1]} has {theirs}")
    solution = solve(scenario, sizes, plan=prepared, over=lambda some: progress(some, scenario.name))
    notes += [*solution.derived, f"engine {scenario.wish.engine}", *solution.remarks]
    return prepared, dict(zip([(operation, size) for size in sizes], solution.results, strict=True))


def _predictor(config: Config) -> str:
    return str(config.files[0]) if len(config.files) == 2 else f"{config.collective} on {config.topology}"


def _explanations(config: Config, pairs: Sequence[Pair], prepared: Plan | None) -> list[str]:
    """Explain the largest busbw that is above the line, if there is a line and one is."""
    from commsim.real.comparison.above_line_rate import explain_above

    line = _line(config, pairs, prepared)
    if line is None:
        return []
    fastest = max(pairs, key=lambda pair: pair.measured.busbw or 0.0)
    return list(explain_above(fastest.measured, line))


def _line(config: Config, pairs: Sequence[Pair], prepared: Plan | None) -> Line | None:
    from commsim.real.comparison.above_line_rate import Line, line_of_prediction

    if prepared is not None:
        size = max(pair.measured.size for pair in pairs)
        line = line_of_prediction(prepared, prepared.predict(size, engine="flow", seed=config.seed))
        if config.line_rate is None:
            return line
        import dataclasses

        rate = parse_bandwidth(config.line_rate, "--line-rate")
        return dataclasses.replace(line, rate=rate, source="--line-rate", is_given=True) if line is not None else None
    if config.line_rate is None:
        return None
    return Line(parse_bandwidth(config.line_rate, "--line-rate"), "--line-rate", is_given=True)


def _draw_comparison(pairs: Sequence[Pair], path: str) -> None:
    """Draw the pairs that have a size and times.

    Raises
    ------
    InputError
        If no size has both times, or no picture can be written to `path`.
    """
    from commsim.report.pictures.paint import write_picture
    from commsim.report.plots.chart import Axis, Series, draw_chart

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
    picture = draw_chart("predicted and measured", Axis("size (B)", True), Axis("time (us)", True), series)
    write_picture(picture, path)


COMMANDS = {"compare": Verb(Config, run)}
