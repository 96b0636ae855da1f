"""All figures by name, and those that the data of a study allows."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from commsim.pages.figure_tables import FigureTable
from commsim.pages.rows.row_selection import with_shown_words
from commsim.pages.study import Study

from .fabric.figures_of_packets import OF_PACKETS
from .fabric.figures_of_tiers import OF_LARGE
from .figure import Figure, NothingToDraw
from .figures_of_rows import OF_ROWS
from .figures_of_runs import MAX_LINKS, OF_RUNS

RUN_FIGURES = {"network": OF_RUNS["network"], **OF_LARGE, **OF_RUNS, **OF_PACKETS}


def make_figures(study: Study) -> tuple[tuple[Figure, ...], dict[str, str]]:
    """Make every figure that the data allows.

    Returns
    -------
    tuple of Figure, dict of str to str
        And why the others are left out.
    """
    if study.figures:
        return study.figures, dict(study.left_out)
    figures: list[Figure] = []
    left_out: dict[str, str] = {}
    for name, make in OF_ROWS.items():
        try:
            figures.append(make(study))
        except NothingToDraw as why:
            left_out[name] = str(why)
    for run in study.runs:
        large = np.count_nonzero(run.result.link_bytes) > MAX_LINKS
        for name, draw in RUN_FIGURES.items():
            if (name in OF_LARGE and not large) or (name in OF_PACKETS and run.samples is None):
                continue
            try:
                figures.append(draw(run))
            except NothingToDraw as why:
                left_out[f"{name} of {run.name}"] = str(why)
    if not study.runs:
        reasons = "; ".join(f"{run}: {reason}" for run, reason in study.left_out.items())
        left_out[", ".join(OF_RUNS)] = reasons or "a table of many points does not hold single runs"
    else:
        left_out |= {f"{run} in detail": reason for run, reason in study.left_out.items()}
    return (*figures, *study.watched), left_out


def with_names(study: Study, figures: Sequence[Figure]) -> tuple[FigureTable, tuple[Figure, ...]]:
    """Put the words that are shown for those of the data.

    Returns
    -------
    FigureTable, tuple of Figure
        The rows and the figures; tables that were one still are.
    """
    tables = {id(study.rows): with_shown_words(study.rows, study.names)}
    named = []
    for figure in figures:
        table = tables.setdefault(id(figure.table), with_shown_words(figure.table, study.names))
        named.append(dataclasses.replace(figure, table=table))
    return tables[id(study.rows)], tuple(named)
