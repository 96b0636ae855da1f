"""Kineto's traces (PyTorch's profiler, Chrome JSON): the collectives of one rank, with sizes, times and kernels.

One collective appears as a kernel, as an annotation on the GPU, and as calls on the CPU. Only one of these kinds is
read, the one that is closest to the wire. Most events are about no collective; they are forgotten as soon as they are
decoded, since all of them do not fit into memory as objects.

References
----------
Kineto, ``libkineto/src/output_json.cpp``: names of the arguments. Times are microseconds.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from commsim.core.errors import InputError
from commsim.core.files.whole_files import no_duplicates, parse_json

from .calls import MAX_RANKS, RecordedCall, bytes_of_type, left_out_notes, operation_of, whole_array
from .linked_annotations import LinkedAnnotations

# Of a whole trace; Kineto writes about fifteen for an event: the largest file that is read has a million.
MAX_VALUES = 2**24
MAX_KEPT = 250_000
# Placeholder of an event that is about no collective and no step.
_NOT_READ = object()
EVENTS = "traceEvents"
_KINDS = ("kernel", "gpu_user_annotation", "user_annotation", "cpu_op")
_KERNEL = re.compile(
    r"nccl(?:Dev)?Kernel_\w+?_(RING|TREE|COLLNET_DIRECT|COLLNET_CHAIN|NVLS_TREE|NVLS|PAT)_(LL128|LL|SIMPLE)",
    re.IGNORECASE,
)
_STEP = re.compile(r"ProfilerStep#?\s*\d+")
_FIELDS = ("ph", "cat", "name", "ts", "dur")
_ARGUMENTS = ("Collective name", "dtype", "In msg nelems", "Out msg nelems", "Group size", "Rank", "Process Group Name")
# Why a call is left out whose shapes were not recorded, PyTorch's default.
WITHOUT_SIZE = "without a size"
# Characters in which the events begin; what Kineto writes before them is short.
_LOOKED_AT = 2**22


def kineto_calls(tree: Mapping[str, Any], path: Path, notes: list[str]) -> list[RecordedCall]:
    """Read the calls of a decoded trace, in the order in which they started.

    Parameters
    ----------
    tree : mapping
        Trace from :func:`kineto_tree`.
    path : path
        Path of the file, named in messages.
    notes : list of str
        Receives what was left out.

    Raises
    ------
    InputError
        If the events are no list of tables.
    """
    by_kind: dict[str, list[RecordedCall]] = {kind: [] for kind in _KINDS}
    left_out: Counter[str] = Counter()
    rank = _rank(tree)
    for event in _events(tree, path):
        arguments = event.get("args")
        if not isinstance(arguments, dict) or not isinstance(arguments.get("Collective name"), str):
            continue
        kind = str(event.get("cat", "")).lower()
        if event.get("ph") == "X" and kind in by_kind:
            call = collective_call(event, arguments, rank)
            if isinstance(call, RecordedCall):
                by_kind[kind].append(call)
            else:
                left_out[call] += 1
    notes += left_out_notes(path, left_out, "events")
    kind = next((kind for kind in _KINDS if by_kind[kind]), "")
    if kind and kind != "kernel":
        notes.append(f"{path}: has no kernels; times are those of the events of kind {kind}")
    return sorted(by_kind[kind], key=lambda call: call.start) if kind else []


def is_kineto(text: str) -> bool:
    """Whether JSON is a trace of events: its list, or a table that has it."""
    return text.lstrip()[:1] == "[" or f'"{EVENTS}"' in text[:_LOOKED_AT]


def kineto_tree(text: str, also: Callable[[Mapping[str, Any]], None] | None = None) -> dict[str, Any]:
    """Decode a trace, and keep of its events only those that are read here: most are not about collectives.

    Parameters
    ----------
    text : str
        The whole text.
    also : callable, optional
        Looks at each event as soon as it is decoded.

    Raises
    ------
    ValueError
        If it is not well formed, or has too many events.
    """
    n_kept, linked = 0, LinkedAnnotations()

    def table(pairs: list[tuple[str, Any]]) -> Any:
        """Return a table, or what is kept of an event as soon as it is decoded."""
        nonlocal n_kept
        fields = no_duplicates(pairs)
        if "ph" not in fields:
            return fields
        if also is not None:
            also(fields)
        linked.add(fields)
        event = _read(fields)
        n_kept += event is not _NOT_READ
        if n_kept > MAX_KEPT:
            raise ValueError(f"more than {MAX_KEPT} events are to be kept")
        return event

    tree = parse_json(text, MAX_VALUES, table)
    tree = {EVENTS: tree} if isinstance(tree, list) else tree
    if not isinstance(tree, dict):
        raise ValueError(f"expected {EVENTS}, or a table that has them")
    events = tree.get(EVENTS)
    if isinstance(events, list):
        for event in events:
            if event is not _NOT_READ and not (isinstance(event, dict) and "ph" in event):
                raise ValueError(f"an event of {EVENTS} must be a table with its kind as 'ph', got {event!r:.60}")
        tree[EVENTS] = [event for event in events if event is not _NOT_READ]
        if not any("Collective name" in event["args"] for event in tree[EVENTS]):
            tree[EVENTS] += linked.events(tree.get("distributedInfo"))
    return tree


def _read(event: dict[str, Any]) -> Any:
    """Return what is read of an event."""
    arguments = event.get("args")
    named = isinstance(arguments, dict) and "Collective name" in arguments
    if not named and not _is_step(event):
        return _NOT_READ
    inside = {key: arguments[key] for key in _ARGUMENTS if key in arguments} if named and arguments else {}
    return {key: event[key] for key in _FIELDS if key in event} | {"args": inside}


def _is_step(event: Mapping[str, Any]) -> bool:
    return isinstance(name := event.get("name"), str) and _STEP.fullmatch(name) is not None


def step_times(tree: Mapping[str, Any], path: Path) -> list[float]:
    """Start of each step that the profiler marked, in seconds, ascending."""
    starts = {
        float(event["ts"]) * 1e-6
        for event in _events(tree, path)
        if _is_step(event) and _is_number(event.get("ts")) and event.get("ph") == "X"
    }
    return sorted(starts)


def _events(tree: Mapping[str, Any], path: Path) -> list[dict[str, Any]]:
    events = tree.get(EVENTS)
    if not isinstance(events, list):
        raise InputError(f"{path}: {EVENTS} must be a list, got {type(events).__name__}")
    return [event for event in events if isinstance(event, dict)]


def collective_call(event: Mapping[str, Any], arguments: Mapping[str, Any], rank: int | None) -> RecordedCall | str:
    """Return the call of an event, or why it is left out."""
    name = str(arguments["Collective name"])
    operation = operation_of(name)
    if not operation:
        return f"{name[:40]!r} is no operation here"
    if not _is_number(event.get("ts")) or not _is_number(event.get("dur")):
        return "without a time"
    each = bytes_of_type(str(arguments.get("dtype", "")))
    sent, received = (arguments.get(f"{side} msg nelems") for side in ("In", "Out"))
    if operation != "barrier" and (not each or not _is_number(sent) or not _is_number(received)):
        return WITHOUT_SIZE
    members = arguments.get("Group size")
    n_ranks = members if isinstance(members, int) and 0 < members <= MAX_RANKS else None
    if operation == "send_recv":
        n_ranks = 2
    if n_ranks is None and operation in ("gather", "scatter"):
        return "without the size of the group"
    size = 0.0 if operation == "barrier" else whole_array(operation, sent * each, received * each, n_ranks)  # type: ignore[operator]
    kernel = _KERNEL.search(str(event.get("name", ""))[:512])
    seen = arguments.get("Rank", rank)
    return RecordedCall(
        operation, size, n_ranks, float(event["ts"]) * 1e-6, float(event["dur"]) * 1e-6,
        seen if isinstance(seen, int) else rank, str(arguments.get("Process Group Name", "")),
        kernel[1].lower() if kernel else "", kernel[2].lower() if kernel else "",
    )  # fmt: skip


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e18


def _rank(tree: Mapping[str, Any]) -> int | None:
    about = tree.get("distributedInfo")
    rank = about.get("rank") if isinstance(about, dict) else None
    return rank if isinstance(rank, int) else None
