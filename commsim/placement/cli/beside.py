"""Two answers of ``commsim place --json`` beside each other: where the best puts the jobs, and what they lose."""

from __future__ import annotations

from typing import Any

from commsim.core.files.fields import TableFields
from commsim.report.answer import Answer, Table, comments

SCORES = ("score_mean", "score_min")


def best_of(path: str) -> TableFields | None:
    """Return the best candidate of a file of ``commsim place --json``; None if it is another file."""
    from commsim.core.files.whole_files import read_tree

    if not path.endswith(".json"):
        return None
    top = TableFields(read_tree(path), path)
    if "candidates" not in top or "config" not in top:
        return None
    candidates = top.tables("candidates")
    if not candidates:
        top.fail("candidates", "must not be empty")
    return candidates[0]


def beside(a: TableFields, b: TableFields, paths: tuple[str, str]) -> Answer:
    """Return the jobs of the best candidates, side by side."""
    from commsim.placement.candidate import counted_names

    from .rank_and_score import MAX_HOSTS

    sides = {"a": _jobs(a), "b": _jobs(b)}
    rows: list[dict[str, Any]] = []
    cells = []
    for job in dict.fromkeys([*sides["a"], *sides["b"]]):
        job_a, other = (sides[side].get(job) for side in ("a", "b"))
        ratio = other["iteration_ms"] / job_a["iteration_ms"] if job_a and other else None
        rows.append({"job": job, "a": job_a, "b": other, "time_ratio": ratio})
        places = [counted_names(of["placement"], MAX_HOSTS) if of else "-" for of in (job_a, other)]
        times = [f"{of[key]:.3f}" if of else "-" for key in ("start_ms", "iteration_ms") for of in (job_a, other)]
        cells.append([job, *places, *times, "-" if ratio is None else f"{ratio:.4g}"])
    differs = {key: {"a": a.number(key), "b": b.number(key)} for key in SCORES}
    lines = [f"A: {paths[0]}, by {a.text('prediction')}", f"B: {paths[1]}, by {b.text('prediction')}"]
    lines += [f"{key}: A {of['a']:.4f}, B {of['b']:.4f}" for key, of in differs.items()]
    columns = ["job", "A", "B", "A start(ms)", "B start(ms)", "A(ms)", "B(ms)", "B/A"]
    table = Table(columns, cells, "the best placement of each", ["A start(ms)", "B start(ms)"])
    return Answer([*comments(lines), table], rows, more={"differs": differs})


def _jobs(best: TableFields) -> dict[str, dict[str, Any]]:
    """Return what is compared of each job."""
    placement, starts, times = (best.table(key) for key in ("placement", "shifts_ms", "predicted_iteration_ms"))
    for job in placement:
        if times.number(job) <= 0:
            times.refuse(job, "a time above 0")
    return {
        job: {
            "placement": placement.items(job, str, "the name of a node"),
            "start_ms": starts.number(job),
            "iteration_ms": times.number(job),
        }
        for job in placement
    }
