"""Rows as Arrow tables, and Parquet shards: the type of a column depends on its name alone, never on its values.

The files that have the rows of a sweep: which they are, and that they are what they seem.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commsim.core.errors import InputError
from commsim.files.whole_files import check_regular, read_regular, replacing

from .axis import UNITS

if TYPE_CHECKING:
    import pyarrow

DESCRIPTION = "sweep.json"
FIRST = ("point", "order", "seed")
RESULTS = (
    "error", "collective", "operation", "engine", "n_ranks", "size_B", "time_s", "time_from_last_start_s",
    "algbw_Bps", "busbw_Bps", "bytes_on_wire", "max_link_bytes", "p5_s", "p95_s", "n_samples", "policy", "workers",
    "iteration_s", "exposed_comm_s", "scaling", "compute_s", "batches", "sent_per_worker_B",
)  # fmt: skip
"""Columns of results in their order; what engines count comes after them, by name."""

TEXT = ("point", "error", "collective", "operation", "engine", "policy")
WHOLE = ("order", "seed", "n_ranks", "n_samples", "workers", "batches")
RESULT_UNITS = {"size_B": "B", "time_s": "s", "time_from_last_start_s": "s", "algbw_Bps": "B/s", "busbw_Bps": "B/s",
                "bytes_on_wire": "B", "max_link_bytes": "B", "p5_s": "s", "p95_s": "s", "iteration_s": "s",
                "exposed_comm_s": "s", "compute_s": "s", "sent_per_worker_B": "B"}  # fmt: skip


MAX_BYTES = 2**30
"""Of a shard in memory; one that is written here has some megabytes."""

MAX_COLUMNS = 2000


def require_pyarrow() -> Any:
    """Return the module ``pyarrow``.

    Raises
    ------
    InputError
        If it is not installed.
    """
    try:
        import pyarrow as pa
        import pyarrow.json
        import pyarrow.parquet
    except ImportError:
        raise InputError("results of sweeps are Parquet, which needs pyarrow: pip install 'commsim[data]'") from None
    return pa


def schema_of(columns: Iterable[str], kinds: Mapping[str, str]) -> pyarrow.Schema:
    """Return the schema of these columns, in the order that all tables have.

    Raises
    ------
    InputError
        If there are more than ``MAX_COLUMNS``.
    """
    pa = require_pyarrow()
    present = set(columns) | set(FIRST) | set(kinds) | {"error"}
    if len(present) > MAX_COLUMNS:
        raise InputError(f"a table of results has at most {MAX_COLUMNS} columns, got {len(present)}")
    known = [*FIRST, *kinds, *(name for name in RESULTS if name in present)]
    return pa.schema([_field(pa, name, kinds) for name in [*known, *sorted(present - set(known))]])


def read_rows(path: Path, kinds: Mapping[str, str]) -> pyarrow.Table:
    """Read the rows of a shard that is not finished, one JSON object to a line; a last line that was cut is left out.

    Raises
    ------
    InputError
        If another line is no row.
    """
    pa = require_pyarrow()
    data = read_regular(path, MAX_BYTES)
    data = data[: data.rfind(b"\n") + 1]
    columns: set[str] = set()
    for number, line in enumerate(data.splitlines(), 1):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict) or not row.keys() >= set(FIRST):
            raise InputError(f"{path}, line {number}: no row of a sweep")
        columns.update(row)
    schema = schema_of(columns, kinds)
    if not data:
        return schema.empty_table()
    # not `pyarrow.array` of lists: that imports pandas if it is there
    reading = pa.json.ReadOptions(use_threads=False, block_size=len(data) + 1)
    parsing = pa.json.ParseOptions(explicit_schema=_plain(pa, schema), unexpected_field_behavior="error")
    try:
        table = pa.json.read_json(pa.BufferReader(data), reading, parsing)
    except pa.ArrowException as error:
        raise InputError(f"{path}: no rows of a sweep: {str(error).splitlines()[0]}") from None
    return table.select(schema.names).cast(schema)


def write_parquet(path: Path, table: pyarrow.Table, provenance: Mapping[str, Any]) -> None:
    """Write a table with zstd, and where it comes from in the metadata ``commsim``."""
    pa = require_pyarrow()
    table = table.replace_schema_metadata({"commsim": json.dumps(provenance, sort_keys=True)})
    with replacing(path) as out:
        pa.parquet.write_table(table, out, compression="zstd")


def _plain(pa: Any, schema: pyarrow.Schema) -> pyarrow.Schema:
    """Return a schema without the metadata of its fields."""
    return pa.schema([pa.field(field.name, field.type) for field in schema])


def _field(pa: Any, name: str, kinds: Mapping[str, str]) -> pyarrow.Field:
    kind = kinds.get(name)
    if name in TEXT or kind == "text":
        kept = pa.string()
    elif name in WHOLE or kind == "whole":
        kept = pa.int64()
    else:
        kept = pa.bool_() if kind == "truth" else pa.float64()
    unit = UNITS.get(kind or "") or RESULT_UNITS.get(name)
    return pa.field(name, kept, metadata={"unit": unit} if unit else None)


_NAME = re.compile(r"part-([0-9]{6,12})[.](rows|parquet)", re.ASCII)
MAX_VALUES = MAX_BYTES // 8


def parts(directory: Path, suffix: str) -> dict[int, Path]:
    """Find the shards of a directory, finished (``.parquet``) or not (``.rows``), by number; other files are not ours.

    Raises
    ------
    InputError
        If one is no regular file.
    """
    found = {}
    for path in sorted(directory.glob(f"part-*{suffix}")):
        named = _NAME.fullmatch(path.name)
        if named is not None and path.exists():  # else it has become a shard meanwhile
            check_regular(path)
            found[int(named[1])] = path
    return found


def read_shard(path: Path, columns: list[str] | None = None) -> pyarrow.Table:
    """Read a finished shard, or some of its columns.

    Raises
    ------
    InputError
        If it is damaged, no shard of a sweep, or would take more than ``MAX_BYTES`` of memory.
    """
    pa = require_pyarrow()
    try:
        texts = [field.name for field in pa.parquet.read_schema(path) if pa.types.is_string(field.type)]
        file = pa.parquet.ParquetFile(path, read_dictionary=texts)  # a text that is there often is read once
        _check_columns(path, file.schema_arrow, texts)
        if file.metadata.num_rows * file.metadata.num_columns > MAX_VALUES:
            raise InputError(f"{path}: no shard of a sweep, it has {file.metadata.num_rows} rows")
        table = file.read(columns)
        if sum(_text_bytes(column) for column in table.columns if pa.types.is_dictionary(column.type)) > MAX_BYTES:
            raise InputError(f"{path}: no shard of a sweep, its text is too long")
        return table.cast(pa.schema([_plain_parts(pa, field) for field in table.schema], table.schema.metadata))
    except (OSError, ValueError, pa.ArrowException) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: not a readable shard ({str(error).splitlines()[0]})") from None


def _check_columns(path: Path, schema: pyarrow.Schema, texts: list[str]) -> None:
    if len(set(schema.names)) != len(schema.names):
        raise InputError(f"{path}: no shard of a sweep, it has a column twice")
    for field in schema_of((), {}):
        found = schema.field(field.name) if field.name in schema.names else None
        if found is None or (found.type != field.type and not (field.type == "string" and field.name in texts)):
            raise InputError(f"{path}: no shard of a sweep, it has no {field.name} of type {field.type}")


def _text_bytes(column: pyarrow.ChunkedArray) -> int:
    """Bytes that a column of text takes when every row has its own."""
    import pyarrow.compute as pc

    return sum(pc.sum(pc.binary_length(chunk.dictionary).take(chunk.indices)).as_py() or 0 for chunk in column.chunks)


def _plain_parts(pa: Any, field: pyarrow.Field) -> pyarrow.Field:
    return field.with_type(pa.string()) if pa.types.is_dictionary(field.type) else field
