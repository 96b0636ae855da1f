"""Rows of real runs: read from a file, or made by what runs them here."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from commsim.core.errors import InputError
from commsim.core.files.whole_files import read_tree

from .row import Row, row_from_json

# Rows of the last real runs; ``--write-data`` writes them.
KEPT = Path(__file__).with_name("real_rows.json")


def real_rows(quick: bool, path: str | Path | None = None, groups: Collection[str] = ()) -> Iterable[Row]:
    """Return rows of kind real.

    Parameters
    ----------
    quick : bool
        Whether only the quick subset is wanted; of no meaning for a file.
    path : str or Path, optional
        A JSON file with a list `rows`, such as ``--json`` writes; rows of other kinds in it are left out. Without one
        testbeds are built, and collectives are run in them.
    groups : collection of str
        Groups of :mod:`benchmarks.validation.real_cells` that are run, and take the place of their rows in the file.

    Raises
    ------
    InputError
        If the file holds no such rows.
    """
    from . import real_runs

    if not groups:
        return real_runs.rows(quick) if path is None else read_real(path)
    before = read_real(KEPT if path is None else path)  # first, so that a damaged file costs no minutes
    made = list(real_runs.rows(False, groups))
    ids = {row.id for row in made}
    return [*(row for row in before if row.id.split("/")[1] not in groups and row.id not in ids), *made]


def read_real(path: str | Path) -> list[Row]:
    """Read rows of kind real from a file.

    Raises
    ------
    InputError
        If the file is no JSON, or a row is not as :class:`Row` wants it.
    """
    path = Path(path)
    if path.suffix != ".json":
        raise InputError(f"{path}: real runs are read from a .json file")
    rows = read_tree(path).get("rows")
    if not isinstance(rows, list):
        raise InputError(f"{path}: rows must be a list, got {type(rows).__name__}")
    found = [row_from_json(row, str(path)) for row in rows]
    return [row for row in found if row.kind == "real"]


def why_absent(path: str | Path | None) -> str:
    """Say why there may be no real runs; nothing when there should be some."""
    from commsim.real.testbed.places import lacking

    why = "" if path else lacking()
    return f"no file of real runs was given (--real FILE), and none can be made here: {why}" if why else ""
