"""``commsim workload run``: how long a training iteration takes, and its demand on the network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commsim.cli.flags import DefaultOf, flag, repeated
from commsim.core.errors import InputError
from commsim.core.files.whole_files import write_json
from commsim.core.limits import is_there
from commsim.core.remark import Remark
from commsim.core.units import count_text, format_size, format_time, parse_rate, parse_time, share
from commsim.report.answer import Answer, Facts, Lines, Part, Table, comments, remarks
from commsim.report.hash_columns import ends_of_hashes, with_ends

from .message_flags import costs, exchanges_of, notes_of, shared_note
from .phases import WithPhases

if TYPE_CHECKING:
    from commsim.core.result import OverHashes
    from commsim.training.data_parallel import Training
    from commsim.training.data_parallel_setting import TrainingSetting
    from commsim.training.task_graph import Task, TaskGraph
    from commsim.training.timeline import TaskTimeline

ONLY_TRACE = ("workers", "density", "batch_time", "optimizer_time", "compression", "compressor", "vector_add",
              "add_rate", "straggler", "jitter", "iterations", "policy", "value_bytes")  # fmt: skip

PACKETS = ("preset", "transport", "balancing")
CONTRACT = ("iteration_s", "exposed_comm_s", "scaling")  # of the first policy, also at the top of the JSON
MAX_ROWS = 40
DRAWN = 100  # iterations with --jitter, by default
VALUE_BYTES = DefaultOf("commsim.training.backward_trace:read_backward_trace.value_bytes")


class TrainingConfig(WithPhases):
    """All flags of ``commsim workload run``."""

    trace: str | None = flag(
        metavar="FILE.csv",
        help="gradients: columns numel and gap_us, or nbytes and wait_us; or a published model, such as bert",
    )
    graph: str | None = flag(metavar="FILE.toml", help="an iteration as tasks, in place of a trace")
    workers: int | None = flag(metavar="N", help="number of GPUs that train together, each with its own link")
    density: str | None = flag(
        metavar="D,...",
        help="share of elements that are not zero, one for all tensors or one for each, for sparse collectives in "
        "--algorithm (default: the column density, or 1)",
    )
    policy: tuple[str, ...] = repeated(
        metavar="NAME[:key=value,...]", help="training policy, see `workload policies` (default: ddp); repeatable"
    )
    algorithm: tuple[str, ...] = repeated(
        metavar="OPERATION=NAME", help="collective to use on the network (default: rings); repeatable"
    )
    batch_time: str | None = flag(
        metavar="TIME", help="total computation time of one batch (default: that of the trace)"
    )
    compression: float | None = flag(metavar="X", help="factor by which gradients are compressed (default: 1)")
    compressor: str | None = flag(
        metavar="NAME[:key=value,...]",
        help="with --network: compressor of the gradients in an all-reduce, such as qsgd",
    )
    vector_add: str | None = flag(
        metavar="FILE.csv", help="times to add vectors: columns nbytes and seconds (default: none)"
    )
    add_rate: str | None = flag(
        metavar="RATE", help="in place of --vector-add: rate at which vectors are added, such as 500GB/s"
    )
    optimizer_time: str | None = flag(
        metavar="TIME",
        help="time of the optimiser, in place of the column update_us (default: part of the forward pass)",
    )
    value_bytes: int | None = flag(
        metavar="N", help="bytes of an element, for the column numel (default: %(usual)s)", shown={"usual": VALUE_BYTES}
    )
    straggler: tuple[float, ...] = repeated(
        metavar="X", help="the computation of one worker takes X times as long; repeatable"
    )
    jitter: float | None = flag(
        metavar="SIGMA", help="standard deviation of the logarithm of compute times (default: 0)"
    )
    iterations: int | None = flag(metavar="N", help=f"with --jitter: number of iterations drawn (default: {DRAWN})")
    seed: int | None = flag(metavar="N", help="seed of jitter, of random placement and of ECMP (default: 0)")
    engine: str = flag(
        default="flow", metavar="NAME", choices=("flow", "packet"),
        help="with --graph and --network: flow, or packet (all exchanges packet by packet in one run)",
    )  # fmt: skip
    preset: str | None = flag(
        metavar="NAME",
        help="with --engine packet: uec (NSCC), uec-credit (RCCC), roce, roce-adaptive, swift or ideal",
    )
    transport: str | None = flag(metavar="NAME", help="with --engine packet: transport, as in `run` (default: window)")
    balancing: str | None = flag(
        metavar="NAME", help="with --engine packet: how packets are spread over paths, as in `run`"
    )
    timeline: str | None = flag(
        metavar="FILE.json", help="write trace events of the first iteration, for chrome://tracing"
    )


def run(config: TrainingConfig) -> Answer:
    """Predict iterations from a trace or a graph."""
    if config.engine != "packet" and (flags := config.given(*PACKETS)):
        raise InputError(f"{flags[0]} goes with --engine packet")
    if config.engine == "packet" and config.graph is None:
        raise InputError("--engine packet plays an iteration of tasks: --graph FILE.toml")
    if (config.trace is None) == (config.graph is None):
        text = "give a trace of gradients (--trace FILE.csv) or an iteration (--graph FILE.toml), one of them"
        raise InputError(text)
    if config.graph is not None:
        if flags := config.given(*ONLY_TRACE):
            raise InputError(f"{flags[0]} goes with --trace, not with --graph")
        from commsim.training.hash_ends import spread_of
        from commsim.training.task_graph import read_graph, simulate_graph

        graph, time_of = read_graph(config.graph), costs(config, None, config.algorithm)
        if config.engine == "packet":
            (timeline, said), hashes = _in_packets(config, graph, time_of), None
        else:
            links = exchanges_of(time_of)
            timeline, said = simulate_graph(graph, time_of, links), shared_note(links)
            hashes = spread_of(
                time_of, lambda of: simulate_graph(graph, of, exchanges_of(of)).iteration_time, timeline.iteration_time
            )
        parts = [*remarks((*notes_of(time_of), *said)), *_graph_parts(timeline, config.graph, hashes)]
        parts += _write_files(config, timeline, timeline.graph.n_ranks, time_of)
        results = [timeline.row() | ({} if hashes is None else hashes.row())]
    else:
        setting, said = _setting(config)
        runs = [_train(config, spec, setting) for spec in config.policy or ("ddp",)]
        said += [*notes_of(setting.time_of), *_unused(config, runs)]
        results = [training.row(setting) for training in runs]
        shown = _training(runs[0], results[0]) if len(runs) == 1 else _policies(results, setting)
        parts = [*remarks(said), *shown, *_write_files(config, runs[0].timeline, setting.n_workers, setting.time_of)]
    return Answer(parts, results, more={key: results[0][key] for key in CONTRACT})


def _in_packets(
    config: TrainingConfig, graph: TaskGraph, time_of: Callable[[Task], float]
) -> tuple[TaskTimeline, list[Remark]]:
    """Play a graph packet by packet; return its timeline with remarks."""
    from commsim.packets.packet_options import checked_packets, packets_of, told_transport
    from commsim.training.cost_by_simulation import NetworkCosts
    from commsim.training.graph_in_packets import play_graph

    if not isinstance(time_of, NetworkCosts):
        raise InputError("--engine packet needs a network: --network SPEC")
    options = {name: getattr(config, name) for name in PACKETS if getattr(config, name) is not None}
    how = packets_of(checked_packets(options, None, None), time_of.network)
    step = play_graph(graph, time_of, how, seed=config.seed or 0)
    sent = f"{step.run.packets} data packets, {step.run.packet_hops} packets over links"
    text = f"engine packet, {told_transport(how)}: {sent}, {step.run.cpu:.1f} s of CPU time"
    return step.timeline, [Remark("packets", text)]


def _unused(config: TrainingConfig, runs: Sequence[Training]) -> list[Remark]:
    """Name the algorithms that no exchange of a policy takes: ZeRO's are no all-reduces."""
    notes = []
    for run in runs:
        used = {task.operation for task in run.timeline.graph.tasks if task.operation}
        for text in config.algorithm:
            if text.partition("=")[0] not in used:
                has = f"its exchanges are {', '.join(sorted(used))}" if used else "it exchanges nothing"
                why = f"--algorithm {text}: no effect in {run.policy}, {has}"
                notes.append(Remark("option-unused", why, needed=True))
    return notes


