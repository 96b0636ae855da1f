"""Two sets of results beside each other: rows of the same configuration, and what only one of them has."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from commsim.core.data_frames import flat_rows
from commsim.core.errors import InputError
from commsim.core.files.whole_files import read_tree
from commsim.pages.simulated_run import SimulatedRun
from commsim.pages.study import ASIDE, PREDICTED

from .algorithms import with_several_specs
from .study_files import results_of

Row = Mapping[str, Any]
# What came out, as far as it is set side by side.
COMPARED = ("time_s", "busbw_Bps", "bytes_on_wire", "busiest_link.name")
_NOT_ASKED = {
    *PREDICTED, *ASIDE, "iteration_s", "exposed_comm_s", "scaling", "compute_s", "sent_per_worker_B", "step_s",
    "bubble_s", "tokens_per_s_per_gpu", "model_tflops_per_gpu", "mfu",
} - {"asked"}  # fmt: skip
# Beginnings of further names of what came out.
_OUT = ("counters.", "busiest_link", "exposed_", "hidden_")
MAX_LINKS = 8


@dataclass(frozen=True, slots=True)
class Difference:
    """Two sets of results.

    Parameters
    ----------
    pairs : tuple of mapping
        Entry of each configuration that both have: what was asked, and under ``a`` and ``b`` what came out;
        ``time_ratio`` is the time of the second over that of the first.
    only_a, only_b : tuple of mapping
        What was asked in only one of them.
    differs : mapping of str to (object, object)
        Flags, and columns that have one value in each set, but not the same.
    """

    pairs: tuple[Row, ...]
    only_a: tuple[Row, ...]
    only_b: tuple[Row, ...]
    differs: Mapping[str, tuple[Any, Any]]


def read_rows(path: str | Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Read the flags and the flat rows of a command's JSON, or of the folder of a sweep without points that failed.

    Raises
    ------
    InputError
        If it is neither.
    """
    path = Path(path)
    if path.is_dir():
        from commsim.sweep.table import read_rows as rows_of_sweep

        return {}, [row for row in rows_of_sweep(path) if row["error"] is None]
    if path.suffix != ".json":
        raise InputError(
            f"{path}: what is compared is the .json that a command wrote, the folder of a sweep, or .npz files of two "
            "schedules"
        )
    config, rows = results_of(read_tree(path), path)
    return config, flat_rows(rows)


def difference(
    a: Sequence[Row], b: Sequence[Row], config_a: Row | None = None, config_b: Row | None = None
) -> Difference:
    """Match rows by what was asked.

    Parameters
    ----------
    a, b : sequence of mapping
        Flat rows.
    config_a, config_b : mapping, optional
        Flags of the commands.

    Raises
    ------
    InputError
        If no row of one has the configuration of a row of the other.
    """
    shared = [name for name in _question_columns(a) if name in set(_question_columns(b))]
    differs = {name: values for name, values in _constants(a, b, shared) if values[0] != values[1]}
    apart = with_several_specs(a) | with_several_specs(b)
    keys = [name for name in shared if name not in differs and (name != "asked" or apart)]
    waiting: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in b:
        waiting[_key(row, keys)].append(row)
    pairs, only_a = [], []
    for row in a:
        others = waiting.get(_key(row, keys))
        if others:  # repeated points are matched in their order
            pairs.append(_pair(row, others.pop(0), keys))
        else:
            only_a.append({name: row.get(name) for name in keys})
    only_b = [{name: row.get(name) for name in keys} for rows in waiting.values() for row in rows]
    if not pairs:
        raise InputError(f"no row of one has the configuration of a row of the other; compared: {', '.join(keys)}")
    flags = {**config_a, **config_b} if config_a and config_b else {}
    one, other = (defaultdict(lambda: None, config or {}) for config in (config_a, config_b))
    told = {name: (one[name], other[name]) for name in flags if name != "collective" and one[name] != other[name]}
    return Difference(tuple(pairs), tuple(only_a), tuple(only_b), told | differs)


def runs_beside(a: SimulatedRun, b: SimulatedRun) -> tuple[Sequence[Row], Sequence[Row]]:
    """Compare what two runs did in detail.

    Returns
    -------
    list of mapping, list of mapping
        What each spends on the critical path by cause, s; the links whose busy time differs most, by name.
    """
    terms = [run.critical.terms if run.critical is not None else {} for run in (a, b)]
    path = [{"cause": name, "a_s": terms[0].get(name), "b_s": terms[1].get(name)} for name in {**terms[0], **terms[1]}]
    busy = [_busy(run) for run in (a, b)]
    names = sorted({**busy[0], **busy[1]}, key=lambda name: -abs(busy[1].get(name, 0.0) - busy[0].get(name, 0.0)))
    links: list[dict[str, Any]] = [
        {"link": name, "a_s": busy[0].get(name), "b_s": busy[1].get(name)} for name in names[:MAX_LINKS]
    ]
    return path, links


def _busy(run: SimulatedRun) -> dict[str, float]:
    """Return for how long each link that carries something has to send."""
    network, n_bytes = run.prepared.network, run.result.link_bytes
    used = np.flatnonzero(n_bytes)
    return {network.link_name(int(i)): float(n_bytes[i] / network.bandwidth[i]) for i in used}


def _question_columns(rows: Sequence[Row]) -> list[str]:
    """Return the columns of what was asked: no results, and no lists, which only results are."""
    names = dict.fromkeys(name for row in rows for name in row)
    lists = {name for row in rows for name, value in row.items() if isinstance(value, list)}
    left_out = _NOT_ASKED | lists
    return [name for name in names if name not in left_out and not name.startswith(_OUT)]


def _constants(a: Sequence[Row], b: Sequence[Row], names: Sequence[str]) -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Yield the columns that have one value in each set."""
    for name in names:
        values = [{row.get(name) for row in rows} for rows in (a, b)]
        if all(len(of) == 1 for of in values):
            yield name, (values[0].pop(), values[1].pop())


def _key(row: Row, names: Sequence[str]) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in names)


def _pair(a: Row, b: Row, keys: Sequence[str]) -> dict[str, Any]:
    pair: dict[str, Any] = {name: a.get(name) for name in keys}
    for side, row in (("a", a), ("b", b)):
        pair[side] = {name.replace(".name", ""): row[name] for name in COMPARED if name in row}
        for name in ("iteration_s", "step_s"):
            if name in row:
                pair[side]["time_s"] = row[name]
    times = [pair[side].get("time_s") for side in ("a", "b")]
    return pair | {"time_ratio": times[1] / times[0] if all(times) else None}
