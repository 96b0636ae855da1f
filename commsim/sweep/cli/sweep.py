"""``commsim sweep``: many points over any parameter, on all processors or a cluster, resumable."""

from __future__ import annotations

import contextlib
import re
import signal
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

from commsim.cli.flags import Flags, Verb, WithJson, flag, switched
from commsim.core.errors import InputError
from commsim.core.remark import as_remarks
from commsim.core.units import count_text, format_size, format_time
from commsim.report.answer import Answer, Facts, Lines, Part, Table, comments, remarks
from commsim.report.terminal import tell

from . import cheapest
from .cheapest import Code

if TYPE_CHECKING:
    from commsim.sweep.run_sweep import Progress

EXAMPLES = {
    "sweep": """
        commsim sweep plan examples/sweep_10k.toml
        commsim sweep examples/sweep_10k.toml -o results --limit 20
        commsim sweep run examples/sweep_10k.toml -o part1 --part 1/2 --limit 5
        commsim sweep merge both part1
        commsim sweep status results
        commsim sweep sql results 'select "collective.name", max(busbw_Bps) from sweep group by all'
        commsim sweep export results -o results.csv
        commsim sweep cheapest examples/sweep_cost.toml""",
}

NAMES = "process, serial, mpi, dask, dask://HOST:PORT, ray, ray://HOST:PORT"
MAX_POINTS_HELP = "refuse a sweep with more points, before filters (default: 10000000)"
MAX_ERRORS = 10
# A query for columns that it does not name.
EVERY_COLUMN = re.compile(r"(\bselect|\bdistinct|,)\s*\*|^\s*from\b", re.IGNORECASE)
MOST_WHOLE = 2.0**53  # up to which a float has every whole number


class Results(Flags):
    """The results that a verb reads."""

    directory: str = flag("directory", metavar="DIR", help="folder of the results")


class SweepRunConfig(Code):
    """All flags of ``commsim sweep run``."""

    config: str = flag("config", metavar="SWEEP.toml", help="what to compute; docs/sweeps.md has every key")
    output: str | None = flag(
        "-o",
        metavar="DIR",
        help="folder of the results, or of earlier ones to continue (default: SWEEP); X.csv, "
        ".json or .parquet: folder X, and all results in this file",
    )
    jobs: int | None = flag(metavar="N", help="number of worker processes (default: all processors)")
    executor: str | None = flag(
        metavar="NAME", help=f"where to run: {NAMES} (default: mpi under mpi4py.futures, otherwise process)"
    )
    max_points: int | None = flag(metavar="N", help=MAX_POINTS_HELP)
    with_host: bool = switched(help="write the name of this machine into the results")
    limit: int | None = flag(metavar="N", help="compute at most N points, spread evenly over the sweep")
    retry_failed: bool = switched(help="recompute points that failed before")
    part: str | None = flag(
        metavar="K/N",
        help="compute only part K of N; `slurm`: K and N of this task of a Slurm job array; see sweep merge",
    )


def run(config: SweepRunConfig) -> Answer:
    """Run, and say where the results are."""
    from commsim.sweep.parts import read_part
    from commsim.sweep.points import MAX_POINTS
    from commsim.sweep.progress import progress_shown
    from commsim.sweep.remarks import costs_of, remarks_of
    from commsim.sweep.run_sweep import run_sweep
    from commsim.sweep.table import SUFFIXES, require_pyarrow, require_suffix

    part = None if config.part is None else read_part(config.part)
    directory = config.output or default_directory(config.config) + (f"-{part.k}-of-{part.n}" if part else "")
    file = directory if directory.endswith(SUFFIXES) else None
    if file is not None:
        if require_suffix(file) == ".parquet":
            require_pyarrow()
        directory = directory[: directory.rindex(".")]
    options: dict[str, Any] = {
        "jobs": config.jobs, "max_points": config.max_points or MAX_POINTS, "host": config.with_host,
        "retry_failed": config.retry_failed, "part": part, "code": config.allow_code,
    }  # fmt: skip
    try:
        with _one_interruption(), progress_shown() as say:
            done = run_sweep(config.config, directory, config.executor, limit=config.limit, say=say, **options)
    except KeyboardInterrupt:
        tell(f"commsim sweep: interrupted; run the same command to resume {directory}")
        return Answer(code=130)
    code = 1 if done.n_done and done.n_failed == done.n_done else 0
    notes = remarks((*as_remarks(done.remarks, "chosen"), *costs_of(directory)))
    lines = [_summary(done, directory), *([] if file is None else [_exported(directory, file)])]
    return Answer([Lines(lines), *notes, *remarks(remarks_of(directory))], code=code)