def _train(config: TrainingConfig, spec: str, setting: TrainingSetting) -> Training:
    from commsim.training.data_parallel import train

    if config.iterations is not None and not config.jitter:
        raise InputError("--iterations goes with --jitter: without it every iteration is the same")
    drawn = DRAWN if config.iterations is None else config.iterations
    return train(spec, setting, slowdowns=config.straggler, jitter=config.jitter or 0.0,
                 iterations=drawn if config.jitter else 1, seed=config.seed or 0)  # fmt: skip


def _setting(config: TrainingConfig) -> tuple[TrainingSetting, list[Remark]]:
    """Read what iterations are predicted from; return it with remarks."""
    from commsim.training.backward_trace import read_backward_trace
    from commsim.training.data_parallel_setting import TrainingSetting
    from commsim.training.published_gradients import model_trace, published_models, source_text

    if config.workers is None:
        raise InputError("--trace needs a number of workers: --workers N")
    value_bytes = VALUE_BYTES.value() if config.value_bytes is None else config.value_bytes
    if value_bytes < 1:
        raise InputError(f"--value-bytes must be at least 1, got {value_bytes}")
    batch_time = None if config.batch_time is None else parse_time(config.batch_time, "--batch-time")
    notes: list[Remark] = []
    if config.trace in published_models():
        trace = model_trace(config.trace, batch_time)
        notes.append(Remark("trace", source_text(config.trace)))
    else:
        if "." not in Path(config.trace or "").name and not is_there(config.trace or ""):
            raise InputError(
                f"--trace {config.trace}: no such file, and no published model; these are known: "
                f"{', '.join(published_models())}; a transformer's step is that of `commsim workload step --model`"
            )
        trace = read_backward_trace(config.trace or "", value_bytes)
    if config.density is not None:
        trace = trace.with_density(_shares(config.density))
    if config.optimizer_time is not None:
        trace = trace.with_update_time(parse_time(config.optimizer_time, "--optimizer-time"))
    if batch_time is not None:
        trace = trace.with_compute_time(batch_time)
    compression = 1.0 if config.compression is None else config.compression
    time_of = costs(config, config.workers, config.algorithm, config.compressor)
    if config.density is not None and not _takes_density(time_of):
        raise InputError("--density goes with a sparse collective, such as --algorithm all_reduce=omnireduce")
    setting = TrainingSetting(trace, config.workers, time_of, compression)
    add_time = _add_time(config)
    if add_time is None:
        free = "adding gradients is assumed to take no time; --vector-add FILE or --add-rate RATE set it"
        notes.append(Remark("adding-free", free))
        return setting, notes
    return TrainingSetting(trace, config.workers, time_of, compression, add_time), notes


