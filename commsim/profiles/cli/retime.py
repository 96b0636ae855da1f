"""``commsim workload calls --network``: the step of a profile on another network, or with more ranks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commsim.core.files.whole_files import write_json
from commsim.core.units import count_text, format_size, format_time, parse_time
from commsim.report.answer import Answer, Facts, Lines, Part, Table, remarks
from commsim.report.hash_columns import ends_of_hashes
from commsim.training.cli.message_flags import costs

if TYPE_CHECKING:
    from commsim.profiles.retime import RetimedStep
    from commsim.training.task_graph import Task

    from .calls_flags import WorkloadCallsConfig

COLUMNS = ["group", "operation", "size", "ranks", "calls", "time", "exposed"]


def retimed(config: WorkloadCallsConfig, period: float | None) -> Answer:
    """Time the step of a profile again, and write what is asked for."""
    from commsim.profiles.exposed import rows_of
    from commsim.profiles.read_ranks import traced_graph
    from commsim.profiles.retime import more_ranks, retime

    if config.report:
        from commsim.pages.page.write import check_page

        check_page(config.report)
    notes: list[str] = []
    traced, steps = traced_graph(config.files, config.kernels, config.size, period, notes)
    whole, said = more_ranks(traced, steps, config.ranks, config.grow)
    time_of = costs(config, whole.world, config.algorithm)
    found = retime(whole, time_of, [*notes, *said])
    waits, step = found.waits, found.timeline.iteration_time
    rows = rows_of(whole, found.timeline, waits)
    seen = max((step.end - step.begin for step in steps), default=None)
    before = {} if seen is None else {"in the profile": f"{format_time(seen)} with {count_text(traced.world, 'rank')}"}
    facts = {
        "step": f"{format_time(step)}{ends_of_hashes(found.hashes)} with {count_text(whole.world, 'rank')}",
        **before,
        "computation": f"{format_time(waits.compute)} of rank {waits.rank}, which waits the longest",
        "exposed": f"{format_time(waits.exposed)}, of which {format_time(waits.late)} waiting for later ranks",
    }
    table = Table(COLUMNS, [_cells(row) for row in rows], f"exchanges of rank {waits.rank} in a step")
    drawn = {} if found.hashes is None else found.hashes.row()
    more: dict[str, Any] = {
        "step_s": step, **drawn, "traced_step_s": seen, "n_ranks": whole.world, "traced_ranks": traced.world,
        "rank": waits.rank, "compute_s": waits.compute, "exposed_comm_s": waits.exposed, "late_s": waits.late,
    }  # fmt: skip
    written = _write_files(config, found, time_of)
    return Answer([*remarks(found.notes), table, Facts(facts), *written], rows, more=more)


def _cells(row: dict[str, Any]) -> list[str]:
    return [row["group"], row["operation"], format_size(row["size_B"]), f"{row['n_ranks']}", f"{row['calls']}",
            format_time(row["time_s"]), format_time(row["exposed_s"])]  # fmt: skip


def _write_files(config: WorkloadCallsConfig, found: RetimedStep, time_of: Callable[[Task], float]) -> list[Part]:
    """Write the demand over time and the timeline, and say so."""
    from commsim.training.cli.phases import phases_of
    from commsim.training.timeline import chrome_trace, job_row

    timeline, rank = found.timeline, found.waits.rank
    written: list[str] = []
    if config.phases:
        phases, whose, period = phases_of(timeline, rank, parse_time(config.gap, "--gap"), time_of)
        name = config.name or Path(config.files[0]).name.split(".")[0]
        write_json(config.phases, [job_row(name, found.traced.world, period, phases)])
        written.append(f"{config.phases}: {count_text(len(phases), 'phase')} of {whose}")
    if config.timeline:
        write_json(config.timeline, chrome_trace(timeline))
        written.append(f"{config.timeline}: written")
    if config.report:
        written += _page(config, found)
    return [Lines(written)] if written else []


def _page(config: WorkloadCallsConfig, found: RetimedStep) -> list[str]:
    """Write the page of all calls, and return that it is written."""
    from commsim.pages.figure_tables import table_of_rows
    from commsim.pages.page.write import write_report
    from commsim.pages.study import made_by, make_study
    from commsim.profiles.exposed import calls_of
    from commsim.version import __version__

    where = config.network or config.bandwidth
    title = f"{Path(config.files[0]).name} on {where}, {count_text(found.traced.world, 'rank')}"
    rows = table_of_rows(calls_of(found.traced, found.timeline, found.waits))
    flags = {key: value for key, value in vars(config).items() if key not in ("json", "csv", "report")}
    provenance = {"input": ", ".join(config.files[:3]), **made_by("workload calls", {"version": __version__, **flags})}
    return write_report(make_study(title, rows, provenance, remarks=found.notes), config.report or "")[-1:]
