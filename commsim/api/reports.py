"""A page of figures of results in memory, or of a file or folder of results."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path

from commsim.core.result import Result
from commsim.report.page.write import write_page
from commsim.report.rows.study_files import read_study
from commsim.report.simulated_run import simulate_run
from commsim.report.study import study_of_rows

from .predicted import Predicted

# Results that the page shows in detail.
MAX_RUNS = 4


def write_report(results: Result | Sequence[Result] | str | PathLike[str], path: str | PathLike[str]) -> dict[str, str]:
    """Write one offline page with the figures of results.

    Parameters
    ----------
    results : Result or sequence of Result, or path
        Predictions; or a file of ``commsim ... --json``, or the folder of a sweep.
    path : path
        Of the page, ``.html``.

    Returns
    -------
    dict of str to str
        Figures that the page lacks, and why.

    Raises
    ------
    InputError
        If a file holds no results, or the page cannot be written.

    Examples
    --------
    >>> import commsim as cs
    >>> one = cs.predict("ring_all_reduce", "star:n_hosts=4", "1MiB")
    >>> left_out = cs.write_report(one, "page.html")  # doctest: +SKIP
    """
    if isinstance(results, (str, PathLike)):
        return write_page(read_study(fspath(results))[0], fspath(path))
    every = [results] if isinstance(results, Result) else list(results)
    study = study_of_rows(Path(path).stem, [one.row() for one in every], {})
    runs = [
        simulate_run(one.collective, one.prepared, one.size, {"engine": one.engine})
        for one in every
        if isinstance(one, Predicted) and one.prepared is not None and one.engine in ("flow", "packet")
    ]
    return write_page(dataclasses.replace(study, runs=tuple(runs[:MAX_RUNS])), fspath(path))
