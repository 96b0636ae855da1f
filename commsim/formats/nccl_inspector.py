"""Lines of NCCL's inspector, a profiler plugin: one JSON object for each collective of each rank.

References
----------
NCCL 2.30, ``plugins/profiler/inspector``: header, metadata and coll_perf.
"""

from __future__ import annotations

import io
from pathlib import Path

from commsim.core.errors import InputError
from commsim.files.fields import Fields
from commsim.files.whole_files import parse_json

from .measured import Asked, Measured, check_count
from .nccl_names import NCCL_FUNCTIONS


def read_lines(text: str, path: Path, asked: Asked) -> list[Measured]:
    """Read JSON lines; the last one may be cut off, since a run that is killed leaves it so.

    Raises
    ------
    InputError
        Naming line and field, if one is missing or wrong.
    """
    rows: list[Measured] = []
    skipped: set[str] = set()
    n_lines = text.count("\n") + (not text.endswith("\n"))
    for number, line in enumerate(io.StringIO(text), 1):
        if not line.strip():
            continue
        try:
            tree = parse_json(line)
        except RecursionError:
            raise InputError(f"{path}, line {number}: nested too deeply") from None
        except ValueError as error:
            if number == n_lines:
                asked.notes.append(f"{path}: the last line is cut off and left out")
                continue
            raise InputError(f"{path}, line {number}: {str(error).splitlines()[0]}") from None
        top = Fields(tree if isinstance(tree, dict) else {}, f"{path}, line {number}")
        if "coll_perf" in top:
            rows += _row(top, number, path, skipped)
            check_count(path, len(rows))
    if skipped:
        asked.notes.append(f"{path}: left out, since they are no operation here: {', '.join(sorted(skipped))}")
    return rows


def _row(top: Fields, number: int, path: Path, skipped: set[str]) -> list[Measured]:
    perf, header = top.table("coll_perf"), top.table("header")
    name = perf.text("coll")
    if name not in NCCL_FUNCTIONS:
        skipped.add(repr(name[:40]))
        return []
    return [
        Measured(
            NCCL_FUNCTIONS[name],
            perf.number("coll_msg_size_bytes"),
            perf.number("coll_exec_time_us") * 1e-6,
            header.whole("n_ranks", 1),
            source=str(path),
            line=number,
        )
    ]
