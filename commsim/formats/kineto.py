"""Kineto's traces (PyTorch's profiler, Chrome JSON): the collectives of one rank, with sizes, times and kernels.

One collective appears as a kernel, as an annotation on the GPU, and as calls on the CPU. Only one of these kinds is
read, the one that is closest to the wire.

References
----------
Kineto, ``libkineto/src/output_json.cpp``: names of the arguments. Times are microseconds.

Read JSON whose one long list does not fit into memory as objects: its members are decoded a few at a time.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from commsim.core.errors import InputError

from ..files.whole_files import no_constant, no_duplicates
from .calls import MAX_RANKS, Call, bytes_of_type, left_out_notes, operation_of, whole_array

MAX_MEMBER = 2**20
"""Characters of one member, and of every other value."""
MAX_MEMBERS = 3_000_000
MAX_TABLES = 6_000_000
"""Tables and lists of the whole text: an event and its arguments are two."""
MAX_KEPT = 250_000
MAX_FIELDS = 10_000
"""Of the table beside its long list; Kineto writes a dozen."""
_WINDOW = 4 * MAX_MEMBER
_BATCH = 2**18
_ODD = 500_000
"""Members that are decoded one by one, which costs as much as ten of those that come together."""
_BLANK = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder(object_pairs_hook=no_duplicates, parse_constant=no_constant)


def parse_long_list(text: str, key: str, keep: Callable[[Any], Any]) -> dict[str, Any]:
    """Decode a table of which one field is a long list, or the long list alone.

    Parameters
    ----------
    text : str
        JSON.
    key : str
        The field; a list that stands alone is returned under this name.
    keep : callable
        From a member of the list to what of it is kept, None for nothing; the rest is forgotten at once.

    Returns
    -------
    dict
        The table, of whose list only some members are left.

    Raises
    ------
    ValueError
        If it is not well formed, a key of a table is there twice, there are too many members or fields, or one is too
        long; whatever `keep` raises.
    """
    if text.count("{") + text.count("[") > MAX_TABLES:
        raise ValueError(f"more than {MAX_TABLES} tables and lists")
    source = _Source(text)
    tree = {key: source.members(keep)} if source.peek() == "[" else source.table(key, keep)
    if source.peek():
        raise ValueError(f"more follows the end, at character {source.at}")
    return tree


class _Source:
    """A text, and how far it is read."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self._window, self._begin = "", 0
        self._odd_until = 0

    def peek(self) -> str:
        """Return the next character that is not blank, empty at the end."""
        self.at = _BLANK.match(self.text, self.at).end()  # type: ignore[union-attr] # it matches nothing, too
        return self.text[self.at : self.at + 1]

    def take(self, wanted: str) -> str:
        """Go past the next character, which must be one of some."""
        found = self.peek()
        if not found or found not in wanted:
            raise ValueError(f"expected {' or '.join(wanted)} at character {self.at}, got {found or 'the end'!r}")
        self.at += 1
        return found

    def value(self) -> Any:
        """Decode the next value."""
        self.peek()
        if not self._begin <= self.at <= self._begin + len(self._window) - MAX_MEMBER:
            self._begin, self._window = self.at, self.text[self.at : self.at + _WINDOW]
        try:
            value, end = _DECODER.raw_decode(self._window, self.at - self._begin)
        except json.JSONDecodeError as error:
            if self._begin + len(self._window) < len(self.text):
                raise ValueError(f"damaged, or longer than {MAX_MEMBER}, at character {self.at}: {error.msg}") from None
            raise ValueError(f"{error.msg} at character {self._begin + error.pos}") from None
        self.at = self._begin + end
        return value

    def members(self, keep: Callable[[Any], Any]) -> list[Any]:
        """Decode a list, and keep some of it."""
        self.take("[")
        kept: list[Any] = []
        if self.peek() == "]":
            self.at += 1
            return kept
        n = n_odd = 0
        while True:
            several = self._several()
            n_odd += not several
            found = several or [self.value()]
            n += len(found)
            if n > MAX_MEMBERS or n_odd > _ODD:
                raise ValueError(f"a list of more than {MAX_MEMBERS} members, or {_ODD} that follow no pattern")
            kept += [slim for value in found if (slim := keep(value)) is not None]
            if len(kept) > MAX_KEPT:
                raise ValueError(f"more than {MAX_KEPT} members are to be kept")
            if self.take(",]") == "]":
                return kept

    def _several(self) -> list[Any]:
        """Decode tables that follow each other, up to the last that ends within a batch; none if that is not plain."""
        if self.peek() != "{" or self.at < self._odd_until:
            return []
        end = self.text.rfind("},", self.at, self.at + _BATCH) + 1
        if not end:
            return []
        try:
            found: list[Any] = _DECODER.decode(f"[{self.text[self.at : end]}]")
        except (ValueError, RecursionError):  # it ends within a table, or is damaged: one by one that is said exactly
            self._odd_until = end
            return []
        self.at = end
        return found

    def table(self, key: str, keep: Callable[[Any], Any]) -> dict[str, Any]:
        """Decode a table, and keep some of its long list."""
        self.take("{")
        tree: dict[str, Any] = {}
        if self.peek() == "}":
            self.at += 1
            return tree
        while True:
            if len(tree) == MAX_FIELDS:
                raise ValueError(f"a table of more than {MAX_FIELDS} fields")
            name = self.value() if self.peek() == '"' else self.take('"')
            self.take(":")
            if name in tree:
                raise ValueError(f"key {name!r} appears twice")
            tree[name] = self.members(keep) if name == key and self.peek() == "[" else self.value()
            if self.take(",}") == "}":
                return tree


