"""Columns that compare rows with each other: speed-up over a baseline, efficiency of scaling."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .figure import grouped, medians
from .figure_tables import FigureTable, number_column
from .rows.algorithms import is_algorithm

Reals = NDArray[np.float64]
Numbers = NDArray[np.int64]


def with_derived(rows: FigureTable, parameters: list[str], baseline: str = "") -> FigureTable:
    """Add ``speedup``, ``size_per_rank_B``, ``strong_efficiency`` and ``weak_efficiency`` as far as possible.

    Parameters
    ----------
    rows : FigureTable
        Results.
    parameters : list of str
        Its columns that say what was asked, and vary.
    baseline : str
        Name of an algorithm; by default any that begins with ``ring``.
    """
    if "collective" in rows and "time_s" in rows:
        rows = rows.beside(number_column("speedup", _speedup(rows, parameters, baseline), ""))
    if "size_B" in rows and "n_ranks" in rows and "busbw_Bps" in rows:
        with np.errstate(all="ignore"):  # rows of a file may say anything
            share = rows["size_B"].values / rows["n_ranks"].values
        rows = rows.beside(number_column("size_per_rank_B", np.where(np.isfinite(share), share, np.nan)))
        same = [name for name in parameters if name not in ("n_ranks", "size_B")]
        for name, key in (("strong_efficiency", "size_B"), ("weak_efficiency", "size_per_rank_B")):
            rows = rows.beside(number_column(name, _efficiency(rows, [*same, key]), ""))
    return rows


def _speedup(rows: FigureTable, parameters: list[str], baseline: str) -> Reals:
    """Time of the baseline over that of each row, all else being equal; NaN without a baseline."""
    column, out = rows["collective"], np.full(rows.n_rows, np.nan)
    names = [label.partition(":")[0] for label in column.labels or ()]
    chosen = [n == baseline or column.labels[i] == baseline if baseline else n.startswith("ring")  # type: ignore[index]
              for i, n in enumerate(names)]  # fmt: skip
    same = [name for name in parameters if not is_algorithm(name) and name != "operation"]
    same += [name for name in ("operation",) if name in rows]
    used, group, n = grouped(rows, same, ["time_s", "collective"], missing=True)
    if not len(used) or not any(chosen):
        return out
    time = rows["time_s"].values[used]
    is_base = np.array(chosen)[column.values[used]]
    base = _of_groups(group[is_base], time[is_base], n)
    with np.errstate(all="ignore"):
        ratio = base[group] / time
    out[used] = np.where(np.isfinite(ratio), ratio, np.nan)
    return out


def _efficiency(rows: FigureTable, same: list[str]) -> Reals:
    """Busbw over that with the fewest ranks, all else being equal; NaN where no other number of ranks is there."""
    out = np.full(rows.n_rows, np.nan)
    used, group, n = grouped(rows, same, ["n_ranks", "busbw_Bps"], missing=True)
    if not len(used):
        return out
    ranks, rate = rows["n_ranks"].values[used], rows["busbw_Bps"].values[used]
    fewest, most = np.full(n, np.inf), np.zeros(n)
    np.minimum.at(fewest, group, ranks)
    np.maximum.at(most, group, ranks)
    at_fewest = ranks == fewest[group]
    base = _of_groups(group[at_fewest], rate[at_fewest], n)
    with np.errstate(all="ignore"):
        ratio = np.where((most > fewest)[group], rate / base[group], np.nan)
    out[used] = np.where(np.isfinite(ratio), ratio, np.nan)
    return out


def _of_groups(group: Numbers, values: Reals, n: int) -> Reals:
    """Median of each group's values, NaN for a group without any."""
    out = np.full(n, np.nan)
    present, inner = np.unique(group, return_inverse=True)
    if len(present):
        out[present] = medians(inner, values, len(present))
    return out
