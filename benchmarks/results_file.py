"""The JSON file of a benchmark: its configuration, and one object per row, as verbs of commsim write them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from commsim import __version__
from commsim.report.answer_files import write_answer


def write_results(path: str, config: Mapping[str, Any], results: Iterable[Mapping[str, Any]], **more: object) -> None:
    """Write the JSON of a command: schema 1, its configuration, one object per row.

    Parameters
    ----------
    path : str
        Path of the file.
    config : mapping
        The flags; the version is added.
    results : iterable of mapping
        The rows.
    **more : object
        Further keys of the top level.
    """
    write_answer(path, {"schema": 1, "config": {"version": __version__, **config}, "results": list(results), **more})
