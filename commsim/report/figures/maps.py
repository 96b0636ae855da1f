"""Speed-up over a baseline, and which algorithm is fastest where: maps of size and ranks."""

from __future__ import annotations

import numpy as np

from commsim.report.derive import is_algorithm
from commsim.report.read_rows import distinct
from commsim.report.study import Study

from .figure import Figure, NothingToDraw


def speedup(study: Study) -> Figure:
    """How many times faster than the baseline each algorithm is, by size and ranks."""
    _require_algorithms(study)
    if "speedup" not in study.rows or not np.isfinite(study.rows["speedup"].values).any():
        wanted = study.baseline or "whose name begins with ring"
        raise NothingToDraw(f"no algorithm {wanted} is among the rows to compare with")
    axes = _axes(study)
    both = axes["y"] != "operation"
    roles = {**axes, "value": "speedup", "facet" if both else "y": "collective"}
    base = study.baseline or "the ring"
    caption = f"Time of {base} over the time of the algorithm, all else being equal (median of the rows shown)."
    words = {"value": f"times as fast as {base}", "facet" if both else "y": "algorithm"}
    return Figure("speedup", "heat", "Speed-up", caption, study.rows, roles, words, scale="ratio")


def choice(study: Study) -> Figure:
    """Which algorithm is fastest, by size and ranks."""
    _require_algorithms(study)
    roles = {**_axes(study), "value": "time_s", "by": "collective"}
    if "operation" in study.rows and len(distinct(study.rows["operation"])) > 1:
        roles["facet"] = "operation"
    caption = "The algorithm with the least median time of the rows shown; pale where it leads by less than 1 %."
    return Figure("choice", "choice", "Algorithm choice", caption, study.rows, roles)


def _axes(study: Study) -> dict[str, str]:
    """Columns for x and y: size and ranks where they vary, else other parameters."""
    order = ("size_B", "n_ranks", *study.parameters)
    varying = [n for n in dict.fromkeys(order) if n in study.parameters and not is_algorithm(n) and n != "operation"]
    if not varying:
        raise NothingToDraw("nothing but the algorithm varies")
    return {"x": varying[0], "y": varying[1] if len(varying) > 1 else "operation"}


def _require_algorithms(study: Study) -> None:
    rows = study.rows
    if "collective" not in rows or "operation" not in rows or "time_s" not in rows:
        raise NothingToDraw("the rows do not say which algorithm ran, and how long")
    pairs = {*zip(rows["operation"].values.tolist(), rows["collective"].values.tolist(), strict=True)}
    if len(pairs) == len({operation for operation, _ in pairs}):
        raise NothingToDraw("there is only one algorithm per operation")
