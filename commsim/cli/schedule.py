"""``commsim schedule``: list, show, check, save, import and export schedules."""

from __future__ import annotations

import re
import shutil
import textwrap
from pathlib import Path
from typing import Any

from commsim.core.errors import CommsimError, InputError
from commsim.core.remark import Remark, as_remarks
from commsim.core.units import count_text, format_size, parse_nccl_size
from commsim.extensions import house
from commsim.report.answer import Answer, Facts, Lines, Part, Table, comments, remarks

from .flags import Flags, Verb, WithJson, flag

EXAMPLES = {
    "schedule": """
        commsim schedule list
        commsim schedule show ring_all_reduce --ranks 4
        commsim schedule check halving_doubling_all_reduce --ranks 9
        commsim schedule save ring_all_reduce --ranks 4 -o ring.npz
        commsim schedule export ring.npz -o ring.xml && commsim schedule import ring.xml -o back.npz
        commsim schedule formats""",
}

MAX_ROWS = 16
SUFFIX = ".npz"
# Where the closed form of a file's collective is compared with LogGP's engine, so that each of its terms counts.
COST_STAR, COST_SIZES = "bandwidth=100Gbps,latency=1us", ("1K", "64M")
COST_OPTIONS: tuple[dict[str, Any], ...] = ({"overhead": "0us"}, {"overhead": "1us", "reduce_rate": "100Gbps"})
COST_TOLD = "1 us of overhead per message and adding at 100 Gb/s"
SAME_COST, MAX_COST_RANKS = 1e-6, 256


class ScheduleFlags(Flags):
    """The schedule that a verb is about."""

    collective: str = flag("collective", metavar="NAME[:key=value,...]|FILE.npz|FILE.py[:NAME]", help="schedule")
    ranks: int | None = flag(metavar="N", help="number of ranks, for a collective given by name")


class ScheduleCheckConfig(WithJson, ScheduleFlags):
    """All flags of ``commsim schedule check``."""

    others: tuple[str, ...] = flag("others", nargs="*", metavar="SCHEDULE", help="more schedules")


class ScheduleShowConfig(WithJson, ScheduleFlags):
    """All flags of ``commsim schedule show``."""

    draw: str | None = flag(metavar="FILE", help="draw the schedule, if it is small: .svg or .png")
    topology: str | None = flag(
        metavar="NAME|FILE", help="draw the trees of --rank on this network (schedules of synthesize only)"
    )
    rank: int | None = flag(metavar="RANK", help="with --topology: rank whose trees to draw (default: 0)")
    size: str = flag(default="1M", metavar="SIZE", help="size of the operation")


class ScheduleSaveConfig(ScheduleFlags):
    """All flags of ``commsim schedule save``."""

    output: str = flag("-o", required=True, metavar="FILE", help="file to write: .npz")


class ScheduleListConfig(WithJson):
    """All flags of ``commsim schedule list``."""

    name: str | None = flag("name", nargs="?", metavar="NAME", help="only this collective (default: all)")


def list_collectives(config: ScheduleListConfig) -> Answer:
    """Return the collectives, or one, their operations and parameters."""
    from collectives import BLOCKING, COLLECTIVES

    rows = []
    for name in COLLECTIVES if config.name is None else [config.name]:
        entry = COLLECTIVES[name]
        own = _own_parameters(entry)
        row = {
            "collective": name,
            "operation": entry.metadata["operation"],
            "parameters": [key for key in entry.parameters if key not in ("n_ranks", BLOCKING)],
            "defaults": own,
            "meanings": {key: _meaning(entry, key) for key in own},
            "summary": entry.summary,
        }
        rows.append(row)
    lines: list[str] = []
    for row in rows:
        lines += [f"{row['collective']}  [{row['operation']}]", *_wrapped("    ", row["summary"])]
        for key, default in row["defaults"].items():
            lines += _wrapped("      ", f"{key} ({_default_text(default)}): {row['meanings'][key]}")
    of_all = "every collective takes blocking=true: each step waits for the one before, as in a loop of MPI_Sendrecv"
    return Answer([Lines(lines), *comments([of_all])], rows, {"what": "collectives"})


