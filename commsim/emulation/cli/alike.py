"""What ``commsim emulate`` reports of ranks that are alike: steps, exposed communication by call site, loads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from commsim.core.units import format_size, format_time, microseconds
from commsim.report.answer import Answer, Facts, Lines, Part, Table, remarks
from commsim.report.hash_columns import with_ends

if TYPE_CHECKING:
    from commsim.emulation.alike.run_alike import AlikeRun

COLUMNS = ["operation", "site", "collective", "size", "calls", "alone(us)", "exposed(us)"]
MOST_OPERATORS = 8


def answer_of(found: AlikeRun, flags: dict[str, Any], timeline: str | None, phases: str | None) -> Answer:
    """Show a run; write its timeline and its phases where they are asked for."""
    rows = _rows(found)
    spent = found.spent
    exposed = sum(row["exposed_s"] * row["calls"] for row in rows)
    loads = found.link_bytes() / found.network.bandwidth
    busiest = int(loads.argmax())
    total = sum(spent.by_bound.values()) or 1.0
    facts = {
        "time": f"{format_time(found.time)}, {len(found.steps)} steps",
        "step": f"{format_time(found.step_time)}, the last one",
        "exposed": f"{format_time(exposed)} of the step, {_part(exposed, found.step_time)}",
        "computing": ", ".join(map(format_time, found.timeline.computing))
        + (" of the stages" if len(found.reports) > 1 else "")
        + " of all steps"
        + "".join(f"; {_part(time, total)} {_source(bound)}" for bound, time in spent.by_bound.most_common()),
        "operators": ", ".join(f"{n} {_part(t, total)}" for n, t in spent.by_operator.most_common(MOST_OPERATORS))
        or "none takes time",
        "busiest link": f"{found.network.link_name(busiest)}, "
        f"{_part(float(loads[busiest]), found.step_time)} of the step at its rate",
    }
    cells = [
        [row["operation"], row["site"], row["algorithm"], format_size(row["size_B"]), str(row["calls"]),
         f"{row['time_s'] * 1e6:.4g}", f"{row['exposed_s'] * 1e6:.4g}"]
        for row in rows
    ]  # fmt: skip
    title = "collectives of the last step by site: time of one without others, and the mean that no computation hides"
    names, cells = with_ends(COLUMNS, cells, COLUMNS.index("alone(us)") + 1, rows, microseconds)
    parts: list[Part] = [*remarks(found.remarks), Facts(facts), Table(names, cells, title, least=("collective",))]
    if timeline is not None:
        write_timeline(found, timeline)
        parts.append(Lines([f"{timeline}: written"]))
    if phases is not None:
        write_phases(found, phases)
        parts.append(Lines([f"{phases}: written"]))
    links = found.link_bytes()
    more = {
        "time_s": found.time, "computed_s": found.timeline.computing, "end_s": [found.time],
        "link_bytes_B": {found.network.link_name(k): float(n) for k, n in enumerate(links) if n},
        "simulations": found.n_simulated, "step_s": found.step_time, "exposed_s": exposed,
        "operators_s": dict(spent.by_operator.most_common()),
    }  # fmt: skip
    return Answer(parts, rows, flags, more)


def _source(bound: str) -> str:
    return {"file": "from the trace"}.get(bound, f"bound by {bound}")


def _rows(found: AlikeRun) -> list[dict[str, Any]]:
    """One row for each site, operation and size; those that hold up computation most come first."""
    rows: dict[tuple[str, str, float], dict[str, Any]] = {}
    for one in found.exchanges:
        row = rows.setdefault(
            (one.site, one.operation, one.size),
            {"operation": one.operation, "site": one.site, "algorithm": one.costs.collective, "size_B": one.size,
             "n_ranks": one.n_ranks, "calls": 0, "time_s": one.costs.time, "exposed_s": 0.0,
             **({} if one.costs.hashes is None else one.costs.hashes.row())},
        )  # fmt: skip
        row["calls"] += 1
        row["exposed_s"] += one.exposed
    for row in rows.values():
        row["exposed_s"] /= row["calls"]
    return sorted(rows.values(), key=lambda row: -row["exposed_s"] * row["calls"])


def write_timeline(found: AlikeRun, path: str) -> None:
    """Write what each stream did, as events for Perfetto."""
    from commsim.core.files.trace_events import process_name, thread_name, write_events

    number = {key: tid for tid, key in enumerate(dict.fromkeys((span.gpu, span.stream) for span in found.spans))}
    n_stages = len(found.reports)
    events: Sequence[dict[str, Any]] = [
        *(process_name(k, f"stage {k}" if n_stages > 1 else "rank 0") for k in range(n_stages)),
        *(thread_name(gpu, tid, name) for (gpu, name), tid in number.items()),
        *(
            {"name": span.name, "ph": "X", "pid": span.gpu, "tid": number[span.gpu, span.stream],
             "ts": span.start * 1e6, "dur": (span.end - span.start) * 1e6}
            for span in found.spans
        ),
    ]  # fmt: skip
    write_events(path, events)


def _part(time: float, of: float) -> str:
    return f"{time / of if of else 0:.1%}"


def write_phases(found: AlikeRun, path: str) -> None:
    """Write the last step as a job for ``commsim place`` and ``cluster``: when a rank sends, and how much."""
    from commsim.core.files.whole_files import write_json
    from commsim.profiles.calls import Call
    from commsim.profiles.one_iteration import Iteration, periodic_job

    begin, _ = found.window
    calls = tuple(
        Call(
            one.operation,
            one.size,
            one.n_ranks,
            max(one.start or 0.0, begin),
            (one.end or 0.0) - max(one.start or 0.0, begin),
        )
        for one in found.exchanges
        if one.n_ranks > 1 and one.size
    )
    iteration = Iteration(calls, begin, found.step_time, len(found.steps))
    write_json(path, [periodic_job(iteration, found.name)])
