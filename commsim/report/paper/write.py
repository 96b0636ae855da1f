"""Write a figure as PDF, SVG or PNG, and the numbers behind it as CSV: the same bytes for the same data."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from commsim.core.errors import InputError
from commsim.files.whole_files import replacing
from commsim.report.columns import csv_text
from commsim.report.figures.figure import Figure, drawn

from .axes import STYLE
from .figure_drawing import draw

SUFFIXES = (".pdf", ".svg", ".png")


def check_plot(path: str | Path) -> None:
    """Refuse, before anything is computed, a file that no plot can be written to.

    Raises
    ------
    InputError
        If its name has another ending, its folder is missing, it or the CSV beside it is a folder, or matplotlib is
        missing.
    """
    path = Path(path)
    if path.suffix not in SUFFIXES:
        raise InputError(f"{path}: a plot is a file that ends with {', '.join(SUFFIXES)}")
    if not path.parent.is_dir():
        raise InputError(f"{path}: cannot write: no such folder")
    for file in (path, path.with_suffix(".csv")):
        if file.is_dir():
            raise InputError(f"{file}: cannot write: Is a directory")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise InputError("plots need matplotlib: pip install 'commsim[plot]'") from None


def write_plot(figure: Figure, path: str | Path, width: float, provenance: Mapping[str, str]) -> Path:
    """Draw a figure and write it, and beside it the CSV of what is drawn.

    Parameters
    ----------
    figure : Figure
        What.
    path : path
        Ends with .pdf, .svg or .png.
    width : float, inches
        Of the plot.
    provenance : mapping of str to str
        Stamped into the metadata; no date is.

    Returns
    -------
    Path
        Of the CSV file.
    """
    check_plot(path)
    path = Path(path)
    import matplotlib as mpl

    out = io.BytesIO()
    with mpl.rc_context(STYLE):
        canvas = draw(figure, width)
        canvas.savefig(out, format=path.suffix[1:], metadata=_metadata(path.suffix, figure, provenance))
    beside = path.with_suffix(".csv")
    with replacing(beside) as file:
        file.write(csv_text(drawn(figure)).encode())
    with replacing(path) as file:
        file.write(out.getvalue())
    return beside


def _metadata(suffix: str, figure: Figure, provenance: Mapping[str, str]) -> dict[str, Any]:
    stamp = json.dumps(dict(provenance), sort_keys=True, ensure_ascii=True)
    program = f"commsim {provenance.get('commsim', '')}".strip()
    if suffix == ".pdf":
        return {"Creator": program, "Producer": program, "Subject": stamp, "Title": figure.title, "CreationDate": None}
    if suffix == ".svg":
        return {"Creator": program, "Description": stamp, "Title": figure.title, "Date": None}
    return {"Software": program, "Description": stamp, "Title": figure.title}
