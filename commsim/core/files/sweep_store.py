"""The store of a sweep: one SQLite file, to which each finished chunk of points is added in one transaction.

A process that is killed at any moment loses the points in flight and no others. One process writes; any number read
meanwhile, each a consistent state. The row of a point is a line of JSON, so SQLite's own functions read it too.

SQLite sees damage of its own structures, but not of what they hold: a number that rotted on the disk is another number.
So every row has a checksum, which is compared whenever it is read.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from commsim.core.errors import InputError
from commsim.core.files.opening import check_regular
from commsim.core.files.whole_files import parse_json

STORE, LOCK = "sweep.sqlite", "sweep.lock"
# Version of the tables, in ``PRAGMA user_version``.
FORMAT = 2
# ``place`` is the order of a point in the sweep; ``columns`` are the names that any row has; ``sum`` is their checksum.
TABLES = {
    "description": "CREATE TABLE description (text TEXT NOT NULL, sum INTEGER NOT NULL)",
    "runs": "CREATE TABLE runs (run INTEGER PRIMARY KEY, provenance TEXT NOT NULL)",
    "columns": "CREATE TABLE columns (name TEXT PRIMARY KEY, sum INTEGER NOT NULL)",
    "points": "CREATE TABLE points (place INTEGER PRIMARY KEY, point TEXT NOT NULL, failed INTEGER NOT NULL, "
    "run INTEGER NOT NULL, row TEXT NOT NULL, sum INTEGER NOT NULL)",
}


class Store:
    """The results of one sweep, for the process that writes them.

    Parameters
    ----------
    directory : Path
        It exists; it is empty or has the store of a sweep.
    description : mapping
        Written into a new store: what :func:`read_description` returns.
    provenance : mapping
        Provenance of this run.

    Attributes
    ----------
    description : dict
        Description in the store: another one, if it was there before.

    Raises
    ------
    InputError
        If another process writes here, or nothing can be written.
    """

    def __init__(self, directory: Path, description: Mapping[str, Any], provenance: Mapping[str, Any]) -> None:
        refuse_older(directory)
        self._path, self._provenance = directory / STORE, json.dumps(provenance, sort_keys=True)
        self._run: int | None = None
        self._lock = _locked(directory)
        self._db: sqlite3.Connection | None = None
        try:
            with _errors(self._path, "cannot write"):
                if self._path.exists():
                    check_regular(self._path)
                self._db = sqlite3.connect(self._path, isolation_level=None)
                _make_tables(self._db, description)
                self.description = _description_in(self._db, self._path)
                self._columns = set(columns_in(self._db, self._path))
        except BaseException:
            self.close()
            raise

    def append(self, lines: list[bytes]) -> int:
        """Add the rows of finished points, all or none; they survive the process. Return how many of the points failed.

        Raises
        ------
        InputError
            If they cannot be written: the disk is full, say.
        """
        rows = [json.loads(line) for line in lines]
        columns = {name for row in rows for name in row}
        with self._transaction() as db:
            insert = "INSERT INTO runs (provenance) VALUES (?)"
            run = db.execute(insert, [self._provenance]).lastrowid if self._run is None else self._run
            added = [[name, _sum_of(name)] for name in sorted(columns - self._columns)]
            db.executemany("INSERT INTO columns VALUES (?, ?)", added)
            cells = ((row["order"], row["point"], int(row["error"] is not None), run, line.decode().strip())
                     for row, line in zip(rows, lines, strict=True))  # fmt: skip
            db.executemany("INSERT OR REPLACE INTO points VALUES (?, ?, ?, ?, ?, ?)",
                           ((*each, _sum_of(*each)) for each in cells))  # fmt: skip
        self._run, self._columns = run, self._columns | columns
        return sum(row["error"] is not None for row in rows)

    def forget_failed(self) -> None:
        """Take out the rows of points that failed."""
        with self._transaction() as db:
            db.execute("DELETE FROM points WHERE failed")

    def finished(self) -> dict[str, bool]:
        """Whether each point that has a row failed, by its hash."""
        with self._transaction() as db:
            return {point: bool(failed) for point, failed, _ in _sound(db, self._path)}

    def close(self) -> None:
        """Put everything into the one file, and let others write."""
        if self._db is not None:
            with contextlib.suppress(sqlite3.Error):  # somebody reads: then the last reader does it
                self._db.execute("PRAGMA journal_mode = DELETE")
            self._db.close()
        self._lock.close()

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        assert self._db is not None
        with _errors(self._path, "cannot write"), self._db:
            self._db.execute("BEGIN IMMEDIATE")
            yield self._db


@contextlib.contextmanager
def reading(directory: str | Path) -> Iterator[sqlite3.Connection]:
    """Open the store of a directory to read one consistent state of it, also while it is written to.

    Raises
    ------
    InputError
        If it is missing or damaged, or it is one of another version.
    """
    path = Path(directory) / STORE
    if not path.exists():
        refuse_older(Path(directory))
        raise InputError(f"{directory}: not the folder of a sweep, since it has no {STORE}")
    check_regular(path)
    with _errors(path, "not a readable store of a sweep"):
        db = sqlite3.connect(f"file:{quote(os.fsencode(path))}?mode=ro", uri=True, isolation_level=None)
    with contextlib.closing(db), _errors(path, "not a readable store of a sweep"):
        db.execute("PRAGMA trusted_schema = OFF")
        db.execute("BEGIN")
        if not _has_tables(db):
            raise InputError(f"{directory}: has no sweep yet")
        yield db


def columns_in(db: sqlite3.Connection, path: Path) -> list[str]:
    """Return the names that any row has.

    Raises
    ------
    InputError
        If one is not what was written.
    """
    rows = db.execute("SELECT name, sum FROM columns").fetchall()
    for name, known in rows:
        if _sum_of(name) != known:
            raise InputError(f"{path}: a column's name is damaged: {name!r} differs from what was written")
    return [name for name, _ in rows]


def rows_in(db: sqlite3.Connection, directory: str | Path) -> Iterator[str]:
    """Go through the rows of a store in the order of the points.

    Parameters
    ----------
    db : Connection
        Connection from :func:`reading`.
    directory : path
        Directory named in messages.

    Raises
    ------
    InputError
        If one is not what was written.
    """
    return (row for _, _, row in _sound(db, Path(directory) / STORE))


def _sound(db: sqlite3.Connection, path: Path) -> Iterator[tuple[str, int, str]]:
    """Go through hash, failure and row of all points, and compare their checksums."""
    verdict = db.execute("PRAGMA quick_check(1)").fetchone()[0]  # a page that is lost takes its rows with it
    if verdict != "ok":
        raise InputError(f"{path}: is damaged: {verdict.splitlines()[-1]}")
    for *cells, known in db.execute("SELECT place, point, failed, run, row, sum FROM points ORDER BY place"):
        if _sum_of(*cells) != known:
            raise InputError(f"{path}: the row of point {cells[0]} is damaged: it differs from what was written; "
                             "restore the file, or run the sweep again into another directory")  # fmt: skip
        yield cells[1], cells[2], cells[4]


def _sum_of(*cells: object) -> int:
    """Return the CRC-32 of what a row has: it finds any damage of up to 32 bits in a row, and nearly all other."""
    return zlib.crc32(" ".join(map(str, cells)).encode("utf-8", "surrogatepass"))


def refuse_older(directory: Path) -> None:
    """Refuse a directory whose results version 0.1 wrote.

    Raises
    ------
    InputError
        If it has files of such results.
    """
    if (directory / "sweep.json").exists() or any(directory.glob("part-*")):
        raise InputError(f"{directory} has results of version 0.1 of commsim, which this version does not read; "
                         "its part-*.parquet are plain Parquet, and the sweep can be run again into another directory"
                         )  # fmt: skip


def read_description(directory: str | Path) -> dict[str, Any]:
    """Read a store's metadata: hash and content of the configuration, number of points, provenance.

    Raises
    ------
    InputError
        As :func:`reading`, or if it is no description.
    """
    with reading(directory) as db:
        return _description_in(db, Path(directory) / STORE)


def _description_in(db: sqlite3.Connection, path: Path) -> dict[str, Any]:
    text, known = db.execute("SELECT text, sum FROM description").fetchone() or ("{}", _sum_of("{}"))
    if known != _sum_of(text) or not isinstance(text, str):  # a page that rotted may hold no text at all
        raise InputError(f"{path}: the description of the sweep is damaged: it differs from what was written")
    try:
        about = parse_json(text)
    except (ValueError, RecursionError, TypeError):
        about = None
    wanted = {"parameters": dict, "provenance": dict, "config_hash": str}
    if not isinstance(about, dict) or not all(isinstance(about.get(key), kind) for key, kind in wanted.items()):
        raise InputError(f"{path}: not the description of a sweep")
    return about


def _make_tables(db: sqlite3.Connection, description: Mapping[str, Any]) -> None:
    """Make the tables of a new store."""
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    with db:
        db.execute("BEGIN IMMEDIATE")
        if not _has_tables(db):
            for statement in TABLES.values():
                db.execute(statement)
            text = json.dumps(description)
            db.execute("INSERT INTO description VALUES (?, ?)", [text, _sum_of(text)])
            db.execute(f"PRAGMA user_version = {FORMAT}")


def _has_tables(db: sqlite3.Connection) -> bool:
    """Whether a file has tables; refuse those that are not exactly ours: a view or a trigger could do anything."""
    (version,) = db.execute("PRAGMA user_version").fetchone()
    tables = dict(db.execute("SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'"))
    if version not in (0, FORMAT):
        raise sqlite3.DatabaseError(f"it has version {version}, this commsim reads {FORMAT}")
    if tables and tables != TABLES:
        raise sqlite3.DatabaseError("its tables are not those of a sweep")
    return bool(tables)


@contextlib.contextmanager
def _errors(path: Path, problem: str) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {problem}: {str(error).splitlines()[0]}") from None


def _locked(directory: Path) -> sqlite3.Connection:
    """Return the lock that keeps a second writer away, also from other processes; it ends with the process."""
    path = directory / LOCK
    if path.exists():
        check_regular(path)  # opening a pipe would wait for ever
    lock = sqlite3.connect(path, timeout=0, isolation_level=None)
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.Error as error:
        lock.close()
        problem = "another process is running this sweep" if "locked" in str(error) else f"cannot write: {error}"
        raise InputError(f"{directory}: {problem}") from None
    return lock
