"""``commsim workload pipeline``, ``moe`` and ``reshard``: model-parallel iterations, simulated as graphs of tasks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from commsim.cli.flags import DefaultOf, flag, repeated
from commsim.core.errors import InputError, unknown_name
from commsim.core.remark import Remark
from commsim.core.units import count_text, format_time, parse_size, parse_time
from commsim.report.answer import Answer, Part, Table, remarks
from commsim.report.hash_columns import with_ends

from .message_flags import costs, notes_of
from .phases import WithPhases

if TYPE_CHECKING:
    from commsim.training.parallel.layer_parallel import SendingPolicy
    from commsim.training.parallel.pipeline_orders import PipelineOrder
    from commsim.training.task_graph import Task
    from commsim.training.timeline import TaskTimeline

HOLDS = {
    "eager_1f1b": "when a backward pass takes no less than a forward one, and messages no time",
    "gems": "in the limit of many micro-batches, when a backward pass takes twice as long as a forward one",
    "chimera": "when both passes take the same time and the micro-batches are a multiple of the stages",
}  # of the others whatever passes take; all of them without communication

PIPELINE = ["schedule", "iteration", "bubble(%)", "formula(%)", "exposed", "messages", "copies", "activations held"]
MOE = ["policy", "iteration", "exposed", "all-to-all", "all-reduce", "computation"]

# Names of the schedules.
ORDERS = DefaultOf("commsim.training.parallel.pipeline_orders:ORDERS", ", ".join)


class PipelineConfig(WithPhases):
    """All flags of ``commsim workload pipeline``."""

    schedule: tuple[str, ...] = repeated(
        metavar="NAME", help="%(orders)s (default: 1f1b); repeatable", shown={"orders": ORDERS}
    )
    stages: int = flag(required=True, metavar="D", help="number of workers in a pipeline")
    micro_batches: int = flag(required=True, metavar="N", help="micro-batches of an iteration")
    chunks: int | None = flag(
        metavar="V",
        help="stages on each worker, in the interleaved schedule (default: %(usual)s)",
        shown={"usual": DefaultOf("commsim.training.parallel.pipeline_orders:CHUNKS")},
    )
    forward: str = flag(required=True, metavar="TIME", help="forward time of a micro-batch in all stages of a worker")
    backward: str = flag(required=True, metavar="TIME", help="backward time of a micro-batch on one worker")
    activation: str = flag(
        default="0B", metavar="SIZE", help="data that a micro-batch sends from stage to stage, and back"
    )
    weights: str = flag(default="0B", metavar="SIZE", help="size of the gradients of a worker's part of the model")
    data_parallel: int = flag(default=1, metavar="N", help="pipelines that all-reduce the gradients")
    timeline: str | None = flag(
        metavar="FILE.json", help="write trace events of the first schedule, for chrome://tracing"
    )


def run_pipeline(config: PipelineConfig) -> Answer:
    """Simulate the schedules."""
    from commsim.training.parallel.pipeline import pipeline_row
    from commsim.training.parallel.pipeline_orders import ORDERS

    names = config.schedule or ("1f1b",)
    unknown = [name for name in names if name not in ORDERS]
    if unknown:
        raise unknown_name("--schedule", unknown[0], ORDERS)
    if config.chunks is not None and "interleaved" not in names:
        raise InputError("--chunks goes with --schedule interleaved")
    config.check_phases()
    time_of = costs(config, config.stages * config.data_parallel)
    runs = [_simulate(config, name, time_of) for name in names]
    rows = [
        pipeline_row(order, timeline) | _ends(time_of, partial(_time_of_pipeline, config, name), timeline)
        for name, (order, timeline) in zip(names, runs, strict=True)
    ]
    title = f"{config.stages} stages, {config.micro_batches} micro-batches, {config.data_parallel} pipelines"
    notes = [*notes_of(time_of)]
    notes += [
        Remark(
            "formula",
            f"the formula of {row['schedule']} holds {HOLDS[row['schedule']]}",
            row["bubble_formula"] / row["bubble"] - 1 if row["bubble"] else None,
        )
        for row in rows
        if row["schedule"] in HOLDS and abs(row["bubble"] - row["bubble_formula"]) > 1e-4
    ]
    parts: list[Part] = [Table(*with_ends(PIPELINE, [_text(row) for row in rows], 2, rows), title), *remarks(notes)]
    if config.timeline:
        from commsim.core.files.whole_files import write_json
        from commsim.training.timeline import chrome_trace

        write_json(config.timeline, chrome_trace(runs[0][1]))
    if config.phases:
        from commsim.training.timeline import busiest_rank

        order, timeline = runs[0]
        n_gpus, rank = config.stages * config.data_parallel, busiest_rank(timeline, order.n_workers)
        parts += config.write_phases(timeline, n_gpus, order.name, rank, time_of)
    return Answer(parts, rows)


def _simulate(
    config: PipelineConfig, name: str, time_of: Callable[[Task], float]
) -> tuple[PipelineOrder, TaskTimeline]:
    from commsim.training.parallel.pipeline import StageCosts, pipeline_graph
    from commsim.training.parallel.pipeline_orders import CHUNKS, order_of
    from commsim.training.task_graph import simulate_graph

    order = order_of(name, config.stages, config.micro_batches, CHUNKS if config.chunks is None else config.chunks)
    parts = order.n_stages // order.n_workers
    forward = parse_time(config.forward, "--forward") / parts
    backward = parse_time(config.backward, "--backward") / parts
    if not forward + backward:
        raise InputError("--forward and --backward must not both be 0")
    activation, weights = parse_size(config.activation, "--activation"), parse_size(config.weights, "--weights")
    stage = StageCosts(forward, backward, activation, weights / parts, config.data_parallel)
    return order, simulate_graph(pipeline_graph(order, stage), time_of)


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


class MoeConfig(WithPhases):
    """All flags of ``commsim workload moe``."""

    policy: tuple[str, ...] = repeated(
        metavar="NAME",
        help="fifo, priority, lina or two_micro_batches (default: the first three; with --exchange, two_micro_batches "
        "in place of lina); repeatable",
    )
    layers: int = flag(required=True, metavar="N", help="layers of attention and experts")
    ranks: int = flag(required=True, metavar="N", help="GPUs, among which the experts are divided")
    attention: str = flag(required=True, metavar="TIME", help="forward time of one layer without its experts")
    expert: str = flag(required=True, metavar="TIME", help="forward time of the experts of one GPU in one layer")
    tokens: str | None = flag(metavar="SIZE", help="data that a GPU sends in one all-to-all, including its own part")
    exchange: str | None = flag(
        metavar="KEY=VALUE,...",
        help="in place of --tokens: parameters of ep_dispatch and ep_combine, such as tokens=4096,library=deepep",
    )
    gradients: str = flag(
        required=True, metavar="SIZE", help="size of the gradients, per layer, of the weights that are on all GPUs"
    )
    micro_op: str | None = flag(
        metavar="SIZE",
        help="size of lina's pieces (default: %(usual)s)",
        shown={"usual": DefaultOf("commsim.training.parallel.layer_parallel:LINA_MICRO_OP", "{:g}B".format)},
    )


def run_moe(config: MoeConfig) -> Answer:
    """Simulate the policies."""
    from commsim.training.parallel.layer_parallel import SENDING_POLICIES

    names = config.policy or ["fifo", "priority", "two_micro_batches" if config.exchange else "lina"]
    unknown = [name for name in names if name not in SENDING_POLICIES]
    if unknown:
        raise unknown_name("--policy", unknown[0], SENDING_POLICIES)
    if config.micro_op is not None and "lina" not in names:
        raise InputError("--micro-op goes with --policy lina")
    policies = [SENDING_POLICIES[name] for name in names]
    if config.micro_op is not None:
        micro_op = parse_size(config.micro_op, "--micro-op")
        policies = [replace(p, micro_op=micro_op) if p.name == "lina" else p for p in policies]
    if (config.tokens is None) == (config.exchange is None):
        raise InputError("moe needs --tokens SIZE, or --exchange with the parameters of ep_dispatch; one of them")
    if config.exchange is not None and config.network is None:
        raise InputError("--exchange goes with --network: bytes of a routing differ from rank to rank")
    if config.exchange is not None and "lina" in names:
        raise InputError("--policy lina cuts equal blocks; with --exchange use fifo, priority or two_micro_batches")
    config.check_phases()
    time_of = [costs(config, config.ranks, _exchanges(config, policy.micro_batches)) for policy in policies]
    runs = [_moe_run(config, policy, of) for policy, of in zip(policies, time_of, strict=True)]
    rows = [
        row | _ends(of, partial(_time_of_moe, config, policy), timeline)
        for (row, timeline), policy, of in zip(runs, policies, time_of, strict=True)
    ]
    times = ("iteration_s", "exposed_comm_s", "all_to_all_s", "all_reduce_s", "compute_s")
    title = f"{count_text(config.layers, 'layer')} on {count_text(config.ranks, 'GPU')}"
    slower = rows[0]["shared_slow_down"]
    text = f"shared fairly instead, an all-to-all beside an all-reduce takes up to {slower:.2f} times as long"
    shared = Remark("sharing", text, slower - 1)
    cells = [[row["policy"], *(format_time(row[key]) for key in times)] for row in rows]
    table = Table(*with_ends(MOE, cells, 2, rows), title)
    written = config.write_phases(runs[0][1], config.ranks, policies[0].name, time_of=time_of[0])
    return Answer(
        [table, *remarks([*dict.fromkeys(note for of in time_of for note in notes_of(of)), shared]), *written], rows
    )


def _exchanges(config: MoeConfig, micro_batches: int) -> tuple[str, ...]:
    """Return what a micro-batch's dispatch and combine are; a combine has a precision of its own."""
    if config.exchange is None:
        return ()
    from commsim.core.spec import is_whole, split_spec

    _, options = split_spec(f"ep_dispatch:{config.exchange}")
    text = options.get("tokens", "")
    if not is_whole(text, 18) or int(text) < micro_batches:
        raise InputError(f"--exchange needs tokens=N, at least {micro_batches}, got {text or 'none'}")
    options["tokens"] = str(int(text) // micro_batches)
    back = {key: value for key, value in options.items() if key != "precision"}
    written = [",".join(f"{key}={value}" for key, value in one.items()) for one in (options, back)]
    return tuple(f"{name}={name}:{one}" for name, one in zip(("ep_dispatch", "ep_combine"), written, strict=True))


def _moe_run(
    config: MoeConfig, policy: SendingPolicy, time_of: Callable[[Task], float]
) -> tuple[dict[str, Any], TaskTimeline]:
    from commsim.training.parallel.layer_parallel import EQUAL_BLOCKS, ROUTED, ExpertLayer, expert_row

    times = parse_time(config.attention, "--attention"), parse_time(config.expert, "--expert")
    tokens = 1.0 if config.tokens is None else parse_size(config.tokens, "--tokens")  # of a routing it has its own
    layer = ExpertLayer(
        *times, tokens, parse_size(config.gradients, "--gradients"),
        exchange=EQUAL_BLOCKS if config.exchange is None else ROUTED,
    )  # fmt: skip
    return expert_row(layer, config.layers, config.ranks, policy, time_of)


def _time_of_pipeline(config: PipelineConfig, name: str, time_of: Callable[[Task], float]) -> float:
    return _simulate(config, name, time_of)[1].iteration_time


def _time_of_moe(config: MoeConfig, policy: SendingPolicy, time_of: Callable[[Task], float]) -> float:
    return _moe_run(config, policy, time_of)[1].iteration_time


def _ends(
    time_of: Callable[[Task], float], total: Callable[[Callable[[Task], float]], float], timeline: TaskTimeline
) -> dict[str, float]:
    """Return the part of a JSON row on hashes of routes."""
    from commsim.training.hash_ends import spread_of

    hashes = spread_of(time_of, total, timeline.iteration_time)
    return {} if hashes is None else hashes.row()
