"""Proofs of aggregation protocols: states and times by system and size, seeded bugs, and what is shipped beside them.

python -m benchmarks.switch.proofs [--large] [--traces] [--json FILE]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.results_file import write_results
from benchmarks.switch.live_conformance import UserPlane, check_live
from benchmarks.switch.replay_conformance import check_replay
from benchmarks.switch.way_tree import way_tree
from commsim.report.terminal import print_table, progress
from switch_model.prove.event_trace import diagram, way_to
from switch_model.prove.exploration import Exploration, explore
from switch_model.prove.question import ATP, EPOCHS, LIVE, OMNIREDUCE, SWITCHML, ProofQuestion
from switch_model.prove.seeded import BUGS

MAX_STATES = 100_000_000
QUESTIONS = [
    ProofQuestion(SWITCHML, 2, 2, 4),
    ProofQuestion(SWITCHML, 3, 2, 4),
    ProofQuestion(SWITCHML, 4, 2, 4),
    ProofQuestion(SWITCHML, 4, 1, 8),
    ProofQuestion(SWITCHML, 4, 3, 6),
    ProofQuestion(SWITCHML, 3, 2, 4, reorder="1"),
    ProofQuestion(SWITCHML, 3, 2, 4, restarts=1),
    ProofQuestion(SWITCHML, 3, 2, 4, reboots=1),
    ProofQuestion(SWITCHML, 3, 2, 4, restarts=1, reboots=1, recovery=EPOCHS),
    ProofQuestion(LIVE, 3, 2, 4),
    ProofQuestion(LIVE, 4, 3, 6),
    ProofQuestion(LIVE, 3, 2, 4, restarts=1),
    ProofQuestion(LIVE, 3, 2, 4, reboots=1),
    ProofQuestion(LIVE, 3, 2, 4, restarts=1, reboots=1, recovery=EPOCHS),
    ProofQuestion(LIVE, 4, 2, 4, restarts=3, reboots=3, recovery=EPOCHS),
    ProofQuestion(OMNIREDUCE, 3, 2, 4),
    ProofQuestion(OMNIREDUCE, 4, 2, 4),
    ProofQuestion(OMNIREDUCE, 3, 2, 5),
    ProofQuestion(OMNIREDUCE, 3, 2, 4, reorder="1"),
    ProofQuestion(ATP, 2, 2, 3),
    ProofQuestion(ATP, 2, 2, 4),
    ProofQuestion(ATP, 2, 2, 3, restarts=1, reboots=1),
    ProofQuestion(ATP, 3, 1, 2, restarts=1, reboots=1),
]
LARGE = [
    ProofQuestion(SWITCHML, 4, 4, 8),
    ProofQuestion(OMNIREDUCE, 3, 2, 6),
    ProofQuestion(OMNIREDUCE, 4, 2, 6),
    ProofQuestion(ATP, 2, 2, 4, restarts=1, reboots=1),
    ProofQuestion(ATP, 3, 2, 3),
]
LIVE_WAYS = [
    ProofQuestion(LIVE, 3, 2, 4),
    ProofQuestion(LIVE, 2, 1, 4, restarts=1, reboots=1, recovery=EPOCHS),
]
REPLAYED = [
    ProofQuestion(SWITCHML, 4, 2, 4),
    ProofQuestion(OMNIREDUCE, 3, 1, 4),
    ProofQuestion(ATP, 2, 1, 2),
    ProofQuestion(ATP, 3, 1, 1),
]


def row_of(question: ProofQuestion) -> dict[str, Any]:
    """Explore one question."""
    began = time.process_time()
    found = explore(question, MAX_STATES)
    return _row(found, time.process_time() - began)


def _row(found: Exploration, cpu_s: float) -> dict[str, Any]:
    q = found.question
    failures = {"restarts": q.restarts, "reboots": q.reboots}
    return {
        "system": q.system, "workers": q.workers, "slots": q.slots, "chunks": q.chunks, "late": q.lateness,
        **failures, "then": q.recovery if any(failures.values()) else "", "states": len(found.states),
        "steps": found.n_steps, "depth": found.depth, "broken": found.broken or "holds",
        "trace": len(way_to(found, found.at, found.label)) if found.broken else 0, "cpu_s": round(cpu_s, 2),
    }  # fmt: skip


def bug_row(name: str, show: Callable[[list[str]], None]) -> dict[str, Any]:
    """Explore a protocol with a seeded bug, and show its trace."""
    bug = BUGS[name]
    found = explore(ProofQuestion(**bug.where, bug=name))
    steps = way_to(found, found.at, found.label)
    show([f"{name}: {bug.says}", *diagram(found.question, steps, found.broken)])
    return {"bug": name, "system": found.question.system, "says": bug.says, "found": found.broken == bug.breaks,
            "breaks": found.broken, "states": len(found.states), "trace": len(steps)}  # fmt: skip


def conformance_rows() -> list[dict[str, Any]]:
    """Compare the live switch, its workers and the value pass with proofs."""
    rows = []
    for question in LIVE_WAYS:
        checked = check_live(way_tree(explore(question)), UserPlane(question))
        rows.append({"path": "UDP switch and workers", **_size(question), "states": checked.states,
                     "packets": checked.packets, "differ": 0})  # fmt: skip
    for question in REPLAYED:
        replayed = check_replay(way_tree(explore(question)))
        rows.append({"path": "value pass", **_size(question), "states": replayed.ways, "packets": replayed.results,
                     "differ": replayed.wrong_elements})  # fmt: skip
    return rows


def _size(q: ProofQuestion) -> dict[str, Any]:
    return {"system": q.system, "workers": q.workers, "slots": q.slots, "chunks": q.chunks}


def _print(rows: Sequence[dict[str, Any]], title: str) -> None:
    columns = list(rows[0])
    print_table(columns, [[_text(value) for value in row.values()] for row in rows], title)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "NO"
    return f"{value:,}" if isinstance(value, int) else str(value)


def main(argv: Sequence[str] | None = None) -> int:
    """Explore all questions and bugs, and print the tables."""
    parser = argparse.ArgumentParser(prog="benchmarks.switch.proofs", description=__doc__)
    parser.add_argument("--large", action="store_true", help="also questions of up to 1e8 states (some 30 minutes)")
    parser.add_argument("--traces", action="store_true", help="show the trace of each seeded bug")
    parser.add_argument("--json", metavar="FILE", help="also write the results as JSON")
    args = parser.parse_args(argv)
    explore(ProofQuestion(SWITCHML, 2, 1, 1)), explore(ProofQuestion(ATP, 2, 1, 1))  # compiles
    rows = [row_of(q) for q in progress(QUESTIONS + (LARGE if args.large else []), "exploring")]
    shown: list[list[str]] = []
    bugs = [bug_row(name, shown.append) for name in BUGS]
    checked = conformance_rows()
    _print(rows, "states of protocols, with any number of losses, copies and repetitions")
    _print(bugs, "seeded bugs")
    _print(checked, "what is shipped, on the ways of proofs (of the value pass: ways, and results taken)")
    for lines in shown if args.traces else []:
        print("\n" + "\n".join(lines))
    if args.json:
        write_results(args.json, {"what": "switch_proofs"}, rows, bugs=bugs, conformance=checked)
    return 0 if all(row["found"] for row in bugs) and not any(row["differ"] for row in checked) else 1


if __name__ == "__main__":
    sys.exit(main())
