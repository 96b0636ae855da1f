"""The parts of an answer as HTML, for a notebook or a page."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from commsim.report.answer import Facts, Lines, Part, Remarks, Table


def html_of_parts(parts: Sequence[Part]) -> str:
    """Return parts as HTML, without style, for a notebook or a page."""
    return "".join(_HTML[type(part)](part) for part in parts)


def _table(part: Table) -> str:
    title = f"<caption>{html.escape(part.title)}</caption>" if part.title else ""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in part.columns)
    body = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in part.rows)
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _facts(part: Facts) -> str:
    left = "style='text-align:left'"
    rows = (
        f"<tr><th {left}>{html.escape(name)}</th><td {left}>{html.escape(value)}</td></tr>"
        for name, value in part.values.items()
    )
    return f"<table>{''.join(rows)}</table>"


def _lines(part: Lines) -> str:
    return f"<p>{'<br>'.join(html.escape(line) for line in part.texts)}</p>"


def _remark_lines(part: Remarks) -> str:
    return f"<p>{'<br>'.join(html.escape(str(remark)) for remark in part.items)}</p>"


_HTML: dict[type, Any] = {Table: _table, Facts: _facts, Lines: _lines, Remarks: _remark_lines}
