"""``commsim workload pipeline``: how long an iteration of a pipeline takes, and how much of it is bubble."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from commsim.core.errors import InputError
from commsim.core.units import format_time
from commsim.report.table import print_table, write_results

from .costs import add_costs, config, costs, n_bytes, seconds

if TYPE_CHECKING:
    from commsim.workload.parallel.pipeline_orders import PipelineOrder
    from commsim.workload.timeline import Timeline

HOLDS = {
    "eager_1f1b": "when a backward pass takes no less than a forward one, and messages no time",
    "gems": "in the limit of many micro-batches, when a backward pass takes twice as long as a forward one",
    "chimera": "when both passes take the same time and the micro-batches are a multiple of the stages",
}  # of the others whatever passes take; all of them without communication

COLUMNS = ["schedule", "iteration", "bubble(%)", "formula(%)", "exposed", "messages", "copies", "activations held"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this verb."""
    add = parser.add_argument
    add(
        "--schedule",
        action="append",
        metavar="NAME",
        help="gpipe, 1f1b, eager_1f1b, interleaved, gems, chimera; repeat (1f1b)",
    )
    add("--stages", type=int, required=True, metavar="D", help="workers of a pipeline")
    add("--micro-batches", type=int, required=True, metavar="N", help="of an iteration")
    add("--chunks", type=int, metavar="V", help="stages on each worker, of the interleaved schedule (2)")
    add("--forward", required=True, metavar="TIME", help="of a micro-batch on one worker, all its stages together")
    add("--backward", required=True, metavar="TIME", help="of a micro-batch on one worker")
    add("--activation", metavar="SIZE", help="that a micro-batch sends from stage to stage, and back (0 B)")
    add("--weights", metavar="SIZE", help="gradients of one worker's part of the model, to be all-reduced (0 B)")
    add("--data-parallel", type=int, default=1, metavar="N", help="pipelines that share the gradients (1)")
    add("--timeline", metavar="FILE.json", help="write trace events of the first schedule, for chrome://tracing")
    add_costs(parser)


def main(args: argparse.Namespace) -> int:
    """Play the schedules and print them."""
    from commsim.workload.parallel.pipeline_orders import ORDERS

    names = args.schedule or ["1f1b"]
    unknown = [name for name in names if name not in ORDERS]
    if unknown:
        raise InputError(f"unknown --schedule {unknown[0]!r}; known: {', '.join(ORDERS)}")
    if args.chunks is not None and "interleaved" not in names:
        raise InputError("--chunks goes with --schedule interleaved")
    runs = [_play(args, name) for name in names]
    rows = [_row(order, timeline) for order, timeline in runs]
    title = f"{args.stages} stages, {args.micro_batches} micro-batches, {args.data_parallel} pipelines side by side"
    print_table(COLUMNS, [_text(row) for row in rows], title)
    for row in rows:
        if row["schedule"] in HOLDS and abs(row["bubble"] - row["bubble_formula"]) > 1e-4:
            print(f"# the formula of {row['schedule']} holds {HOLDS[row['schedule']]}")
    if args.timeline:
        from commsim.files.whole_files import write_json
        from commsim.workload.timeline import chrome_trace

        write_json(args.timeline, chrome_trace(runs[0][1]))
    if args.json:
        write_results(args.json, config(args), rows)
    return 0


def _play(args: argparse.Namespace, name: str) -> tuple[PipelineOrder, Timeline]:
    from commsim.workload.parallel.pipeline import StageCosts, pipeline_graph
    from commsim.workload.parallel.pipeline_orders import ORDERS, interleaved
    from commsim.workload.task_graph import play

    if name == "interleaved":
        order = interleaved(args.stages, args.micro_batches, 2 if args.chunks is None else args.chunks)
    else:
        order = ORDERS[name](args.stages, args.micro_batches)
    parts = order.n_stages // order.n_workers
    forward, backward = seconds(args, "forward") / parts, seconds(args, "backward") / parts
    if not forward + backward:
        raise InputError("--forward and --backward must not both be 0")
    stage = StageCosts(
        forward, backward, n_bytes(args, "activation"), n_bytes(args, "weights") / parts, args.data_parallel
    )
    return order, play(pipeline_graph(order, stage), costs(args, order.n_workers * args.data_parallel))


def _row(order: PipelineOrder, timeline: Timeline) -> dict[str, Any]:
    from commsim.workload.parallel.pipeline import bubble
    from commsim.workload.parallel.pipeline_orders import ideal_bubble

    formula = ideal_bubble(order.name, order.n_workers, order.n_micro_batches, order.n_stages // order.n_workers)
    return {
        "schedule": order.name,
        "stages": order.n_workers,
        "micro_batches": order.n_micro_batches,
        "iteration_s": timeline.iteration_time,
        "bubble": bubble(timeline, order.n_workers),
        "bubble_formula": float(formula),
        "exposed_comm_s": timeline.exposed_communication,
        "messages": sum(task.operation == "send" for task in timeline.graph.tasks),
        "weight_copies": 2 if order.name in ("gems", "chimera") else 1,
        "peak_activations": list(order.peak_activations),
    }


def _text(row: dict[str, Any]) -> list[str]:
    held = [f"{peak:g}" for peak in (min(row["peak_activations"]), max(row["peak_activations"]))]
    return [
        row["schedule"],
        format_time(row["iteration_s"]),
        f"{100 * row['bubble']:.2f}",
        f"{100 * row['bubble_formula']:.2f}",
        format_time(row["exposed_comm_s"]),
        str(row["messages"]),
        str(row["weight_copies"]),
        "-".join(dict.fromkeys(held)),
    ]