def _shares(text: str) -> list[float]:
    return [share(part, "--density") for part in text.split(",")]


def _takes_density(time_of: Callable[[Task], float]) -> bool:
    from commsim.training.cost_by_simulation import NetworkCosts

    return isinstance(time_of, NetworkCosts) and time_of.has_sparse


def _add_time(config: TrainingConfig) -> Callable[[float], float] | None:
    if config.vector_add is not None and config.add_rate is not None:
        raise InputError("--vector-add and --add-rate exclude each other")
    if config.vector_add is not None:
        from commsim.training.vector_add import read_vector_add

        return read_vector_add(config.vector_add)
    if config.add_rate is not None:
        rate = parse_rate(config.add_rate, "--add-rate")
        return lambda n_bytes: n_bytes / rate
    return None


def _training(training: Training, row: dict[str, Any]) -> list[Part]:
    """Return the exchanges of the first iteration, and the totals."""
    title = f"{training.policy}, {count_text(row['workers'], 'worker')}: exchanges of the first iteration"
    facts = {
        "iteration": format_time(row["iteration_s"]) + ends_of_hashes(training.hashes),
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
    return [*_exchanges(row["exchanges"], title), Facts(facts)]


def _policies(rows: Sequence[dict[str, Any]], setting: TrainingSetting) -> list[Part]:
    """Return one line for each policy; its exchanges are in the JSON."""
    updates = any(row["optimizer_s"] for row in rows)
    times = ("iteration_s", "compute_s", *(("optimizer_s",) if updates else ()), "exposed_comm_s")
    # Narrow headings beside the optimiser's column, so that a line has 80 characters.
    columns = ["compute", "update"] if updates else ["computation"]
    cells = [
        [
            row["policy"],
            *(format_time(row[key]) for key in times),
            f"{100 * row['scaling']:.2f}",
            f"{len(row['exchanges'])}",
            format_size(row["sent_per_worker_B"]),
        ]
        for row in rows
    ]
    names = ["policy", "iteration", *columns, "exposed", "scaling(%)", "exchanges", "sent"]
    names, cells = with_ends(names, cells, 2, rows)
    title = f"{count_text(setting.n_workers, 'worker')}; the exchanges are in the JSON, or printed for a single policy"
    return [Table(names, cells, title)]


def _graph_parts(timeline: TaskTimeline, name: str, hashes: OverHashes | None) -> list[Part]:
    """Return all tasks of a graph, and the totals."""
    rows = [
        [r["task"], " ".join(r["resources"]) or "-", r.get("operation", "compute"), *_span(r)] for r in timeline.rows()
    ]
    rows, left_out = _shortened(rows)
    table = Table(["task", "resources", "what", "start(ms)", "end(ms)"], rows, f"{name}: tasks{left_out}")
    resources = dict.fromkeys(r for task in timeline.graph.tasks for r in task.resources)
    facts = {
        "iteration": format_time(timeline.iteration_time) + ends_of_hashes(hashes),
        "exposed": f"{format_time(timeline.exposed_communication)} of the worker with the most",
        **{resource: f"busy for {format_time(timeline.busy(resource))}" for resource in resources},
    }
    return [table, Facts(facts)]


def _write_files(
    config: TrainingConfig, timeline: TaskTimeline, n_gpus: int, time_of: Callable[[Task], float]
) -> list[Part]:
    """Write what --timeline and --phases ask for, of the first policy, and say what is written.

    Raises
    ------
    InputError
        If a flag changes nothing, or a file cannot be written.
    """
    config.check_phases()
    written = config.write_phases(timeline, n_gpus, Path(config.trace or config.graph or "").stem, time_of=time_of)
    if config.timeline:
        from commsim.training.timeline import chrome_trace

        write_json(config.timeline, chrome_trace(timeline))
        written.append(Lines([f"{config.timeline}: {len(timeline.graph.tasks)} tasks"]))
    return written


def _exchanges(exchanges: list[dict[str, Any]], title: str) -> list[Part]:
    rows, left_out = _shortened([[r["task"], r["operation"], f"{r['size_B']:.0f}", *_span(r)] for r in exchanges])
    if not rows:
        return comments([f"{title}: none"])
    return [Table(["exchange", "operation", "size(B)", "start(ms)", "end(ms)"], rows, title + left_out)]


def _span(row: dict[str, Any]) -> list[str]:
    return [f"{row[key] * 1e3:.3f}" for key in ("start_s", "end_s")]


def _shortened(rows: list[list[str]]) -> tuple[list[list[str]], str]:
    """Leave out the middle of a long table, and say so."""
    if len(rows) <= MAX_ROWS:
        return rows, ""
    return rows[: MAX_ROWS // 2] + rows[-MAX_ROWS // 2 :], f" ({len(rows) - MAX_ROWS} in the middle left out)"
