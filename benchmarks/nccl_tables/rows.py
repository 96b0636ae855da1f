"""Rows of measured tables beside our prediction and the peers', and classes of them with their errors."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.nccl_tables.machines import NO_VERSION, Table
from benchmarks.nccl_tables.networks import question_of
from benchmarks.nccl_tables.peers import astra_ring, simai
from commsim.core.errors import InputError
from commsim.nccl.choice import chosen_cell
from commsim.nccl.gpu_costs import GpuCosts
from commsim.nccl.prediction import over_releases, predict
from commsim.nccl.tuning_table import OPERATIONS, cell_time
from commsim.prediction.solve import solve

# Sizes from here on count as large, where errors are stated.
LARGE = 2**20
PEERS = ("tuner", "simai", "astra")  # columns of Row: NCCL's own estimate, and formulas of two simulators
TRUSTED = "all healthy, sizes that the index trusts"
SEVERAL = "of these on several machines"
# Kinds of machines, several of them by the plugin of the network.
ONE = "one machine, or one rack of NVLink"
CLOUD = "several machines, transports of clouds (EFA, TCPX, TCPXO, sockets)"
BETWEEN = {
    **dict.fromkeys(("efa", "efa2", "efa3", "efa_staged", "tcpx", "tcpxo", "ena", "sockets"), CLOUD),
    "infiniband": "several machines, InfiniBand", "roce": "several machines, RoCE",
    **dict.fromkeys(("slingshot", "slingshot-2025"), "several machines, Slingshot"),
}  # fmt: skip
MEDIAN_LARGE, MEDIAN_SMALL, NINETIETH = 0.10, 0.20, 0.30


@dataclass(frozen=True, slots=True)
class Row:
    """One size of one table; times in seconds, None where a model has no answer."""

    id: str
    operation: str
    size: int
    measured: float
    predicted: float
    low: float
    high: float
    how: str
    tuner: float | None
    simai: float | None
    astra: float | None
    fitted: bool

    def error(self, of: str = "predicted") -> float:
        """Relative to what was measured."""
        time = getattr(self, of)
        return float("nan") if time is None else float(time / self.measured - 1)


@dataclass(frozen=True, slots=True)
class Group:
    """Errors of some rows: medians from 1 MiB and below, the 90th percentile of all, and the median with its sign."""

    n: int
    large: float
    small: float
    ninetieth: float
    signed: float

    @property
    def is_good(self) -> bool:
        """Whether all three are within what is asked for; a size class without rows is."""
        return not (self.large > MEDIAN_LARGE or self.small > MEDIAN_SMALL or self.ninetieth > NINETIETH)


def group(rows: Iterable[Row], of: str = "predicted") -> Group:
    """Sum up errors."""
    found = [(row.size >= LARGE, row.error(of)) for row in rows]
    found = [(large, error) for large, error in found if not np.isnan(error)]
    if not found:
        return Group(0, *[float("nan")] * 4)

    def median(want: bool) -> float:
        some = [abs(error) for large, error in found if large == want]
        return float(np.median(some)) if some else float("nan")

    errors = [error for _, error in found]
    worst = float(np.percentile(np.abs(errors), 90))
    return Group(len(found), median(True), median(False), worst, float(np.median(errors)))


def rows_of(table: Table, known: GpuCosts) -> list[Row]:
    """Predict every row of a table whose machine is known."""
    site = table.site
    assert site is not None
    scenario, plan = question_of(site, table.operation, table.algorithm, table.protocol)
    answers, rows = solve(scenario, [size for size, _ in table.rows], plan=plan).results, []
    for (size, measured), ours in zip(table.rows, answers, strict=True):
        low, high = ours.interval or (ours.time, ours.time)
        if NO_VERSION in table.assumed:
            low, high = over_releases(site, table.operation, size, table.algorithm, table.protocol, known)
        launched = plan.at(size).parameters
        how = f"{launched['algorithm']}/{launched['protocol']}" if "algorithm" in launched else "p2p"
        tuner = None
        if table.operation in OPERATIONS:
            cell = chosen_cell(site, table.operation, size, table.algorithm, table.protocol, known)
            tuner = cell_time(site.setting, table.operation, cell, size)
        others = simai(site, table.operation, size), astra_ring(site, table.operation, size)
        rows.append(
            Row(
                table.id, table.operation, size, measured, table.shown(ours.time), table.shown(low), table.shown(high),
                how, tuner, *others, table.is_fitted(known),
            )
        )  # fmt: skip
    return rows


def usable(table: Table, known: GpuCosts) -> str:
    """Return why a table cannot be predicted; empty if it can."""
    if table.site is None:
        return table.why_not
    try:
        known.of_gpu(table.site.setting.gpu)
        if table.site.network:
            known.of_network(table.site.network)
        if table.rows:
            predict(table.site, table.operation, table.rows[0][0], table.algorithm, table.protocol, known)
    except InputError as error:
        return str(error)
    return ""


def class_rows(by_id: dict[str, Table], found: dict[str, list[Row]]) -> dict[str, dict[str, list[Row]]]:
    """Rows of classes of tables, by table: those fitted on and those not, known and unknown ones, unhealthy ones."""

    def marks(name: str) -> tuple[bool, bool, bool]:
        table = by_id[name]
        return table.healthy, table.is_known, bool(found[name]) and found[name][0].fitted

    classes = {
        "all healthy": {(True, known, fitted) for known in (True, False) for fitted in (True, False)},
        TRUSTED: {(True, known, fitted) for known in (True, False) for fitted in (True, False)},
        "healthy, version and NICs known": {(True, True, True), (True, True, False)},
        "of these not fitted on": {(True, True, False)},
        "healthy, not fitted on": {(True, True, False), (True, False, False)},
        SEVERAL: {(True, True, False), (True, False, False)},
        "healthy, version or NICs unknown": {(True, False, True), (True, False, False)},
        "fitted on": {(healthy, known, True) for healthy in (True, False) for known in (True, False)},
        "not healthy": {(False, known, fitted) for known in (True, False) for fitted in (True, False)},
    }
    parts = {}
    for name, wanted in classes.items():
        some = {i: rows for i, rows in found.items() if rows and marks(i) in wanted}
        if name == SEVERAL:
            some = {i: rows for i, rows in some.items() if (site := by_id[i].site) and site.setting.n_nodes > 1}
        if name == TRUSTED:
            some = {i: [row for row in rows if row.size >= by_id[i].trusted_from] for i, rows in some.items()}
        parts[name] = some
    return parts


def summary(by_id: dict[str, Table], found: dict[str, list[Row]]) -> dict[str, dict[str, Any]]:
    """Sum up the rows of each class."""
    sums = {}
    for name, some in class_rows(by_id, found).items():
        rows = [row for part in some.values() for row in part]
        ours = group(rows)
        sums[name] = {
            "tables": len(some), "within": sum(group(part).is_good for part in some.values()), "rows": ours.n,
            "large": ours.large, "small": ours.small, "p90": ours.ninetieth, "signed": ours.signed,
            **{peer: median_of(rows, peer) for peer in PEERS},
            **{f"ours_beside_{peer}": median_of(predicted_by(rows, peer), "predicted") for peer in PEERS},
        }  # fmt: skip
    return sums


def by_kind(by_id: dict[str, Table], found: dict[str, list[Row]]) -> dict[str, dict[str, list[Row]]]:
    """Rows of tables by the kind of machine: one of them, or several by the network between them; healthy or not."""
    kinds: dict[str, dict[str, list[Row]]] = {
        f"{name}{state}": {} for state in ("", ", not healthy") for name in (ONE, *dict.fromkeys(BETWEEN.values()))
    }
    for name, rows in found.items():
        table = by_id[name]
        if rows and table.site is not None:
            one = table.site.setting.n_nodes == 1
            kind = ONE if one else BETWEEN[table.site.network]
            kinds[kind if table.healthy else f"{kind}, not healthy"][name] = rows
    return {kind: some for kind, some in kinds.items() if some}


def ratios(by_id: dict[str, Table], found: dict[str, list[Row]]) -> dict[tuple[bool, bool], tuple[list[float], ...]]:
    """Errors of the ratio of two tables at one size, by whether they have several machines, and one algorithm.

    Two tables of one operator, operation and GPU generation, healthy, from 1 MiB: the absolute error of the predicted
    ratio of their times, and those of the two times themselves.
    """
    errors: dict[tuple[bool, bool], tuple[list[float], ...]] = {}
    names = [name for name, rows in found.items() if rows and by_id[name].healthy]
    for a, b in itertools.combinations(names, 2):
        (one, several), (other, also) = _kind(by_id[a]), _kind(by_id[b])
        if one != other or several != also:
            continue
        ours = {row.size: row for row in found[a] if row.size >= LARGE}
        for row in found[b]:
            if (beside := ours.get(row.size)) is None:
                continue
            of_ratio, of_times = errors.setdefault((several, beside.how == row.how), ([], []))
            of_ratio.append(abs((1 + beside.error()) / (1 + row.error()) - 1))
            of_times += [abs(beside.error()), abs(row.error())]
    return errors


def _kind(table: Table) -> tuple[tuple[str, str, str], bool]:
    """Return the operator, the operation and the GPU generation, and whether a table has several machines."""
    assert table.site is not None
    setting = table.site.setting
    return (table.id.split("_")[0], table.operation, setting.gpu), setting.n_nodes > 1


def median_of(rows: Sequence[Row], of: str) -> float:
    """Return the median error of a model on the rows that it predicts; not a number without any."""
    errors = [abs(row.error(of)) for row in rows]
    return float(np.median(kept)) if (kept := [e for e in errors if not np.isnan(e)]) else float("nan")


def predicted_by(rows: Sequence[Row], peer: str) -> list[Row]:
    """Rows that a peer predicts too."""
    return [row for row in rows if getattr(row, peer) is not None]
