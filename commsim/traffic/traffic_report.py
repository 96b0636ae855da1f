"""The page of ``commsim traffic``: completion times, queues and ways of messages that hosts spray."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import Network
from commsim.core.remark import Remark
from commsim.packets.finished_run import PacketRun
from commsim.pages.fabric.figures_of_links import figures_of_samples, make_figures
from commsim.pages.fabric.figures_of_messages import slowdown_figure, times_figure, times_table
from commsim.pages.figure import Figure, NothingToDraw
from commsim.pages.study import Study


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
    of_messages, left_out = make_figures({
        "times": lambda: times_figure(run.received, run.finished),
        "slowdown": lambda: slowdown_figure(slowdown),
    })  # fmt: skip
    of_links, more_left_out = figures_of_samples(network, run.samples(network))
    left_out |= more_left_out
    figures = (*of_messages, *of_links)
    rows = times_table(run.received, run.finished, slowdown)
    return Study(
        title, rows, provenance=provenance, remarks=tuple(remarks), left_out=left_out, figures=figures,
        listed=tuple(rows),
    )  # fmt: skip


def figure_of_messages(study: Study, kind: str) -> Figure:
    """Return a figure of a study of messages; ``messages`` are their times.

    Raises
    ------
    NothingToDraw
        If it has no such figure.
    """
    known = {
        "messages" if figure.name == "times" else figure.name: figure for figure in (*study.figures, *study.watched)
    }
    if kind not in known:
        raise NothingToDraw(study.left_out.get(kind, f"messages of commsim traffic have {', '.join(known)}"))
    return known[kind]
