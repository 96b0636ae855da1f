"""Trace events as chrome://tracing and Perfetto read them: JSON, written as a stream, compressed when asked."""

from __future__ import annotations

import contextlib
import gzip
import itertools
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from .whole_files import replacing

# Events that are joined to one text before they are written.
AT_ONCE = 4096


def process_name(pid: int, name: str) -> dict[str, Any]:
    """Event that names a process."""
    return {"name": "process_name", "ph": "M", "pid": pid, "args": {"name": name}}


def thread_name(pid: int, tid: int, name: str) -> dict[str, Any]:
    """Event that names a thread.

    Parameters
    ----------
    pid, tid : int
        The process, and its thread.
    name : str
        Shown in place of the number.
    """
    return {"name": "thread_name", "ph": "M", "pid": pid, "tid": tid, "args": {"name": name}}


def sort_index(pid: int, tid: int | None, index: int) -> dict[str, Any]:
    """Event that gives the position of a process, or a thread of it, among the others.

    Parameters
    ----------
    pid : int
        The process.
    tid : int or None
        Its thread; None for the process itself.
    index : int
        Those with smaller ones come above.
    """
    if tid is None:
        return {"name": "process_sort_index", "ph": "M", "pid": pid, "args": {"sort_index": index}}
    return {"name": "thread_sort_index", "ph": "M", "pid": pid, "tid": tid, "args": {"sort_index": index}}


def write_events(path: str | Path, events: Iterable[dict[str, Any] | str], **more: object) -> int:
    """Write events one after the other; the file appears whole or not at all, and is the same for the same events.

    Parameters
    ----------
    path : path
        Compressed when it ends with .gz.
    events : iterable of dict or str
        Objects, or the JSON text of one.
    **more
        What else the outermost object has.

    Returns
    -------
    int
        How many events were written.
    """
    n = 0
    texts = (event if isinstance(event, str) else json.dumps(event) for event in events)
    with opened(path) as out:
        head = json.dumps({"displayTimeUnit": "ns", **more})
        out.write(f'{head[:-1]}, "traceEvents": ['.encode())
        for part in _batches(texts):
            out.write((",\n" if n else "\n").encode())
            out.write(",\n".join(part).encode())
            n += len(part)
        out.write(b"\n]}\n")
    return n


@contextlib.contextmanager
def opened(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file that appears whole or not at all, compressed without a date when its name ends with .gz."""
    with replacing(path) as out:
        if Path(path).suffix != ".gz":
            yield out
            return
        with gzip.GzipFile(filename="", mode="wb", fileobj=out, mtime=0, compresslevel=6) as packed:
            yield cast(BinaryIO, packed)


def _batches(texts: Iterator[str]) -> Iterator[tuple[str, ...]]:
    while part := tuple(itertools.islice(texts, AT_ONCE)):
        yield part
