"""What is kept of the events of a Kineto trace that is re-timed: spans of computation, and what says who exchanges.

Events are looked at one by one while the file is decoded, and most leave three numbers behind. Where kernels of a GPU
are recorded, computation is on its streams; elsewhere it is on a thread of the processor.

References
----------
Kineto, ``libkineto/src/output_json.cpp``: names of the arguments, of the kinds of events, and of synchronisation.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Mapping
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from commsim.core.spec import is_whole
from commsim.profiles.calls import bytes_of_type, operation_of

from .kernel_names import KernelNames
from .linked_annotations import LAUNCHES, LinkedAnnotations, elements_of

ON_GPU = ("kernel", "gpu_memcpy", "gpu_memset")
# Exchanges and waits that are kept whole; a step of a large program has some thousands.
MAX_EXCHANGES = 250_000
_MICROSECOND = 1e-6
_ARGUMENTS = (
    "Collective name", "dtype", "In msg nelems", "Out msg nelems", "Group size", "Rank", "Process Group Name",
    "Process Group Description", "Process Group Ranks", "Src Rank", "Dst Rank", "stream", "correlation", "External id",
    "Input Dims", "Input type",
)  # fmt: skip
_NUMBERS = ("stream", "correlation", "External id", "wait_on_stream", "wait_on_cuda_event_record_corr_id")
# Functional collectives issue these too.
_ISSUES = re.compile(r"c10d::\w+")
_WORK = re.compile(r"(?:gloo|mpi|ucc):\w+")
_UPDATE = "Optimizer.step"
_STEP = "ProfilerStep"


class Events:
    """Events of one rank; :meth:`add` is called for each.

    Parameters
    ----------
    names : KernelNames
        Kernels that exchange data and are no calls of NCCL.
    """

    def __init__(self, names: KernelNames) -> None:
        self._names = names
        self.exchanges: list[dict[str, Any]] = []  # kernels that exchange
        self.issues: list[dict[str, Any]] = []  # calls of c10d on the processor
        self.works: list[dict[str, Any]] = []  # what a thread of a backend does for such a call
        self.waits: list[dict[str, Any]] = []  # waits of a stream for another
        self.updates: list[float] = []
        self.threads = set[str]()  # of the backend
        self.launched: dict[int, float] = {}  # when the kernel of each correlation was launched, s
        self._kernels, self._correlations = array("d"), array("q")
        self._threads: dict[str, array[float]] = {}
        self._shapes: dict[int, float] = {}
        self._stepping = ""
        self.linked = LinkedAnnotations()

    def add(self, event: Mapping[str, Any]) -> None:
        """Look at an event, and keep what matters of it.

        Raises
        ------
        ValueError
            If too many exchanges are to be kept.
        """
        start, length = event.get("ts"), event.get("dur")
        if event.get("ph") != "X" or not _is_time(start) or not _is_time(length):
            return
        begin, end = start * _MICROSECOND, (start + length) * _MICROSECOND
        kind, name = str(event.get("cat", "")).lower(), event.get("name")
        self.linked.add(event)
        arguments = event.get("args")
        arguments = arguments if isinstance(arguments, dict) else {}
        name = name if isinstance(name, str) else ""
        if kind in ON_GPU:
            self._on_gpu(kind, name, arguments, begin, end)
        elif kind in LAUNCHES:
            if (number := _number(arguments.get("correlation"))) >= 0:
                self.launched[number] = begin
        elif kind == "cuda_sync":
            if "Stream Wait" in name:
                self._keep(
                    self.waits, "", arguments, begin, end, ("wait_on_stream", "wait_on_cuda_event_record_corr_id")
                )
        elif kind in ("cpu_op", "user_annotation"):
            self._on_processor(kind, name, arguments, (begin, end), str(event.get("tid")))

    def _on_gpu(self, kind: str, name: str, arguments: dict[str, Any], begin: float, end: float) -> None:
        called = isinstance(arguments.get("Collective name"), str)
        if kind == "kernel" and (called or self._names.find(name) is not None):
            self._keep(self.exchanges, name, arguments, begin, end)
            return
        self._kernels.extend((begin, end))
        self._correlations.append(_number(arguments.get("correlation")))

    def _on_processor(
        self, kind: str, name: str, arguments: dict[str, Any], span: tuple[float, float], thread: str
    ) -> None:
        if name.startswith(_STEP):
            self._stepping = thread
        elif name.startswith(_UPDATE):
            self.updates.append(span[0])
        elif _WORK.match(name):
            self._keep(self.works, name, arguments, *span)
            self.threads.add(thread)
        elif kind == "cpu_op":
            if _ISSUES.match(name) and operation_of(name):
                self._keep(self.issues, name, arguments, *span)
            self._threads.setdefault(thread, array("d")).extend(span)
            if (number := _number(arguments.get("External id"))) >= 0 and "Input Dims" in arguments:
                self._shapes[number] = largest_tensor(arguments)

    def _keep(
        self, where: list[dict[str, Any]], name: str, arguments: Mapping[str, Any], begin: float, end: float,
        also: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        if len(where) >= MAX_EXCHANGES:
            raise ValueError(f"more than {MAX_EXCHANGES} exchanges are to be kept")
        kept = {key: arguments[key] for key in (*_ARGUMENTS, *also) if key in arguments}
        kept |= {key: _number(arguments.get(key)) for key in _NUMBERS if key in kept}
        where.append({"name": name[:512], "begin": begin, "end": end, "args": kept})

    @property
    def has_gpu(self) -> bool:
        """Whether kernels were recorded."""
        return bool(self._kernels or self.exchanges)

    def kernels(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Spans of the kernels that compute, and when each was launched (NaN where that is not known).

        Returns
        -------
        float64[n, 2], float64[n], s
        """
        launched = np.array([self.launched.get(n, np.nan) for n in self._correlations], np.float64)
        return np.array(self._kernels, np.float64).reshape(-1, 2), launched

    def operators(self) -> NDArray[np.float64]:
        """Spans of operators of the thread that trains, which marks steps or else is the busiest: the innermost ones.

        Returns
        -------
        float64[n, 2], s
        """
        thread = self._stepping if self._stepping in self._threads else ""
        busiest = max(self._threads, key=lambda name: len(self._threads[name]), default="")
        spans = np.array(self._threads.get(thread or busiest, array("d")), np.float64).reshape(-1, 2)
        spans = spans[np.lexsort((-spans[:, 1], spans[:, 0]))]
        # one that has others inside may wait there, as backward functions with hooks do
        innermost = np.append(spans[1:, 0] >= spans[:-1, 1], np.ones(min(len(spans), 1), bool))
        return np.asarray(spans[innermost], np.float64)

    def bytes_of(self, number: object) -> float:
        """Bytes of the largest tensor of the operator with an external number; 0 where no shapes are recorded."""
        return self._shapes.get(number, 0.0) if isinstance(number, int) else 0.0


def largest_tensor(arguments: Mapping[str, Any]) -> float:
    """Bytes of the largest argument of an operator: one tensor, or the tensors of a list together."""
    shapes, types = arguments.get("Input Dims"), arguments.get("Input type")
    if not isinstance(shapes, list) or not isinstance(types, list):
        return 0.0
    own = next((n for n in map(_bytes, types) if n), 4)  # a list of tensors has no type of its own
    return max(
        (elements_of(shape) * (_bytes(kind) or own) for shape, kind in zip(shapes, types, strict=False)), default=0.0
    )


def _bytes(kind: object) -> int:
    return bytes_of_type(kind) if isinstance(kind, str) else 0


def _number(value: object) -> int:
    """Return a number that names a stream, a launch or an operator; -1 for anything else."""
    if isinstance(value, str) and is_whole(value, 11):
        return int(value)
    return value if isinstance(value, int) and 0 <= value < 2**62 else -1


def _is_time(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e18
