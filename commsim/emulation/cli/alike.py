"""What ``commsim emulate`` reports of ranks that are alike: steps, exposed communication by call site, loads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from commsim.core.units import format_size, format_time, microseconds
from commsim.report.answer import Answer, Facts, Lines, Part, Table, remarks
from commsim.report.hash_columns import with_ends

if TYPE_CHECKING:
    from commsim.emulation.alike.queued_work import QueuedCollective
    from commsim.emulation.alike.run_alike import AlikeRun
    from commsim.placement.starts.demand import RecordedExchange

COLUMNS = ["operation", "site", "collective", "size", "calls", "alone(us)", "exposed(us)"]
MOST_OPERATORS = 8
# Name of the spans in which a GPU computes.
COMPUTATION = "computation"


def answer_of(alike_run: AlikeRun, flags: dict[str, Any], timeline: str | None, phases: str | None) -> Answer:
    """Show a run; write its timeline and its phases where they are asked for."""
    rows = _rows(alike_run)
    spent = alike_run.spent
    exposed = sum(row["exposed_s"] * row["calls"] for row in rows)
    loads = alike_run.link_bytes() / alike_run.network.bandwidth
    busiest = int(loads.argmax())
    total = sum(spent.by_bound.values()) or 1.0
    facts = {
        "time": f"{format_time(alike_run.time)}, {len(alike_run.steps)} steps",
        "step": f"{format_time(alike_run.step_time)}, the last one",
        "exposed": f"{format_time(exposed)} of the step, {_share_text(exposed, alike_run.step_time)}",
        "computing": ", ".join(map(format_time, alike_run.timeline.computing))
        + (" of the stages" if len(alike_run.reports) > 1 else "")
        + " of all steps"
        + "".join(f"; {_share_text(time, total)} {_source(bound)}" for bound, time in spent.by_bound.most_common()),
        "operators": ", ".join(f"{n} {_share_text(t, total)}" for n, t in spent.by_operator.most_common(MOST_OPERATORS))
        or "none takes time",
        "busiest link": f"{alike_run.network.link_name(busiest)}, "
        f"{_share_text(float(loads[busiest]), alike_run.step_time)} of the step at its rate",
    }
    cells = [
        [row["operation"], row["site"], row["algorithm"], format_size(row["size_B"]), str(row["calls"]),
         f"{row['time_s'] * 1e6:.4g}", f"{row['exposed_s'] * 1e6:.4g}"]
        for row in rows
    ]  # fmt: skip
    title = "collectives of the last step by site: time of one without others, and the mean that no computation hides"
    names, cells = with_ends(COLUMNS, cells, COLUMNS.index("alone(us)") + 1, rows, microseconds)
    parts: list[Part] = [*remarks(alike_run.remarks), Facts(facts), Table(names, cells, title, least=("collective",))]
    if timeline is not None:
        write_timeline(alike_run, timeline)
        parts.append(Lines([f"{timeline}: written"]))
    if phases is not None:
        write_phases(alike_run, phases)
        parts.append(Lines([f"{phases}: written"]))
    links = alike_run.link_bytes()
    more = {
        "time_s": alike_run.time, "computed_s": alike_run.timeline.computing, "end_s": [alike_run.time],
        "link_bytes_B": {alike_run.network.link_name(k): float(n) for k, n in enumerate(links) if n},
        "simulations": alike_run.n_simulated, "step_s": alike_run.step_time, "exposed_s": exposed,
        "operators_s": dict(spent.by_operator.most_common()),
    }  # fmt: skip
    return Answer(parts, rows, flags, more)


def _source(bound: str) -> str:
    return {"file": "from the trace"}.get(bound, f"bound by {bound}")


def _rows(alike_run: AlikeRun) -> list[dict[str, Any]]:
    """One row for each site, operation and size; those that hold up computation most come first."""
    rows: dict[tuple[str, str, float], dict[str, Any]] = {}
    for exchange in alike_run.exchanges:
        row = rows.setdefault(
            (exchange.site, exchange.operation, exchange.size),
            {
                "operation": exchange.operation,
                "site": exchange.site,
                "algorithm": exchange.costs.collective,
                "size_B": exchange.size,
                "n_ranks": exchange.n_ranks,
                "calls": 0,
                "time_s": exchange.costs.time,
                "exposed_s": 0.0,
                **({} if exchange.costs.hashes is None else exchange.costs.hashes.row()),
            },
        )
        row["calls"] += 1
        row["exposed_s"] += exchange.exposed
    for row in rows.values():
        row["exposed_s"] /= row["calls"]
    return sorted(rows.values(), key=lambda row: -row["exposed_s"] * row["calls"])


def write_timeline(alike_run: AlikeRun, path: str) -> None:
    """Write what each stream did, as events for Perfetto."""
    from commsim.core.files.trace_events import process_name, thread_name, write_events

    number = {key: tid for tid, key in enumerate(dict.fromkeys((span.gpu, span.stream) for span in alike_run.spans))}
    n_stages = len(alike_run.reports)
    events: Sequence[dict[str, Any]] = [
        *(process_name(k, f"stage {k}" if n_stages > 1 else "rank 0") for k in range(n_stages)),
        *(thread_name(gpu, tid, name) for (gpu, name), tid in number.items()),
        *(
            {"name": span.name, "ph": "X", "pid": span.gpu, "tid": number[span.gpu, span.stream],
             "ts": span.start * 1e6, "dur": (span.end - span.start) * 1e6}
            for span in alike_run.spans
        ),
    ]  # fmt: skip
    write_events(path, events)


def _share_text(time: float, of: float) -> str:
    return f"{time / of if of else 0:.1%}"


def write_phases(alike_run: AlikeRun, path: str) -> None:
    """Write the last step as a job for ``commsim place``: when its ranks send how many bytes, in which groups."""
    from commsim.core.files.whole_files import write_json
    from commsim.placement.starts.demand import demand_of
    from commsim.training.timeline import job_row

    phases, period = demand_of(alike_run.cables, alike_run.nodes, _recorded(alike_run), alike_run.step_time)
    write_json(path, [job_row(alike_run.name, len(alike_run.nodes), period, phases)])


def _recorded(alike_run: AlikeRun) -> list[RecordedExchange]:
    """Return the exchanges of the last step of the stage that sends most, from the start of the step."""
    from commsim.core.operations import operation
    from commsim.placement.starts.demand import RecordedExchange, pattern_of
    from commsim.training.timeline import hidden_beside

    begin, _ = alike_run.window
    size = len(alike_run.nodes) // len(alike_run.reports)
    of_stage: dict[int, list[QueuedCollective]] = {}
    for exchange in alike_run.exchanges:
        if exchange.n_ranks > 1 and exchange.size:
            senders = exchange.groups[0][:1] if exchange.operation == "send" else exchange.groups[0]
            for stage in {rank // size for rank in senders}:
                of_stage.setdefault(stage, []).append(exchange)
    if not of_stage:
        return []
    stage = max(of_stage, key=lambda one: sum(exchange.costs.link_bytes.sum() for exchange in of_stage[one]))
    computing = [
        (span.start - begin, span.end - begin)
        for span in alike_run.spans
        if span.gpu == stage and span.name == COMPUTATION and span.end > begin
    ]
    found = []
    for exchange in of_stage[stage]:
        start, end = max(exchange.start or 0.0, begin) - begin, (exchange.end or 0.0) - begin
        factor = 1.0 if exchange.operation == "send" else operation(exchange.operation).busbw_factor(exchange.n_ranks)
        links = exchange.costs.link_bytes.nonzero()[0]
        found.append(
            RecordedExchange(
                start, end, (pattern_of(exchange.operation), exchange.groups), factor * exchange.size,
                hidden_beside(computing, start, end),
                dict(zip(links.tolist(), exchange.costs.link_bytes[links].tolist(), strict=True)),
                (exchange.costs.seed,) * len(exchange.groups),
            )
        )  # fmt: skip
    return found
