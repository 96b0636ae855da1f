"""``commsim synthesize``: the fastest schedule for a network, with a proven lower bound."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from commsim.cli.flags import TOPOLOGY, CostFlags, DefaultOf, Placing, Sizes, Verb, WithJson, flag, switched
from commsim.cli.flags.faults import Faults
from commsim.core.errors import InputError
from commsim.core.limits import EXPECTED, check_room_for_libraries
from commsim.core.operations import OPERATIONS, operation
from commsim.core.remark import Remark
from commsim.core.units import count_text, microseconds, parse_time
from commsim.prediction.options import COSTS
from commsim.report.answer import Answer, Lines, Part, Table, comments, remarks

if TYPE_CHECKING:
    from commsim.core.network import Network
    from commsim.ranking.synthesis.made_schedules import TimedSchedule
    from commsim.ranking.synthesis.synthesize import Synthesis

EXAMPLES = {
    "synthesize": """
        commsim synthesize --topology ring:n_hosts=4 --operation all_gather -b 1M -e 1M
        commsim synthesize --topology star:n_hosts=4 --operation all_reduce -b 1M -e 1M
        commsim synthesize --topology ring:n_hosts=4 --operation all_gather -b 1M -e 1M -o ring.npz
        commsim synthesize --topology ring:n_hosts=4 --operation all_gather -b 1M -e 1M --scale 'link:h1:*=0.5'
        commsim synthesize --topology star:n_hosts=4 --operation ep_dispatch""",
}

FAULT_COLUMNS = ["size(B)", "running", "whole(us)", "faults(us)", "faults/whole", "repaired(us)", "repaired/whole"]


class SynthesizeConfig(Faults, CostFlags, Sizes, Placing, WithJson):
    """All flags of ``commsim synthesize``."""

    topology: str = flag(required=True, metavar=TOPOLOGY, help="network, such as star:n_hosts=8; latency= is per link")
    operation: str = flag(required=True, choices=OPERATIONS, metavar="NAME", help=", ".join(OPERATIONS))
    exchange: str | None = flag(
        metavar="KEY=VALUE,...",
        help="parameters of ep_dispatch or ep_combine; the bound holds for these tokens and experts",
    )
    root: int = flag(default=0, metavar="RANK", help="root of the operation")
    time_limit: str | None = flag(metavar="TIME", help="start no new attempt after this time, such as 60s")
    max_messages: int = flag(
        default=DefaultOf("commsim.ranking.synthesis.made_schedules:MAX_MESSAGES"),
        metavar="N",
        help="largest number of messages of a schedule that is tried",
    )
    no_textbook: bool = switched(help="do not try the registered collectives")
    output: str | None = flag("-o", metavar="FILE.npz", help="write the schedule; with one size only")
    msccl: str | None = flag(metavar="DIR", help="write an MSCCL file for each range of sizes")
    running: str | None = flag(
        metavar="NAME|FILE.npz",
        help="schedule in use before the faults, for comparison (default: the fastest registered collective)",
    )
    tuner_csv: str | None = flag(
        metavar="FILE", help="write rules with which NCCL's tuner plugin chooses the best of NCCL's own algorithms"
    )


def run(config: SynthesizeConfig) -> Answer:
    """Make schedules, and write them."""
    check_room_for_libraries()
    op = operation(config.operation)
    if op.layout == "runs":
        return run_exchange(config)
    if config.exchange is not None:
        raise InputError(f"--exchange goes with ep_dispatch and ep_combine, got --operation {op.name}")
    sizes = config.sizes()
    from commsim.ranking.synthesis.ready import NAME, operation_of

    operation_of(f"{NAME}_{op.name}")
    if config.output and (len(sizes) > 1 or Path(config.output).suffix != ".npz"):
        raise InputError(f"-o takes a .npz file, and one size (-b equal to -e), got {config.output} and {len(sizes)}")
    if config.max_messages < 1:
        raise InputError(f"--max-messages must be at least 1, got {config.max_messages}")
    limit = None if config.time_limit is None else parse_time(config.time_limit, "--time-limit")
    from commsim.prediction.inputs import load_network
    from commsim.prediction.read import changed_network, scenario_of
    from commsim.ranking.synthesis.cost_of_faults import synthesize_for
    from commsim.ranking.tables_of_questions import crossovers_of_synthesis, table_of_synthesis

    loaded, has_faults = load_network(config.topology), bool(config.fail or config.scale)
    options: dict[str, Any] = {name: getattr(config, name) for name in COSTS}
    scenario = scenario_of(
        "", loaded, n_ranks=config.ranks, placement=config.placement, fail=config.fail, scale=config.scale,
        seed=config.seed, **options,
    )  # fmt: skip
    synthesis = synthesize_for(
        scenario, op.name, sizes, whole=changed_network(loaded, **options)[0] if has_faults else None,
        running=config.running, root=config.root, time_limit=limit, max_messages=config.max_messages,
        textbook=not config.no_textbook, report=_progress,
    )  # fmt: skip
    parts: list[Part] = [
        table_of_synthesis(synthesis),
        *_table_of_faults(synthesis),
        *crossovers_of_synthesis(synthesis),
    ]
    parts += remarks(synthesis.remarks)
    if config.output:
        parts += comments([_write(synthesis.network, synthesis.best(sizes[0]), config.output)])
    if config.msccl:
        from commsim.ranking.synthesis.msccl_rules import write_rules

        written = write_rules(op.name, synthesis.ranges(), config.msccl)
        parts += remarks(Remark("not-written", one.note, needed=True) for one in written if one.note)
        parts.append(Lines([f"{config.msccl}: {count_text(len(written), 'MSCCL file')}"]))
    if config.tuner_csv:
        parts.append(Lines([_write_tuner(synthesis, synthesis.n_ranks, config.tuner_csv)]))
    more = {
        "cost_of_faults": [fault.row() for fault in synthesis.faults],
        "ranges": [
            {"low_B": size_range.low, "high_B": size_range.high, "chosen": size_range.method}
            for size_range in synthesis.ranges()
        ],
        "notes": [str(note) for note in synthesis.notes],
    }
    return Answer(parts, [synthesis.row(size) for size in synthesis.candidates], more=more)


def run_exchange(config: SynthesizeConfig) -> Answer:
    """Bound an exchange of experts of a given routing."""
    from commsim.prediction.inputs import load_network
    from commsim.prediction.read import scenario_of
    from commsim.ranking.synthesis.expert_exchange import bound_of_routing

    if config.output or config.msccl or config.running or config.tuner_csv:
        raise InputError(f"{config.operation}: its bound is given, and no schedule is made or written")
    options: dict[str, Any] = {name: getattr(config, name) for name in COSTS}
    scenario = scenario_of(
        "", load_network(config.topology), n_ranks=config.ranks, placement=config.placement, fail=config.fail,
        scale=config.scale, seed=config.seed, **options,
    )  # fmt: skip
    bound = bound_of_routing(scenario, config.operation, config.exchange or "")
    cells = [
        [mode, microseconds(time), microseconds(bound.bound), f"{time / bound.bound:.3f}x" if bound.bound else "-"]
        for mode, time in bound.times.items()
    ]
    table = Table(["way", "time(us)", "bound(us)", "times bound"], cells, f"{config.operation}, links alone")
    notes = (Remark("limited-by", f"limited by {bound.why}", needed=True), *bound.notes)
    return Answer(
        [table, *remarks(notes)],
        [bound.row()],
        more={"cost_of_faults": [], "ranges": [], "notes": [str(one) for one in notes]},
    )


def _table_of_faults(synthesis: Synthesis) -> list[Part]:
    """Return what the faults cost with the schedule that runs without them, and with the one made for them."""
    if not synthesis.faults:
        return []
    cells = []
    for fault in synthesis.faults:
        now = ("-", "fails") if fault.faulted is None else (microseconds(fault.faulted), f"{fault.cost:.3f}x")
        repaired = microseconds(fault.repaired), f"{fault.repaired_cost:.3f}x"
        cells.append([f"{fault.size}", fault.running, microseconds(fault.whole), *now, *repaired])
    title = (
        "cost of the faults: whole and faults are the times of the running schedule without and with them, repaired is "
        "that of the schedule made here, with them"
    )
    return [
        Table(FAULT_COLUMNS, cells, title),
        *remarks(Remark("faults-cost", fault.remark, needed=True) for fault in synthesis.faults if fault.remark),
    ]


def _write_tuner(synthesis: Synthesis, p: int, path: str) -> str:
    """Write the best that NCCL has at each size, and say how many rules that is; the rest cannot be asked of it."""
    from commsim.formats.measurement import Measurement
    from commsim.nccl.plans.plan_nccl import NcclPlan
    from commsim.nccl.tuner_and_graph_files import rules_of_rows, write_tuner

    rows = []
    for size, tried in synthesis.candidates.items():
        for one in tried:
            launched = one.prepared.at(size).parameters if isinstance(one.prepared, NcclPlan) else {}
            algorithm, protocol = (str(launched.get(key, "")) for key in ("algorithm", "protocol"))
            rows.append(Measurement(synthesis.operation, size, one.time, p, algorithm or one.method, protocol))
    rules = rules_of_rows(rows)
    write_tuner(path, rules, f"the best for {synthesis.operation} on {synthesis.network.name} that NCCL has")
    return f"{path}: {count_text(len(rules), 'rule')} for NCCL's own algorithms; NCCL cannot run synthesized schedules"


def _write(network: Network, candidate: TimedSchedule, path: str) -> str:
    """Write the schedule, and say how it is run."""
    from commsim.core.files.schedule_file import write_schedule

    schedule = candidate.prepared.schedule
    write_schedule(schedule, path, network, candidate.prepared.placement)
    return f"{path}: {schedule.n_transfers} messages, their routes and weights: run --collective {path}"


def _progress(what: str, done: int, of: int) -> None:
    """Have the line of progress say what is being done."""
    step = f"{what} {done}/{of}" if of > 1 else what
    EXPECTED.part = step if done < of else ""


COMMANDS = {"synthesize": Verb(SynthesizeConfig, run)}
