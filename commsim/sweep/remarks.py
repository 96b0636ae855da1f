"""What the points of a sweep say, for a terminal and for pages: each remark once, with the first point that says it."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

from commsim.files.sweep_store import reading, rows_in

# Remarks that are listed, and rows that are read for them.
MAX_LISTED, MAX_ROWS = 20, 100_000


def remarks_of(directory: str | Path) -> tuple[str, ...]:
    """Return the remarks of a sweep, each once, with the number of the first point that has it.

    Parameters
    ----------
    directory : path
        Directory of its results.

    Raises
    ------
    InputError
        If it is no directory of a sweep.
    """
    known: dict[str, int] = {}
    with reading(directory) as db:
        for line in itertools.islice(rows_in(db, directory), MAX_ROWS):
            row = json.loads(line)
            for one in row.get("remarks") or ():
                known.setdefault(one, row["order"])
    listed = [f"point {order}: {one}" for one, order in known.items()]
    more = len(listed) - MAX_LISTED
    return (*listed[:MAX_LISTED], *([f"{more} more remarks are in the column `remarks`"] if more > 0 else []))