@contextlib.contextmanager
def _one_interruption() -> Iterator[None]:
    """Let the first Ctrl-C end what runs, and ignore further ones while rows are written and workers end."""
    before = signal.getsignal(signal.SIGINT)
    if not callable(before):  # the parent process has chosen that an interruption is ignored
        yield
        return

    def interrupted(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        before(number, frame)

    signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is interrupted:
            signal.signal(signal.SIGINT, before)


def default_directory(config: str) -> str:
    """Name of the directory for the results of a file: the file's, without its suffix.

    Raises
    ------
    InputError
        If it has none.
    """
    from pathlib import Path

    path = Path(config)
    if not path.suffix:
        raise InputError(f"{config}: a sweep is a .toml or .json file")
    return path.stem


def _summary(done: Progress, directory: str) -> str:
    text = f"{directory}: {count_text(done.n_done, 'point')}"
    if done.n_before:
        text += f", {done.n_before} of them from before"
    if done.n_failed:
        failed = "all" if done.n_failed == done.n_done else done.n_failed
        text += f", {failed} failed: `commsim sweep status {directory}` says why, --retry-failed computes them again"
    return text


class PlanConfig(WithJson, Code):
    """All flags of ``commsim sweep plan``."""

    config: str = flag("config", metavar="SWEEP.toml", help="the sweep")
    jobs: int | None = flag(metavar="N", help="number of worker processes (default: all processors)")
    max_points: int | None = flag(metavar="N", help=MAX_POINTS_HELP)


def plan(config: PlanConfig) -> Answer:
    """Count, and measure."""
    from commsim.core.limits import duration
    from commsim.sweep.config import read_config
    from commsim.sweep.executors import processors
    from commsim.sweep.plan import plan_sweep
    from commsim.sweep.points import MAX_POINTS

    jobs = processors(config.jobs)
    estimate = plan_sweep(read_config(config.config, config.allow_code), config.max_points or MAX_POINTS)
    is_filtered = estimate.n_points != estimate.n_candidates
    cores = processors(None)
    share = estimate.share(jobs, cores)
    time, uncertain = estimate.time(jobs, cores), estimate.uncertain / jobs / share
    beside = f"; {duration(time * share)} if nothing else ran" if share < 1 else ""
    facts = {
        "points": f"{estimate.n_points}" + (f" of {estimate.n_candidates} before filters" if is_filtered else ""),
        "prepared": f"{estimate.n_groups} times; points that differ only in size and engine options share that",
        "measured": f"{count_text(estimate.n_measured, 'point')}: {format_time(estimate.first)} with preparation, "
                    f"{format_time(estimate.other)} without",
        "work": f"{duration(estimate.work)} of processor time, +/- {duration(estimate.uncertain)}",
        "load": f"{estimate.load:.1f} processes of others on {count_text(cores, 'core')}",
        "time": f"{duration(time)} with {count_text(jobs, 'worker')}, +/- {duration(uncertain)}, including "
                f"{duration(estimate.start / share)} to start{beside}",
        "memory": f"{format_size(jobs * estimate.memory)}: {format_size(estimate.memory)} for each worker",
    }  # fmt: skip
    lines = ["95 % of such estimates are within these margins, on cores as busy as now"]
    if estimate.n_walked < estimate.n_points:
        lines.append(f"only the first {estimate.n_walked} points were examined; the others are assumed to be similar")
    lines += [f"a measured point fails: {why}" for why in estimate.failed]
    row = {
        "n_candidates": estimate.n_candidates, "n_points": estimate.n_points, "n_prepared": estimate.n_groups,
        "n_measured": estimate.n_measured, "first_s": estimate.first, "other_s": estimate.other,
        "start_s": estimate.start, "work_s": estimate.work, "work_uncertain_s": estimate.uncertain,
        "jobs": jobs, "other_load": estimate.load, "time_s": time,
        "uncertain_s": uncertain, "memory_B": jobs * estimate.memory,
        "failed": list(estimate.failed),
    }  # fmt: skip
    return Answer([Facts(facts), *remarks(as_remarks(lines, "estimate"))], [row], {"config": config.config})


class SweepStatusConfig(WithJson, Results):
    """All flags of ``commsim sweep status``."""


def status(config: SweepStatusConfig) -> Answer:
    """Count what is done, and what has failed."""
    from collections import Counter

    from commsim.core.files.sweep_store import read_description
    from commsim.sweep.table import read_rows
    from commsim.sweep.worker import MAX_MESSAGE

    about = read_description(config.directory)
    errors = Counter(row["error"] for row in read_rows(config.directory))
    n_done, n_points = sum(errors.values()), about.get("n_points")
    errors.pop(None, None)
    where = about["provenance"]
    facts = {
        "points": f"{n_done} of {n_points} done",
        "failed": f"{sum(errors.values())}",
        "begun by": f"commsim {where.get('commsim')}, commit {where.get('commit')}",
        "sweep": f"{about['config_hash']}, seed {where.get('seed')}",
    }
    parts: list[Part] = [Facts(facts)]
    if errors:
        rows = [[str(n), text[:MAX_MESSAGE]] for text, n in errors.most_common(MAX_ERRORS)]
        again = "`commsim sweep run FILE --retry-failed` computes them again"
        parts += [Table(["points", "error"], rows), *comments([again])]
    failed = [{"error": text, "n_points": n} for text, n in errors.most_common()]
    row = {"n_points": n_points, "n_done": n_done, "n_failed": sum(errors.values()), "errors": failed}
    return Answer(parts, [row], {"directory": config.directory})


class SqlConfig(Results):
    """All flags of ``commsim sweep sql``."""

    query: str = flag(
        "query", metavar="SQL",
        help='such as: select "collective.name", min(time_s) from sweep group by all; quantities are in SI units: '
        "s, B, B/s",
    )  # fmt: skip
    output: str | None = flag("-o", metavar="FILE", help="write the answer as .csv, .json or .parquet instead")


def sql(config: SqlConfig) -> Answer:
    """Answer the query."""
    from commsim.sweep.table import query, require_suffix, units_in, write_table

    if config.output:
        require_suffix(config.output)
    table = query(config.directory, config.query)
    if config.output:
        write_table(table, config.output)
        return Answer([Lines([f"{config.output}: {count_text(table.num_rows, 'row')}"])])
    columns = table.to_pydict()
    rows = [list(map(_cell, row)) for row in zip(*columns.values(), strict=True)]
    is_whole = EVERY_COLUMN.search(config.query) is None
    units = [f"{name} {unit}" for name, unit in units_in(config.directory, config.query).items()]
    lines = [f"units of the table `sweep`: {', '.join(units)}"] if units else []
    return Answer([Table(list(columns), rows, whole=is_whole), *comments(lines)])


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, list):
        from commsim.sweep.table import BETWEEN

        return BETWEEN.join(map(_cell, value))
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() and abs(value) < MOST_WHOLE else f"{value:.6g}"
    return str(value)


