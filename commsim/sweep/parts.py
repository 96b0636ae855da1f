"""The files that have the rows of a sweep: which they are, and that they are what they seem."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commsim.core.errors import InputError
from commsim.core.formats.regular_file import check_regular

from .shard import MAX_BYTES, require_pyarrow, schema_of

if TYPE_CHECKING:
    import pyarrow

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
        return table.cast(pa.schema([_plain(pa, field) for field in table.schema], table.schema.metadata))
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


def _plain(pa: Any, field: pyarrow.Field) -> pyarrow.Field:
    return field.with_type(pa.string()) if pa.types.is_dictionary(field.type) else field
