"""The results of a sweep as one table: Arrow, pandas, polars, SQL.

Tables as files that other programs read: CSV, JSON, Parquet.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commsim.core.errors import InputError
from commsim.files.whole_files import read_tree, replacing, write_json

from .axis import KINDS
from .shard import DESCRIPTION, parts, read_rows, read_shard, require_pyarrow, schema_of, write_parquet

if TYPE_CHECKING:
    import pyarrow


def read_table(directory: str | Path, columns: Sequence[str] | None = None) -> pyarrow.Table:
    """Read all results of a sweep, also of one that is running or was killed.

    The table is the same to the byte whoever computed it: rows are in the order of the points, columns in that of
    the file and of ``docs/sweeps.md``. The metadata of columns have their unit, that of the table where it comes from.

    Parameters
    ----------
    directory : path
        Of the sweep.
    columns : sequence of str, optional
        Only these.

    Returns
    -------
    pyarrow.Table
        ``.to_pandas()`` and ``polars.from_arrow`` take it further.

    Raises
    ------
    InputError
        If it is no directory of a sweep, a shard is damaged, a point is there twice, or pyarrow is not installed.
    """
    pa = require_pyarrow()
    directory = Path(directory)
    about = read_description(directory)
    kinds: dict[str, str] = about["parameters"]
    unfinished = _unfinished(directory, kinds)  # first: one that becomes a shard meanwhile is then found among these
    tables = {path: read_shard(path) for path in parts(directory, ".parquet").values()}
    tables |= {path: rows for path, rows in unfinished.items() if not path.with_suffix(".parquet").exists()}
    schema = schema_of({name for table in tables.values() for name in table.column_names}, kinds)
    filled = [_filled(pa, table, schema, path) for path, table in tables.items()]
    table = pa.concat_tables(filled) if filled else schema.empty_table()
    if len(set(table.column("point").to_pylist())) < table.num_rows:
        raise InputError(f"{directory}: a point is there twice; these are not the shards of one sweep")
    table = table.sort_by("order").combine_chunks()
    if columns is not None:
        table = table.select([name for name in columns if name in table.column_names])
    return table.replace_schema_metadata({"commsim": json.dumps(about["provenance"], sort_keys=True)})


def read_description(directory: str | Path) -> dict[str, Any]:
    """Read the ``sweep.json`` of a directory.

    Raises
    ------
    InputError
        If it is missing or no such file.
    """
    path = Path(directory) / DESCRIPTION
    if not path.exists():
        raise InputError(f"{directory}: no sweep is here, it has no {DESCRIPTION}")
    about = read_tree(path)
    wanted = {"parameters": dict, "provenance": dict, "config_hash": str}
    if about.get("schema") != 1 or not all(isinstance(about.get(key), kind) for key, kind in wanted.items()):
        raise InputError(f"{path}: not the description of a sweep")
    for name, kind in about["parameters"].items():
        if "." not in name or kind not in KINDS:
            raise InputError(f"{path}: {name!r} is no parameter of one of the kinds {', '.join(KINDS)}")
    return about


def finished_points(directory: Path) -> dict[str, bool]:
    """Whether each point in shards failed, by its hash; whoever opened the journal has no others."""
    found: dict[str, bool] = {}
    for path in parts(directory, ".parquet").values():
        table = read_shard(path, ["point", "error"])
        failed = table.column("error").is_valid().to_pylist()
        found.update(zip(table.column("point").to_pylist(), failed, strict=True))
    return found


def query(directory: str | Path, sql: str) -> pyarrow.Table:
    """Answer a query in SQL over the table ``sweep``; it can read nothing else, and write nothing.

    Raises
    ------
    InputError
        If DuckDB is not installed, or refuses the query.
    """
    try:
        import duckdb
    except ImportError:
        raise InputError("SQL over results needs DuckDB: pip install 'commsim[data]'") from None
    table = read_table(directory)
    closed = {"enable_external_access": "false", "python_enable_replacements": "false", "temp_directory": "",
              "autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}  # fmt: skip
    connection = duckdb.connect(":memory:", config={**closed, "threads": "1"})
    try:
        connection.register("sweep", table)
        connection.execute("SET lock_configuration = true")
        answer = connection.sql(sql)
        if answer is None:
            raise InputError("SQL: the query has no answer; it is like: select * from sweep")
        return answer.to_arrow_table()
    except duckdb.Error as error:
        raise InputError(f"SQL: {str(error).strip().splitlines()[0]}") from None
    finally:
        connection.close()


def _unfinished(directory: Path, kinds: Mapping[str, str]) -> dict[Path, pyarrow.Table]:
    found = {}
    for path in parts(directory, ".rows").values():
        try:
            found[path] = read_rows(path, kinds)
        except InputError:
            if path.exists():  # else it has become a shard meanwhile
                raise
    return found


def _filled(pa: Any, table: pyarrow.Table, schema: pyarrow.Schema, path: Path) -> pyarrow.Table:
    """Return the columns of `schema`; those that a shard does not have are empty."""
    names = set(table.column_names)
    try:
        columns = [
            table.column(field.name).cast(field.type) if field.name in names
            else pa.nulls(len(table), field.type)
            for field in schema
        ]  # fmt: skip
    except pa.ArrowException as error:
        raise InputError(f"{path}: no shard of this sweep: {str(error).splitlines()[0]}") from None
    return pa.Table.from_arrays(columns, schema=schema)


SUFFIXES = (".csv", ".json", ".parquet")


def require_suffix(path: str | Path) -> str:
    """Return the suffix of a file that a table can be written as.

    Raises
    ------
    InputError
        If it is another one, or the name is that of a file of results.
    """
    suffix, name = Path(path).suffix, Path(path).name
    if name == DESCRIPTION or name.startswith("part-"):
        raise InputError(f"{path}: results of sweeps have files by that name; give another one")
    if suffix not in SUFFIXES:
        raise InputError(f"{path}: a table is written as {', '.join(SUFFIXES)}")
    return suffix


def write_table(table: pyarrow.Table, path: str | Path) -> None:
    """Write a table; the file appears whole or not at all. What is missing is empty in CSV and null in JSON.

    Raises
    ------
    InputError
        If the suffix is unknown, or the file cannot be written.
    """
    suffix, path = require_suffix(path), Path(path)
    about = json.loads((table.schema.metadata or {}).get(b"commsim", b"{}"))
    if suffix == ".parquet":
        write_parquet(path, table, about)
    elif suffix == ".json":
        rows = [{key: _finite(value) for key, value in row.items()} for row in table.to_pylist()]
        write_json(path, {"schema": 1, "config": about, "results": rows})
    else:
        _write_csv(table, path)


def _write_csv(table: pyarrow.Table, path: Path) -> None:
    require_pyarrow()
    import pyarrow.csv

    with replacing(path) as out:
        pyarrow.csv.write_csv(table, out)


def _finite(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return str(value)  # dates, decimals and lists that a query made
