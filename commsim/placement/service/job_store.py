"""Jobs and cluster on disk, so that a service that was killed knows them when it starts again."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from commsim.core.errors import InputError
from commsim.core.files.opening import check_regular

from .guard import Refusal

_APPLICATION = 0x636A6F62  # of SQLite's header, so that no other program's file is taken for ours


class JobStore:
    """A SQLite file with a row for each job, as requests have them, a cluster that a request brought, and the version.

    A change is on disk before it is answered.

    Parameters
    ----------
    path : path
        Made if it is missing.

    Raises
    ------
    InputError
        If it is no such file, empty, damaged, or another service has it.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        if self._path.exists():
            check_regular(self._path)
            if not self._path.stat().st_size:  # SQLite would take it for a new one
                raise InputError(
                    f"{self._path}: is empty, which no store of jobs is: its jobs are lost; delete it to begin anew"
                )
        with self._named():
            self._db = sqlite3.connect(self._path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            with self._named():
                # Kept until the process ends, however it does: two services would forget each other's jobs.
                self._db.execute("PRAGMA locking_mode = EXCLUSIVE")
                self._db.execute("PRAGMA synchronous = FULL")
                self._db.execute("PRAGMA trusted_schema = OFF")
                self._db.execute("BEGIN EXCLUSIVE")
                empty = not self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
                if not empty and self._db.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION:
                    raise InputError(f"{self._path}: not a store of jobs; name a file that does not exist yet")
                if empty:
                    self._db.execute(f"PRAGMA application_id = {_APPLICATION}")
                    self._db.execute("CREATE TABLE jobs (name TEXT PRIMARY KEY, job TEXT, crc INTEGER) STRICT")
                self._db.execute("CREATE TABLE IF NOT EXISTS cluster (tables TEXT, crc INTEGER) STRICT")
                self._db.execute("CREATE TABLE IF NOT EXISTS state (version INTEGER) STRICT")
                self._db.execute("COMMIT")
        except BaseException:
            self._db.close()
            raise

    def close(self) -> None:
        """Give the file back."""
        self._db.close()

    def jobs(self) -> list[dict[str, Any]]:
        """Return all jobs, as they were sent.

        Raises
        ------
        InputError
            If a row is not what was written.
        """
        with self._named():
            verdict = self._db.execute("PRAGMA quick_check(1)").fetchone()[
                0
            ]  # a page that is lost takes its jobs with it
            rows = self._db.execute("SELECT name, job, crc FROM jobs ORDER BY rowid").fetchall()
        if verdict != "ok":
            raise InputError(f"{self._path}: is damaged: {verdict.splitlines()[-1]}")
        for name, text, crc in rows:
            if zlib.crc32(f"{name}\n{text}".encode("utf-8", "surrogatepass")) != crc:
                raise InputError(f"{self._path}: job {str(name)[:64]!r} is damaged")
        return [json.loads(text) for _, text, _ in rows]

    def cluster(self) -> dict[str, Any] | None:
        """Return the tables of the cluster that a request brought, None if none did.

        Raises
        ------
        InputError
            If they are not what was written.
        """
        with self._named():
            row = self._db.execute("SELECT tables, crc FROM cluster").fetchone()
        if row is not None and zlib.crc32(row[0].encode("utf-8", "surrogatepass")) != row[1]:
            raise InputError(f"{self._path}: the cluster is damaged")
        return None if row is None else dict(json.loads(row[0]))

    def version(self) -> int:
        """Return the version of what is there; 0 of a new store."""
        with self._named():
            row = self._db.execute("SELECT version FROM state").fetchone()
        return 0 if row is None else int(row[0])

    def put_cluster(self, tables: Mapping[str, Any], version: int) -> None:
        """Write the tables of a cluster in place of those before.

        Raises
        ------
        Refusal
            If the disk does not take them.
        """
        text = json.dumps(tables)
        with self._change(version):
            self._db.execute("DELETE FROM cluster")
            self._db.execute("INSERT INTO cluster VALUES (?, ?)", (text, zlib.crc32(text.encode())))

    def put(self, rows: Iterable[Mapping[str, Any]], version: int) -> None:
        """Write jobs and the version with them, all or nothing.

        Raises
        ------
        Refusal
            If the disk does not take them.
        """
        texts = [(str(row["job"]), json.dumps(row)) for row in rows]
        with self._change(version):
            self._db.executemany(
                "INSERT OR REPLACE INTO jobs VALUES (?, ?, ?)",
                [(name, text, zlib.crc32(f"{name}\n{text}".encode())) for name, text in texts],
            )

    def remove(self, name: str, version: int) -> None:
        """Forget a job.

        Raises
        ------
        Refusal
            If the disk does not take it.
        """
        with self._change(version):
            self._db.execute("DELETE FROM jobs WHERE name = ?", (name,))

    @contextlib.contextmanager
    def _change(self, version: int) -> Iterator[None]:
        try:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("DELETE FROM state")
                self._db.execute("INSERT INTO state VALUES (?)", (version,))
                self._db.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    self._db.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise Refusal(503, f"the change could not be written, and was not made: {error}") from None

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:
            why = "another service has it" if "locked" in str(error) else f"not a readable store of jobs: {error}"
            raise InputError(f"{self._path}: {why}") from None
