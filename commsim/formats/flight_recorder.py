"""PyTorch's flight recorder: the last calls of one rank, as JSON or as a pickle of plain values.

References
----------
PyTorch 2.10, ``torch/csrc/distributed/c10d/FlightRecorder.hpp``: version 2.10 of the records.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from commsim.core.errors import InputError
from commsim.files.fields import Fields

from .calls import MAX_RANKS, Call, left_out_notes, whole_array

MAX_ENTRIES = 1_000_000
MAX_TENSOR_BYTES = 2**50
_NAMES = (
    ("all_reduce_barrier", "barrier"), ("barrier", "barrier"), ("all_?reduce", "all_reduce"),
    ("reduce_scatter", "reduce_scatter"), ("all_?gather", "all_gather"), ("all_?to_?all", "all_to_all"),
    ("broadcast", "broadcast"), ("reduce", "reduce"), ("gather", "gather"), ("scatter", "scatter"),
    ("send", "send_recv"),
)  # fmt: skip
"""By what a profiling name has in it; the first that fits. A receive is the send of somebody else."""
_BYTES = {"float": 4, "double": 8, "half": 2, "bfloat16": 2, "int": 4, "long": 8, "short": 2, "char": 1, "byte": 1,
          "bool": 1, "complexfloat": 8, "complexdouble": 16}  # fmt: skip


def bytes_of_type(name: str) -> int:
    """Bytes of an element, by PyTorch's or Kineto's name of its type; 0 if it is not known."""
    name = name.lower().removeprefix("at::").removeprefix("torch.").replace("c10::", "")
    return 1 if name.startswith("float8") else _BYTES.get(name, 0)


def operation_of(name: str) -> str:
    """Operation of a profiling name such as ``nccl:_all_gather_base``; empty if it is none that is known."""
    short = name[:256].rpartition(":")[2].lower()
    return next((operation for pattern, operation in _NAMES if re.search(pattern, short)), "")


def flight_recorder_calls(tree: Mapping[str, Any], path: Path, notes: list[str]) -> list[Call]:
    """Read the calls of a decoded record; what cannot be used is said, not refused, since records end anywhere.

    Raises
    ------
    InputError
        Naming the field, if one that is there is of another type than it should be.
    """
    entries = tree.get("entries")
    if not isinstance(entries, (list, tuple)) or len(entries) > MAX_ENTRIES:
        raise InputError(f"{path}: entries must be a list of at most {MAX_ENTRIES}, got {type(entries).__name__}")
    groups = _groups(tree)
    rank = _rank(tree, path)
    calls: list[Call] = []
    left_out: Counter[str] = Counter()
    for i, entry in enumerate(entries):
        if not isinstance(entry, dict):
            raise InputError(f"{path}: entries[{i}] must be a table, got {type(entry).__name__}")
        found = _call(Fields(_without_tuples(entry), path, ("entries", i)), groups, rank)
        if isinstance(found, Call):
            calls.append(found)
        else:
            left_out[found] += 1
    notes += left_out_notes(path, left_out, "entries")
    return calls


def _call(entry: Fields, groups: Mapping[str, int], rank: int | None) -> Call | str:
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
    return Call(operation, size, n_ranks, start * 1e-9, seconds, rank, group)


def _n_bytes(entry: Fields, side: str) -> float | None:
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


def _group(entry: Fields) -> str:
    """Name of the process group: the first of its name and its description."""
    named = entry.raw("process_group")
    if isinstance(named, list) and named and isinstance(named[0], str):
        return named[0]
    return str(entry.raw("pg_id") if entry.raw("pg_id") is not None else "")


def _groups(tree: Mapping[str, Any]) -> dict[str, int]:
    """Ranks of each process group, as far as the record says."""
    config = tree.get("pg_config")
    found = {}
    for name, about in config.items() if isinstance(config, dict) else ():
        ranks = about.get("ranks") if isinstance(about, dict) else None
        if isinstance(ranks, str):
            try:
                ranks = json.loads(ranks)
            except (ValueError, RecursionError):
                continue
        if isinstance(ranks, list) and 0 < len(ranks) <= MAX_RANKS:
            found[str(name)] = len(ranks)
    return found


def _rank(tree: Mapping[str, Any], path: Path) -> int | None:
    """Whose record it is: as it says, else the last number in the file's name."""
    if isinstance(tree.get("rank"), int):
        return int(tree["rank"])
    numbers = re.findall(r"\d{1,9}", path.name)
    return int(numbers[-1]) if numbers else None


def _without_tuples(entry: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(key): list(value) if isinstance(value, tuple) else value for key, value in entry.items()}
