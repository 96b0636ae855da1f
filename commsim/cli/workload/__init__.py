"""``commsim workload``: how long a training iteration takes, and what it asks of the network.

Chakra execution traces are not read here.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING

from commsim.core.errors import InputError
from commsim.core.units import parse_bandwidth, parse_time
from commsim.report.table import write_results

from .costs import add_costs, config, costs
from .output import graph_row, print_graph, print_policies, print_training, training_row, write_files

if TYPE_CHECKING:
    from commsim.workload.data_parallel import Training
    from commsim.workload.setting import Setting
    from commsim.workload.task_graph import Task

ONLY_TRACE = ("workers", "batch_time", "compression", "vector_add", "add_rate", "straggler", "jitter", "iterations",
              "seed", "policy", "value_bytes")  # fmt: skip

GRAPHS = {
    "pipeline": "pipeline schedules: iteration time and bubble, beside the published formula",
    "moe": "a mixture of experts: all-to-all and all-reduce, first come first served or by priority",
    "reshard": "a piece of a tensor from one mesh to another: send-recv, all-gather, broadcast",
    "share": "several jobs on one network, iteration after iteration: what each loses, and on which links",
    "systems": "published training systems (KungFu, PipeDream, Gemini, ...), each with its parameters",
}

CONTRACT = ("iteration_s", "exposed_comm_s", "scaling")  # of the first policy, also at the top of the JSON


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verbs of this verb."""
    verbs = parser.add_subparsers(dest="what", required=True, metavar="|".join(("run", "policies", *GRAPHS)))
    run = verbs.add_parser("run", help="predict iterations from a trace of gradients, or from a graph of tasks")
    listing = verbs.add_parser("policies", help="list the policies, with their parameters")
    for verb, what in GRAPHS.items():
        _graph_verb(verb).add_arguments(verbs.add_parser(verb, help=what, description=what[0].upper() + what[1:] + "."))
    add = run.add_argument
    add("--trace", metavar="FILE.csv", help="gradients: columns numel and gap_us, or nbytes and wait_us")
    add("--graph", metavar="FILE.toml", help="an iteration as tasks, instead of a trace")
    add("--workers", type=int, metavar="N", help="GPUs that train together, one to a link")
    add("--policy", action="append", metavar="NAME[:key=value,...]", help="see `workload policies`; repeat (ddp)")
    add_costs(run)
    add("--algorithm", action="append", metavar="OPERATION=NAME", help="collective on the network; repeat (rings)")
    add("--batch-time", metavar="TIME", help="computation of one batch (backward pass and the usual share of forward)")
    add("--compression", type=float, metavar="X", help="gradients are sent as this many times fewer bytes (1)")
    add("--vector-add", metavar="FILE.csv", help="time of adding vectors: columns nbytes and seconds (free)")
    add("--add-rate", metavar="RATE", help="instead of that, how fast vectors are added, such as 500GB/s")
    add("--value-bytes", type=int, metavar="N", help="bytes of an element, for the column numel (4)")
    add("--straggler", action="append", type=float, metavar="X", help="a worker takes X times as long; repeat")
    add("--jitter", type=float, metavar="SIGMA", help="standard deviation of the logarithm of compute times (0)")
    add("--iterations", type=int, metavar="N", help="with jitter, how many are drawn (100)")
    add("--seed", type=int, metavar="N", help="of jitter, and of random placement and ECMP (0)")
    add("--timeline", metavar="FILE.json", help="write trace events of the first iteration, for chrome://tracing")
    add("--phases", metavar="FILE.json", help="write the link's demand over time as a jobs.json")
    add("--phase-gap", metavar="TIME", help="phases that are no further apart become one (0 s)")
    add("--job", metavar="NAME", help="name of the job in --phases (the file's)")
    listing.add_argument("--json", metavar="FILE", help="also write the results as JSON")


def main(args: argparse.Namespace) -> int:
    """Do what was asked for."""
    if args.what in GRAPHS:
        return int(_graph_verb(args.what).main(args))
    return _policies(args) if args.what == "policies" else _run(args)


