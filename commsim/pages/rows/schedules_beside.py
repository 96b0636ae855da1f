"""Two schedules side by side: whether they are equal, but for the order within a hop, or what differs."""

from __future__ import annotations

from typing import Any

import numpy as np

from commsim.core.schedule import Schedule, Transfers

FACTS = ("operation", "n_ranks", "n_helpers", "n_chunks", "n_scratch", "root", "layout", "n_transfers", "n_hops")


def compare_schedules(a: Schedule, b: Schedule) -> tuple[str, dict[str, tuple[Any, Any]]]:
    """Compare two schedules, and ignore their names.

    Parameters
    ----------
    a, b : Schedule
        Schedules.

    Returns
    -------
    str, dict of str to (value, value)
        A sentence; and what differs, with the value of either: facts, weights, and the part of the size that a
        participant sends to another (``sent 0:1``), or where all that is the same, the transfers that differ.
    """
    differs = {name: (x, y) for name in FACTS if (x := getattr(a, name)) != (y := getattr(b, name))}
    n = max(len(a.weights), len(b.weights))
    if (a.weight_of(np.arange(n)) != b.weight_of(np.arange(n))).any():
        differs["weights"] = (a.weights.tolist(), b.weights.tolist())
    rows = a.expand(), b.expand()
    if not differs and (rows[0] == rows[1]).all():
        return "the schedules are equal", {}
    if not differs and (np.sort(rows[0]) == np.sort(rows[1])).all():
        return "the schedules are equal but for the order of transfers within a hop", {}
    sent = _shares_sent(a, rows[0]), _shares_sent(b, rows[1])
    for pair in sorted(sent[0].keys() | sent[1].keys()):
        x, y = (one.get(pair, 0.0) for one in sent)
        if not np.isclose(x, y):
            differs[f"sent {pair[0]}:{pair[1]}"] = (x, y)
    if not differs:
        differs["transfers that only one has"] = (_missing(*rows), _missing(*rows[::-1]))
    return "the schedules differ", differs


def _shares_sent(schedule: Schedule, rows: Transfers) -> dict[tuple[int, int], float]:
    """Part of the size that each participant sends to each other."""
    n = schedule.n_participants
    chunks = np.bincount(rows["src"].astype(np.int64) * n + rows["dst"], weights=rows["count"])
    return {divmod(int(i), n): float(chunks[i]) / schedule.n_chunks for i in np.flatnonzero(chunks) if i % n != i // n}


def _missing(rows: Transfers, others: Transfers) -> int:
    """Count rows that are not in the others."""
    return int((~np.isin(rows, others)).sum())
