"""Write the page: a template, style, script and data in one file that loads nothing.

Tables and figures are embedded as JSON of few bytes, with nothing in it that a browser could run.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import functools
import hashlib
import html
import json
import re
from collections.abc import Iterable, Mapping
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from commsim.core.errors import InputError
from commsim.core.extras import needs
from commsim.core.files.whole_files import replacing
from commsim.core.units import format_bandwidth
from commsim.pages.figure import Figure, without_unit
from commsim.pages.figure_tables import Column, FigureTable, format_value
from commsim.pages.figures_of_study import make_figures, with_names
from commsim.pages.pictures.paint import svg_text
from commsim.pages.study import Study, constants_of

from .specs import spec_of, zoomed_field
from .specs.fields import columns_of
from .specs.lanes import with_positions
from .theme import themes

MAX_CODES = 65_534
# Kinds of figures of which another column can get the colours.
COLOURED = ("curves", "cdf", "scatter")
# What came out, in the table of all rows.
OUTCOMES = ("time_s", "algbw_Bps", "busbw_Bps")
SCRIPTS = (
    "format.js", "table.js", "filters.js", "numbers.js", "rows.js", "figures.js", "picture.js", "main.js",
)  # fmt: skip
MAX_TICKED = 400
MAX_ERRORS = 20


def require_library() -> None:
    """Refuse before anything is computed.

    Raises
    ------
    InputError
        If vl-convert is not installed.
    """
    try:
        import vl_convert  # noqa: F401
    except ImportError:
        raise InputError(needs("pages need vl-convert", "report")) from None


def check_page(path: str) -> None:
    """Refuse, before anything is computed, a file that no page can be written to.

    Raises
    ------
    InputError
        If its name does not end with .html, its folder is not there, it is a folder itself, or vl-convert is missing.
    """
    if Path(path).suffix != ".html":
        raise InputError(f"{path}: a report is a file that ends with .html")
    if not Path(path).parent.is_dir():
        raise InputError(f"{path}: cannot write: no such folder")
    if Path(path).is_dir():
        raise InputError(f"{path}: cannot write: Is a directory")
    require_library()


@functools.cache
def library() -> str:
    """Return the script that draws, as vl-convert carries it: Vega, Vega-Lite and vega-embed.

    It defines ``vegaEmbed`` and ``vega``, and loads nothing.

    Raises
    ------
    InputError
        If vl-convert is not installed.
    """
    require_library()
    import vl_convert

    from commsim.core.compiling.kernel_cache import cache_folder, why_unwritable

    # To put it together takes longer than all the rest of a page, so it is kept beside the kernels.
    kept, bundle = cache_folder() / f"vega-{version('vl-convert-python')}.js", ""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        digest, _, text = kept.read_bytes().decode().partition("\n")
        bundle = text if digest == _digest(text) else ""
    if not bundle:
        bundle = vl_convert.javascript_bundle()  # type: ignore[call-arg,unused-ignore]  # its types forget the default
        if not why_unwritable(kept.parent):
            with contextlib.suppress(InputError), replacing(kept) as file:  # a full disk refuses no page
                file.write(f"{_digest(bundle)}\n{bundle}".encode())
    return bundle.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def encode_column(column: Column) -> dict[str, Any]:
    """Encode words and at most 65,534 different numbers as codes of one or two bytes, others as little-endian doubles.

    The code behind the last one stands for what is missing.
    """
    out: dict[str, Any] = {"name": column.name, "unit": column.unit}
    if column.labels is not None:
        codes, n = np.where(column.values < 0, len(column.labels), column.values), len(column.labels)
        out["labels"] = column.labels
    else:
        known, codes = np.unique(column.values[~np.isnan(column.values)], return_inverse=True)
        if len(known) > min(MAX_CODES, column.values.size // 4 + 16):
            return out | {"type": "f8", "data": _text(column.values.astype("<f8"))}
        full = np.full(column.values.size, len(known))
        full[~np.isnan(column.values)] = codes
        codes, n = full, len(known)
        out["values"] = known.tolist()
    kind = "u1" if n < 256 else "u2"
    if n > MAX_CODES:
        raise InputError(f"column {column.name} has {n} different words; at most {MAX_CODES} can be shown")
    return out | {"type": kind, "data": _text(codes.astype("<" + kind))}


def _encode_table(table: FigureTable, names: Iterable[str]) -> dict[str, Any]:
    """Encode some columns of a table."""
    return {"n": table.n_rows, "columns": [encode_column(table[name]) for name in names if name in table]}


def _encode_figures(
    figures: Iterable[Figure], filters: Iterable[str], rows: FigureTable, shown_columns: Iterable[str] = ()
) -> dict[str, Any]:
    """Encode figures and, once each, the tables that they show.

    Parameters
    ----------
    figures : iterable of Figure
        Figures in the order in which they are shown.
    filters : iterable of str
        Columns to filter by.
    rows : FigureTable
        Table that the filters belong to.
    shown_columns : iterable of str
        Columns of the table of all rows; by default filters and outcomes.
    """
    tables: list[FigureTable] = [rows]
    listed = list(shown_columns) or [*filters, *(name for name in OUTCOMES if name in rows)]
    used: list[dict[str, None]] = [dict.fromkeys(listed)]
    shown: list[dict[str, Any]] = []

    def place(table: FigureTable, names: Iterable[str]) -> int:
        at = next((i for i, known in enumerate(tables) if known is table), len(tables))
        if at == len(tables):
            tables.append(table)
            used.append({})
        used[at] |= dict.fromkeys(names)
        return at

    for i, figure in enumerate(map(with_positions, figures)):
        entry: dict[str, Any] = {"id": f"{figure.name}-{i}", "name": figure.name, "kind": figure.kind}
        entry |= {"title": figure.title, "caption": figure.caption, "run": figure.of_run}
        entry["log"] = sorted(figure.logarithmic)
        entry |= _drawings(figure, filters) | {"value": figure.roles.get("value") or figure.roles.get("y", "")}
        own = [name for names in entry["fields"].values() for name in names]
        uses = [*(filters if figure.table is not rows and not figure.of_run else ()), *own]
        entry["table"] = place(figure.table, uses)
        if figure.points is not None:
            entry["points"] = place(figure.points, figure.points.columns)
        if figure.picture is not None:
            entry["picture"] = svg_text(figure.picture).partition("?>")[2]
        shown.append(entry)
    encoded = [_encode_table(table, names) for table, names in zip(tables, used, strict=True)]
    words = {name: without_unit(name) for name in listed}
    return {"tables": encoded, "figures": shown, "rows": 0, "filters": list(filters), "listed": listed, "words": words}


def json_in_html(tree: Mapping[str, Any]) -> str:
    """Write JSON that can stand inside of a script element: it has no ``<``, so nothing in it ends the element."""
    text = json.dumps(tree, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _drawings(figure: Figure, filters: Iterable[str]) -> dict[str, Any]:
    """Specifications of a figure and the columns that they draw, by the column whose values get a colour each."""
    if figure.kind == "picture":
        return {"fields": {"": list(figure.table)}}
    by = figure.roles.get("by", "")
    figures = {by: figure}
    if figure.kind in COLOURED and not figure.of_run:
        others = [name for name in filters if name in figure.table and name not in (by, figure.roles["x"])]
        figures |= {name: dataclasses.replace(figure, roles={**figure.roles, "by": name}) for name in others}
    specs = {name: spec_of(each) for name, each in figures.items()}
    return {
        "by": by,
        "specs": specs,
        "fields": {name: columns_of(each) for name, each in figures.items()},
        "zooms": zoomed_field(figure),
    }


def _text(values: np.ndarray[Any, Any]) -> str:
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode()


def write_report(study: Study, path: str) -> list[str]:
    """Write the page of a study; return what it leaves out.

    Parameters
    ----------
    study : Study
        What is shown.
    path : str
        Path of the page.
    """
    left_out = write_page(study, path)
    return [*(f"figure left out: {name}: {why}" for name, why in left_out.items()), f"{path}: written"]


def write_page(study: Study, path: str | Path) -> dict[str, str]:
    """Write the page of a study; the file appears whole or not at all.

    Returns
    -------
    dict of str to str
        Which figures are left out, and why.
    """
    text, left_out = page_text(study)
    with replacing(path) as out:
        out.write(text.encode(errors="backslashreplace"))  # names of files need not be UTF-8
    return left_out


def page_text(study: Study) -> tuple[str, dict[str, str]]:
    """Return the page, and which figures are left out and why."""
    figures, left_out = make_figures(study)
    rows, figures = with_names(study, figures)
    data = _encode_figures(figures, _filters(study), rows, study.listed)
    failed = sorted(study.failed.items(), key=lambda item: -item[1])
    data |= {"themes": themes(), "facts": _facts(study), "failed": failed[:MAX_ERRORS], "n_failed": study.n_failed}
    data |= {"provenance": dict(study.provenance), "left_out": left_out}
    data["remarks"] = [str(remark) for remark in study.remarks]
    script = '"use strict";\n' + "\n".join(_file(name) for name in SCRIPTS)
    drawing = f"(() => {{\n{library()}\n}})();"
    style = _file("page.css")
    generator = f"commsim {study.provenance.get('commsim', '')}"
    parts = {
        "policy": _policy((drawing, script), style),
        "generator": html.escape(generator),
        "title": html.escape(study.title),
        "heading": html.escape(study.title).replace(",", ",<wbr>"),
        "style": style,
        "library": drawing,
        "script": script,
        "data": json_in_html(data),
    }  # fmt: skip
    return _filled(_file("page.html"), parts), left_out


def _filled(template: str, parts: Mapping[str, str]) -> str:
    """Insert each part at its place, once; inserted text is not searched again."""
    return re.sub(r"@(\w+)@", lambda match: parts[match[1]], template)


def _filters(study: Study) -> list[str]:
    """Parameters to filter by: numbers, and words, if not too many to tick."""
    return [name for name in study.parameters if len(study.rows[name].labels or ()) <= MAX_TICKED]


def _facts(study: Study) -> str:
    """Parameters that are the same in all rows."""
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


def _policy(scripts: Iterable[str], style: str) -> str:
    """Only these scripts and this style, and nothing from anywhere."""
    allowed = " ".join(f"'{_hash(script)}'" for script in scripts)
    only = f"script-src {allowed}; style-src '{_hash(style)}'"
    return f"default-src 'none'; {only}; base-uri 'none'; form-action 'none'"


def _file(name: str) -> str:
    return resources.files(__package__ or "commsim.pages.page").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