def _graph_verb(verb: str) -> ModuleType:
    return importlib.import_module(f"commsim.cli.workload.{verb}")


def _policies(args: argparse.Namespace) -> int:
    from commsim.workload.policies import TRAINING_POLICIES

    rows = [{"policy": name, "parameters": [k for k in TRAINING_POLICIES[name].parameters if k != "setting"],
             "summary": TRAINING_POLICIES[name].summary} for name in TRAINING_POLICIES]  # fmt: skip
    for row in rows:
        given = f":{','.join(row['parameters'])}" if row["parameters"] else ""
        print(f"{row['policy']}{given}\n    {row['summary']}")
    if args.json:
        write_results(args.json, {"what": "policies"}, rows)
    return 0


def _run(args: argparse.Namespace) -> int:
    if (args.trace is None) == (args.graph is None):
        raise InputError(
            "give a trace of gradients (--trace FILE.csv) or an iteration (--graph FILE.toml), one of them"
        )
    if args.graph is not None:
        given = [name for name in ONLY_TRACE if getattr(args, name) is not None and name != "seed"]
        if given:
            raise InputError(f"--{given[0].replace('_', '-')} goes with --trace, not with --graph")
        from commsim.workload.task_graph import play, read_graph

        timeline = play(read_graph(args.graph), costs(args, None))
        print_graph(timeline, args.graph)
        write_files(args, timeline, _ranks(timeline.graph.tasks))
        results = [graph_row(timeline)]
    else:
        setting = _setting(args)
        runs = [_train(args, spec, setting) for spec in args.policy or ["ddp"]]
        if len(runs) == 1:
            print_training(runs[0], setting)
        else:
            print_policies(runs, setting)
        write_files(args, runs[0].timeline, setting.n_workers)
        results = [training_row(training, setting) for training in runs]
    if args.json:
        write_results(args.json, config(args), results, **{key: results[0][key] for key in CONTRACT})
    return 0


def _ranks(tasks: tuple[Task, ...]) -> int:
    return max((max(task.group) for task in tasks if task.group), default=0) + 1


def _train(args: argparse.Namespace, spec: str, setting: Setting) -> Training:
    from commsim.workload.data_parallel import train

    if args.iterations is not None and not args.jitter:
        raise InputError("--iterations goes with --jitter: without it every iteration is the same")
    drawn = 100 if args.iterations is None else args.iterations
    return train(spec, setting, slowdowns=args.straggler or (), jitter=args.jitter or 0.0,
                 iterations=drawn if args.jitter else 1, seed=args.seed or 0)  # fmt: skip


def _setting(args: argparse.Namespace) -> Setting:
    from commsim.workload.backward_trace import read_backward_trace
    from commsim.workload.setting import Setting

    if args.workers is None:
        raise InputError("--trace needs a number of workers: --workers N")
    value_bytes = 4 if args.value_bytes is None else args.value_bytes
    if value_bytes < 1:
        raise InputError(f"--value-bytes must be at least 1, got {value_bytes}")
    trace = read_backward_trace(args.trace, value_bytes)
    if args.batch_time is not None:
        trace = trace.with_compute_time(parse_time(args.batch_time, "--batch-time"))
    compression = 1.0 if args.compression is None else args.compression
    setting = Setting(trace, args.workers, costs(args, args.workers), compression)
    add_time = _add_time(args)
    return setting if add_time is None else Setting(trace, args.workers, setting.time_of, compression, add_time)


def _add_time(args: argparse.Namespace) -> Callable[[float], float] | None:
    if args.vector_add is not None and args.add_rate is not None:
        raise InputError("--vector-add and --add-rate say the same: give one of them")
    if args.vector_add is not None:
        from commsim.workload.backward_trace import read_vector_add

        return read_vector_add(args.vector_add)
    if args.add_rate is not None:
        rate = parse_bandwidth(args.add_rate, "--add-rate")
        return lambda n_bytes: n_bytes / rate
    print("# adding gradients is taken as free; --vector-add FILE or --add-rate RATE say what it takes")
    return None