EVENTS = "traceEvents"
_KINDS = ("kernel", "gpu_user_annotation", "user_annotation", "cpu_op")
_KERNEL = re.compile(
    r"nccl(?:Dev)?Kernel_\w+?_(RING|TREE|COLLNET_DIRECT|COLLNET_CHAIN|NVLS_TREE|NVLS|PAT)_(LL128|LL|SIMPLE)",
    re.IGNORECASE,
)
_STEP = re.compile(r"ProfilerStep#?\s*\d+")
_FIELDS = ("ph", "cat", "name", "ts", "dur")
_ARGUMENTS = ("Collective name", "dtype", "In msg nelems", "Out msg nelems", "Group size", "Rank", "Process Group Name")
_LOOKED_AT = 2**22
"""Characters in which the events begin; what Kineto writes before them is short."""


def kineto_calls(tree: Mapping[str, Any], path: Path, notes: list[str]) -> list[Call]:
    """Read the calls of a decoded trace, in the order in which they started.

    Raises
    ------
    InputError
        If the events are no list of tables.
    """
    found: dict[str, list[Call]] = {kind: [] for kind in _KINDS}
    left_out: Counter[str] = Counter()
    rank = _rank(tree)
    for event in _events(tree, path):
        arguments = event.get("args")
        if not isinstance(arguments, dict) or not isinstance(arguments.get("Collective name"), str):
            continue
        kind = str(event.get("cat", "")).lower()
        if event.get("ph") == "X" and kind in found:
            call = _call(event, arguments, rank)
            if isinstance(call, Call):
                found[kind].append(call)
            else:
                left_out[call] += 1
    notes += left_out_notes(path, left_out, "events")
    kind = next((kind for kind in _KINDS if found[kind]), "")
    if kind and kind != "kernel":
        notes.append(f"{path}: has no kernels; times are those of the events of kind {kind}")
    return sorted(found[kind], key=lambda call: call.start) if kind else []


def is_kineto(text: str) -> bool:
    """Whether JSON is a trace of events: its list, or a table that has it."""
    return text.lstrip()[:1] == "[" or f'"{EVENTS}"' in text[:_LOOKED_AT]


def kineto_tree(text: str) -> dict[str, Any]:
    """Decode a trace, and keep of its events only those that are read here: most are not about collectives.

    Raises
    ------
    ValueError
        If it is not well formed, or has too many events.
    """
    return parse_long_list(text, EVENTS, _read)


def _read(event: Any) -> dict[str, Any] | None:
    """Return what is read of an event, None of one that is about no collective and no step."""
    if not isinstance(event, dict) or "ph" not in event:
        raise ValueError(f"an event of {EVENTS} must be a table with its kind as 'ph', got {event!r:.60}")
    arguments = event.get("args")
    named = isinstance(arguments, dict) and "Collective name" in arguments
    if not named and not _is_step(event):
        return None
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


def _call(event: Mapping[str, Any], arguments: Mapping[str, Any], rank: int | None) -> Call | str:
    name = str(arguments["Collective name"])
    operation = operation_of(name)
    if not operation:
        return f"{name[:40]!r} is no operation here"
    if not _is_number(event.get("ts")) or not _is_number(event.get("dur")):
        return "without a time"
    each = bytes_of_type(str(arguments.get("dtype", "")))
    sent, received = (arguments.get(f"{side} msg nelems") for side in ("In", "Out"))
    if operation != "barrier" and (not each or not _is_number(sent) or not _is_number(received)):
        return "without a size"
    members = arguments.get("Group size")
    n_ranks = members if isinstance(members, int) and 0 < members <= MAX_RANKS else None
    if operation == "send_recv":
        n_ranks = 2
    if n_ranks is None and operation in ("gather", "scatter"):
        return "without the size of the group"
    size = 0.0 if operation == "barrier" else whole_array(operation, sent * each, received * each, n_ranks)  # type: ignore[operator]
    kernel = _KERNEL.search(str(event.get("name", ""))[:512])
    seen = arguments.get("Rank", rank)
    return Call(
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
