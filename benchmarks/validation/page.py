"""The matrix as a Markdown page: statistics, misses with their reasons, and every row that is not one of many alike."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from .not_covered import NOT_COVERED
from .row import KINDS, MISS, Row
from .summary import groups, statistics, summary

IN_FULL = ("real", "published")
"""Kinds whose rows all stand in the page; of the others, which are many alike, the worst of each model does."""
ABOUT = """# The validation matrix

Made by `python -m benchmarks.validation -o docs{real}`; nobody edits it. `--json FILE` writes every row, and
validation.html, which comes beside this page, has every row and plots of ours over the reference.

A row says what is modelled, the reference, ours, and the error, ours / reference - 1. Rows that miss stay in, with the
reason. Rows in *italics* are shown and count nowhere: a constant was fitted to that very number, or something else than
the network decided the measurement.

A miss is off by more than {limits}; "p90" is the 90th percentile of the absolute errors. The engine "bound" predicts
nothing: it is the most that bytes on links allow, and what real software stays below. A "fitted law" has constants that
were fitted to other numbers of the same source.
"""


def markdown(rows: Sequence[Row], absent: Mapping[str, str], real: str = "") -> str:
    """Return the page.

    Parameters
    ----------
    rows : sequence of Row
        Of all kinds.
    absent : mapping of str to str
        Why a kind has no rows.
    real : str
        How the command line named the file of real runs.
    """
    limits = ", ".join(f"{limit:.0%} ({kind})" for kind, limit in MISS.items())
    parts = [ABOUT.format(limits=limits, real=real), "## Summary\n", _summary(rows)]
    parts += [f"No rows of kind **{kind}** ({KINDS[kind]}): {why}.\n" for kind, why in absent.items()]
    for kind, title in KINDS.items():
        mine = [row for row in rows if row.kind == kind]
        if mine:
            parts += [f"## {title[0].upper()}{title[1:]}\n"]
            parts += [_full(mine) if kind in IN_FULL else _by_model(mine)]
    parts += ["## Published, and not covered\n", "\n".join(f"- {what}: {why}." for what, why in NOT_COVERED)]
    return "\n".join(parts) + "\n"


def percent(value: float | None) -> str:
    """Write an error: in percent where one can see it, else as a power of ten."""
    if value is None or math.isnan(value):
        return "-"
    return f"{value:.1%}" if abs(value) >= 5e-4 else f"{value:.0e}" if value else "0"


def number(value: float) -> str:
    """Write a number to four digits."""
    return f"{value:.4g}"


def table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    cells = [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows]
    lines = [heading, ["---"] * len(heading), *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _summary(rows: Sequence[Row]) -> str:
    found = summary(rows)
    heading = ("kind", "engine", "against", "rows", "shown only", "median", "p90", "largest", "misses")
    return table(
        heading,
        [
            (r["kind"], r["engine"], r["against"], f"{r['count']}", f"{r['shown']}" if r["shown"] else "",
             percent(r["median"]), percent(r["p90"]), percent(r["largest"]), f"{r['misses']}")
            for r in found
        ],
    )  # fmt: skip


def _full(rows: Sequence[Row]) -> str:
    heading = ("model", "engine", "ranks", "network", "size", "reference", "ours", "unit", "error", "source", "note")
    return table(heading, [_cells(row) for row in rows])


def _cells(row: Row) -> list[str]:
    error = percent(row.error) if row.counts else f"*{percent(row.error)}*"
    spread = f" (spread {row.spread:.1%})" if row.spread is not None else ""
    size = "" if row.size is None else number(row.size)
    fitted = "fitted to this number" if row.fitted else ""
    note = "; ".join(text for text in (fitted, row.note if row.missed or not row.valid else "") if text)
    return [row.model, row.engine, f"{row.ranks or ''}", row.network, size, number(row.reference) + spread,
            number(row.ours), row.unit, error, row.source, note]  # fmt: skip


def _by_model(rows: Sequence[Row]) -> str:
    heading = ("model", "engine", "against", "rows", "ranks", "networks", "median", "largest", "why it misses")
    return table(heading, list(_models(rows)))


def _models(rows: Sequence[Row]) -> Iterator[list[str]]:
    for (model, engine, against), mine in groups(rows, lambda r: (r.model, r.engine, r.against)).items():
        found = statistics(mine)
        ranks = ", ".join(f"{n}" for n in sorted({row.ranks for row in mine if row.ranks}))
        networks = ", ".join(sorted({row.network for row in mine if row.network}))
        why = "; ".join(sorted({row.note for row in mine if row.missed}))
        yield [model, engine, against, f"{found.count}", ranks, networks, percent(found.median),
               percent(found.largest), why]  # fmt: skip