class SweepExportConfig(Results):
    """All flags of ``commsim sweep export``."""

    output: str = flag("-o", required=True, metavar="FILE", help=".csv, .json or .parquet")


def export(config: SweepExportConfig) -> Answer:
    """Write the table, and say how large it is."""
    return Answer([Lines([_exported(config.directory, config.output)])])


def _exported(directory: str, path: str) -> str:
    """Write the results of a directory to a file, and say how large the table is."""
    from commsim.sweep.table import write_results

    n_rows, n_columns = write_results(directory, path)
    return f"{path}: {count_text(n_rows, 'row')} of {count_text(n_columns, 'column')}"


class MergeConfig(Flags):
    """All flags of ``commsim sweep merge``."""

    directory: str = flag("directory", metavar="DIR", help="folder of the results, made if it is missing")
    parts: tuple[str, ...] = flag("parts", nargs="+", metavar="PART", help="folders of `sweep run --part`")


def merge(config: MergeConfig) -> Answer:
    """Copy the rows, and say how many there are."""
    from commsim.sweep.parts import merge as merge_parts

    done, n_points = merge_parts(config.directory, config.parts)
    left = "" if done == n_points else f"; `commsim sweep SWEEP.toml -o {config.directory}` computes the others"
    return Answer([Lines([f"{config.directory}: {done} of {n_points} points{left}"])])


COMMANDS = {
    "sweep run": Verb(
        SweepRunConfig,
        run,
        "compute the points that have no result yet (`commsim sweep FILE` is the same)",
        is_usual=True,
    ),
    "sweep plan": Verb(PlanConfig, plan, "estimate the number of points, time and memory, by measuring a few points"),
    "sweep cheapest": Verb(
        cheapest.SweepCheapestConfig,
        cheapest.run,
        "find the cheapest topology that meets a goal, from the sweep's tables [cost] and [goal]",
    ),
    "sweep merge": Verb(MergeConfig, merge, "merge the parts of a sweep that were run separately"),
    "sweep status": Verb(SweepStatusConfig, status, "print how many points are done, and the errors"),
    "sweep sql": Verb(SqlConfig, sql, "run an SQL query on the table `sweep`"),
    "sweep export": Verb(SweepExportConfig, export, "write the results as one .csv, .json or .parquet file"),
}
