"""The matrix as one HTML file without script or network: plots of predicted against measured, and every row."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from html import escape

from commsim.pages.plots.chart import Chart, ChartAxis, Series, draw_chart, write_chart

from .page import number, percent
from .row import KINDS, Row
from .summary import groups, summary

STYLE = """body{font-family:sans-serif;margin:2em;color:#222}table{border-collapse:collapse;font-size:.85em}
td,th{border:1px solid #ddd;padding:.2em .5em;text-align:left}td.n{text-align:right;font-variant-numeric:tabular-nums}
tr.miss td{background:#fdebd8}tr.aside td{color:#888;font-style:italic}summary{cursor:pointer;font-weight:bold}"""
# With a colour of their own: there are seven, one of them for what is left and one for the diagonal.
MAX_ENGINES = 5
ABOUT = """Made by <code>python -m benchmarks.validation -o DIR</code>. The error is ours / reference - 1. Misses have
a coloured ground and their reason; rows in grey italics count nowhere."""


def html(rows: Sequence[Row], absent: Mapping[str, str]) -> str:
    """Return the page.

    Parameters
    ----------
    rows : sequence of Row
        Of all kinds.
    absent : mapping of str to str
        Why a kind has no rows.
    """
    parts = ["<h1>The validation matrix</h1>", f"<p>{ABOUT}</p>", _summary(rows)]
    parts += [f"<p>No rows of kind <b>{kind}</b>: {escape(why)}.</p>" for kind, why in absent.items()]
    for kind, title in KINDS.items():
        mine = [row for row in rows if row.kind == kind]
        if mine:
            parts += [f"<h2>{escape(title[0].upper() + title[1:])}</h2>", plot(mine, title), _details(mine)]
    head = '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>commsim: validation</title>'
    return f"{head}<style>{STYLE}</style></head><body>\n" + "\n".join(parts) + "\n</body></html>\n"


def plot(rows: Sequence[Row], title: str) -> str:
    """Return SVG of ours over the reference, one colour per engine; each row is in its own unit."""
    of_engine = groups([row for row in rows if row.counts], lambda row: row.engine)
    often = sorted(of_engine, key=lambda engine: -len(of_engine[engine]))[:MAX_ENGINES]
    points: dict[str, list[tuple[float, float]]] = {}
    for engine, mine in of_engine.items():
        named = engine if engine in often else "others"
        points.setdefault(named, []).extend((row.reference, row.ours) for row in mine)
    if not any(a > 0 and b > 0 for mine in points.values() for a, b in mine):
        return "<p>Nothing to draw.</p>"
    return _svg(draw_scatter(title, "reference, in each row's unit", "ours", points))


def draw_scatter(title: str, x: str, y: str, points: Mapping[str, Sequence[tuple[float, float]]]) -> Chart:
    """Draw groups of points over the diagonal.

    Parameters
    ----------
    title, x, y : str
        Above the chart, and of its axes.
    points : mapping of str to sequence of (float, float)
        By the group's name: what was measured, and what was predicted. Points that are not positive are left out.

    Raises
    ------
    ValueError
        If there is no point to draw.
    """
    groups = [Series(name, tuple(marks), joined=False) for name, marks in points.items()]
    both = [value for marks in points.values() for a, b in marks if a > 0 and b > 0 for value in (a, b)]
    if not both:
        raise ValueError("a scatter plot needs at least one point with both coordinates above 0")
    equal = Series("equal", ((min(both), min(both)), (max(both), max(both))), dashed=True)
    return draw_chart(title, ChartAxis(x, True), ChartAxis(y, True), [*groups, equal])


def _summary(rows: Sequence[Row]) -> str:
    heading = ("kind", "engine", "against", "rows", "shown only", "median", "p90", "largest", "misses")
    lines = [
        [f["kind"], f["engine"], f["against"], str(f["count"]), str(f["shown"]),
         *(percent(f[key]) for key in ("median", "p90", "largest")), str(f["misses"])]
        for f in summary(rows)
    ]  # fmt: skip
    return _table(heading, [("", line) for line in lines])


def _details(rows: Sequence[Row]) -> str:
    heading = ("id", "engine", "size", "reference", "ours", "unit", "error", "spread", "source", "note")
    lines = []
    for row in sorted(rows, key=lambda r: (not r.missed, r.id)):
        style = "miss" if row.missed else "" if row.counts else "aside"
        size = "" if row.size is None else number(row.size)
        spread = "" if row.spread is None else f"{row.spread:.1%}"
        note = f"fitted to this number. {row.note}" if row.fitted else row.note
        lines.append((style, [row.id, row.engine, size, number(row.reference), number(row.ours), row.unit,
                              percent(row.error), spread, row.source, note]))  # fmt: skip
    return f"<details><summary>{len(rows)} rows, misses first</summary>{_table(heading, lines)}</details>"


def _table(heading: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]]) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in heading)
    body = "\n".join(f'<tr class="{style}">{"".join(map(_cell, cells))}</tr>' for style, cells in rows)
    return f"<table><tr>{head}</tr>\n{body}</table>"


def _cell(text: str) -> str:
    try:
        float(text.rstrip("%"))
    except ValueError:
        return f"<td>{escape(text)}</td>"
    return f'<td class="n">{text}</td>'


def _svg(chart: Chart) -> str:
    """Return the SVG element of a chart, which can stand in a page."""
    out = io.BytesIO()
    write_chart(chart, out, "svg")
    text = out.getvalue().decode()
    return text[text.index("<svg") :]
