"""A result in a file: JSON for people, npz for arrays; the trace of a result in JSON is an npz file beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from commsim.core.errors import InputError
from commsim.core.files.opening import path_of
from commsim.core.result import Result, Trace

from .fields import TableFields
from .npz import Archive, read_archive, write_archive
from .whole_files import read_tree, write_json

_TEXTS = ("collective", "operation", "engine")
_NUMBERS = ("size", "time", "time_from_last_start", "bytes_on_wire")
_ARRAYS = ("link_bytes", "samples")
_TRACE = ("start", "sent", "done")


def read_result(path: str | Path) -> Result:
    """Read a result from a .json or .npz file.

    Raises
    ------
    InputError
        If something in the file is missing, unknown or wrong.
    """
    path = path_of(path, "result")
    if path.suffix not in (".json", ".npz"):
        raise InputError(f"{path}: a result is a .json or .npz file")
    if path.suffix == ".npz":
        archive = read_archive(path, "result")
        values = _read_scalars(archive.header)
        values |= {name: archive.take(name, np.float64) for name in _ARRAYS}
        trace = _take_trace(archive) if "start" in archive else None
        archive.finish()
    else:
        top = TableFields(read_tree(path), path)
        if "kind" not in top and "results" in top:
            raise InputError(
                f"{path}: has the rows of `commsim run --json`, without what each link carries: read them as JSON; "
                "cs.save(cs.predict(...), FILE) writes a result"
            )
        top.schema()
        top.one_of("kind", ("result",))
        values = _read_scalars(top)
        values |= {name: top.numbers(name) for name in _ARRAYS}
        trace = _read_trace_beside(top, path) if "trace" in top else None
        top.finish()
    try:
        return Result(trace=trace, **values)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def write_result(result: Result, path: str | Path) -> None:
    """Write a result so that :func:`read_result` gives the same back; ``x.json`` puts its trace in ``x.trace.npz``."""
    path = Path(path)
    scalars: dict[str, Any] = {name: getattr(result, name) for name in (*_TEXTS, "n_ranks", *_NUMBERS)}
    scalars["counters"] = dict(result.counters)
    if result.interval is not None:
        scalars["interval"] = list(result.interval)
    trace = {} if result.trace is None else {name: getattr(result.trace, name) for name in _TRACE}
    if path.suffix == ".npz":
        write_archive(path, "result", scalars, {name: getattr(result, name) for name in _ARRAYS} | trace)
        return
    if path.suffix != ".json":
        raise InputError(f"{path}: a result is saved as .json or .npz")
    tree = {"schema": 1, "kind": "result", **scalars} | {name: getattr(result, name).tolist() for name in _ARRAYS}
    if trace:
        beside = path.with_suffix(".trace.npz")
        write_archive(beside, "trace", {}, trace)
        tree["trace"] = beside.name
    write_json(path, tree)


def _read_scalars(top: TableFields) -> dict[str, Any]:
    values: dict[str, Any] = {name: top.text(name) for name in _TEXTS}
    values |= {name: top.number(name) for name in _NUMBERS}
    counters = top.table("counters")
    if "interval" in top:
        interval = top.numbers("interval")
        if len(interval) != 2:
            top.refuse("interval", "two times in seconds")
        values["interval"] = tuple(interval)
    return values | {"n_ranks": top.whole("n_ranks", 1), "counters": {key: counters.number(key) for key in counters}}


def _take_trace(archive: Archive) -> Trace:
    start, sent, done = (archive.take(name, np.float64) for name in _TRACE)
    try:
        return Trace(start, sent, done)
    except InputError as error:
        raise InputError(f"{archive.path}: {error}") from None


def _read_trace_beside(top: TableFields, path: Path) -> Trace:
    name = top.text("trace")
    if Path(name).name != name or not name.endswith(".npz"):
        top.refuse("trace", "the name of an .npz file in the same folder")
    archive = read_archive(path.with_name(name), "trace")
    trace = _take_trace(archive)
    archive.finish()
    return trace
