"""Times of operators in Kineto's traces: the kernels that each call launched, by operator and shapes of tensors.

A kernel has the ``External id`` of the operator that launched it. A trace without kernels is of a CPU: there an
operator takes what it spends outside of the operators that it calls.

References
----------
Kineto, ``libkineto/src/output_json.cpp``: names of the arguments. Times are microseconds.
"""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commsim.core.errors import InputError
from commsim.core.files.whole_files import parse_json, read_text, refused_by_name

from .kineto import EVENTS

MAX_VALUES = 2**24
PREFIX = "aten::"
# Operators whose kernels are launched by another one that they call.
LAUNCHED_BY = {"_to_copy": "copy_", "clone": "copy_", "contiguous": "copy_"}
Shapes = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class KernelTimes:
    """Times of operators in a trace.

    Parameters
    ----------
    path : path
        File that they are from.
    by_shape : mapping of (str, shapes) to float, s
        Median time of the calls of an operator with tensors of these shapes.
    by_name : mapping of str to float, s
        Median time of all calls of an operator.
    n_calls : int
        Number of calls that took time.
    are_kernels : bool
        Whether the times are those of kernels.
    """

    path: Path
    by_shape: dict[tuple[str, Shapes], float]
    by_name: dict[str, float]
    n_calls: int
    are_kernels: bool

    def of(self, name: str, args: Sequence[Any]) -> float | None:
        """Return the time of an operator with such arguments: that of the same shapes, else that of its name."""
        name = LAUNCHED_BY.get(name, name) if name not in self.by_name else name
        shapes = tuple(tuple(map(int, arg.shape)) for arg in args if hasattr(arg, "shape"))
        return self.by_shape.get((name, shapes), self.by_name.get(name))

    def source_line(self) -> str:
        """One line on what was read."""
        what = "kernels of" if self.are_kernels else "no kernels, times on the CPU of"
        return f"{self.path}: {what} {self.n_calls} calls of {len(self.by_name)} operators, the median of each shape"


def read_kernel_times(path: str | Path) -> KernelTimes:
    """Read the times of the operators of a trace.

    Raises
    ------
    InputError
        If the file is no trace, or has no operators.
    """
    path = Path(path)
    with refused_by_name(path):
        tree = parse_json(read_text(path), MAX_VALUES)
    events = tree.get(EVENTS) if isinstance(tree, dict) else tree
    if not isinstance(events, list):
        raise InputError(f"{path}: {EVENTS} must be a list of events, got {type(events).__name__}")
    spans = [e for e in events if isinstance(e, dict) and e.get("ph") == "X" and isinstance(e.get("args"), dict)]
    calls = [e for e in spans if e.get("cat") == "cpu_op" and str(e.get("name", "")).startswith(PREFIX)]
    if not calls:
        raise InputError(f"{path}: has no operators (events of kind cpu_op); profile with torch.profiler")
    kernels: Counter[Any] = Counter()
    for event in spans:
        if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset"):
            kernels[event["args"].get("External id")] += _number(event, "dur", path)  # type: ignore[assignment]
    times = [kernels[e["args"].get("External id")] for e in calls] if kernels else _own_times(calls, path)
    by_shape: dict[tuple[str, Shapes], list[float]] = defaultdict(list)
    by_name: dict[str, list[float]] = defaultdict(list)
    for event, time in zip(calls, times, strict=True):
        if time > 0:
            name = str(event["name"]).removeprefix(PREFIX)
            by_shape[name, _shapes(event)].append(time * 1e-6)
            by_name[name].append(time * 1e-6)
    if not by_name:
        raise InputError(f"{path}: no kernel has the External id of an operator")
    return KernelTimes(
        path,
        {key: statistics.median(times) for key, times in by_shape.items()},
        {key: statistics.median(times) for key, times in by_name.items()},
        sum(map(len, by_name.values())),
        bool(kernels),
    )


def _shapes(event: dict[str, Any]) -> Shapes:
    dims = event["args"].get("Input Dims")
    if not isinstance(dims, list):
        return ()
    plain = [d for d in dims if isinstance(d, list) and all(isinstance(n, int) for n in d)]
    # what is no tensor has no dimensions, as have tensors of one value
    return tuple(tuple(d) for d in plain if d)


def _own_times(calls: list[dict[str, Any]], path: Path) -> list[float]:
    """Microseconds of each call outside of the calls that it makes, thread by thread."""
    own = [_number(e, "dur", path) for e in calls]
    order = sorted(range(len(calls)), key=lambda i: (_number(calls[i], "ts", path), -own[i]))
    open_calls: dict[Any, list[tuple[float, int]]] = defaultdict(list)
    length = list(own)
    for i in order:
        stack, start = open_calls[calls[i].get("tid")], _number(calls[i], "ts", path)
        while stack and stack[-1][0] <= start:
            stack.pop()
        if stack:
            own[stack[-1][1]] -= length[i]
        stack.append((start + length[i], i))
    return [max(time, 0.0) for time in own]


def _number(event: dict[str, Any], key: str, path: Path) -> float:
    value = event.get(key)
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value < 1e18:
        raise InputError(f"{path}: {key} of {str(event.get('name'))[:40]!r} must be microseconds, got {value!r:.40}")
    return float(value)