def _own_parameters(entry: Any) -> dict[str, Any]:
    """Return the parameters that users may give, with their defaults; not the one that all collectives have."""
    from collectives import BLOCKING, found_parameters

    needs = (*found_parameters(entry.metadata["needs"]), BLOCKING)
    return {key: parameter.default for key, parameter in entry.parameters.items() if key not in needs}


def _meaning(entry: Any, key: str) -> str:
    return str(entry.meanings.get(key, "")).replace("``", "")


def _default_text(default: Any) -> str:
    """Return a default as text; of None the meaning says what is taken."""
    return "chosen" if default is None else str(default).lower() if isinstance(default, bool) else str(default)


def _wrapped(indent: str, text: str) -> list[str]:
    width = max(40, shutil.get_terminal_size((120, 24)).columns - 1)
    text = re.sub(r":\w+:`[.~]?([^`]*)`", r"\1", text)  # roles of docstrings
    return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=f"{indent}    ")


def _is_foreign(source: str) -> bool:
    return Path(source).suffix in house().schedules


def _read(spec: str, n_ranks: int | None, size: float | None = None) -> tuple[Any, tuple[str, ...]]:
    """Return a schedule that may be in a file of another tool, and what reading it said."""
    from commsim.prediction.collective_names import load_schedule

    schedule, notes = (
        house().schedules[Path(spec).suffix](spec) if _is_foreign(spec) else (load_schedule(spec, n_ranks, size), ())
    )
    _require_ranks(spec, n_ranks, schedule)
    return schedule, notes


def _require_ranks(spec: str, n_ranks: int | None, schedule: Any) -> None:
    if n_ranks is not None and schedule.n_ranks != n_ranks:
        raise InputError(f"{spec} has {count_text(schedule.n_ranks, 'rank')}, got --ranks {n_ranks}")


