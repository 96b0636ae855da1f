"""Collectives of traces whose kernels have no arguments (PyTorch before 2.2), and of traces without kernels.

There a kernel says only that it sends and receives. Its launch has the same correlation, and was made inside of an
annotation of the backend, ``nccl:all_to_all``, which has the shapes: by the external number that both have, else by
the time on the same thread. Where there is no annotation, the operator around the launch has them, ``c10d::alltoall_``.

References
----------
PyTorch 2.1, ``ProcessGroupNCCL.cpp``: titles of works; Kineto, ``libkineto/src/output_json.cpp``: numbers.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeGuard

import numpy as np

from .calls import MAX_RANKS, bytes_of_type, operation_of

LAUNCHES = ("cuda_runtime", "cuda_driver")
# Kernels and annotations that are kept.
MAX_LINKED = 250_000
# Titles of works by backend: NCCL, RCCL, and those of other accelerators (xccl, hccl, cncl) are named alike.
_TITLE = re.compile(r"(?:\w{0,4}c[cn]l|gloo|mpi|ucc):\w+")
# The operator that the program called, around the annotation: its tensors are what goes in and what comes out.
_CALLED = "c10d::"
_KERNEL = re.compile(r"nccl(?:Dev)?Kernel", re.IGNORECASE)


@dataclass(slots=True)
class _Annotation:
    name: str
    dtype: str
    elements: float
    start: float
    length: float


@dataclass(slots=True)
class LinkedAnnotations:
    """What links kernels to annotations; :meth:`add` looks at each event.

    Parameters
    ----------
    world : int, optional
        Ranks of the job, where the trace says.
    """

    world: int | None = None
    _of_number: dict[int, _Annotation] = field(default_factory=dict)
    _of_thread: dict[str, list[_Annotation]] = field(default_factory=lambda: defaultdict(list))
    _launches: dict[int, tuple[int, float, str]] = field(default_factory=dict)
    _kernels: list[dict[str, Any]] = field(default_factory=list)
    _n: int = 0

    def add(self, event: Mapping[str, Any]) -> None:
        """Look at an event, and keep what may link it."""
        arguments, name, start = event.get("args"), event.get("name"), event.get("ts")
        if event.get("ph") != "X" or not isinstance(arguments, dict) or not isinstance(name, str):
            return
        kind = str(event.get("cat", "")).lower()
        if not _is_time(start) or not _is_time(event.get("dur")) or self._n >= MAX_LINKED:
            return
        if kind in LAUNCHES and _is_time(arguments.get("correlation")):
            outer = arguments.get("External id")
            self._launches[arguments["correlation"]] = (
                outer if isinstance(outer, int) else -1, float(start), str(event.get("tid")),
            )  # fmt: skip
        elif kind == "kernel" and _KERNEL.match(name) and "Collective name" not in arguments:
            self._n += 1
            self._kernels.append({"name": name[:512], "ts": start, "dur": event["dur"], "args": dict(arguments)})
        elif kind in ("user_annotation", "cpu_op") and (_TITLE.fullmatch(name) or name.startswith(_CALLED)):
            self._annotate(name, arguments, event)

    def _annotate(self, name: str, arguments: dict[str, Any], event: Mapping[str, Any]) -> None:
        dtype, elements = _largest(arguments)
        if not operation_of(name):
            return
        self._n += 1
        one = _Annotation(name, dtype, elements, float(event["ts"]), float(event["dur"]))
        self._of_thread[str(event.get("tid"))].append(one)
        if isinstance(number := arguments.get("External id"), int):
            self._of_number[number] = one

    def arguments(self, correlation: object) -> dict[str, Any]:
        """Arguments that a kernel would have, by the correlation of its launch; empty where nothing is linked."""
        outer, start, thread = self._launches.get(correlation, (-1, 0.0, "")) if isinstance(correlation, int) else (
            -1, 0.0, "")  # fmt: skip
        found = self._of_number.get(outer) or self._around(thread, start)
        return self._as_arguments(found) if found else {}

    def _around(self, thread: str, time: float) -> _Annotation | None:
        """Annotation of a thread inside of which a moment is."""
        rows = self._of_thread.get(thread, [])
        i = bisect_right(rows, time, key=lambda one: one.start)
        one = rows[i - 1] if i else None
        return one if one is not None and time <= one.start + one.length else None

    def _as_arguments(self, one: _Annotation) -> dict[str, Any]:
        operation, ranks = operation_of(one.name), self.world
        whole = 1 if one.name.startswith(_CALLED) else ranks or 1
        out = one.elements * (whole if operation == "all_gather" else 1)
        out = out / whole if operation == "reduce_scatter" else out
        group = {"Group size": ranks} if ranks else {}
        return {"Collective name": one.name, "dtype": one.dtype, "In msg nelems": one.elements,
                "Out msg nelems": out, **group}  # fmt: skip

    def events(self, about: object) -> list[dict[str, Any]]:
        """Return events as later traces have them: of the kernels, or where there are none of the annotations.

        Parameters
        ----------
        about : object
            What the trace says of the job (``distributedInfo``).
        """
        world = about.get("world_size") if isinstance(about, Mapping) else None
        self.world = world if isinstance(world, int) and 0 < world <= MAX_RANKS else None
        for rows in self._of_thread.values():
            rows.sort(key=lambda one: one.start)
        events = [
            {**kernel, "ph": "X", "cat": "kernel",
             "args": self.arguments(kernel["args"].get("correlation")) or {"Collective name": kernel["name"]}}
            for kernel in self._kernels
        ]  # fmt: skip
        return events or [
            {"ph": "X", "cat": "user_annotation", "name": one.name, "ts": one.start, "dur": one.length,
             "args": self._as_arguments(one)}
            for rows in self._of_thread.values() for one in rows if not one.name.startswith(_CALLED)
        ]  # fmt: skip


def _is_time(value: object) -> TypeGuard[float]:
    """Whether a value is a number of 0 or more, as times and numbers of launches are."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e18


def _largest(arguments: Mapping[str, Any]) -> tuple[str, float]:
    """Type and elements of the largest argument; a list of tensors counts together."""
    shapes, types = arguments.get("Input Dims"), arguments.get("Input type")
    if not isinstance(shapes, list) or not isinstance(types, list):
        return "", 0.0
    known = next((kind for kind in types if isinstance(kind, str) and bytes_of_type(kind)), "float")
    pairs = zip(shapes, types, strict=False)
    sizes = [(elements_of(s), k if isinstance(k, str) and bytes_of_type(k) else known) for s, k in pairs]
    elements, dtype = max(sizes, default=(0.0, ""))
    return dtype, elements


def elements_of(shape: object, depth: int = 0) -> float:
    """Elements of a tensor's shape, or of all shapes of a list.

    Parameters
    ----------
    shape : object
        What a trace has: a list of lengths, or of such lists.
    depth : int
        How many lists it is in.
    """
    if not isinstance(shape, list) or not shape or depth > 3:
        return 0.0
    if all(isinstance(side, list) for side in shape):
        return sum(elements_of(side, depth + 1) for side in shape)
    lengths = [side for side in shape if isinstance(side, int) and 0 <= side < 2**48]
    return float(np.prod(lengths, dtype=np.float64)) if len(lengths) == len(shape) else 0.0
