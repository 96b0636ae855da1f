"""Read a file of measurements of any known tool; the file's first bytes say which one wrote it, not its name."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from commsim.core.errors import InputError
from commsim.core.operations import operation as known_operation
from commsim.extensions import found_at

from .log_health import LogHealth
from .logs.log_formats import NCCL_TESTS, log_format_in
from .measurement import MAX_BYTES, Measurement, ReadingContext

Reader = Callable[[Path, ReadingContext], Sequence[Measurement]]
# How JSON begins; a log may begin with [1,0]<stdout>: instead.
_WRAPPED = re.compile(rb'\s*\{"log"\s*:\s*"')  # lines of Docker's json-file, each with a line of a program
_JSON = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:\{|\[\s*[\[{\]])")


# Bytes at the beginning of a file in which a table's title is.
_LOOKED_AT = 2**20


def read_measured(
    path: str | Path,
    *,
    operation: str = "",
    n_ranks: int | None = None,
    notes: list[str] | None = None,
    health: LogHealth | None = None,
    streams: bool = False,
) -> tuple[Measurement, ...]:
    """Read measurements, of whichever known form they are.

    Known are: the table of nccl-tests (and of ``commsim run``) and its JSON (``-J``), tables of the OSU
    micro-benchmarks, of the Intel MPI Benchmarks, of ucc_perftest, of perftest and of PyTorch's benchmarks, CSV with
    bytes and times, JSON and Parquet of commsim, NCCL inspector's JSON lines, PyTorch's flight recorder (JSON or
    pickle) and Kineto's traces. Any of them may be packed with gzip.

    Parameters
    ----------
    path : path
        A file, the folder of a sweep, or a folder of ``*.parquet``.
    operation : str
        Operation of a file that does not name its own; of a file that does, only the rows of this one are returned.
    n_ranks : int, optional
        Number of ranks, for a file that does not have it; where it does, both must agree.
    notes : list of str, optional
        Receives what was left out, and why.
    health : LogHealth, optional
        Receives what the file says of the run beside its times: wrong results, errors, tables.
    streams : bool
        Keep rates of messages that do not wait for each other (osu_bw), where the file has their latencies too.

    Returns
    -------
    tuple of Measurement
        At least one, in the order of the file.

    Raises
    ------
    InputError
        If the file is of no known form, is too large or damaged, or holds no measurement.
    """
    if operation:
        known_operation(operation)
    context = ReadingContext(operation, n_ranks, [] if notes is None else notes, health or LogHealth(), streams)
    rows = [row for row in _reader(Path(path))(Path(path), context) if not operation or row.operation == operation]
    if not rows:
        of = f" of {operation}" if operation else ""
        why = f" ({context.notes[-1]})" if context.notes else ""
        raise InputError(f"{path}: holds no measurement{of}{why}")
    for row in rows:
        if n_ranks is not None and row.n_ranks not in (None, n_ranks):
            raise InputError(f"{path}, line {row.line}: was measured on {row.n_ranks} ranks, got {n_ranks}")
    return tuple(rows)


def _reader(path: Path) -> Reader:
    """Find out what a file is, by its first bytes rather than by its name."""
    if path.is_dir() or path.suffix == ".parquet":
        from commsim.core.files.sweep_store import STORE

        from .json_rows import read_parquet, read_sweep

        return read_sweep if (path / STORE).exists() else read_parquet
    from commsim.core.files.whole_files import read_bytes

    head = read_bytes(path, MAX_BYTES)
    if head[:1] == b"\x80":
        from commsim.profiles.profiles import read_profile_rows

        return read_profile_rows
    if _JSON.match(head) and not _WRAPPED.match(head):
        from .json_rows import read_json_rows

        return read_json_rows
    if b'"coll_perf"' in head[:_LOOKED_AT]:
        from .json_rows import read_inspector_log

        return read_inspector_log
    from .csv_tables import is_csv_table, read_csv_table

    if is_csv_table(head):
        return read_csv_table
    reader: Reader = found_at((log_format_in(head) or NCCL_TESTS).reader)
    return reader
