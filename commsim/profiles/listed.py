"""Calls of any profile, as a list: of PyTorch, with kernels known by name, of Chakra, and of NCCL's inspector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from commsim.core.errors import InputError
from commsim.core.files.whole_files import read_head
from commsim.core.units import count_text
from commsim.formats.chakra.traces import SUFFIX
from commsim.formats.measurement import ReadingContext
from commsim.profiles.calls import RecordedCall
from commsim.profiles.profiles import read_calls

from .graph_of_ranks import SEND
from .kernel_names import KernelNames
from .rank import TracedRank
from .read_chakra import graph_of_files
from .read_ranks import read_ranks

_INSPECTOR = b'"coll_perf"'
_LOOKED_AT = 2**16


@dataclass(frozen=True, slots=True)
class ListedCalls:
    """Calls of one rank.

    Parameters
    ----------
    calls : tuple of RecordedCall
        Calls, in the order in which they started where that is known.
    steps : tuple of float, s
        Starts of marked steps.
    untimed : str
        Why it is not known when calls began; empty where it is.
    n_unsized : int
        Calls whose bytes are not known.
    """

    calls: tuple[RecordedCall, ...]
    steps: tuple[float, ...] = ()
    untimed: str = ""
    n_unsized: int = 0

    def require_iteration(self, path: str) -> None:
        """Refuse a list of which no iteration can be written: without times, or without bytes.

        Raises
        ------
        InputError
            If it has none.
        """
        if self.untimed:
            raise InputError(f"{path}: {self.untimed}")
        if self.n_unsized:
            raise InputError(f"{path}: {_not_recorded(self.n_unsized)}")


def read_listed(path: str | Path, names: KernelNames, sizes: list[tuple[str, float]], notes: list[str]) -> ListedCalls:
    """Read the calls of a file.

    Parameters
    ----------
    path : path
        Record of the flight recorder, trace of Kineto or Chakra, or lines of NCCL's inspector.
    names : KernelNames
        Kernels that exchange data.
    sizes : list of (str, float)
        Bytes of calls whose kernel or group has a name in it.
    notes : list of str
        Receives what was left out, and why.

    Raises
    ------
    InputError
        If the file is none of these, is damaged or too large, or has no calls.
    """
    path = Path(path)
    if path.suffix == SUFFIX:
        tasks = graph_of_files([path]).graph.tasks
        mine = [task for task in tasks if task.operation and 0 in task.group]
        calls = [
            RecordedCall(
                "send_recv" if task.operation == SEND else task.operation, task.size, len(task.group), 0.0, None
            )
            for task in mine
        ]
        return ListedCalls(
            _require_calls(calls, path), untimed="a trace of Chakra has no times of calls; --network times it"
        )
    if _INSPECTOR in read_head(path, _LOOKED_AT):
        from commsim.formats.json_rows import read_json_rows

        rows = read_json_rows(path, ReadingContext("", None, notes))
        calls = [RecordedCall(row.operation, row.size, row.n_ranks, 0.0, row.time) for row in rows]
        return ListedCalls(
            _require_calls(calls, path),
            untimed="lines of NCCL's inspector do not say when a call began; give a profile",
        )
    found, steps = read_calls(path, notes, required=False)
    if found:
        return ListedCalls(found, steps)
    (rank,) = read_ranks([path], names, sizes, notes)
    unknown = sum(call.size is None for call in rank.calls)
    if unknown:
        notes.append(f"{path}: {_not_recorded(unknown)}")
    return ListedCalls(tuple(_call(rank, i) for i in range(len(rank.calls))), rank.steps, n_unsized=unknown)


def _not_recorded(n_calls: int) -> str:
    return f"the bytes of {count_text(n_calls, 'call')} are not recorded: record_shapes=True, or --size NAME=SIZE"


def _require_calls(calls: Sequence[RecordedCall], path: Path) -> tuple[RecordedCall, ...]:
    if not calls:
        raise InputError(f"{path}: has no collective calls")
    return tuple(calls)


def _call(rank: TracedRank, i: int) -> RecordedCall:
    call = rank.calls[i]
    group = rank.groups.get(call.group)
    n_ranks = group.size if group is not None and group.size else None
    return RecordedCall(call.operation, call.size or 0.0, 2 if call.operation == "send_recv" else n_ranks, call.start,
                call.end - call.start, rank.rank, group.label if group is not None else call.group)  # fmt: skip
