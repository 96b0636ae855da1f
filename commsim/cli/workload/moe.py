"""``commsim workload moe``: an iteration of a mixture of experts under policies of who sends first."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from commsim.core.errors import InputError
from commsim.core.units import format_time, parse_size
from commsim.report.table import print_table, write_results

from .costs import add_costs, config, costs, n_bytes, seconds

if TYPE_CHECKING:
    from commsim.workload.parallel.layer_parallel import SendingPolicy

COLUMNS = ["policy", "iteration", "exposed", "all-to-all", "all-reduce", "computation"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this verb."""
    add = parser.add_argument
    add("--policy", action="append", metavar="NAME", help="fifo, priority, lina; repeat (all of them)")
    add("--layers", type=int, required=True, metavar="N", help="of attention and experts")
    add("--ranks", type=int, required=True, metavar="N", help="GPUs, which share the experts")
    add("--attention", required=True, metavar="TIME", help="forward time of what is not an expert, of one layer")
    add("--expert", required=True, metavar="TIME", help="forward time of the experts of one GPU, of one layer")
    add("--tokens", required=True, metavar="SIZE", help="that a GPU sends in one all-to-all, its own part too")
    add("--gradients", required=True, metavar="SIZE", help="of the weights of one layer that all GPUs have")
    add("--micro-op", metavar="SIZE", help="of lina's pieces (30MB)")
    add_costs(parser)


def main(args: argparse.Namespace) -> int:
    """Play the policies and print them."""
    from commsim.workload.parallel.layer_parallel import SENDING_POLICIES

    names = args.policy or list(SENDING_POLICIES)
    unknown = [name for name in names if name not in SENDING_POLICIES]
    if unknown:
        raise InputError(f"unknown --policy {unknown[0]!r}; known: {', '.join(SENDING_POLICIES)}")
    if args.micro_op is not None and "lina" not in names:
        raise InputError("--micro-op goes with --policy lina")
    policies = [SENDING_POLICIES[name] for name in names]
    if args.micro_op is not None:
        micro_op = parse_size(args.micro_op, "--micro-op")
        policies = [replace(p, micro_op=micro_op) if p.name == "lina" else p for p in policies]
    rows = [_row(args, policy) for policy in policies]
    times = ("iteration_s", "exposed_comm_s", "all_to_all_s", "all_reduce_s", "compute_s")
    title = f"{args.layers} layers on {args.ranks} GPUs"
    print_table(COLUMNS, [[row["policy"], *(format_time(row[key]) for key in times)] for row in rows], title)
    print(
        f"# shared fairly instead, an all-to-all beside an all-reduce takes up to {rows[0]['shared_slow_down']:.2f} "
        "times as long as alone"
    )
    if args.json:
        write_results(args.json, config(args), rows)
    return 0


def _row(args: argparse.Namespace, policy: SendingPolicy) -> dict[str, Any]:
    from commsim.workload.parallel.layer_parallel import ExpertLayer, expert_graph, shared_slow_down
    from commsim.workload.task_graph import Task, play

    layer = ExpertLayer(*(seconds(args, name) for name in ("attention", "expert")),
                        *(n_bytes(args, name) for name in ("tokens", "gradients")))  # fmt: skip
    time_of = costs(args, args.ranks)
    timeline = play(expert_graph(layer, args.layers, args.ranks, policy), time_of)
    spent = dict.fromkeys(("all_to_all", "all_reduce", ""), 0.0)
    for task, start, end in zip(timeline.graph.tasks, timeline.start, timeline.end, strict=True):
        spent[task.operation] += float(end - start)
    group = tuple(range(args.ranks))
    alone = [
        time_of(Task(op, (), operation=op, group=group, size=size)) if size and args.ranks > 1 else 0.0
        for op, size in (("all_to_all", layer.tokens), ("all_reduce", layer.gradients))
    ]
    return {
        "policy": policy.name,
        "iteration_s": timeline.iteration_time,
        "exposed_comm_s": timeline.exposed_communication,
        "all_to_all_s": spent["all_to_all"],
        "all_reduce_s": spent["all_reduce"],
        "compute_s": spent[""],
        "shared_slow_down": shared_slow_down(*alone) if alone[0] else 1.0,
    }
