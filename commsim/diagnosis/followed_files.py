"""Follow the records of a running job: new lines of growing files, and dumps that are written again."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import NamedTuple

from commsim.core.errors import InputError
from commsim.core.files.opening import opening
from commsim.profiles.profiles import read_calls

from .live_records import LiveRecord, of_calls, of_line

# Lines that are read of one file at a time, so that files of many ranks advance together, and files that are followed.
N_LINES = 2_000
MAX_FILES = 65_536
# Bytes of a line; a longer one is none of the inspector's.
MAX_LINE = 2**20
_INSPECTOR = b'"coll_perf"', b'"p2p_perf"'


class _Seen(NamedTuple):
    """How far a file was read, and when it was changed last."""

    offset: int
    changed_ns: int
    is_lines: bool


class FollowedFiles:
    """What a file or a folder has that was not read yet.

    Parameters
    ----------
    path : path
        File or folder. Of a folder all files are read: lines of NCCL's inspector as they are added, records of the
        flight recorder each time that one is written.

    Attributes
    ----------
    n_left_out : int
        Lines that are none of a collective, and files of another kind.

    Raises
    ------
    InputError
        If there is no such file or folder.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.n_left_out = 0
        self._seen: dict[str, _Seen] = {}
        if not self.path.exists():
            raise InputError(f"{path}: no such file or folder")

    def new_records(self) -> Iterator[LiveRecord]:
        """Yield records that were added since the last call; a last line without its end waits for it.

        At most ``N_LINES`` of each file are read: call it again until nothing is yielded.
        """
        for path in self._files():
            try:
                status = path.stat()
            except OSError:  # removed since it was listed
                continue
            seen = self._seen.get(str(path), _Seen(0, 0, False))
            if seen.changed_ns == status.st_mtime_ns and seen.offset == status.st_size:
                continue
            if not os.access(path, os.R_OK):
                self.n_left_out += 1
                continue
            yield from self._read(path, seen if seen.offset <= status.st_size else _Seen(0, 0, seen.is_lines), status)

    def _files(self) -> list[Path]:
        if self.path.is_file():
            return [self.path]
        found = sorted(path for path in self.path.rglob("*") if path.is_file())
        if len(found) > MAX_FILES:
            raise InputError(f"{self.path}: more than {MAX_FILES} files")
        return found

    def _read(self, path: Path, seen: _Seen, status: os.stat_result) -> Iterator[LiveRecord]:
        is_lines = seen.is_lines or _is_inspector(path)
        if is_lines:
            offset = yield from self._lines(path, seen.offset)
        else:
            yield from self._dump(path)
            offset = status.st_size
        self._seen[str(path)] = _Seen(offset, status.st_mtime_ns if offset == status.st_size else 0, is_lines)

    def _lines(self, path: Path, offset: int) -> Generator[LiveRecord, None, int]:
        """Yield the records of whole lines from an offset on; return the offset behind them."""
        with opening(path) as file:
            file.seek(offset)
            for _ in range(N_LINES):
                line = file.readline(MAX_LINE)
                if not line.endswith(b"\n") and len(line) < MAX_LINE:
                    break
                offset += len(line)
                record = of_line(line.decode("utf-8", "replace"))
                if record is not None:
                    yield record
                elif not line.isspace():
                    self.n_left_out += 1
        return offset

    def _dump(self, path: Path) -> Iterator[LiveRecord]:
        try:
            calls, _ = read_calls(path)
        except InputError:  # of another kind, or not whole yet
            self.n_left_out += 1
            return
        for record in of_calls(calls, path):
            if record is not None:
                yield record
            else:
                self.n_left_out += 1


def _is_inspector(path: Path) -> bool:
    with opening(path) as file:
        head = file.read(4096)
    return any(word in head for word in _INSPECTOR)
