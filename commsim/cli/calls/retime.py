"""``commsim calls --network``: the step of a profile on another network, with other bandwidth, with more ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commsim.core.errors import InputError
from commsim.core.units import counted, format_size, format_time, parse_time
from commsim.files.whole_files import write_json
from commsim.report.answer import Answer, Facts, Lines, Part, Table, remarks

from ..workload.message_flags import costs, exchanges_of, notes_of, shared_note

if TYPE_CHECKING:
    from commsim.formats.traced.graph_of_ranks import TracedGraph
    from commsim.formats.traced.step import Step
    from commsim.workload.task_graph import Task
    from commsim.workload.timeline import Timeline

    from . import Config

COLUMNS = ["group", "operation", "size", "ranks", "calls", "time", "exposed"]
ASSUMED = "computation is that of the profile, pauses that no call explains included; ranks begin the step together"


def retimed(config: Config, period: float | None) -> Answer:
    """Re-time the step of a profile, and write what is asked for."""
    from commsim.formats.traced.exposed import rows_of, waits_of
    from commsim.formats.traced.growth import growing_groups, grown
    from commsim.formats.traced.read_ranks import traced_graph
    from commsim.workload.task_graph import simulate_graph

    notes: list[str] = []
    traced, steps = traced_graph(config.files, config.kernels, config.size, period, notes)
    factor = _factor(config.ranks, traced.world)
    growing, said = growing_groups(traced, config.grow) if factor > 1 or config.grow else (frozenset[str](), [])
    whole = grown(traced, growing, factor)
    time_of = costs(config, whole.world, config.algorithm)
    links = exchanges_of(time_of)
    timeline = simulate_graph(whole.graph, time_of, links)
    waits = waits_of(whole, timeline)
    rows = rows_of(whole, timeline, waits)
    notes += [*traced.notes, *said, *_assumed(steps, traced, factor, config.network is None)]
    notes += [*notes_of(time_of), *shared_note(links)]
    seen = max((step.end - step.begin for step in steps), default=None)
    before = {} if seen is None else {"in the profile": f"{format_time(seen)} with {counted(traced.world, 'rank')}"}
    facts = {
        "step": f"{format_time(timeline.iteration_time)} with {counted(whole.world, 'rank')}",
        **before,
        "computation": f"{format_time(waits.compute)} of rank {waits.rank}, which waits the longest",
        "exposed": f"{format_time(waits.exposed)}, of which {format_time(waits.late)} until later ranks had come",
    }
    table = Table(COLUMNS, [_cells(row) for row in rows], f"exchanges of rank {waits.rank} in a step")
    more: dict[str, Any] = {
        "step_s": timeline.iteration_time, "traced_step_s": seen, "n_ranks": whole.world,
        "traced_ranks": traced.world, "rank": waits.rank, "compute_s": waits.compute, "exposed_comm_s": waits.exposed,
        "late_s": waits.late,
    }  # fmt: skip
    written = _write_files(config, whole, timeline, waits.rank, time_of)
    return Answer([*remarks(dict.fromkeys(notes)), table, Facts(facts), *written], rows, more=more)


def _factor(ranks: int | None, world: int) -> int:
    from commsim.formats.traced.growth import MAX_FACTOR

    factor, rest = divmod(world if ranks is None else ranks, world)
    if rest or not 1 <= factor <= MAX_FACTOR:
        raise InputError(f"--ranks must be the {world} ranks of the profile, times 1 to {MAX_FACTOR}, got {ranks}")
    return factor


def _assumed(steps: Sequence[Step], traced: TracedGraph, factor: int, without_network: bool) -> list[str]:
    said = [ASSUMED]
    if len(traced.traced) < traced.world:
        few = f"{len(traced.traced)} of {counted(traced.world, 'rank')} have a profile"
        said.append(f"{few}; the others are assumed to do the same at the same time")
    if factor > 1:
        said.append(
            f"each rank of the profile stands for {factor}; arrays of grown groups keep their size (shards shrink)"
        )
    unseen = sum(wait.rule > 3 for step in steps for wait in step.waits)
    if unseen:
        n = sum(len(step.waits) for step in steps)
        said.append(
            f"where {unseen} of {counted(n, 'call')} are waited for is by rule, since the profile shows no pause"
        )
    if without_network:
        said.append("without --network exchanges that overlap share nothing")
    return said


def _cells(row: dict[str, Any]) -> list[str]:
    return [row["group"], row["operation"], format_size(row["size_B"]), f"{row['n_ranks']}", f"{row['calls']}",
            format_time(row["time_s"]), format_time(row["exposed_s"])]  # fmt: skip


def _write_files(
    config: Config, traced: TracedGraph, timeline: Timeline, rank: int, time_of: Callable[[Task], float]
) -> list[Part]:
    """Write the demand over time and the timeline, and say so."""
    from commsim.workload.cost_of import NetworkCosts
    from commsim.workload.timeline import chrome_trace, job_row, link_phases, sent_by_each

    written: list[str] = []
    if config.phases:
        sent = time_of.sent_by_each if isinstance(time_of, NetworkCosts) else sent_by_each
        phases = link_phases(timeline, rank, parse_time(config.gap, "--gap"), sent)
        name = config.name or Path(config.files[0]).name.split(".")[0]
        write_json(config.phases, [job_row(name, traced.world, timeline.iteration_time, phases)])
        written.append(f"{config.phases}: {counted(len(phases), 'phase')} of the link of rank {rank}")
    if config.timeline:
        write_json(config.timeline, chrome_trace(timeline))
        written.append(f"{config.timeline}: written")
    return [Lines(written)] if written else []
