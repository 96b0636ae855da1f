"""What ``commsim workload run`` prints and writes."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commsim.core.errors import InputError
from commsim.core.units import format_size, format_time, parse_time
from commsim.files.whole_files import write_json
from commsim.report.table import print_facts, print_table

if TYPE_CHECKING:
    from commsim.workload.data_parallel import Training
    from commsim.workload.setting import Setting
    from commsim.workload.timeline import Timeline

MAX_ROWS = 40


def training_row(training: Training, setting: Setting) -> dict[str, Any]:
    """One policy's result, for JSON."""
    from commsim.workload.data_parallel import sent_bytes

    timeline = training.timeline
    exchanges = [
        {key: row[key] for key in ("task", "operation", "size_B", "start_s", "end_s")}
        for row in timeline.rows()
        if "operation" in row
    ]
    return {
        "policy": training.policy,
        "workers": setting.n_workers,
        "iteration_s": training.iteration_time,
        "exposed_comm_s": training.exposed_communication,
        "scaling": training.scaling,
        "compute_s": training.alone,
        "batches": round(training.alone / setting.trace.compute_time) if training.alone else 1,
        "sent_per_worker_B": sent_bytes(timeline.graph),
        "iteration_times_s": training.times.tolist(),
        "exchanges": exchanges,
    }


def print_training(training: Training, setting: Setting) -> None:
    """Print the exchanges of the first iteration, and the totals."""
    row = training_row(training, setting)
    title = f"{training.policy}, {setting.n_workers} workers: exchanges of the first iteration"
    _print_exchanges(row["exchanges"], title)
    facts = {
        "iteration": format_time(row["iteration_s"]),
        "computation": format_time(row["compute_s"]),
        "exposed": format_time(row["exposed_comm_s"]),
        "scaling": f"{100 * row['scaling']:.2f} %",
        "sent": f"{format_size(row['sent_per_worker_B'])} by each worker",
    }
    if row["batches"] > 1:
        facts["per batch"] = f"{format_time(row['iteration_s'] / row['batches'])}, {row['batches']} to an iteration"
    if len(training.times) > 1:
        fastest, slowest = (format_time(float(t)) for t in (training.times.min(), training.times.max()))
        facts["iterations"] = f"{len(training.times)}, from {fastest} to {slowest}; above are their means"
    print_facts(facts)


def print_policies(trainings: Sequence[Training], setting: Setting) -> None:
    """Print one line for each policy; its exchanges are in the JSON."""
    rows = [training_row(training, setting) for training in trainings]
    print_table(
        ["policy", "iteration", "computation", "exposed", "scaling(%)", "exchanges", "sent"],
        [
            [
                row["policy"],
                *(format_time(row[key]) for key in ("iteration_s", "compute_s", "exposed_comm_s")),
                f"{100 * row['scaling']:.2f}",
                f"{len(row['exchanges'])}",
                format_size(row["sent_per_worker_B"]),
            ]
            for row in rows
        ],
        f"{setting.n_workers} workers; the exchanges are in the JSON, or printed of one policy alone",
    )


def graph_row(timeline: Timeline) -> dict[str, Any]:
    """Make a graph's result, for JSON; compared with an iteration whose communication is all hidden."""
    time, exposed = timeline.iteration_time, timeline.exposed_communication
    scaling = (time - exposed) / time if time else 1.0
    return {"iteration_s": time, "exposed_comm_s": exposed, "scaling": scaling, "tasks": timeline.rows()}


def print_graph(timeline: Timeline, name: str) -> None:
    """Print all tasks of a graph, and the totals."""
    rows = [
        [r["task"], " ".join(r["resources"]) or "-", r.get("operation", "compute"), *_span(r)] for r in timeline.rows()
    ]
    rows, left_out = _shortened(rows)
    print_table(["task", "resources", "what", "start(ms)", "end(ms)"], rows, f"{name}: tasks{left_out}")
    resources = dict.fromkeys(r for task in timeline.graph.tasks for r in task.resources)
    print_facts({
        "iteration": format_time(timeline.iteration_time),
        "exposed": f"{format_time(timeline.exposed_communication)} of the worker with the most",
        **{resource: f"busy for {format_time(timeline.busy(resource))}" for resource in resources},
    })  # fmt: skip


def write_files(args: argparse.Namespace, timeline: Timeline, n_gpus: int) -> None:
    """Write what --timeline and --phases ask for, of the first policy.

    Raises
    ------
    InputError
        If a flag changes nothing, or a file cannot be written.
    """
    for flag in ("phase_gap", "job"):
        if getattr(args, flag) is not None and args.phases is None:
            raise InputError(f"--{flag.replace('_', '-')} changes nothing without --phases")
    if args.phases:
        from commsim.workload.timeline import job_row, link_phases

        gap = 0.0 if args.phase_gap is None else parse_time(args.phase_gap, "--phase-gap")
        name = args.job or Path(args.trace or args.graph).stem
        row = job_row(name, n_gpus, timeline.iteration_time, link_phases(timeline, gap=gap))
        write_json(args.phases, [row])
        print(f"{args.phases}: {len(row['phases'])} phases of a link, period {format_time(timeline.iteration_time)}")
    if args.timeline:
        from commsim.workload.timeline import chrome_trace

        write_json(args.timeline, chrome_trace(timeline))
        print(f"{args.timeline}: {len(timeline.graph.tasks)} tasks")


def _print_exchanges(exchanges: list[dict[str, Any]], title: str) -> None:
    rows, left_out = _shortened([[r["task"], r["operation"], f"{r['size_B']:.0f}", *_span(r)] for r in exchanges])
    if rows:
        print_table(["exchange", "operation", "size(B)", "start(ms)", "end(ms)"], rows, title + left_out)
    else:
        print(f"# {title}: none")


def _span(row: dict[str, Any]) -> list[str]:
    return [f"{row[key] * 1e3:.3f}" for key in ("start_s", "end_s")]


def _shortened(rows: list[list[str]]) -> tuple[list[list[str]], str]:
    """Leave out the middle of a long table, and say so."""
    if len(rows) <= MAX_ROWS:
        return rows, ""
    return rows[: MAX_ROWS // 2] + rows[-MAX_ROWS // 2 :], f" ({len(rows) - MAX_ROWS} in the middle left out)"
