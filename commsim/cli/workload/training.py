"""``commsim workload run`` and ``policies``: how long a training iteration takes, and its demand on the network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commsim.core.errors import InputError
from commsim.core.units import format_size, format_time, parse_bandwidth, parse_time
from commsim.files.whole_files import write_json
from commsim.report.table import print_facts, print_remarks, print_table

from ..flags import WithJson, flag, repeated
from .costs import costs
from .phases import WithPhases

if TYPE_CHECKING:
    from commsim.workload.data_parallel import Training
    from commsim.workload.setting import Setting
    from commsim.workload.task_graph import Task
    from commsim.workload.timeline import Timeline

ONLY_TRACE = ("workers", "density", "batch_time", "optimizer_time", "compression", "compressor", "vector_add",
              "add_rate", "straggler", "jitter", "iterations", "policy", "value_bytes")  # fmt: skip

CONTRACT = ("iteration_s", "exposed_comm_s", "scaling")  # of the first policy, also at the top of the JSON


class Config(WithPhases):
    """All flags of ``commsim workload run``."""

    trace: str | None = flag(
        metavar="FILE.csv",
        help="gradients: columns numel and gap_us, or nbytes and wait_us; or a published model, such as bert",
    )
    graph: str | None = flag(metavar="FILE.toml", help="an iteration as tasks, in place of a trace")
    workers: int | None = flag(metavar="N", help="number of GPUs that train together, each with its own link")
    density: str | None = flag(
        metavar="D,...",
        help="non-zero share of all tensors, or of each, for sparse collectives in --algorithm (default: the column"
        " density, or 1)",
    )
    policy: tuple[str, ...] = repeated(
        metavar="NAME[:key=value,...]", help="see `workload policies` (default: ddp); repeatable"
    )
    algorithm: tuple[str, ...] = repeated(
        metavar="OPERATION=NAME", help="collective to use on the network (default: rings); repeatable"
    )
    batch_time: str | None = flag(
        metavar="TIME", help="computation of one batch (backward pass and the usual share of forward)"
    )
    compression: float | None = flag(metavar="X", help="factor by which gradients are compressed (default: 1)")
    compressor: str | None = flag(
        metavar="NAME[:key=value,...]", help="with --network: of the gradients of an all-reduce, such as qsgd"
    )
    vector_add: str | None = flag(
        metavar="FILE.csv", help="time of adding vectors: columns nbytes and seconds (default: none)"
    )
    add_rate: str | None = flag(metavar="RATE", help="in place of --vector-add: rate of adding, such as 500GB/s")
    optimizer_time: str | None = flag(
        metavar="TIME",
        help="time of the optimiser, in place of the column update_us (default: part of the forward pass)",
    )
    value_bytes: int | None = flag(metavar="N", help="bytes of an element, for the column numel (default: 4)")
    straggler: tuple[float, ...] = repeated(metavar="X", help="one worker computes X times as long; repeatable")
    jitter: float | None = flag(
        metavar="SIGMA", help="standard deviation of the logarithm of compute times (default: 0)"
    )
    iterations: int | None = flag(metavar="N", help="with --jitter: number of iterations drawn (default: 100)")
    seed: int | None = flag(metavar="N", help="seed of jitter, of random placement and of ECMP (default: 0)")
    timeline: str | None = flag(
        metavar="FILE.json", help="write trace events of the first iteration, for chrome://tracing"
    )


def list_policies(config: WithJson) -> None:
    """Print the policies, with their parameters."""
    from commsim.workload.policies import TRAINING_POLICIES

    rows = [{"policy": name, "parameters": [k for k in TRAINING_POLICIES[name].parameters if k != "setting"],
             "summary": TRAINING_POLICIES[name].summary} for name in TRAINING_POLICIES]  # fmt: skip
    for row in rows:
        given = f":{','.join(row['parameters'])}" if row["parameters"] else ""
        print(f"{row['policy']}{given}\n    {row['summary']}")
    config.write_json(rows, {"what": "policies"})


def run(config: Config) -> None:
    """Predict iterations from a trace or a graph, and print them."""
    if (config.trace is None) == (config.graph is None):
        raise InputError(
            "give a trace of gradients (--trace FILE.csv) or an iteration (--graph FILE.toml), one of them"
        )
    if config.graph is not None:
        if given := config.given(*ONLY_TRACE):
            raise InputError(f"{given[0]} goes with --trace, not with --graph")
        from commsim.workload.task_graph import read_graph, simulate_graph

        timeline = simulate_graph(read_graph(config.graph), costs(config, None, config.algorithm, config.seed or 0))
        print_graph(timeline, config.graph)
        _write_files(config, timeline, _ranks(timeline.graph.tasks))
        results = [graph_row(timeline)]
    else:
        from commsim.workload.cost_of import NetworkCosts

        setting = _setting(config)
        runs = [_train(config, spec, setting) for spec in config.policy or ("ddp",)]
        for note in setting.time_of.notes() if isinstance(setting.time_of, NetworkCosts) else ():
            print(f"# {note}")
        print_remarks(_unused(config, runs))
        if len(runs) == 1:
            print_training(runs[0], setting)
        else:
            print_policies(runs, setting)
        _write_files(config, runs[0].timeline, setting.n_workers)
        results = [training_row(training, setting) for training in runs]
    config.write_json(results, **{key: results[0][key] for key in CONTRACT})


def _unused(config: Config, runs: Sequence[Training]) -> list[str]:
    """Say which algorithms no exchange of a policy takes: ZeRO's are no all-reduces."""
    lines = []
    for run in runs:
        used = {task.operation for task in run.timeline.graph.tasks if task.operation}
        for text in config.algorithm:
            if text.partition("=")[0] not in used:
                has = f"its exchanges are {', '.join(sorted(used))}" if used else "it exchanges nothing"
                lines.append(f"--algorithm {text}: no effect in {run.policy}, {has}")
    return lines


