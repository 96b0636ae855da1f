"""The results of a sweep as one table: Arrow, pandas, polars, SQL; the type of a column follows from its name."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commsim.core.errors import InputError
from commsim.core.extras import needs
from commsim.core.files.sweep_store import LOCK, STORE, columns_in, read_description, reading, rows_in
from commsim.core.files.whole_files import parse_json, replacing, write_json
from commsim.core.remark import read_remarks
from commsim.report.answer_files import write_rows

from .quantities import KINDS, UNITS

if TYPE_CHECKING:
    import pyarrow

FIRST = ("point", "order", "seed")
# What kinds of traffic expose and hide in a training step.
EXPOSED = tuple(
    f"{how}_{kind}_s" for how in ("exposed", "hidden") for kind in ("tensor", "context", "expert", "pipeline", "data")
)
# Columns of results in their order; what engines count comes after them, by name.
RESULTS = (
    "error", "collective", "operation", "engine", "n_ranks", "size_B", "time_s", "time_from_last_start_s",
    "algbw_Bps", "busbw_Bps", "bytes_on_wire", "max_link_bytes", "p5_s", "p95_s", "n_samples",
    "fastest_s", "slowest_s", "n_hashes", "whole_s", "faults_cost", "limited_by", "limit_busy", "policy", "workers",
    "iteration_s", "exposed_comm_s", "scaling", "step_s", "compute_s", "bubble_s", *EXPOSED, "tokens_per_s_per_gpu",
    "model_tflops_per_gpu", "mfu", "micro_batches", "factor", "batches", "sent_per_worker_B", "costs", "remarks",
)  # fmt: skip

TEXT = ("point", "error", "collective", "operation", "engine", "policy", "costs", "limited_by")
WHOLE = ("order", "seed", "n_ranks", "n_samples", "n_hashes", "workers", "batches", "micro_batches")
REMARKS = "remarks"
RESULT_UNITS = {"size_B": "B", "time_s": "s", "time_from_last_start_s": "s", "algbw_Bps": "B/s", "busbw_Bps": "B/s",
                "bytes_on_wire": "B", "max_link_bytes": "B", "p5_s": "s", "p95_s": "s",
                "fastest_s": "s", "slowest_s": "s", "whole_s": "s", "iteration_s": "s",
                "exposed_comm_s": "s", "compute_s": "s", "sent_per_worker_B": "B", "step_s": "s", "bubble_s": "s",
                **dict.fromkeys(EXPOSED, "s")}  # fmt: skip

# Between the texts of remarks, or what else a list has, in CSV.
BETWEEN = " | "
MAX_COLUMNS = 2000
ROWS_AT_ONCE = 20_000
MAX_ANSWER_ROWS = 1_000_000  # or as many as the sweep has
MAX_QUERY_MEMORY = "1GB"  # a query of one line can ask for any number of rows
SUFFIXES = (".csv", ".json", ".parquet")


def read_table(directory: str | Path, columns: Sequence[str] | None = None) -> pyarrow.Table:
    """Read all results of a sweep, also of one that is running or was killed.

    The table is the same to the byte whatever computed it: rows are in the order of the points, columns in that of
    the file and of ``docs/sweeps.md``. The metadata of columns have their unit, that of the table the provenance.

    Parameters
    ----------
    directory : path
        Directory of the sweep.
    columns : sequence of str, optional
        Only these.

    Returns
    -------
    pyarrow.Table
        ``.to_pandas()`` and ``polars.from_arrow`` take it further.

    Raises
    ------
    InputError
        If it is no directory of a sweep, its store is damaged, or pyarrow is not installed.
    """
    pa = require_pyarrow()
    about, path = read_description(directory), Path(directory) / STORE
    for name, kind in about["parameters"].items():
        if "." not in name or kind not in KINDS:
            raise InputError(f"{path}: {name!r} is no parameter of one of the kinds {', '.join(KINDS)}")
    with reading(directory) as db:
        schema = _schema_of(columns_in(db, path), about["parameters"])
        tables = [schema.empty_table()]
        every = rows_in(db, directory)
        while rows := list(itertools.islice(every, ROWS_AT_ONCE)):
            tables.append(_table_of_lines(pa, rows, schema, path))
    table = pa.concat_tables(tables).combine_chunks()
    if columns is not None:
        table = table.select([name for name in columns if name in table.column_names])
    return table.replace_schema_metadata({"commsim": json.dumps(about["provenance"], sort_keys=True)})


def read_rows(directory: str | Path) -> Iterator[dict[str, Any]]:
    """Go through the rows of :func:`read_table` as dicts, without pyarrow: the same columns, None where one is missing.

    Raises
    ------
    InputError
        If it is no directory of a sweep, or its store is damaged.
    """
    about, path = read_description(directory), Path(directory) / STORE
    with reading(directory) as db:
        names = _names_of(columns_in(db, path), about["parameters"])
        for line in rows_in(db, directory):
            try:
                row = parse_json(line)
            except (ValueError, RecursionError) as error:
                raise InputError(f"{path}: no rows of a sweep: {error}") from None
            if not isinstance(row, dict) or not row.keys() <= set(names) or None in map(row.get, FIRST):
                raise InputError(f"{path}: no rows of a sweep: a row without point, order or seed")
            yield {name: row.get(name) for name in names}


def _table_of_lines(pa: Any, lines: list[str], schema: pyarrow.Schema, path: Path) -> pyarrow.Table:
    # not `pyarrow.array` of lists: that imports pandas if it is there
    plain = pa.schema([pa.field(field.name, field.type) for field in schema])
    try:
        data = "\n".join(lines).encode()
        reader = pa.json.ReadOptions(use_threads=False, block_size=len(data) + 1)
        parsing = pa.json.ParseOptions(explicit_schema=plain, unexpected_field_behavior="error")
        try:
            table = pa.json.read_json(pa.BufferReader(data), reader, parsing)
        except pa.ArrowException:  # remarks of before are sentences
            data = "\n".join(_with_values(line, path) for line in lines).encode()
            reader = pa.json.ReadOptions(use_threads=False, block_size=len(data) + 1)
            table = pa.json.read_json(pa.BufferReader(data), reader, parsing)
    except (TypeError, UnicodeError, json.JSONDecodeError, pa.ArrowException) as error:
        raise InputError(f"{path}: no rows of a sweep: {str(error).splitlines()[0]}") from None
    if table.num_rows != len(lines) or any(table.column(name).null_count for name in FIRST):
        raise InputError(f"{path}: no rows of a sweep: a row without point, order or seed")
    return table.select(schema.names).cast(schema)


def _with_values(line: str, path: Path) -> str:
    """Return a row with remarks as values, also where it was written with sentences."""
    try:
        row = json.loads(line)
    except ValueError as error:
        raise InputError(f"{path}: no rows of a sweep: {error}") from None
    if isinstance(row, dict) and REMARKS in row:
        row[REMARKS] = [remark.tree() for remark in read_remarks(row[REMARKS], f"{path}: no rows of a sweep")]
    return json.dumps(row)


def _schema_of(columns: Iterable[str], kinds: Mapping[str, str]) -> pyarrow.Schema:
    """Return the schema of these columns."""
    pa = require_pyarrow()
    return pa.schema([_field(pa, name, kinds) for name in _names_of(columns, kinds)])


def _names_of(columns: Iterable[str], kinds: Mapping[str, str]) -> list[str]:
    """Return the columns of a table, in the order that all tables have.

    Raises
    ------
    InputError
        If there are more than ``MAX_COLUMNS``.
    """
    present = set(columns) | set(FIRST) | set(kinds) | {"error"}
    if len(present) > MAX_COLUMNS:
        raise InputError(f"a table of results has at most {MAX_COLUMNS} columns, got {len(present)}")
    known = [*FIRST, *kinds, *(name for name in RESULTS if name in present)]
    return [*known, *sorted(present - set(known))]


def query(directory: str | Path, sql: str) -> pyarrow.Table:
    """Answer a query in SQL over the table ``sweep``; it can read nothing else, and write nothing.

    Raises
    ------
    InputError
        If DuckDB is not installed, or refuses the query; if it takes too much memory, or its answer too many rows.
    """
    try:
        import duckdb
    except ImportError:
        raise InputError(needs("SQL over results needs DuckDB", "data")) from None
    table = read_table(directory)
    closed = {"enable_external_access": "false", "python_enable_replacements": "false", "temp_directory": "",
              "autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}  # fmt: skip
    connection = duckdb.connect(":memory:", config={**closed, "threads": "1", "memory_limit": MAX_QUERY_MEMORY})
    try:
        connection.register("sweep", table)
        connection.execute("SET lock_configuration = true")
        answer = connection.sql(sql)
        if answer is None:
            raise InputError("SQL: the query returns no table; an example: select * from sweep")
        most = max(table.num_rows, MAX_ANSWER_ROWS)
        rows = answer.limit(most + 1).to_arrow_table()
        if rows.num_rows > most:
            raise InputError(f"SQL: the answer has more than {most} rows; `limit` or `where` makes it shorter")
        return rows
    except duckdb.Error as error:
        raise InputError(f"SQL: {str(error).strip().splitlines()[0]}") from None
    finally:
        connection.close()


def units_in(directory: str | Path, sql: str) -> dict[str, str]:
    """Return the units of the parameters that a query names; names of results end with theirs.

    Parameters
    ----------
    directory : path
        Directory of the sweep.
    sql : str
        The query.
    """
    kinds = read_description(directory)["parameters"]
    return {name: UNITS[kind] for name, kind in kinds.items() if kind in UNITS and name in sql}


def require_suffix(path: str | Path) -> str:
    """Return the suffix of a file that a table can be written as.

    Raises
    ------
    InputError
        If it is another one, or the name is that of a file of results.
    """
    suffix, name = Path(path).suffix, Path(path).name
    if name.startswith((STORE, LOCK)):
        raise InputError(f"{path}: results of sweeps have files of this name; give another one")
    if suffix not in SUFFIXES:
        raise InputError(f"{path}: a table is written as {', '.join(SUFFIXES)}")
    return suffix


def write_results(directory: str | Path, path: str | Path) -> tuple[int, int]:
    """Write all results of a sweep as :func:`write_table` does; only Parquet needs pyarrow.

    Returns
    -------
    int, int
        Number of rows and of columns.
    """
    if require_suffix(path) == ".parquet":
        table = read_table(directory)
        write_table(table, path)
        return int(table.num_rows), int(table.num_columns)
    about = read_description(directory)
    with reading(directory) as db:
        names = _names_of(columns_in(db, Path(directory) / STORE), about["parameters"])
    rows = list(read_rows(directory))
    _write_rows(path, names, rows, about["provenance"])
    return len(rows), len(names)


def write_table(table: pyarrow.Table, path: str | Path) -> None:
    """Write a table; the file appears whole or not at all.

    What is missing is empty in CSV and null in JSON. A list, also of remarks, is one text in CSV, with bars between.

    Raises
    ------
    InputError
        If the suffix is unknown, or the file cannot be written.
    """
    about = json.loads((table.schema.metadata or {}).get(b"commsim", b"{}"))
    if require_suffix(path) == ".parquet":
        _write_parquet(Path(path), table, about)
    else:
        _write_rows(path, table.column_names, table.to_pylist(), about)


def _write_rows(
    path: str | Path, names: Sequence[str], rows: list[dict[str, Any]], provenance: Mapping[str, Any]
) -> None:
    """Write rows as CSV or JSON."""
    if Path(path).suffix == ".csv":
        write_rows(str(path), ({name: _in_csv(value) for name, value in row.items()} for row in rows), names)
        return
    rows = [{key: _finite(value) for key, value in row.items()} for row in rows]
    remarks = dict.fromkeys(remark for row in rows for remark in read_remarks(row.get(REMARKS), str(path)))
    for row in rows:
        if row.get(REMARKS):
            row[REMARKS] = [remark.tree() for remark in read_remarks(row[REMARKS], str(path))]
    write_json(
        Path(path), {"schema": 1, "config": provenance, "results": rows, "remarks": [one.tree() for one in remarks]}
    )


def _write_parquet(path: Path, table: pyarrow.Table, provenance: Mapping[str, Any]) -> None:
    """Write a table with zstd, and where it comes from in the metadata ``commsim``."""
    pa = require_pyarrow()
    table = table.replace_schema_metadata({"commsim": json.dumps(provenance, sort_keys=True)})
    with replacing(path) as out:
        pa.parquet.write_table(table, out, compression="zstd")


def _in_csv(value: Any) -> Any:
    """Return a cell of a CSV file: of a list the texts of its elements."""
    if isinstance(value, list):
        return BETWEEN.join(map(_text, value))
    return value if value is None or isinstance(value, (str, bool, int, float)) else str(value)


def _text(value: Any) -> str:
    """Return an element of a list as text; of a remark its words."""
    return str(read_remarks([value], REMARKS)[0]) if isinstance(value, dict) and "code" in value else str(value)


def _finite(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return [_finite(item) for item in value]
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return str(value)  # dates and decimals that a query made


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
        raise InputError(needs("tables of results need pyarrow", "data")) from None
    return pa


def _field(pa: Any, name: str, kinds: Mapping[str, str]) -> pyarrow.Field:
    kind = kinds.get(name)
    if name == REMARKS:
        texts, values = ("code", "text", "details"), (("effect", pa.float64()), ("needed", pa.bool_()))
        remark = pa.struct([*((key, pa.string()) for key in texts), *values])
        type_ = pa.list_(pa.field("element", remark))  # as Parquet names it
    elif name in TEXT or kind == "text":
        type_ = pa.string()
    elif name in WHOLE or kind == "whole":
        type_ = pa.int64()
    else:
        type_ = pa.bool_() if kind == "truth" else pa.float64()
    unit = UNITS.get(kind or "") or RESULT_UNITS.get(name)
    return pa.field(name, type_, metadata={"unit": unit} if unit else None)
