"""Write the page: a template, our own style and script, and the data, in one file that loads nothing."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

from commsim.core.units import format_bandwidth
from commsim.files.whole_files import replacing
from commsim.report.figures.all_figures import make_figures
from commsim.report.figures.figure import without_unit
from commsim.report.format_value import format_value
from commsim.report.study import Study, constants_of

from .encode import PALETTE, encode_figures, json_in_html

SCRIPTS = (
    "format.js", "table.js", "filters.js", "numbers.js", "rows.js", "chart.js", "picture.js", "draw_curves.js",
    "draw_shares.js", "draw_maps.js", "draw_spans.js", "main.js",
)  # fmt: skip
MAX_TICKED = 400
MAX_ERRORS = 20


def write_page(study: Study, path: str | Path) -> dict[str, str]:
    """Write the page of a study; the file appears whole or not at all.

    Returns
    -------
    dict of str to str
        Which figures are left out, and why.
    """
    text, left_out = page_text(study)
    with replacing(path) as out:
        out.write(text.encode())
    return left_out


def page_text(study: Study) -> tuple[str, dict[str, str]]:
    """Return the page, and which figures are left out and why."""
    figures, left_out = make_figures(study)
    data = encode_figures(figures, _filters(study), study.rows)
    failed = sorted(study.failed.items(), key=lambda item: -item[1])
    data |= {"palette": PALETTE, "facts": _facts(study), "failed": failed[:MAX_ERRORS], "n_failed": study.n_failed}
    data |= {"provenance": dict(study.provenance), "left_out": left_out, "baseline": study.baseline}
    script = '"use strict";\n' + "\n".join(_file(name) for name in SCRIPTS)
    style = _file("page.css")
    generator = f"commsim {study.provenance.get('commsim', '')}"
    parts = {
        "policy": _policy(script, style),
        "generator": html.escape(generator),
        "title": html.escape(study.title),
        "heading": html.escape(study.title).replace(",", ",<wbr>"),
        "style": style,
        "script": script,
        "data": json_in_html(data),
    }  # fmt: skip
    return _filled(_file("page.html"), parts), left_out


def _filled(template: str, parts: Mapping[str, str]) -> str:
    """Put each part in its place, once: what stands in a part is not looked at again."""
    return re.sub(r"@(\w+)@", lambda found: parts[found[1]], template)


def _filters(study: Study) -> list[str]:
    """Parameters to filter by: numbers, and words of which there are not too many to tick."""
    return [name for name in study.parameters if len(study.rows[name].labels or ()) <= MAX_TICKED]


def _facts(study: Study) -> str:
    """Say what was asked that is the same in all rows."""
    facts: dict[str, str] = {}
    for name in constants_of(study.rows):
        column = study.rows[name]
        value = column.text()[0]
        if column.unit == "B/s":  # of links
            value = format_bandwidth(float(column.values[0])).partition(" (")[0]
        elif column.labels is None:
            value = format_value(float(column.values[0]), column.unit)
        if not name.startswith("collective.") or value not in facts.values():  # collective.size is the size again
            facts[without_unit(name)] = value
    return "; ".join(f"{name}: {value}" for name, value in facts.items())


def _policy(script: str, style: str) -> str:
    """Only this script and this style, and nothing from anywhere."""
    only = f"script-src '{_hash(script)}'; style-src '{_hash(style)}'"
    return f"default-src 'none'; {only}; base-uri 'none'; form-action 'none'"


def _file(name: str) -> str:
    return resources.files(__package__ or "commsim.report.page").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