def _ranks(tasks: tuple[Task, ...]) -> int:
    return max((max(task.group) for task in tasks if task.group), default=0) + 1


def _train(config: Config, spec: str, setting: Setting) -> Training:
    from commsim.workload.data_parallel import train

    if config.iterations is not None and not config.jitter:
        raise InputError("--iterations goes with --jitter: without it every iteration is the same")
    drawn = 100 if config.iterations is None else config.iterations
    return train(spec, setting, slowdowns=config.straggler, jitter=config.jitter or 0.0,
                 iterations=drawn if config.jitter else 1, seed=config.seed or 0)  # fmt: skip


def _setting(config: Config) -> Setting:
    from commsim.workload.backward_trace import read_backward_trace
    from commsim.workload.published_models import model_trace, published_models, told
    from commsim.workload.setting import Setting

    if config.workers is None:
        raise InputError("--trace needs a number of workers: --workers N")
    value_bytes = 4 if config.value_bytes is None else config.value_bytes
    if value_bytes < 1:
        raise InputError(f"--value-bytes must be at least 1, got {value_bytes}")
    batch_time = None if config.batch_time is None else parse_time(config.batch_time, "--batch-time")
    if config.trace in published_models():
        trace = model_trace(config.trace, batch_time)
        print(f"# {told(config.trace)}")
    else:
        trace = read_backward_trace(config.trace or "", value_bytes)
    if config.density is not None:
        trace = trace.with_density(_shares(config.density))
    if config.optimizer_time is not None:
        trace = trace.with_update_time(parse_time(config.optimizer_time, "--optimizer-time"))
    if batch_time is not None:
        trace = trace.with_compute_time(batch_time)
    compression = 1.0 if config.compression is None else config.compression
    time_of = costs(config, config.workers, config.algorithm, config.seed or 0, config.compressor)
    if config.density is not None and not _takes_density(time_of):
        raise InputError("--density goes with a sparse collective, such as --algorithm all_reduce=omnireduce")
    setting = Setting(trace, config.workers, time_of, compression)
    add_time = _add_time(config)
    return setting if add_time is None else Setting(trace, config.workers, time_of, compression, add_time)


def _shares(text: str) -> list[float]:
    try:
        return [float(share) for share in text.split(",")]
    except ValueError:
        raise InputError(f"--density takes shares such as 0.01 or 0.01,0.1, got {text!r}") from None


def _takes_density(time_of: Callable[[Task], float]) -> bool:
    from commsim.workload.cost_of import ALGORITHMS, NetworkCosts

    return isinstance(time_of, NetworkCosts) and any(map(time_of.is_sparse, ALGORITHMS))


def _add_time(config: Config) -> Callable[[float], float] | None:
    if config.vector_add is not None and config.add_rate is not None:
        raise InputError("--vector-add and --add-rate exclude each other")
    if config.vector_add is not None:
        from commsim.workload.backward_trace import read_vector_add

        return read_vector_add(config.vector_add)
    if config.add_rate is not None:
        rate = parse_bandwidth(config.add_rate, "--add-rate")
        return lambda n_bytes: n_bytes / rate
    print("# adding gradients is assumed to take no time; --vector-add FILE or --add-rate RATE set it")
    return None


MAX_ROWS = 40
UPDATES = ("optimiser", "update ")  # what tasks of the optimiser are called


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
        "optimizer_s": optimizer_time(timeline),
        "batches": round(training.alone / setting.trace.compute_time) if training.alone else 1,
        "sent_per_worker_B": sent_bytes(timeline.graph, time_of=setting.time_of),
        "iteration_times_s": training.times.tolist(),
        "exchanges": exchanges,
    }


def optimizer_time(timeline: Timeline) -> float:
    """Seconds in which a worker updates parameters."""
    tasks = zip(timeline.graph.tasks, (timeline.end - timeline.start).tolist(), strict=True)
    return float(sum(seconds for task, seconds in tasks if task.name.startswith(UPDATES)))


def print_training(training: Training, setting: Setting) -> None:
    """Print the exchanges of the first iteration, and the totals."""
    row = training_row(training, setting)
    title = f"{training.policy}, {setting.n_workers} workers: exchanges of the first iteration"
    _print_exchanges(row["exchanges"], title)
    facts = {
        "iteration": format_time(row["iteration_s"]),
        "computation": format_time(row["compute_s"]),
        **({"optimiser": f"{format_time(row['optimizer_s'])} of it"} if row["optimizer_s"] else {}),
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
    updates = any(row["optimizer_s"] for row in rows)
    times = ("iteration_s", "compute_s", *(("optimizer_s",) if updates else ()), "exposed_comm_s")
    # Narrow headings beside the optimiser's column, so that a line has 80 characters.
    columns = ["compute", "update"] if updates else ["computation"]
    print_table(
        ["policy", "iteration", *columns, "exposed", "scaling(%)", "exchanges", "sent"],
        [
            [
                row["policy"],
                *(format_time(row[key]) for key in times),
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


def _write_files(config: Config, timeline: Timeline, n_gpus: int) -> None:
    """Write what --timeline and --phases ask for, of the first policy.

    Raises
    ------
    InputError
        If a flag changes nothing, or a file cannot be written.
    """
    config.check_phases()
    config.write_phases(timeline, n_gpus, Path(config.trace or config.graph or "").stem)
    if config.timeline:
        from commsim.workload.timeline import chrome_trace

        write_json(config.timeline, chrome_trace(timeline))
        print(f"{config.timeline}: {len(timeline.graph.tasks)} tasks")


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
