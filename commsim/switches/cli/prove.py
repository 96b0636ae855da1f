"""``commsim switch prove``: every state of an aggregation protocol, and whether its invariants hold in all of them."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from commsim.cli.flags import DefaultOf, WithJson, flag
from commsim.core.errors import InputError
from commsim.report.answer import Answer, Facts, Lines, Part, Table, comments

if TYPE_CHECKING:
    from switch_model.prove.exploration import Exploration
    from switch_model.prove.question import ProofQuestion


class SwitchProveConfig(WithJson):
    """All flags of ``commsim switch prove``."""

    system: str = flag(
        default=DefaultOf("switch_model.prove.question:ProofQuestion.system"),
        metavar="NAME",
        help="protocol: switchml, switchml-live, omnireduce or atp",
    )
    workers: int | None = flag(metavar="N", help="workers, 1 to 4; by default 3, for atp 2")
    slots: int = flag(
        default=DefaultOf("switch_model.prove.question:ProofQuestion.slots"),
        metavar="N",
        help="slots, 1 to 4; chunk q goes to slot q modulo N",
    )
    chunks: int = flag(
        default=DefaultOf("switch_model.prove.question:ProofQuestion.chunks"),
        metavar="N",
        help="chunks of the tensor, 1 to 8",
    )
    reorder: str = flag(
        default="",
        metavar="N",
        help="how many rounds of its slot a packet may be late: a number, or any (default: 0, links keep the order, "
        "for switchml and omnireduce; any for switchml-live and atp)",
    )
    restarts: int = flag(default=0, metavar="N", help="how often a worker restarts, at any moment")
    reboots: int = flag(default=0, metavar="N", help="how often the switch loses its state, at any moment")
    recovery: str = flag(
        default=DefaultOf("switch_model.prove.question:ProofQuestion.recovery"),
        metavar="KIND",
        help="what follows a failure: none, or epoch (the job begins again under another number, with clean slots)",
    )
    bug: str = flag(default="", metavar="NAME", help="add this bug to the protocol; an unknown name lists all bugs")
    max_states: int = flag(
        default=DefaultOf("switch_model.prove.exploration:explore.max_states"),
        metavar="N",
        help="give up beyond this number of states",
    )


def run(config: SwitchProveConfig) -> Answer:
    """Explore all states; say what holds, or show the shortest way to where it does not."""
    from switch_model.prove.event_trace import diagram, way_to
    from switch_model.prove.exploration import INVARIANTS, explore

    if not 1 <= config.max_states <= 1 << 30:
        raise InputError(f"--max-states is 1 to {1 << 30}, got {config.max_states}")
    question = _question(config)
    found = explore(question, config.max_states)
    verdicts = {name: _verdict(found, name) for name in INVARIANTS}
    steps = way_to(found, found.at, found.label) if found.broken else []
    parts: list[Part] = [
        *comments([_title(question)]),
        Facts(_facts(found)),
        Table(["invariant", "verdict"], [[INVARIANTS[name], verdict] for name, verdict in verdicts.items()]),
    ]
    if found.broken:
        title = (
            f"shortest way to where it is broken: {len(steps)} steps (o sends; copies that do not arrive are left out)"
        )
        parts += [*comments([title]), Lines(diagram(question, steps, found.broken), is_file=True)]
    trace = [asdict(step) for step in steps]
    return Answer(parts, [_row(found, verdicts)], more={"trace": trace}, code=1 if found.broken else 0)


def _question(config: SwitchProveConfig) -> ProofQuestion:
    from switch_model.prove.question import ATP, ProofQuestion

    system = config.system.replace("-", "_")
    workers = (2 if system == ATP else 3) if config.workers is None else config.workers
    return ProofQuestion(
        system, workers, config.slots, config.chunks, config.reorder, config.restarts, config.reboots,
        config.recovery, config.bug.replace("-", "_"),
    )  # fmt: skip


def _title(q: ProofQuestion) -> str:
    from switch_model.prove.question import SYSTEMS
    from switch_model.prove.seeded import BUGS

    bug = f"; seeded bug: {BUGS[q.bug].says}" if q.bug else ""
    return f"{q.workers} workers, {q.slots} slots, {q.chunks} chunks; {SYSTEMS[q.system]}{bug}"


def _facts(found: Exploration) -> dict[str, str]:
    q = found.question
    order = "in any order" if q.lateness == "any" else f"up to {q.lateness} rounds late" if q.lateness != "0" else ""
    counts = ((q.restarts, "restart of a worker"), (q.reboots, "reboot of the switch"))
    failures = [f"{n} x {what}" for n, what in counts if n]
    then = ", then a new epoch" if q.recovery == "epoch" else ", unnoticed"
    return {
        "losses, copies, repetitions": "any number, at any moment",
        "order of a link": order or "kept",
        "failures": " and ".join(failures) + then if failures else "none",
        "states": f"{len(found.states):,}" + ("" if found.whole else " until it is broken"),
        "steps looked at": f"{found.n_steps:,}",
        "farthest state": f"{found.depth} steps",
        "time": f"{found.seconds:.2f} s",
    }


def _verdict(found: Exploration, name: str) -> str:
    if found.broken == name:
        return "BROKEN"
    return "holds" if found.whole else "not broken before"


def _row(found: Exploration, verdicts: dict[str, str]) -> dict[str, Any]:
    q = found.question
    return {
        **asdict(q), "reorder": q.lateness, "states": len(found.states), "steps": found.n_steps, "depth": found.depth,
        "whole": found.whole, "broken": found.broken or None, "verdicts": verdicts, "time_s": found.seconds,
    }  # fmt: skip
