"""Rows of one algorithm out of those of several: a prediction is of one, and a median over several is of none."""

from __future__ import annotations

from collections.abc import Sequence

from commsim.core.errors import InputError
from commsim.formats.measured import Measured


def several_algorithms(rows: Sequence[Measured]) -> dict[str, tuple[str, ...]]:
    """Algorithms of each operation that has more than one, by name."""
    found: dict[str, set[str]] = {}
    for row in rows:
        found.setdefault(row.operation, set()).add(row.algorithm)
    return {operation: tuple(sorted(names)) for operation, names in found.items() if len(names) > 1}


def of_one_algorithm(rows: Sequence[Measured], algorithm: str | None) -> list[Measured]:
    """Choose the rows of an algorithm, since a prediction is of one.

    Parameters
    ----------
    rows : sequence of Measured
        Predictions, of at least one.
    algorithm : str or None
        Its name, with or without parameters; None if there is only one.

    Raises
    ------
    InputError
        If there is none of that name, or several to choose from.
    """
    source = rows[0].source
    if algorithm is None:
        for operation, names in several_algorithms(rows).items():
            listed, first = ", ".join(names), names[0]
            raise InputError(
                f"{source}: has several algorithms of {operation}: {listed}; choose, as in --collective {first}"
            )
        return list(rows)
    chosen = [row for row in rows if algorithm in (row.algorithm, row.algorithm.partition(":")[0])]
    if not chosen:
        known = ", ".join(sorted({row.algorithm for row in rows}))
        raise InputError(f"{source}: has no rows of {algorithm}; of {known or 'no named algorithm'}")
    return chosen
