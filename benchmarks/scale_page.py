"""The results of the benchmark of scale as text: cells of a table, and the page docs/scale.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from commsim.files.whole_files import replacing

from .processes import machine_kind
from .scale_works import FULL_RANKS

COLUMNS = {
    "work": "work", "ranks": "ranks", "method": "method", "cpu(s)": "cpu_s", "limit(s)": "limit_s",
    "peak(MB)": "rss_MB", "limit(MB)": "limit_MB", "met": "met", "predicted(ms)": "time_s", "transfers": "transfers",
    "full engine(s)": "full_s", "of full": "full_difference",
}  # fmt: skip
"""Headings, and the fields of a row."""

HEAD = """# Scale

Made by `python -m benchmarks.scale --write docs/scale.md`; nobody edits it. One core of: {machine}.

Every row is a collective of 1 GiB in a process of its own. `cpu` is all that a prediction takes once the kernels are
loaded: building the network and the schedule, routing, planning and simulating. `peak` is the largest resident size of
the process, interpreter and libraries included (some 180 MB). `method` is the way that the flow engine took by itself;
all ways give the same answer. Up to {full_ranks} ranks (128 where it takes minutes) the event engine, with an event per
message, does the work too: "full engine" is its time, "of full" how far the answer is from its. `ecmp` is
seeded hashing; "late starters" begin at random times within 1 ms; "random rates" are between half a link's rate and
all of it, both ways alike; "scattered" ranks sit on hosts at random, so that paths collide; "unequal" blocks are of 1
to 4 parts. "rails" are machines of 8 GPUs (H100, NVLink inside) whose i-th NICs share the i-th leaf of 32 machines,
with three tiers of switches, none of them oversubscribed.

Limits are what we ask of a row; `no` stays in the table.
"""


def cells(row: Mapping[str, Any]) -> list[str]:
    """Text under COLUMNS; a row that failed has its error where the method would be."""
    if "error" in row:
        out = {"work": row["work"], "ranks": str(row["ranks"]), "method": row["error"]}
        return [out.get(field, _text(field, row.get(field))) for field in COLUMNS.values()]
    return [_text(field, row.get(field)) for field in COLUMNS.values()]


def _text(field: str, value: Any) -> str:
    if value is None:
        return "-"
    if field == "met":
        return "yes" if value else "no"
    if field == "full_difference":
        return f"{abs(value):.0e}"
    if isinstance(value, str | int):
        return str(value)
    return {"time_s": f"{value * 1e3:.6g}", "transfers": f"{value:.0f}"}.get(field, f"{value:.3g}")


def growth_line(line: Mapping[str, Any]) -> str:
    """Say how a series grows."""
    memory = "" if line["memory"] is None else f", memory above the base ~ ranks^{line['memory']:.2f}"
    first, last = line["ranks"]
    return f"{line['work']}, {first} to {last} ranks: cpu ~ ranks^{line['cpu']:.2f}{memory}"


def write_page(path: str, found: Sequence[Mapping[str, Any]], exponents: Sequence[Mapping[str, Any]]) -> None:
    """Write the page, whole or not at all."""
    growth = "\n".join(f"- {growth_line(line)}" for line in exponents)
    head = HEAD.format(machine=machine_kind(), full_ranks=f"{FULL_RANKS:,}")
    table = markdown(list(COLUMNS), [cells(row) for row in found])
    with replacing(path) as out:
        out.write(f"{head}\n{table}\n\n## Growth\n\n{growth}\n".encode())


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table."""
    lines = [list(columns), ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)
