"""The page of ``commsim traffic``: completion times, queues and ways of messages that hosts spray."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import Network
from commsim.core.remark import Remark
from commsim.engine.packet.finished_run import PacketRun
from commsim.report.figure import Figure, NothingToDraw
from commsim.report.study import Study

from . import figures_of_links as links
from .figures_of_messages import slowdown_figure, times_figure, times_table


def study_of_traffic(
    title: str,
    network: Network,
    run: PacketRun,
    slowdown: NDArray[np.float64],
    provenance: Mapping[str, str],
    remarks: Sequence[Remark] = (),
) -> Study:
    """Gather what a page shows.

    Parameters
    ----------
    title : str
        Title of the page.
    network : Network
        Network of the run.
    run : PacketRun
        Run with samples of its links.
    slowdown : float64[n_messages]
        Slowdown of its messages.
    provenance : mapping of str to str
        Version and command.
    remarks : sequence of Remark
        What the command said of its results.
    """
    samples = run.samples(network)
    makers: dict[str, Callable[[], Figure]] = {
        "times": lambda: times_figure(run.received, run.finished),
        "slowdown": lambda: slowdown_figure(slowdown),
        "queues": lambda: links.queues(network, samples),
        "packets": lambda: links.counted(samples),
        "fullest": lambda: links.fullest(network, samples),
        "ways": lambda: links.ways(network, samples),
    }
    figures: list[Figure] = []
    left_out: dict[str, str] = {}
    for name, make in makers.items():
        try:
            figures.append(make())
        except NothingToDraw as why:
            left_out[name] = str(why)
    rows = times_table(run.received, run.finished, slowdown)
    return Study(
        title, rows, provenance=provenance, remarks=tuple(remarks), left_out=left_out, figures=tuple(figures),
        listed=tuple(rows),
    )  # fmt: skip


def figure_of_messages(study: Study, kind: str) -> Figure:
    """Return a figure of a study of messages; ``messages`` are their times.

    Raises
    ------
    NothingToDraw
        If it has no such figure.
    """
    known = {"messages" if one.name == "times" else one.name: one for one in study.figures}
    if kind not in known:
        raise NothingToDraw(study.left_out.get(kind, f"messages of commsim traffic have {', '.join(known)}"))
    return known[kind]