def show(config: ScheduleShowConfig) -> Answer:
    """Return steps, messages, bytes, parameters, and the volume per rank."""
    for name in config.given("topology", "rank"):
        if config.draw is None or config.topology is None:
            raise InputError(f"{name} goes with --draw FILE --topology T")
    if config.draw:
        house().services["check of a picture"](config.draw)
    from commsim.core.data_order.dependencies import longest_chain

    size = parse_nccl_size(config.size, "--size")
    schedule, notes = _read(config.collective, config.ranks, size)
    drawn = _drawn(config, schedule, config.draw) if config.draw else []
    sent, received, messages = schedule.volumes()
    chunk, steps = size / schedule.n_chunks, longest_chain(schedule)
    facts = {
        "collective": schedule.name,
        "operation": schedule.operation,
        "participants": f"{count_text(schedule.n_ranks, 'rank')}, {count_text(schedule.n_helpers, 'helper')}",
        "chunks": f"{schedule.n_chunks} of {format_size(chunk)}",
        "steps": "not counted, of so many transfers" if steps is None else f"{steps}, the longest chain of transfers",
        "messages": str(int(messages.sum())),
        "bytes sent": format_size(sent.sum() * chunk),
        "kept as": f"{count_text(len(schedule.blocks), 'block')} of "
        f"{count_text(sum(len(b.body) for b in schedule.blocks), 'transfer')}",
        **_weights_and_routes(config.collective, schedule),
    }
    rows = [
        {"participant": i, "messages": int(messages[i]), "sent_B": sent[i] * chunk, "received_B": received[i] * chunk}
        for i in range(schedule.n_participants)
    ]
    shown = rows if len(rows) <= MAX_ROWS else rows[: MAX_ROWS // 2] + rows[-MAX_ROWS // 2 :]
    left_out = f" ({len(rows) - len(shown)} in the middle left out)" if len(shown) < len(rows) else ""
    volumes = Table(
        ["participant", "messages", "sent(B)", "received(B)", "sent/size"],
        [[str(r["participant"]), str(r["messages"]), f"{r['sent_B']:.0f}", f"{r['received_B']:.0f}",
          f"{r['sent_B'] / size:.4f}"] for r in shown],
        f"volume per rank at {format_size(size)}{left_out}",
    )  # fmt: skip
    flags = {"collective": config.collective, "n_hops": schedule.n_hops, "n_steps": steps, "size_B": size}
    known = Lines(_parameters(config.collective, schedule, size))
    parts = [*remarks(as_remarks(notes, "read")), *comments(drawn), Facts(facts), known, volumes]
    return Answer(parts, rows, flags)


def _parameters(spec: str, schedule: Any, size: float) -> list[str]:
    """Return lines with what each parameter is here, and what it means; nothing of a file."""
    if spec.endswith(SUFFIX) or _is_foreign(spec):
        return []
    from collectives import found_parameters
    from collectives.pieces import sized_parameters
    from commsim.prediction.collective_names import collective_entry, read_collective

    entry, _ = collective_entry(spec)
    parameters = read_collective(spec, schedule.n_ranks)[1]
    used = {**_own_parameters(entry), **parameters, **sized_parameters(entry, schedule.n_ranks, size, parameters)}
    lines: list[str] = []
    for key, value in used.items():
        text = "" if key in parameters else ", by default"
        lines += _wrapped("", f"{key} = {_default_text(value)}{text}: {_meaning(entry, key)}".removesuffix(": "))
    for key in found_parameters(entry.metadata["needs"])[1:]:
        lines += _wrapped("", f"{key}, from network and placement: {_meaning(entry, key)}")
    return lines


def _drawn(config: ScheduleShowConfig, schedule: Any, path: str) -> Any:
    """Draw the schedule, or the trees of one rank on a network, and return what was drawn."""
    if config.topology is None:
        return house().services["picture of a schedule"](schedule, path)
    from commsim.prediction.build import prepare
    from commsim.prediction.inputs import load_network

    plan = prepare(config.collective, load_network(config.topology), n_ranks=config.ranks)
    return house().services["picture of trees"](plan, config.rank or 0, path)


def _weights_and_routes(text: str, schedule: Any) -> dict[str, str]:
    """Describe which channels get more of a full link than others, and whether the file pins routes."""
    facts = {}
    if not schedule.shares_equally:
        facts["weights"] = (
            f"{schedule.weights.min():g} to {schedule.weights.max():g} of {len(schedule.weights)} channels"
        )
    if text.endswith(SUFFIX):
        from commsim.core.files.schedule_file import pins_routes

        if pins_routes(text):
            facts["routes"] = "pinned, on the network that the file was made for"
    return facts


def check_schedules(config: ScheduleCheckConfig) -> Answer:
    """Prove of each schedule that it does what its operation requires, and compare its stated cost with LogGP's.

    Raises
    ------
    InputError
        If a schedule cannot be read, or is wrong.
    """
    parts: list[Part] = []
    rows, code = [], 0
    for spec in (config.collective, *config.others):
        try:
            line, row, lines, same = _checked(spec, config.ranks)
        except CommsimError as error:
            if not config.others or spec in str(error):
                raise
            raise type(error)(f"{spec}: {error}") from None
        rows.append(row)
        parts += [Lines([line]), *remarks(Remark("proof", one, needed=True) for one in lines)]
        code = code if same else 1
    specs = [config.collective, *config.others]
    return Answer(parts, rows, {"collective": specs if config.others else config.collective}, code=code)


def _checked(spec: str, n_ranks: int | None) -> tuple[str, dict[str, Any], list[str], bool]:
    """Check one; return a line, the row, remarks, and whether a stated cost is LogGP's."""
    from commsim.core.checking.check import CheckReport, check
    from commsim.core.checking.check_compact import CompactReport, SampleReport, check_builder
    from commsim.prediction.collective_names import read_collective

    report: Any
    read: tuple[str, ...] = ()
    if spec.endswith(SUFFIX) or _is_foreign(spec):
        schedule, read = _read(spec, n_ranks)
        name, n_ranks, report = schedule.name, schedule.n_ranks, check(schedule)
    else:
        build, parameters = read_collective(spec, n_ranks)
        name, n_ranks = build.__name__, n_ranks or 0
        report = check_builder(build, n_ranks, **parameters)
    method = {CheckReport: "", SampleReport: "sample", CompactReport: "compact"}[type(report)]
    row = {
        "collective": name,
        "n_ranks": n_ranks,
        "n_transfers": report.n_transfers,
        "method": method or report.method,
        "failure_probability": getattr(report, "failure_probability", None),
    }
    lines, same = _about_cost(spec, n_ranks)
    return f"{name} on {count_text(n_ranks, 'rank')}: {report}", row, [*read, *lines], same


def _about_cost(spec: str, n_ranks: int) -> tuple[list[str], bool]:
    """Compare the closed form of a file's collective with LogGP on a star; say whether it is that."""
    from commsim.core.spec import is_own_file
    from commsim.prediction.collective_names import collective_entry, load_schedule

    if n_ranks < 2 or not is_own_file(spec) or collective_entry(spec)[0].metadata["cost"] is None:
        return [], True
    if n_ranks > MAX_COST_RANKS:
        return [f"cost= is compared with LogGP on at most {MAX_COST_RANKS} ranks"], True
    from commsim.engine.closed_form import closed_form
    from commsim.prediction.read import scenario_of
    from commsim.prediction.solve import plan_of, solve

    star = f"star:n_hosts={load_schedule(spec, n_ranks).n_participants},{COST_STAR}"
    ratios = []
    for options in COST_OPTIONS:
        scenario = scenario_of(spec, star, n_ranks=n_ranks, engine="alpha-beta", **options)
        plan: Any = plan_of(scenario)
        for result in solve(scenario, [parse_nccl_size(size, "size") for size in COST_SIZES]).results:
            at = plan.at(result.size)
            entry, job = collective_entry(spec)[0], at.paths.job
            ratios.append(closed_form(entry, at.network, job, result.size, dict(at.parameters)).time / result.time)
    where = f"on {star}, {' and '.join(COST_SIZES)}, without and with {COST_TOLD}"
    if all(abs(ratio - 1) <= SAME_COST for ratio in ratios):
        return [f"cost= is the time of LogGP (the alpha-beta engine) {where}"], True
    text = f"{', '.join(f'{ratio:.4g}' for ratio in ratios)} times its time {where}"
    return [f"cost= DIFFERS from LogGP (the alpha-beta engine): {text}; --engine closed-form gives cost="], False


def save_schedule(config: ScheduleSaveConfig) -> Answer:
    """Write the schedule to a file."""
    from commsim.core.files.store import save
    from commsim.prediction.collective_names import load_schedule

    schedule = load_schedule(config.collective, config.ranks)
    _require_ranks(config.collective, config.ranks, schedule)
    save(schedule, config.output)
    size = f"{count_text(schedule.n_transfers, 'transfer')} in {count_text(len(schedule.blocks), 'block')}"
    return Answer([Lines([f"{config.output}: {size}"])])


COMMANDS = {
    "schedule list": Verb(
        ScheduleListConfig, list_collectives, "print the collectives: operations, parameters, defaults, meanings"
    ),
    "schedule show": Verb(
        ScheduleShowConfig, show, "print steps, messages, bytes, parameters, and the volume per rank"
    ),
    "schedule check": Verb(
        ScheduleCheckConfig, check_schedules, "prove that schedules or MSCCL files do what their operations require"
    ),
    "schedule save": Verb(ScheduleSaveConfig, save_schedule, "write a schedule to an .npz file"),
}
