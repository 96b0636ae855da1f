"""Rows on disk: appended as lines while a sweep runs, turned into Parquet shards, each of which appears whole.

``part-000003.rows`` is written by one process alone, a line for each finished point, and becomes
``part-000003.parquet`` by a rename. Whatever moment the process is killed at, either the lines or the shard are there;
where both are, the shard is complete. A last line that was cut is no row.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from commsim.core.errors import InputError
from commsim.files.whole_files import check_regular

from .shard import parts, read_rows, read_shard, write_parquet

ROWS_PER_SHARD = 20_000
LOCK = "sweep.lock"


class Journal:
    """The rows of one sweep, for the process that writes them.

    Parameters
    ----------
    directory : Path
        It exists, and has a ``sweep.json``.
    kinds : mapping of str to str
        Kind of every parameter.
    provenance : mapping
        Of this run; goes into the metadata of each shard.

    Raises
    ------
    InputError
        If another process writes here, or nothing can be written.
    """

    def __init__(self, directory: Path, kinds: Mapping[str, str], provenance: Mapping[str, Any]) -> None:
        self._directory, self._kinds, self._provenance = directory, kinds, provenance
        self._lock = _locked(directory)
        self._file: BinaryIO | None = None
        self._n_rows = 0
        try:
            self._number = self._recover()
        except BaseException:
            self._lock.close()
            raise

    def append(self, lines: list[bytes]) -> None:
        """Keep the rows of finished points: they survive the process from now on."""
        try:
            if self._file is None:
                self._file = self._path().open("ab", buffering=0)
            _write(self._file, b"".join(lines))
        except OSError as error:
            raise InputError(f"{self._path()}: cannot write: {error.strerror}") from None
        self._n_rows += len(lines)
        if self._n_rows >= ROWS_PER_SHARD:
            self._finish_shard()

    def forget_failed(self) -> None:
        """Take out the rows of points that failed; every shard is replaced whole, or vanishes."""
        for path in parts(self._directory, ".parquet").values():
            table = read_shard(path)
            good = table.filter(table.column("error").is_null())
            if not good.num_rows:
                path.unlink()
            elif good.num_rows < table.num_rows:
                write_parquet(path, good, json.loads((table.schema.metadata or {}).get(b"commsim", b"{}")))

    def close(self) -> None:
        """Turn what is left into a shard, and let others write."""
        try:
            self._finish_shard()
        finally:
            self._lock.close()

    def _recover(self) -> int:
        """Finish what a writer left that was killed, and return the number of the next shard."""
        for unfinished in self._directory.glob(".part-*"):  # a shard that was never renamed
            with contextlib.suppress(IsADirectoryError, PermissionError):  # none of ours
                unfinished.unlink(missing_ok=True)
        for path in parts(self._directory, ".rows").values():
            if not path.with_suffix(".parquet").exists():
                self._to_shard(path)
            path.unlink(missing_ok=True)
        return 1 + max(parts(self._directory, ".parquet"), default=-1)

    def _path(self) -> Path:
        return self._directory / f"part-{self._number:06d}.rows"

    def _finish_shard(self) -> None:
        if self._file is None:
            return
        self._file.close()
        self._file = None
        self._to_shard(self._path())
        self._path().unlink()
        self._number, self._n_rows = self._number + 1, 0

    def _to_shard(self, path: Path) -> None:
        rows = read_rows(path, self._kinds)
        if rows.num_rows:
            write_parquet(path.with_suffix(".parquet"), rows, self._provenance)


def _write(file: BinaryIO, data: bytes) -> None:
    """Write all of `data`: an unbuffered file may take less at once."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


def _locked(directory: Path) -> BinaryIO:
    """Open the lock that tells other processes that this one writes; it is gone when the process is."""
    try:
        import fcntl
    except ImportError:  # no such locks here
        return open(os.devnull, "rb")  # noqa: PTH123
    if (directory / LOCK).exists():
        check_regular(directory / LOCK)  # opening a pipe would wait for ever
    try:
        lock = (directory / LOCK).open("ab")
    except OSError as error:
        raise InputError(f"{directory}: cannot write: {error.strerror}") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise InputError(f"{directory}: another process is running this sweep") from None
    except OSError:
        pass  # a file system without locks
    return lock
