"""Measurements in JSON and Parquet: our own results, nccl-tests' JSON, lines of NCCL's inspector, and profiles.

Our own are ``--json`` of run and validate, a saved result, and the results of a sweep. NCCL's inspector, a
profiler plugin, writes one JSON object for each collective of each rank.

References
----------
NCCL 2.30, ``plugins/profiler/inspector``: header, metadata and coll_perf.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from commsim.core.errors import InputError
from commsim.core.extras import needs
from commsim.core.files.fields import TableFields
from commsim.core.files.opening import check_regular
from commsim.core.files.sweep_store import reading, rows_in
from commsim.core.files.whole_files import parse_json, read_text
from commsim.core.units import count_text

from .measurement import MAX_BYTES, Measurement, ReadingContext, check_count
from .nccl_tests import NCCL_FUNCTIONS

# Functions of NCCL whose message size in the inspector's lines is that of one rank's part (``inspectorComputeOpBw``).
BY_PART = ("AllGather", "AllGatherV", "ReduceScatter")
# Records of the inspector that a tool put into one list.
_INSPECTOR_LIST = re.compile(r'\s*\[\s*\{(?=[^\[]{0,2000}"coll_perf"\s*:)')
COLL_PERF = '"coll_perf"'
_PARQUET = ("operation", "n_ranks", "size_B", "time_s")
_MORE = ("collective", "p5_s", "p95_s", "low_s", "high_s", "error")


def read_json_rows(path: Path, context: ReadingContext) -> Sequence[Measurement]:
    """Read the measurements of a JSON file.

    Raises
    ------
    InputError
        If it is not well formed, or of no known kind.
    """
    from commsim.profiles.kineto import is_kineto, kineto_tree

    text = read_text(path, MAX_BYTES)
    try:
        if _INSPECTOR_LIST.match(text):
            return read_lines("\n".join(map(json.dumps, parse_json(text))), path, context)
        tree = kineto_tree(text) if is_kineto(text) else parse_json(text)
    except RecursionError:
        raise InputError(f"{path}: nested too deeply") from None
    except ValueError as error:
        if isinstance(error, json.JSONDecodeError) and error.msg == "Extra data":  # one table to a line
            return read_lines(text, path, context)
        begins = text.strip().partition("\n")[0][:40]
        raise InputError(
            f"{path}: holds no measurement, and is not JSON: {str(error).splitlines()[0]}; it begins with {begins!r}"
        ) from None
    return _by_kind(tree, path, context)


def _by_kind(tree: dict[str, Any], path: Path, context: ReadingContext) -> Sequence[Measurement]:
    if "coll_perf" in tree:
        return read_lines(json.dumps(tree), path, context)
    if "traceEvents" in tree or "entries" in tree:
        from commsim.profiles.calls import measured_calls
        from commsim.profiles.profiles import calls_of_tree

        return measured_calls(calls_of_tree(tree, path, context.notes), path, context)
    if "schema" in tree or tree.get("kind") == "result":
        return read_own(tree, path, context)
    if "results" in tree and "config" in tree:
        from .nccl_tests import read_nccl_tests_json

        return read_nccl_tests_json(tree, path, context)
    known = "results of commsim or nccl-tests, NCCL inspector's lines, a flight recorder or a Kineto trace"
    got = f"the keys {', '.join(map(str, tree))[:80]}" if tree else "no keys"
    raise InputError(f"{path}: JSON of no known kind; expected {known}, got {got}")


def read_own(tree: Mapping[str, Any], path: Path, context: ReadingContext) -> list[Measurement]:
    """Read decoded JSON of ours: a table of results, or one saved result.

    Parameters
    ----------
    tree : mapping
        The decoded file.
    path : path
        Path of the file, named in messages.
    context : ReadingContext
        What the user says of the file; receives notes.

    Raises
    ------
    InputError
        Naming line and field, if one is missing or wrong.
    """
    top = TableFields(tree, path)
    top.schema(required=False)
    if tree.get("kind") == "result":
        return [_saved(top, path)]
    results = top.tables("results")
    check_count(path, len(results))
    return [_own_row(row, context.operation, str(path), i) for i, row in enumerate(results, 1)]


def _own_row(row: TableFields, operation: str, source: str, line: int) -> Measurement:
    low, high = (row.number(key) if key in row else None for key in ("p5_s", "p95_s"))
    interval = (row.number("low_s"), row.number("high_s")) if "low_s" in row and "high_s" in row else None
    return Measurement(
        row.text("operation", operation or None), row.number("size_B"), row.number("time_s"),
        row.whole("n_ranks", 1) if "n_ranks" in row else None, row.text("collective", ""), low=low, high=high,
        source=source, line=line, interval=interval,
    )  # fmt: skip


def read_sweep(path: Path, context: ReadingContext) -> list[Measurement]:
    """Read the results of a sweep's folder; rows with an error are left out.

    Raises
    ------
    InputError
        If the store is damaged, or has too many rows.
    """
    with reading(path) as db:
        check_count(path, db.execute("SELECT count(*) FROM points").fetchone()[0])
        texts = list(rows_in(db, path))
    try:
        rows = parse_json(f"[{','.join(texts)}]")
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: no rows of a sweep: {error}") from None
    return _without_failed([row if isinstance(row, dict) else {} for row in rows], path, context)


def read_parquet(path: Path, context: ReadingContext) -> list[Measurement]:
    """Read rows of a Parquet file, or of all in a folder; rows with an error are left out.

    Raises
    ------
    InputError
        If pyarrow is not installed, a file is damaged or too large, or a column is missing.
    """
    try:
        import pyarrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise InputError(needs(f"{path}: Parquet needs pyarrow", "data")) from None
    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    if not files:
        raise InputError(f"{path} is a folder without *.parquet; a log, or another file with times, is wanted")
    rows: list[Measurement] = []
    for file in files:
        check_regular(file)
        try:
            with parquet.ParquetFile(file) as opened:
                check_count(path, len(rows) + opened.metadata.num_rows)
                missing = [name for name in _PARQUET if name not in opened.schema_arrow.names]
                if missing:
                    raise InputError(f"{file}: has no column {missing[0]}; rows need {', '.join(_PARQUET)}")
                columns = [name for name in (*_PARQUET, *_MORE) if name in opened.schema_arrow.names]
                table = opened.read(columns=columns).to_pylist()
        except (pyarrow.ArrowException, OSError) as error:
            raise InputError(f"{file}: not a readable Parquet file ({str(error).splitlines()[0]})") from None
        rows += _without_failed(table, file, context)
    return rows


def _without_failed(table: Sequence[Mapping[str, Any]], file: Path, context: ReadingContext) -> list[Measurement]:
    failed = sum(bool(row.get("error")) for row in table)
    if failed:
        context.notes.append(f"{file}: left out: {count_text(failed, 'row')} with an error instead of a time")
    rows = []
    for i, row in enumerate(table, 1):
        if not row.get("error"):
            known = {key: value for key, value in row.items() if value is not None}
            rows.append(_own_row(TableFields(known, f"{file}, row {i}"), "", str(file), i))
    return rows


def _saved(top: TableFields, path: Path) -> Measurement:
    return Measurement(
        top.text("operation"), top.number("size"), top.number("time"), top.whole("n_ranks", 1), top.text("collective"),
        source=str(path), line=1,
    )  # fmt: skip


def read_inspector_log(path: Path, context: ReadingContext) -> list[Measurement]:
    """Read the inspector's lines among others, or behind what a launcher or a collector puts before each.

    Raises
    ------
    InputError
        As :func:`read_lines`.
    """
    lines = io.StringIO(read_text(path, MAX_BYTES))
    own = (line[line.index("{") :] if COLL_PERF in line and "{" in line else "\n" for line in lines)
    return read_lines("".join(own), path, context)


def read_lines(text: str, path: Path, context: ReadingContext) -> list[Measurement]:
    """Read JSON lines; the last one may be cut off, since a run that is killed leaves it so.

    Parameters
    ----------
    text : str
        The whole file.
    path : path
        Path of the file, named in messages.
    context : ReadingContext
        What the user says of the file; receives notes.

    Raises
    ------
    InputError
        Naming line and field, if one is missing or wrong.
    """
    rows: list[Measurement] = []
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
                context.notes.append(f"{path}: the last line is cut off and left out")
                continue
            raise InputError(f"{path}, line {number}: {str(error).splitlines()[0]}") from None
        top = TableFields(tree if isinstance(tree, dict) else {}, f"{path}, line {number}")
        if "coll_perf" in top:
            rows += _row(top, number, path, skipped)
            check_count(path, len(rows))
    if not rows and not skipped:
        context.notes.append(f"{path}: JSON lines, none with coll_perf of NCCL's inspector")
    if skipped:
        context.notes.append(f"{path}: left out, since they are no operation here: {', '.join(sorted(skipped))}")
    return rows


def _row(top: TableFields, number: int, path: Path, skipped: set[str]) -> list[Measurement]:
    perf, header = top.table("coll_perf"), top.table("header")
    name = perf.text("coll")
    if name not in NCCL_FUNCTIONS:
        skipped.add(repr(name[:40]))
        return []
    n_ranks = header.whole("n_ranks", 1)
    return [
        Measurement(
            NCCL_FUNCTIONS[name],
            perf.number("coll_msg_size_bytes") * (n_ranks if name in BY_PART else 1),
            perf.number("coll_exec_time_us") * 1e-6,
            n_ranks,
            source=str(path),
            line=number,
        )
    ]
