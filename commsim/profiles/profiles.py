"""Profiles of PyTorch: traces of Kineto, and records of the flight recorder as JSON or as a pickle of plain values.

The flight recorder keeps the last calls of one rank.

References
----------
PyTorch 2.10, ``torch/csrc/distributed/c10d/FlightRecorder.hpp``: version 2.10 of the records.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from commsim.core.errors import InputError
from commsim.core.files.fields import TableFields
from commsim.core.files.whole_files import parse_json, read_bytes, read_text, refused_by_name
from commsim.formats.measurement import MAX_BYTES, Measurement, ReadingContext

from .calls import MAX_RANKS, RecordedCall, bytes_of_type, left_out_notes, measured_calls, operation_of, whole_array
from .kineto import is_kineto, kineto_calls, kineto_tree, step_times
from .plain_pickle import MAX_PICKLE_BYTES, load_plain_pickle

MAX_ENTRIES = 1_000_000
MAX_TENSOR_BYTES = 2**50


def flight_recorder_calls(
    tree: Mapping[str, Any], path: Path, notes: list[str], issued: list[int] | None = None
) -> list[RecordedCall]:
    """Read the calls of a decoded record; unusable entries are reported, not refused, since records end anywhere.

    Parameters
    ----------
    tree : mapping
        The decoded record.
    path : path
        Path of the file, whose name may contain the rank.
    notes : list of str
        Receives what was left out.
    issued : list of int, optional
        Receives when each call was issued, ns of the system's clock.

    Raises
    ------
    InputError
        Naming the field, if one that is there is of another type than it should be.
    """
    entries = tree.get("entries")
    if not isinstance(entries, (list, tuple)) or len(entries) > MAX_ENTRIES:
        raise InputError(f"{path}: entries must be a list of at most {MAX_ENTRIES}, got {type(entries).__name__}")
    groups = _groups(tree)
    rank = record_rank(tree, path)
    calls: list[RecordedCall] = []
    left_out: Counter[str] = Counter()
    for i, entry in enumerate(entries):
        if not isinstance(entry, dict):
            raise InputError(f"{path}: entries[{i}] must be a table, got {type(entry).__name__}")
        fields = TableFields(_without_tuples(entry), path, ("entries", i))
        call = _call(fields, groups, rank)
        if isinstance(call, RecordedCall):
            calls.append(call)
            if issued is not None:
                issued.append(fields.whole("time_created_ns", -(2**62), 2**62, 0) or round(call.start * 1e9))
        else:
            left_out[call] += 1
    notes += left_out_notes(path, left_out, "entries")
    return calls


def _call(entry: TableFields, groups: Mapping[str, int], rank: int | None) -> RecordedCall | str:
    name = entry.text("profiling_name", "")
    operation = operation_of(name)
    if not operation:
        return f"{name[:40]!r} is no operation here"
    group = _group(entry)
    sent, received = (_n_bytes(entry, side) for side in ("input", "output"))
    if sent is None or received is None:
        return "the type of its elements is not known"
    n_ranks = 2 if operation == "send_recv" else groups.get(group)
    if n_ranks is None and operation in ("gather", "scatter"):
        return "its group is not in pg_config"
    size = 0.0 if operation == "barrier" else whole_array(operation, sent, received, n_ranks)
    begun, done = (entry.raw(f"time_discovered_{what}_ns") for what in ("started", "completed"))
    start = begun if isinstance(begun, int) else entry.whole("time_created_ns", -(2**62), 2**62, 0)
    duration = entry.raw("duration_ms")
    if isinstance(duration, (int, float)) and not isinstance(duration, bool) and 0 <= duration < 1e12:
        seconds: float | None = duration * 1e-3
    else:  # what the watchdog saw, which looks only now and then
        seconds = (done - begun) * 1e-9 if isinstance(begun, int) and isinstance(done, int) and done >= begun else None
    number = entry.raw("p2p_seq_id" if operation == "send_recv" else "collective_seq_id")
    sequence = number if isinstance(number, int) and not isinstance(number, bool) else None
    return RecordedCall(operation, size, n_ranks, start * 1e-9, seconds, rank, group, sequence=sequence)


def _n_bytes(entry: TableFields, side: str) -> float | None:
    """Bytes of all tensors of one side; None if the type of one is not known."""
    shapes, types = entry.raw(f"{side}_sizes") or [], entry.raw(f"{side}_dtypes") or []
    if not isinstance(shapes, list) or not isinstance(types, list) or len(shapes) > 65536:
        entry.refuse(f"{side}_sizes", "a list of shapes")
    total = 0
    for shape, kind in zip(shapes, types, strict=False):
        if not isinstance(shape, (list, tuple)) or len(shape) > 64 or not isinstance(kind, str):
            entry.refuse(f"{side}_sizes", "a list of shapes, each a list of lengths")
        n_bytes = bytes_of_type(kind)
        if not n_bytes:
            return None
        for length in shape:
            if not isinstance(length, int) or not 0 <= length < 2**48:
                entry.refuse(f"{side}_sizes", "a list of shapes, each a list of lengths")
            n_bytes = min(n_bytes * length, MAX_TENSOR_BYTES + 1)
        total += n_bytes
    if total > MAX_TENSOR_BYTES:
        entry.refuse(f"{side}_sizes", f"shapes of at most {MAX_TENSOR_BYTES >> 40} TiB in all")
    return float(total)


def _group(entry: TableFields) -> str:
    """Name of the process group: the first of its name and its description."""
    group = entry.raw("process_group")
    if isinstance(group, list) and group and isinstance(group[0], str):
        return group[0]
    return str(entry.raw("pg_id") if entry.raw("pg_id") is not None else "")


def _groups(tree: Mapping[str, Any]) -> dict[str, int]:
    """Ranks of each process group, as far as the record says."""
    config = tree.get("pg_config")
    sizes = {}
    for name, about in config.items() if isinstance(config, dict) else ():
        ranks = about.get("ranks") if isinstance(about, dict) else None
        if isinstance(ranks, str):
            try:
                ranks = json.loads(ranks)
            except (ValueError, RecursionError):
                continue
        if isinstance(ranks, list) and 0 < len(ranks) <= MAX_RANKS:
            sizes[str(name)] = len(ranks)
    return sizes


def record_rank(tree: Mapping[str, Any], path: Path) -> int | None:
    """Whose record it is: as it says, else the last number in the file's name."""
    if isinstance(tree.get("rank"), int):
        return int(tree["rank"])
    numbers = re.findall(r"\d{1,9}", path.name)
    return int(numbers[-1]) if numbers else None


def _without_tuples(entry: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(key): list(value) if isinstance(value, tuple) else value for key, value in entry.items()}


def read_calls(
    path: str | Path, notes: list[str] | None = None, *, required: bool = True
) -> tuple[tuple[RecordedCall, ...], tuple[float, ...]]:
    """Read the collective calls of a profile.

    Parameters
    ----------
    path : path
        A record of the flight recorder (JSON or pickle), or a trace of Kineto; either may be packed with gzip.
    notes : list of str, optional
        Receives what was left out, and why.
    required : bool
        Whether a profile without calls is refused.

    Returns
    -------
    tuple of RecordedCall, tuple of float
        In the order in which they started; and when the steps did that the profiler marked, s.

    Raises
    ------
    InputError
        If the file is neither, is damaged or too large, or has no calls.
    """
    path, notes = Path(path), [] if notes is None else notes
    tree = _tree(path)
    calls = calls_of_tree(tree, path, notes)
    if not calls and required:
        raise InputError(f"{path}: has no collective calls" + (f" ({notes[-1]})" if notes else ""))
    return tuple(calls), tuple(step_times(tree, path) if "traceEvents" in tree else ())


def calls_of_tree(tree: Mapping[str, Any], path: Path, notes: list[str]) -> list[RecordedCall]:
    """Read the calls of a decoded profile, in the order in which they started.

    Parameters
    ----------
    tree : mapping
        The decoded profile, of either kind.
    path : path
        Path of the file, named in messages.
    notes : list of str
        Receives what was left out.
    """
    read = kineto_calls if "traceEvents" in tree else flight_recorder_calls
    return sorted(read(tree, path, notes), key=lambda call: call.start)


def read_profile_rows(path: Path, context: ReadingContext) -> Sequence[Measurement]:
    """Read a pickle of the flight recorder as rows of measurements."""
    return measured_calls(calls_of_tree(_tree(path), path, context.notes), path, context)


def _json(path: Path) -> Any:
    text = read_text(path, MAX_BYTES)
    with refused_by_name(path):
        return kineto_tree(text) if is_kineto(text) else parse_json(text)


def _tree(path: Path) -> dict[str, Any]:
    is_pickle = read_bytes(path, MAX_BYTES)[:1] == b"\x80"
    tree = load_plain_pickle(read_bytes(path, MAX_PICKLE_BYTES), str(path)) if is_pickle else _json(path)
    if not isinstance(tree, dict) or not ("entries" in tree or "traceEvents" in tree):
        raise InputError(
            f"{path}: neither a record of the flight recorder (entries) nor a trace of Kineto (traceEvents)"
        )
    return tree
